"""The worker's end of the way to the server.

A message is its length in 4 bytes and then a kind and fixed fields, all little-endian;
`crates/serving/src/backend/python/wire.rs` is the other end and says what they mean. Small tensors lie in the message
itself, larger ones in blocks of shared memory. Whoever waits reads the socket: there is no thread for it.
"""

import struct
import threading

import numpy as np

from galatea_blocks import ALIGNMENT, MOST_SMALL, NO_SLOT, SLOTS, SMALL, Blocks
from galatea_requests import REQUEST_RELEASE_RESCHEDULE, InferenceRequest
from galatea_tensors import BYTES, STORAGE, Tensor, elements_bytes, elements_size, store_elements

VERSION = 1
_new = object.__new__

# What the server sends.
START, EXECUTE, STOP = 1, 2, 3
# What the worker sends.
READY, FAILED, CONFIG, DONE, RESPONSE, HELLO = 1, 2, 3, 4, 5, 6

_LENGTH = struct.Struct("<I")
_EXECUTE = struct.Struct("<BQIHHI")
_OPENED = struct.Struct("<IQH")
_NUMBER = struct.Struct("<I")
_REQUEST = struct.Struct("<QIIQQBQIIIHH")
_INPUT = struct.Struct("<HBBQQ")
_DONE = struct.Struct("<BQBHHIII")
_RESPONSE = struct.Struct("<QBBIIH")
_OUTPUT = struct.Struct("<HBBBQQI")
_LENGTH_DONE = struct.Struct("<I" + _DONE.format[1:])
_OUTPUT_OF = tuple(struct.Struct(f"{_OUTPUT.format}{rank}q") for rank in range(128))
_DIMS = tuple(struct.Struct(f"<{rank}q") for rank in range(128))

# Names of unknown outputs that are told of.
MOST_TOLD = 100
# Number of wanted outputs that stands for all of the model's.
_ALL_OUTPUTS = 0xFFFF
# Where the elements of a tensor lie.
INLINE, SERVERS, WORKERS = 0, 1, 2
_IN_BLOCK = 0x80
# What an answer is.
FINAL, HAS_RESPONSE, RESCHEDULE = 1, 2, 4
# What has become of an execution.
FAILURE, ENDING = 1, 2


class Channel:
    """A socket for each direction, the blocks, and what is on the way."""

    def __init__(self, messages, answers):
        self._messages = messages
        self._answers = answers
        self._received = bytearray(1 << 18)
        self._start = 0
        self._end = 0
        self._sending = threading.Lock()
        self.blocks = None
        # Whether the model answers when it likes.
        self.decoupled = False
        # Whether the process ends behind the answers to the present execution.
        self.ending = False
        self.outputs = []
        # Outputs that are states of sequences, which the server keeps, whatever was asked for.
        self.states = []

    def attach(self, flags_name, prefix, least):
        """Takes the page of flags and begins with blocks."""
        self.blocks = Blocks(flags_name, prefix, least)

    def receive(self):
        """The next message; None when the server has gone."""
        if self._end - self._start < 4 and not self._fill(4):
            return None
        start = self._start + 4
        size = _LENGTH.unpack_from(self._received, start - 4)[0]
        self._start = start
        if self._end - start < size:
            if not self._fill(size):
                return None
            start = self._start
        self._start = end = start + size
        return self._received[start:end]

    def _fill(self, wanted):
        while self._end - self._start < wanted:
            rest = self._end - self._start
            if self._start and (rest == 0 or self._start + wanted > len(self._received)):
                self._received[:rest] = self._received[self._start : self._end]
                self._start, self._end = 0, rest
            if wanted > len(self._received):
                self._received.extend(bytes(wanted - len(self._received)))
            with memoryview(self._received) as view:
                count = self._messages.recv_into(view[self._end :])
            if count == 0:
                return False
            self._end += count
        return True

    def send(self, *parts):
        """Sends one message."""
        message = b"".join(parts)
        with self._sending:
            self._answers.sendall(_LENGTH.pack(len(message)) + message)

    def is_cancelled(self, slot):
        """Whether the client of the request in that slot has gone."""
        return slot != NO_SLOT and self.blocks.flags[SLOTS + slot] != 0

    # Executions.

    @staticmethod
    def execution_of(message):
        """Number and block of an execution, by which it can be answered whatever the rest of the message is like."""
        _, execution, _, _, _, block = _EXECUTE.unpack_from(message, 0)
        return execution, block

    def read_requests(self, message):
        """Requests of an execution. Raises what is wrong with the message."""
        _, _, count, opened, closed, block = _EXECUTE.unpack_from(message, 0)
        at = _EXECUTE.size
        for _ in range(closed):
            self.blocks.close(_NUMBER.unpack_from(message, at)[0])
            at += 4
        for _ in range(opened):
            number, size, length = _OPENED.unpack_from(message, at)
            at += _OPENED.size
            self.blocks.open(number, message[at : at + length].decode(), size)
            at += length
        # The views of small tensors keep the message.
        whole = np.frombuffer(message, dtype=np.uint8)
        shared = self.blocks.given(block).root if block else None
        requests = []
        for _ in range(count):
            request, at = self._read_request(message, at, whole, shared)
            requests.append(request)
        return requests

    def _read_request(self, message, at, whole, shared):
        (
            number,
            slot,
            flags,
            timeout,
            priority,
            correlated,
            correlation,
            correlation_length,
            id_length,
            parameters_length,
            wanted,
            inputs,
        ) = _REQUEST.unpack_from(message, at)
        at += _REQUEST.size
        request = _new(InferenceRequest)
        if correlated == 2:
            correlation = message[at : at + correlation_length].decode()
            at += correlation_length
        request._correlation_id = correlation
        request._request_id = message[at : at + id_length].decode() if id_length else ""
        at += id_length
        request._parameters = message[at : at + parameters_length].decode() if parameters_length else ""
        at += parameters_length
        if wanted == _ALL_OUTPUTS:
            request._requested = self.outputs
        else:
            request._requested = names = []
            for _ in range(wanted):
                length = _NUMBER.unpack_from(message, at)[0]
                at += 4
                names.append(message[at : at + length].decode())
                at += length
        request._inputs = tensors = []
        for _ in range(inputs):
            length, dtype, rank, offset, size = _INPUT.unpack_from(message, at)
            at += _INPUT.size
            memory = whole
            if rank & _IN_BLOCK:
                rank &= ~_IN_BLOCK
                memory = shared
            shape = _DIMS[rank].unpack_from(message, at)
            at += 8 * rank
            name = message[at : at + length].decode()
            at += length
            tensors.append(Tensor._received(name, dtype, shape, memory, offset, size))
        request._flags = flags
        request._timeout = timeout
        request._priority = priority
        request._number = number
        request._slot = slot
        request._channel = self
        return request, at

    # Answers.

    def send_failure(self, execution, text, block):
        """Says that an execution raised: all its requests that have no last response get the text."""
        text = text.encode("utf-8", "replace")
        if block:
            self.blocks.release(block)
        status = FAILURE | (ENDING if self.ending else 0)
        self.send(_DONE.pack(DONE, execution, status, 0, 0, 0, len(text), 0), text)

    def send_done(self, execution, block):
        """Says that `execute` has returned, whose requests are answered by senders."""
        if block:
            self.blocks.release(block)
        self.send(_DONE.pack(DONE, execution, 0, 0, 0, 0, 0, 0))

    def send_response(self, number, requested, response, final):
        """Sends one response of a sender. Its outputs are copied, as the model goes on with its arrays."""
        self._send_answers(RESPONSE, 0, [Answer(number, requested, response, FINAL if final else 0)], 0)
        if final:
            self.blocks.release_held()

    def send_reschedule(self, number):
        """Gives a request back to the scheduler, which executes it once more."""
        self._send_answers(RESPONSE, 0, [Answer(number, (), None, RESCHEDULE)], 0)

    def send_responses(self, execution, work, block):
        """Sends what `execute` has returned, and gives the block back. `work` holds the requests and the responses
        and is emptied: nothing but the model may still have them.

        Outputs that lie in the block are not copied where the model has let go of all that lies there, so nobody
        writes to what the server reads.
        """
        responses, requests = work.pop(), work.pop()
        message = None if block or self.ending else _short_message(execution, requests, responses, self.states)
        if message is not None:
            with self._sending:
                self._answers.sendall(message)
            return
        answers = []
        for request, response in zip(requests, responses):
            if request._release_flags == REQUEST_RELEASE_RESCHEDULE:
                answers.append(Answer(request._number, (), None, RESCHEDULE))
            elif response is not None:
                wanted = [*request._requested, *self.states]
                answer = Answer(request._number, wanted, response, FINAL)
                if block:
                    answer.find_views(self.blocks.given(block))
                answers.append(answer)
        del responses, requests
        request = response = answer = None
        if block and self.blocks.given(block).is_viewed():
            root = self.blocks.given(block).root
            for answer in answers:
                answer.lose_views(root)
            root = answer = None
        self._send_answers(DONE, execution, answers, block)

    def _send_answers(self, kind, execution, answers, block):
        small, large = MOST_SMALL, 0
        for answer in answers:
            small, large = answer.place(small, large)
        with self._sending:
            taken, new, gone = None, (), ()
            if large:
                taken, new, gone = self.blocks.take(large)
            message = _message(kind, execution, ENDING if self.ending else 0, answers, taken, new, gone)
            answers.clear()
            # Before the message, so that whoever has read it finds the block free.
            if block:
                self.blocks.release(block)
            self._answers.sendall(_LENGTH.pack(len(message)) + message)


class UnwantedOutputs:
    """Outputs that are left out. Nobody asked for some; others the model's configuration does not have, as in Triton.
    Of each of those `tell` hears once."""

    def __init__(self):
        self._known = ()
        self._told = set()
        self._tell = None

    def declare(self, known, tell):
        """Takes the names of the configuration."""
        self._known = frozenset(known)
        self._tell = tell

    def leave_out(self, name):
        """Notes an output that is not sent."""
        if self._tell is None or name in self._known or name in self._told or len(self._told) >= MOST_TOLD:
            return
        self._told.add(name)
        self._tell(name)


_UNWANTED = UnwantedOutputs()


def declare_outputs(known, tell):
    """Takes the outputs of the configuration, and who hears of others."""
    _UNWANTED.declare(known, tell)


def _short_message(execution, requests, responses, states):
    """The message, with its length, of responses that are small numbers and nothing else, which most are; None where
    there is more to them."""
    parts = [b""]
    data = []
    end = 0
    for request, response in zip(requests, responses):
        if response is None or response._error is not None or response._parameters:
            return None
        head = len(parts)
        parts.append(b"")
        wanted = [*request._requested, *states] if states else request._requested
        for tensor in response._output_tensors:
            name = tensor._name
            if name not in wanted:
                _UNWANTED.leave_out(name)
                continue
            array, number, shape = tensor._array, tensor._number, tensor._shape
            if number == BYTES or array.dtype is not STORAGE[number]:
                return None
            size = array.nbytes
            if size > SMALL:
                return None
            name = name.encode()
            parts.append(
                _OUTPUT_OF[len(shape)].pack(len(name), number, len(shape), INLINE, end, size, 0, *shape) + name
            )
            data.append(array.tobytes())
            end += size
        count = len(parts) - head - 1
        parts[head] = _RESPONSE.pack(request._number, FINAL | HAS_RESPONSE, 0, 0, 0, count)
    if end > MOST_SMALL:
        return None
    start = _DONE.size + sum(map(len, parts))
    parts[0] = _LENGTH_DONE.pack(start + end, DONE, execution, 0, 0, 0, start, 0, len(requests))
    parts += data
    return b"".join(parts)


class Answer:
    """What becomes of one request."""

    __slots__ = ("number", "flags", "error", "parameters", "outputs")

    def __init__(self, number, requested, response, flags):
        self.number = number
        self.flags = flags
        self.error = None
        self.parameters = b""
        self.outputs = []
        if response is None:
            return
        self.flags = flags | HAS_RESPONSE
        self.parameters = response._parameters.encode()
        error = response._error
        if error is not None:
            self.error = (error._code, str(error._message).encode("utf-8", "replace"))
            return
        for tensor in response._output_tensors:
            if tensor._name in requested:
                self.outputs.append(Output(tensor))
            else:
                _UNWANTED.leave_out(tensor._name)

    def find_views(self, block):
        """Keeps of outputs that lie in the block only their place."""
        for output in self.outputs:
            output.find_view(block)

    def lose_views(self, root):
        """Makes outputs of their own of those that lie in the block."""
        for output in self.outputs:
            if output.place == SERVERS:
                output.elements = root[output.offset : output.offset + output.size]
                output.place = INLINE

    def place(self, small, large):
        """Gives outputs their places: small ones in the message, where `small` bytes are left, others in a block,
        from `large` on."""
        for output in self.outputs:
            if output.place == SERVERS:
                continue
            if output.size <= SMALL and output.size <= small:
                small -= output.size
                continue
            output.place = WORKERS
            output.offset = large
            large += -(-output.size // ALIGNMENT) * ALIGNMENT
        return small, large


class Output:
    """An output and where its elements lie."""

    __slots__ = ("name", "number", "shape", "elements", "size", "place", "offset", "block")

    def __init__(self, tensor):
        self.name = tensor._name.encode()
        self.number, self.shape, self.elements = tensor._parts()
        self.size = elements_size(self.elements)
        self.place = INLINE
        self.offset = self.block = 0

    def find_view(self, block):
        if self.size > SMALL and type(self.elements) is not bytes and self.elements.dtype.isnative:
            offset = block.offset_of(self.elements)
            if offset is not None:
                self.place, self.offset, self.block = SERVERS, offset, block.number
                self.elements = None

    def store(self, root):
        """Copies the elements to their place in a block."""
        store_elements(root[self.offset : self.offset + self.size], self.number, self.elements)

    def data(self):
        """The elements as bytes."""
        return elements_bytes(self.number, self.elements)


def _message(kind, execution, status, answers, taken, new, gone):
    parts = [b""]
    for number in gone:
        parts.append(_NUMBER.pack(number))
    for block in new:
        name = block.name.encode()
        parts.append(_OPENED.pack(block.number, block.size, len(name)))
        parts.append(name)
    data = []
    end = 0
    for answer in answers:
        code, text = (0, b"") if answer.error is None else (answer.error[0] + 1, answer.error[1])
        outputs = answer.outputs
        parts.append(
            _RESPONSE.pack(answer.number, answer.flags, code, len(text), len(answer.parameters), len(outputs))
        )
        parts.append(text)
        parts.append(answer.parameters)
        for output in outputs:
            offset = output.offset
            if output.place == INLINE:
                offset = end
                end += output.size
                data.append(output.data())
            elif output.place == WORKERS:
                output.store(taken.root)
                output.block = taken.number
            shape = output.shape
            rank = len(shape)
            parts.append(
                _OUTPUT.pack(len(output.name), output.number, rank, output.place, offset, output.size, output.block)
            )
            parts.append(_DIMS[rank].pack(*shape))
            parts.append(output.name)
    start = _DONE.size + sum(map(len, parts))
    parts[0] = _DONE.pack(kind, execution, status, len(new), len(gone), start, 0, len(answers))
    return b"".join(parts + data)
