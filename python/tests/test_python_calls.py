"""The way on which a worker of Python models calls the server, driven as the server drives it."""

import json
import socket
import struct
import sys
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "backend"))

import galatea_calls  # noqa: E402
from galatea_tensors import TritonModelException  # noqa: E402


class Server:
    """The server's end."""

    def __init__(self):
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(30)
        self.calls = galatea_calls.Calls(theirs)
        assert self.exactly(len(galatea_calls.PREAMBLE)) == galatea_calls.PREAMBLE

    def exactly(self, size):
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            assert part
            data += part
        return data

    def next(self):
        """Kind, number and body of the next message."""
        message = self.exactly(struct.unpack("<I", self.exactly(4))[0])
        return message[0], struct.unpack_from("<Q", message, 1)[0], message[9:]

    def reply(self, number, value=None, error=None):
        code, body = (0, json.dumps(value).encode()) if error is None else (error[0] + 1, error[1].encode())
        message = struct.pack("<BQB", galatea_calls.REPLY, number, code) + body
        self.socket.sendall(struct.pack("<I", len(message)) + message)


@pytest.fixture
def server():
    made = Server()
    yield made
    made.socket.close()


def test_replies_find_their_calls_in_whatever_order_they_come(server):
    futures = [server.calls.begin("echo", value=value) for value in range(5)]
    asked = [server.next() for _ in futures]
    assert [json.loads(body) for _, _, body in asked] == [{"call": "echo", "value": value} for value in range(5)]
    for _, number, body in reversed(asked):
        server.reply(number, json.loads(body)["value"] * 2)
    assert [future.result(30) for future in futures] == [0, 2, 4, 6, 8]


def test_errors_are_exceptions_of_models_with_their_code(server):
    future = server.calls.begin("echo")
    server.reply(server.next()[1], error=(2, "there is none"))
    with pytest.raises(TritonModelException, match="there is none") as raised:
        future.result(30)
    assert raised.value.code == 2


def test_many_threads_call_at_once(server):
    found = {}

    def call(value):
        found[value] = server.calls.call("echo", value=value)

    threads = [threading.Thread(target=call, args=(value,)) for value in range(50)]
    for thread in threads:
        thread.start()
    for _ in threads:
        _, number, body = server.next()
        server.reply(number, json.loads(body)["value"])
    for thread in threads:
        thread.join(30)
    assert found == {value: value for value in range(50)}


def test_what_is_wrong_with_one_answer_fails_one_call(server):
    first, second = server.calls.begin("echo"), server.calls.begin("echo")
    body = struct.pack("<BQB", galatea_calls.REPLY, server.next()[1], 0) + b"no JSON"
    server.socket.sendall(struct.pack("<I", len(body)) + body)
    server.reply(server.next()[1], 7)
    with pytest.raises(TritonModelException, match="cannot be read: JSONDecodeError"):
        first.result(30)
    assert second.result(30) == 7


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_calls_end_when_nobody_reads_any_more(server):
    future = server.calls.begin("echo")
    server.next()
    # Too short to have a number.
    server.socket.sendall(struct.pack("<I", 2) + b"12")
    with pytest.raises(TritonModelException, match="has gone"):
        future.result(30)
    assert server.socket.recv(1) == b""
    with pytest.raises(TritonModelException, match="has gone"):
        server.calls.call("echo")


def test_calls_end_when_the_server_goes(server):
    future = server.calls.begin("echo")
    server.socket.close()
    with pytest.raises(TritonModelException, match="has gone"):
        future.result(30)
    with pytest.raises(TritonModelException, match="has gone"):
        server.calls.call("echo")
