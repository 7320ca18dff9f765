"""The server's end of a Python model's worker, for tests: what `crates/serving/src/backend/python` sends and reads."""

import json
import socket
import struct
import subprocess
import sys
import uuid
from pathlib import Path

import numpy as np

BACKEND = Path(__file__).parents[1] / "backend"
sys.path.insert(0, str(BACKEND))

import galatea_blocks as blocks  # noqa: E402
import galatea_channel as wire  # noqa: E402
from galatea_tensors import BYTES, STORAGE, encode_strings, number_of  # noqa: E402


class Ended(Exception):
    """The worker has ended."""


class Driver:
    """A worker and what the server has of it."""

    def __init__(self, folder, source, config=None, complete=False):
        self.config = {"name": "m", "output": [], "max_batch_size": 0, **(config or {})}
        path = Path(folder) / "m" / "1" / "model.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        self.prefix = f"/gt{uuid.uuid4().hex[:8]}"
        self.flags = blocks.Block.__new__(blocks.Block)
        self.flags.__init__(0, self.prefix + "f", blocks.FLAGS, True)
        ours, theirs = socket.socketpair()
        answers, answering = socket.socketpair()
        self.process = subprocess.Popen(
            [sys.executable, "-u", str(BACKEND / "galatea_worker.py")],
            stdin=theirs,
            stderr=subprocess.PIPE,
        )
        theirs.close()
        socket.send_fds(ours, [b"\n"], [answering.fileno()])
        answering.close()
        self.socket, self.heard = ours, answers
        ours.settimeout(30)
        answers.settimeout(30)
        names = {"model_name": "m", "model_version": "1", "model_instance_name": "m_0", "model_instance_kind": "CPU"}
        names.update(model_instance_device_id="0", model_repository=str(path.parents[1]))
        start = {
            "path": str(path),
            "complete": complete,
            "model_config": json.dumps(self.config),
            "args": {"model_config": json.dumps(self.config), **names},
            "flags": self.prefix + "f",
            "prefix": self.prefix,
            "least": 65536,
        }
        assert self.receive() == bytes([wire.HELLO, wire.VERSION])
        self.send(bytes([wire.START]) + json.dumps(start).encode())
        self.given = {}
        self.theirs = {}
        self.next = 0
        self.started = self.receive()
        unlink(self.prefix + "f")

    def send(self, message):
        self.socket.sendall(struct.pack("<I", len(message)) + message)

    def receive(self):
        head = self._exactly(4)
        return self._exactly(struct.unpack("<I", head)[0])

    def _exactly(self, size):
        data = b""
        while len(data) < size:
            part = self.heard.recv(size - len(data))
            if not part:
                raise Ended()
            data += part
        return data

    def block(self, size):
        """A free block with room, and whether it is new."""
        for number, block in self.given.items():
            if not self.flags.map[number] and block.size >= size:
                return block, False
        number = len(self.given) + 1
        block = blocks.Block(number, f"{self.prefix}i{number}", blocks.rounded(size), True)
        self.given[number] = block
        return block, True

    def execute(self, requests):
        """Sends requests (dicts with `inputs` and maybe fields of a request); their numbers."""
        large = sum(-(-size(one) // 64) * 64 for r in requests for one in r["inputs"].values() if size(one) > wire.SMALL)
        block, new = self.block(large) if large else (None, False)
        numbers = []
        body = bytearray()
        inline = []
        used = 0
        for request in requests:
            self.next += 1
            numbers.append(self.next)
            wanted = request.get("wanted")
            name = request.get("id", "").encode()
            parameters = request.get("parameters", "").encode()
            correlation = request.get("correlation", 0)
            text = correlation.encode() if isinstance(correlation, str) else b""
            body += wire._REQUEST.pack(
                self.next, request.get("slot", self.next % 1000), request.get("flags", 0), 0, 0, 2 if text else 1,
                0 if text else correlation, len(text), len(name), len(parameters),
                0xFFFF if wanted is None else len(wanted), len(request["inputs"]),
            )
            body += text + name + parameters
            for one in wanted or ():
                body += struct.pack("<I", len(one)) + one.encode()
            for key, array in request["inputs"].items():
                number = number_of(array.dtype, key)
                data = encode_strings(array) if number == BYTES else array.tobytes()
                rank = array.ndim
                if len(data) > wire.SMALL:
                    offset = used
                    block.root[offset : offset + len(data)] = np.frombuffer(data, dtype=np.uint8)
                    used += -(-len(data) // 64) * 64
                    rank |= 0x80
                else:
                    inline.append((len(body), data))
                    offset = 0
                body += wire._INPUT.pack(len(key), number, rank, offset, len(data))
                body += struct.pack(f"<{array.ndim}q", *array.shape) + key.encode()
        opened = b""
        if new:
            opened = wire._OPENED.pack(block.number, block.size, len(block.name)) + block.name.encode()
        if block:
            self.flags.map[block.number] = 1
        self.execution = numbers[0]
        head = wire._EXECUTE.pack(
            wire.EXECUTE, self.execution, len(requests), int(new), 0, block.number if block else 0
        )
        end = -(-(len(head) + len(opened) + len(body)) // 16) * 16
        tail = b""
        for at, data in inline:
            struct.pack_into("<Q", body, at + 4, end + len(tail))
            tail += data + bytes(-len(data) % 16)
        message = head + opened + body
        self.send(message + bytes(-len(message) % 16) + tail)
        return numbers

    def answers(self):
        """The next message: its kind, and by request (flags, error, outputs); or the text of a failure."""
        message = self.receive()
        kind, execution, status, opened, closed, start, text, count = wire._DONE.unpack_from(message, 0)
        at = wire._DONE.size
        if status:
            return kind, message[at : at + text].decode()
        for _ in range(closed):
            self.theirs.pop(struct.unpack_from("<I", message, at)[0])
            at += 4
        for _ in range(opened):
            number, length, name = wire._OPENED.unpack_from(message, at)
            at += wire._OPENED.size
            key = message[at : at + name].decode()
            at += name
            self.theirs[number] = blocks.Block(number, key, length, False)
            unlink(key)
        found = {}
        for _ in range(count):
            number, flags, code, error, parameters, outputs = wire._RESPONSE.unpack_from(message, at)
            at += wire._RESPONSE.size
            problem = (code - 1, message[at : at + error].decode()) if code else None
            at += error + parameters
            tensors = {}
            for _ in range(outputs):
                name, dtype, rank, place, offset, size_, block = wire._OUTPUT.unpack_from(message, at)
                at += wire._OUTPUT.size
                shape = struct.unpack_from(f"<{rank}q", message, at)
                at += 8 * rank
                key = message[at : at + name].decode()
                at += name
                if place == wire.INLINE:
                    data = message[start + offset : start + offset + size_]
                else:
                    source = self.given if place == wire.SERVERS else self.theirs
                    data = source[block].root[offset : offset + size_].tobytes()
                if place == wire.WORKERS:
                    self.flags.map[blocks.OWN + block] = 2
                tensors[key] = (place, data if dtype == BYTES else np.frombuffer(data, STORAGE[dtype]).reshape(shape))
            found[number] = (flags, problem, tensors)
        for number in self.theirs:
            if self.flags.map[blocks.OWN + number] == 2:
                self.flags.map[blocks.OWN + number] = 0
        return kind, found

    def run(self, *requests):
        """Executes and gives the answers in the order of the requests, or the text of a failure."""
        numbers = self.execute(requests)
        kind, found = self.answers()
        assert kind == wire.DONE
        return found if isinstance(found, str) else [found[number] for number in numbers]

    def stop(self):
        """Ends the worker; its exit status and what it wrote to standard error."""
        try:
            self.send(bytes([wire.STOP]))
        except OSError:
            pass
        text = self.process.communicate(timeout=30)[1].decode()
        for number, block in self.given.items():
            unlink(block.name)
        return self.process.returncode, text


def size(array):
    return sum(len(one) + 4 for one in array.ravel()) if array.dtype.kind == "O" else array.nbytes


def unlink(name):
    try:
        from _posixshmem import shm_unlink

        shm_unlink(name)
    except FileNotFoundError:
        pass
