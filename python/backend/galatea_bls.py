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
from galatea_blocks import ALIGNMENT, Blocks
from galatea_tensors import STORAGE, Tensor, TritonModelException

INFER, CANCEL = 2, 3
RESPONSE = 2

# As in the channel of executions.
SMALL = 8192
MOST_SMALL = 131072

_LENGTH = struct.Struct("<I")
# Kind, number of the call and length of the head.
_BEFORE_HEAD = 13
_UNIT = 16


class Memory:
    """The blocks that only calls use. What is sent stays in the order in which blocks were taken."""

    def __init__(self, flags_name, prefix, least):
        self._blocks = Blocks(flags_name, prefix, least)
        self._lock = threading.Lock()
        # How many of the server's blocks were ever opened.
        self._seen = 0

    def send(self, calls, number, head, tensors):
        """Sends a request, with its tensors as `(name, number of the type, sizes, elements)`."""
        placed, small, large = [], 0, 0
        for name, dtype, shape, elements in tensors:
            size = len(elements) if type(elements) is bytes else elements.nbytes
            if size > SMALL or small + size > MOST_SMALL:
                placed.append((name, dtype, shape, elements, True, large, size))
                large += -(-size // ALIGNMENT) * ALIGNMENT
            else:
                placed.append((name, dtype, shape, elements, False, small, size))
                small += -(-size // _UNIT) * _UNIT
        head["tensors"] = [[name, dtype, list(shape), far, at, size] for name, dtype, shape, _, far, at, size in placed]
        with self._lock:
            self._blocks.release_held()
            if large:
                block, new, gone = self._blocks.take(large)
                for _, dtype, _, elements, far, at, size in placed:
                    if far:
                        _store(block.root[at : at + size], dtype, elements)
                head["block"] = block.number
                head["new"] = [[one.number, one.size, one.name] for one in new]
                head["gone"] = list(gone)
            head["seen"] = self._seen
            text = json.dumps(head).encode()
            text += b" " * (-(_BEFORE_HEAD + len(text)) % _UNIT)
            parts = [_LENGTH.pack(len(text)), text]
            for _, dtype, _, elements, far, _, size in placed:
                if not far:
                    parts.append(elements if type(elements) is bytes else _bytes(dtype, elements))
                    parts.append(bytes(-size % _UNIT))
            calls.send(INFER, number, *parts)

    def read(self, message):
        """The head of a response and its tensors."""
        length = _LENGTH.unpack_from(message, 9)[0]
        start = _BEFORE_HEAD + length
        head = json.loads(bytes(message[_BEFORE_HEAD:start]))
        small = np.frombuffer(message, dtype=np.uint8)
        tensors = []
        with self._lock:
            self._blocks.release_held()
            for number in head.get("gone", ()):
                self._blocks.close(number)
            for number, size, name in head.get("new", ()):
                self._blocks.open(number, name, size)
                self._seen += 1
            number = head.get("block")
            shared = self._blocks.given(number).root if number else None
            for name, dtype, shape, far, at, size in head["tensors"]:
                memory, offset = (shared, at) if far else (small, start + at)
                tensors.append(Tensor._received(name, dtype, tuple(shape), memory, offset, size))
            shared = memory = None
            if number:
                self._blocks.release(number)
        return head, tensors


def _store(room, dtype, elements):
    if type(elements) is bytes:
        room[:] = np.frombuffer(elements, dtype=np.uint8)
    elif elements.dtype == np.uint8:
        room[:] = elements.reshape(-1)
    else:
        np.copyto(room.view(STORAGE[dtype]).reshape(elements.shape), elements)


def _bytes(dtype, elements):
    if elements.dtype.byteorder == ">":
        elements = elements.astype(STORAGE[dtype])
    return elements.tobytes()


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
        head, tensors = _memory.read(message)
        error = None
        if "code" in head:
            error = _requests().TritonError(head["error"], head["code"])
        self.ended = head["final"]
        response = _requests().InferenceResponse(tensors, error)
        response._parameters = head.get("parameters", "")
        self._on_response(response, self.ended)
        return self.ended

    def _gone(self):
        self.ended = True
        error = _requests().TritonError("the server has gone and answers no calls")
        self._on_response(_requests().InferenceResponse([], error), True)

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
