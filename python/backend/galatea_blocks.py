"""Shared memory: blocks of the server's and blocks of the worker's, and the page of flags on which both say who has
one."""

import contextlib
import mmap
import os
import sys
import threading

import numpy as np

try:
    from _posixshmem import shm_open, shm_unlink
except ImportError:  # A Python without it has the system's calls.
    import ctypes

    _libc = ctypes.CDLL(None, use_errno=True)
    # The types of the fixed arguments alone: what comes behind them is then passed as to a function of any number of
    # arguments, which is another way on ARM's macOS.
    _libc.shm_open.argtypes = (ctypes.c_char_p, ctypes.c_int)
    _libc.shm_unlink.argtypes = (ctypes.c_char_p,)

    def _checked(result, name):
        if result < 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error), name)
        return result

    def shm_open(name, flags, mode=0o600):
        return _checked(_libc.shm_open(name.encode(), flags, ctypes.c_int(mode)), name)

    def shm_unlink(name):
        _checked(_libc.shm_unlink(name.encode()), name)


# A mapping needs no descriptor of its own, of which some systems give a process few.
_UNTRACKED = {"trackfd": False} if sys.version_info >= (3, 13) else {}

# The page of flags: one byte for each of the server's blocks, for each of the worker's, and for each request that is
# under way (1: its client has gone).
OWN = 1024
SLOTS = 2048
FLAGS = 65536
NO_SLOT = 0xFFFFFFFF
MOST_BLOCKS = 1024
# Blocks of the worker that nobody uses are kept up to so many.
MOST_FREE = 2
ALIGNMENT = 64
# Tensors of so many bytes lie in a message, and all of a message's own tensors together have so many.
SMALL = 8192
MOST_SMALL = 131072


class Block:
    """A mapped object. `root` is the array that every view of it has as its base, so that Python's own count of
    references to it tells whether there are views."""

    __slots__ = ("number", "size", "map", "root", "start", "name")

    def __init__(self, number, name, size, create):
        flags = os.O_RDWR | (os.O_CREAT | os.O_EXCL if create else 0)
        fd = shm_open(name, flags, mode=0o600)
        try:
            if create:
                os.ftruncate(fd, size)
                if sys.platform == "linux":
                    # What there is no room for is an error here, and not the end of the process later.
                    os.posix_fallocate(fd, 0, size)
            self.map = mmap.mmap(fd, size, **_UNTRACKED)
        except BaseException:
            if create:
                # Nobody else knows the name.
                with contextlib.suppress(OSError):
                    shm_unlink(name)
            raise
        finally:
            os.close(fd)
        self.number = number
        self.name = name
        self.size = size
        self.root = np.frombuffer(self.map, dtype=np.uint8)
        self.start = self.root.__array_interface__["data"][0]

    def is_viewed(self):
        """Whether anything but the block itself holds its bytes."""
        return sys.getrefcount(self.root) > _ALONE

    def offset_of(self, array):
        """Where in the block an array lies, if it lies there in one piece."""
        if not array.flags.c_contiguous:
            return None
        offset = array.__array_interface__["data"][0] - self.start
        return offset if 0 <= offset and offset + array.nbytes <= self.size else None


def _alone():
    class Holder:
        __slots__ = ("root",)

    holder = Holder()
    holder.root = np.zeros(1, dtype=np.uint8)
    return sys.getrefcount(holder.root)


# References that are counted for an array that one attribute holds.
_ALONE = _alone()


class Blocks:
    """All blocks of a worker. Any thread may open, close and release blocks of the server's; those that take blocks of
    the worker's have a lock for it, under which they also send what they say of them."""

    def __init__(self, flags_name, prefix, least):
        self.flags = Block(0, flags_name, FLAGS, False).map
        self._prefix = prefix
        self._least = least
        self._given = {}
        self._held = set()
        # For `_held`, and so that a flag is cleared once: the server may give the block to somebody else right after. A
        # finalizer that sends a response may need it again on the same thread.
        self._lock = threading.RLock()
        self._own = {}
        self._made = 0

    def open(self, number, name, size):
        """Takes a block of the server's."""
        self._given[number] = Block(number, name, size, False)

    def close(self, number):
        """Lets a block of the server's go."""
        with self._lock:
            self._given.pop(number, None)
            self._held.discard(number)

    def given(self, number):
        """A block of the server's."""
        return self._given[number]

    def release(self, number):
        """Gives a block back to the server, now or when the last view has gone."""
        block = self._given.get(number)
        # One that could not be opened has no views, and the server waits for its flag all the same.
        if block is not None and block.is_viewed():
            with self._lock:
                self._held.add(number)
        else:
            self.flags[number] = 0

    def release_held(self):
        """Gives the blocks back whose views have gone meanwhile."""
        if not self._held:
            return
        with self._lock:
            for number in tuple(self._held):
                if number in self._held and not self._given[number].is_viewed():
                    self._held.discard(number)
                    self.flags[number] = 0

    def take(self, size):
        """A block of the worker's with room, which the server gives back; and what the server must be told: blocks
        that are new and numbers of those that go."""
        free = [block for block in self._own.values() if not self.flags[OWN + block.number]]
        fit = [block for block in free if block.size >= size]
        if fit:
            block = min(fit, key=lambda block: block.size)
            self.flags[OWN + block.number] = 1
            return block, (), ()
        free.sort(key=lambda block: block.size)
        gone = [block.number for block in free[: max(0, len(free) - MOST_FREE + 1)]]
        for number in gone:
            del self._own[number]
        number = next((number for number in range(MOST_BLOCKS) if number not in self._own), None)
        if number is None:
            raise MemoryError(f"{MOST_BLOCKS} blocks of shared memory wait for their readers")
        self._made += 1
        name = f"{self._prefix}o{self._made:x}"
        block = Block(number, name, rounded(max(size, self._least)), True)
        self._own[number] = block
        self.flags[OWN + number] = 1
        return block, (block,), gone


def rounded(size):
    """The size of a block for so many bytes: up to an eighth more, so that requests of nearly one size share it."""
    step = max(65536, 1 << max(0, size.bit_length() - 4))
    return -(-size // step) * step
