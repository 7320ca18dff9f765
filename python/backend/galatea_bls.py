"""Requests that a model makes to other models: `InferenceRequest.exec` and `async_exec`.

`crates/serving/src/backend/python/called.rs` is the other end and says what the messages are. A large tensor is copied
once into a block of shared memory and read there by the server; a large output is an array over a block that the server
wrote, which goes back when Python counts no more views of it.
"""

import asyncio
import json
import queue
import struct
import threading

import numpy as np

import galatea_calls
from galatea_blocks import ALIGNMENT, MOST_SMALL, SMALL, Blocks
from galatea_tensors import Tensor, TritonModelException, elements_bytes, elements_size, store_elements

INFER, CANCEL = 2, 3
RESPONSE = 2

_LENGTH = struct.Struct("<I")
# Kind, number of the call and length of the head.
_BEFORE_HEAD = 13
_UNIT = 16


class Memory:
    """The blocks that only calls use."""

    def __init__(self, flags_name, prefix, least):
        self._blocks = Blocks(flags_name, prefix, least)
        # What is sent stays in the order in which blocks were taken. Whoever has this lock may wait for the server, which
        # itself waits for nobody but the thread that reads; so that thread never asks for it.
        self._sending = threading.Lock()
        # For the server's blocks, how many it has told of, and those of them that are not open: which of all each is,
        # its name and its size.
        self._reading = threading.Lock()
        self._told = 0
        self._unopened = {}

    def send(self, calls, number, head, tensors):
        """Sends a request, with its tensors as `(name, number of the type, sizes, elements)`."""
        placed, small, large = [], 0, 0
        for name, dtype, shape, elements in tensors:
            size = elements_size(elements)
            if size > SMALL or small + size > MOST_SMALL:
                placed.append((name, dtype, shape, elements, True, large, size))
                large += -(-size // ALIGNMENT) * ALIGNMENT
            else:
                placed.append((name, dtype, shape, elements, False, small, size))
                small += -(-size // _UNIT) * _UNIT
        head["tensors"] = [[name, dtype, list(shape), far, at, size] for name, dtype, shape, _, far, at, size in placed]
        with self._reading:
            self._blocks.release_held()
            # How many of the server's blocks were ever opened: their names may go.
            head["seen"] = min((place for place, _, _ in self._unopened.values()), default=self._told)
        with self._sending:
            if large:
                block, new, gone = self._blocks.take(large)
                for _, dtype, _, elements, far, at, size in placed:
                    if far:
                        store_elements(block.root[at : at + size], dtype, elements)
                head["block"] = block.number
                head["new"] = [[one.number, one.size, one.name] for one in new]
                head["gone"] = list(gone)
            text = json.dumps(head).encode()
            text += b" " * (-(_BEFORE_HEAD + len(text)) % _UNIT)
            parts = [_LENGTH.pack(len(text)), text]
            for _, dtype, _, elements, far, _, size in placed:
                if not far:
                    parts.append(elements_bytes(dtype, elements))
                    parts.append(bytes(-size % _UNIT))
            calls.send(INFER, number, *parts)

    def read(self, head, message):
        """The tensors of a response."""
        small, start = np.frombuffer(message, dtype=np.uint8), _BEFORE_HEAD + _head_length(message)
        tensors = []
        shared = memory = None
        number = head.get("block")
        with self._reading:
            self._blocks.release_held()
            self._update(head)
            try:
                shared = self._root(number) if number else None
                for name, dtype, shape, far, at, size in head["tensors"]:
                    memory, offset = (shared, at) if far else (small, start + at)
                    tensors.append(Tensor._received(name, dtype, tuple(shape), memory, offset, size))
            finally:
                # Also of a response that cannot be read: the server has no other word that it may have the block.
                shared = memory = None
                if number in self._unopened:
                    self._blocks.flags[number] = 0
                elif number:
                    self._blocks.release(number)
        return tensors

    def _update(self, head):
        """Notes which blocks the server has made and which go."""
        for number in head.get("gone", ()):
            self._unopened.pop(number, None)
            self._blocks.close(number)
        for number, size, name in head.get("new", ()):
            self._unopened[number] = (self._told, name, size)
            self._told += 1

    def _root(self, number):
        """The bytes of a block of the server's. One that could not be opened is tried again each time."""
        if number in self._unopened:
            _, name, size = self._unopened[number]
            self._blocks.open(number, name, size)
            del self._unopened[number]
        return self._blocks.given(number).root


def _head_length(message):
    return _LENGTH.unpack_from(message, 9)[0]


def _head(message):
    """What a response says of itself."""
    return json.loads(bytes(message[_BEFORE_HEAD : _BEFORE_HEAD + _head_length(message)]))


_memory = None


def attach(flags_name, prefix, least):
    """Takes the memory for calls."""
    global _memory
    _memory = Memory(flags_name, prefix, least)


class Running:
    """A request under way: `on_response` is told of each response and whether it is the last, on another thread."""

    def __init__(self, request, decoupled, on_response):
        if _memory is None:
            raise TritonModelException("this process has no server that it can call")
        self._calls = galatea_calls.calls()
        self._on_response = on_response
        self.ended = False
        head = {
            "model": request._model_name,
            "version": "" if request._model_version < 0 else str(request._model_version),
            "id": request._request_id,
            "outputs": sorted(request._requested),
            "correlation": request._correlation_id,
            "flags": request._flags,
            "timeout": request._timeout,
            "priority": request._priority,
            "decoupled": bool(decoupled),
        }
        if request._parameters:
            head["parameters"] = json.loads(request._parameters)
        trace = request._trace
        if trace is not None and trace._number is not None:
            head["trace"] = trace._number
        tensors = [(tensor._name, *tensor._parts()) for tensor in request._inputs]
        self._number = self._calls.expect(self._told, self._gone)
        try:
            _memory.send(self._calls, self._number, head, tensors)
        except BaseException:
            self._calls.forget(self._number)
            raise

    def _told(self, kind, message):
        head = _head(message)
        tensors, error = [], None
        try:
            tensors = _memory.read(head, message)
            if "code" in head:
                error = _requests().TritonError(head["error"], head["code"])
        except Exception as failure:
            error = _requests().TritonError(f"a response cannot be read: {type(failure).__name__}: {failure}")
        self.ended = head["final"]
        response = _requests().InferenceResponse(tensors, error)
        response._parameters = head.get("parameters", "")
        self._on_response(response, self.ended)
        return self.ended

    def _gone(self, why):
        self.ended = True
        self._on_response(_requests().InferenceResponse([], _requests().TritonError(str(why))), True)

    def cancel(self):
        """Says that nobody wants the rest."""
        if not self.ended:
            self._calls.send_soon(CANCEL, self._number)


def _requests():
    # It imports this file where a model makes its first request.
    import galatea_requests

    return galatea_requests


class _Inbox:
    """Responses that nobody has taken yet, and the coroutine that waits for one."""

    def __init__(self):
        self.ready = queue.SimpleQueue()
        self._waiting = None
        self._lock = threading.Lock()

    def put(self, response, final):
        self.ready.put((response, final))
        with self._lock:
            waiting, self._waiting = self._waiting, None
        if waiting is not None:
            _wake(*waiting)

    def wait(self, loop):
        """A future that is there when something has come since."""
        future = loop.create_future()
        with self._lock:
            self._waiting = (loop, future)
        return future


class ResponseIterator:
    """The responses of a model, as they come: for `for` and for `async for`. Where a model ends without a response,
    the last has no outputs. Nothing but the model holds it, so that one that is given up cancels its request."""

    def __init__(self, request):
        self._inbox = _Inbox()
        self._done = False
        self._running = Running(request, True, self._inbox.put)

    def __iter__(self):
        return self

    def __next__(self):
        if self._done:
            raise StopIteration
        response, self._done = self._inbox.ready.get()
        return response

    def __aiter__(self):
        return self

    async def __anext__(self):
        if self._done:
            raise StopAsyncIteration
        while True:
            future = self._inbox.wait(asyncio.get_running_loop())
            try:
                response, self._done = self._inbox.ready.get_nowait()
                return response
            except queue.Empty:
                await future

    def cancel(self):
        """Gives the request up; the responses end soon after."""
        self._running.cancel()

    def __del__(self):
        running = getattr(self, "_running", None)
        if running is not None and not self._done:
            running.cancel()


def _wake(loop, future, result=None):
    def settle():
        if not future.done():
            future.set_result(result)

    try:
        loop.call_soon_threadsafe(settle)
    except RuntimeError:
        # The loop has been closed.
        pass


def run(request, decoupled):
    """Runs a request to its end, or where it may have any number of responses up to the first of them."""
    if decoupled:
        return ResponseIterator(request)
    ready = queue.SimpleQueue()
    request._running = Running(request, False, lambda response, final: ready.put(response))
    return ready.get()


def begin(request, decoupled):
    """As `run`, for coroutines."""
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    if decoupled:
        future.set_result(ResponseIterator(request))
        return future
    running = Running(request, False, lambda response, final: _wake(loop, future, response))
    request._running = running
    future.add_done_callback(lambda done: running.cancel() if done.cancelled() else None)
    return future
