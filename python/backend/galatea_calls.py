"""What a model asks the server for: a socket of its own, on which any thread calls at any time.

`crates/serving/src/backend/python/calls.rs` is the other end and says what the messages are. A thread that starts with
the first call reads the replies; nothing that it does takes long, so the server can always send.
"""

import json
import os
import socket as sockets
import struct
import threading
from collections import deque
from concurrent.futures import Future

from galatea_tensors import TritonModelException

PREAMBLE = b"\0galatea calls 1\n"

# What the worker sends, and the server.
CALL = 1
RELEASE = 4
REPLY = 1

_HEAD = struct.Struct("<IBQ")
_LENGTH = struct.Struct("<I")
_NUMBER = struct.Struct("<Q")


class CallError(TritonModelException):
    """What the server answers instead of a result; `code` is one of TritonError's."""

    def __init__(self, message, code):
        super().__init__(message)
        self.code = code


# Models and clients read the name of the exception that Triton has.
CallError.__name__ = TritonModelException.__name__


class Calls:
    """The socket, and the calls that have no reply yet."""

    def __init__(self, socket):
        self._socket = socket
        self._process = os.getpid()
        self._sending = threading.Lock()
        self._lock = threading.Lock()
        self._open = {}
        self._last = 0
        self._reader = None
        self._gone = None
        self._left = deque()
        socket.sendall(PREAMBLE)

    def call(self, name, /, **fields):
        """Calls and waits for the result."""
        return self.begin(name, **fields).result()

    def begin(self, name, /, **fields):
        """Calls; the future of the result. It raises CallError with what the server says."""
        future = Future()
        number = self.expect(lambda kind, message: _settle(future, message), future.set_exception)
        self.send(CALL, number, json.dumps({"call": name, **fields}).encode())
        return future

    def expect(self, on_message, on_end):
        """A number for a call: `on_message(kind, message)` is told of messages with it, on the reader's thread, and
        says whether the last has come; `on_end(error)` is told when nothing more comes, and why."""
        if os.getpid() != self._process:
            raise TritonModelException("only the process that the server has started can call it, not one that it forked")
        with self._lock:
            if self._gone is not None:
                raise self._gone
            self._last += 1
            self._open[self._last] = (on_message, on_end)
            if self._reader is None:
                self._reader = threading.Thread(target=self._read, name="calls", daemon=True)
                self._reader.start()
            return self._last

    def forget(self, number):
        """Nobody waits for messages with that number any more."""
        with self._lock:
            self._open.pop(number, None)

    def send(self, kind, number, *parts):
        """Sends one message."""
        body = b"".join(parts)
        message = _HEAD.pack(9 + len(body), kind, number) + body
        try:
            with self._sending:
                self._socket.sendall(message)
        except OSError:
            self._end()
        except BaseException:
            # A handler of a signal has raised: a part of the message may have gone.
            self._end()
            raise
        if self._left:
            self._send_left()

    def send_soon(self, kind, number):
        """Sends a message without a body, now or when whoever sends has done: for finalizers, which may run on a thread
        that is sending, or in a fork, whose objects are copies."""
        if os.getpid() != self._process:
            return
        self._left.append(_HEAD.pack(9, kind, number))
        self._send_left()

    def _send_left(self):
        while self._left and self._sending.acquire(blocking=False):
            try:
                if self._left:
                    self._socket.sendall(self._left.popleft())
            except OSError:
                # The thread that reads sees it too.
                self._left.clear()
            finally:
                self._sending.release()

    def _read(self):
        try:
            with self._socket.makefile("rb", buffering=1 << 16) as stream:
                while True:
                    head = stream.read(4)
                    if len(head) < 4:
                        break
                    size = _LENGTH.unpack(head)[0]
                    # One that can be written to, as arrays lie over it.
                    message = bytearray(size)
                    if stream.readinto(message) < size:
                        break
                    self._told(message)
                    del message
        except OSError:
            pass
        finally:
            # Whatever happens here, nobody waits for what nobody reads.
            self._end()

    def _told(self, message):
        number = _NUMBER.unpack_from(message, 1)[0]
        with self._lock:
            known = self._open.get(number)
        if known is None:
            return
        on_message, on_end = known
        try:
            over = on_message(message[0], message)
        except Exception as error:
            # The other calls are not to blame.
            over = True
            on_end(TritonModelException(f"an answer cannot be read: {type(error).__name__}: {error}"))
        if over:
            self.forget(number)

    def _end(self):
        try:
            # The other end, too, has nobody to talk to.
            self._socket.shutdown(sockets.SHUT_RDWR)
        except OSError:
            pass
        with self._lock:
            self._gone = _gone()
            left = list(self._open.values())
            self._open.clear()
        for _, on_end in left:
            on_end(_gone())


def _gone():
    return TritonModelException("the server has gone and answers no calls")


def _settle(future, message):
    code = message[9]
    text = bytes(message[10:])
    if not future.set_running_or_notify_cancel():
        return True
    if code:
        future.set_exception(CallError(text.decode("utf-8", "replace"), code - 1))
    else:
        future.set_result(json.loads(text))
    return True


_calls = None
# The name of the instance, and whether its model is still being loaded.
instance = ""
loading = False


def attach(socket):
    """Begins to call on a socket."""
    global _calls
    _calls = Calls(socket)


def calls():
    """The way to the server."""
    if _calls is None:
        raise TritonModelException("this process has no server that it can call")
    return _calls


def call(name, /, **fields):
    """Calls the server and waits for what it answers."""
    return calls().call(name, **fields)
