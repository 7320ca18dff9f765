"""Traffic of a soak that a server must refuse, or that leaves before its answer."""

import json
import socket

import grpc
import numpy as np
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

from triton_traffic import rows, tensor
from text_traffic import Connection

PATIENCE = 60


def socket_to(address):
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=PATIENCE)


class Leaves:
    """Goes away in the middle of a request, before its answer, or in the middle of a head."""

    kind = "http, left"

    def __init__(self, soak):
        self.ledger, self.address, self.rounds = soak.ledger, soak.http, 0

    def step(self):
        number = self.ledger.begin(self.kind)
        self.rounds += 1
        body = json.dumps({"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]})
        text = f"POST /v2/models/double/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        with socket_to(self.address) as connection:
            connection.sendall(text[:[len(text), len(text) - 5, 20][self.rounds % 3]])
        self.ledger.end(number, "left")


class Cancels:
    """Cancels calls of gRPC."""

    kind = "grpc, cancelled"

    def __init__(self, soak):
        self.ledger, self.client = soak.ledger, soak.client(tritonclient.grpc)

    def step(self):
        number = self.ledger.begin(self.kind)
        values = np.zeros((1, 9000), np.float32)
        call = self.client.async_infer("double", [tensor(tritonclient.grpc, "IN", values, "FP32")],
                                       callback=lambda result, error: None)
        call.cancel()
        self.ledger.end(number, "left")


# Bytes on a connection, and the statuses of HTTP that may follow; none where the server may close without one.
MALFORMED = [
    (b"GET /v2 HTTP/1.1\r\n\r\n", b"400"),
    (b"GET /v2 HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", b"400"),
    (b"POST /v2/models/simple/infer HTTP/1.1\r\nHost: x\r\nContent-Length: nine\r\n\r\n", b"400"),
    (b"POST /v2/models/simple/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n", b"400"),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", None),
    (b"\x00" * 300, None),
]


class Malformed:
    """Bytes that are no request."""

    kind = "http, malformed"

    def __init__(self, soak):
        self.ledger, self.address, self.rounds = soak.ledger, soak.http, 0

    def step(self):
        number = self.ledger.begin(self.kind)
        sent, expected = MALFORMED[self.rounds % len(MALFORMED)]
        self.rounds += 1
        answer = b""
        with socket_to(self.address) as connection:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            try:
                while part := connection.recv(4096):
                    answer += part
            except ConnectionResetError:
                pass
        found = answer.split(b" ")[1] if answer.startswith(b"HTTP/1.1 ") else None
        right = found == expected or (expected is None and found in (None, b"400"))
        self.ledger.end(number, "refused" if right else "wrong", f"{answer!r} to {sent!r}")


# Path, body and status of requests that are wrong in what they ask for.
MISTAKES = [
    ("/v2/models/nope/infer", {"inputs": []}, 404),
    ("/v2/models/simple/infer", {"inputs": []}, 400),
    ("/v2/models/simple/infer", {"inputs": [{"name": "X", "datatype": "INT32", "shape": [1, 1], "data": [1]}]}, 400),
    ("/v2/models/simple/versions/9/infer", {"inputs": []}, 404),
    ("/v1/chat/completions", {"model": "nope", "messages": [{"role": "user", "content": "x"}]}, 404),
    ("/v1/chat/completions", {"model": "chat", "messages": "x"}, 400),
    ("/v2/repository/models/nope/load", {}, 500),
    ("/v2/nothing", {}, 404),
]


class Mistakes:
    """Requests for what is not there, or of the wrong form."""

    kind = "http, mistakes"

    def __init__(self, soak):
        self.ledger, self.connection, self.rounds = soak.ledger, Connection(soak.http), 0

    def step(self):
        number = self.ledger.begin(self.kind)
        path, body, expected = MISTAKES[self.rounds % len(MISTAKES)]
        self.rounds += 1
        status, answer = self.connection.ask("POST", path, body)
        self.ledger.end(number, "refused" if status == expected else "wrong", f"{status} {answer!r} for {path} {body}")


class GrpcMistakes:
    """Messages of gRPC that are no messages, and inferences that do not fit."""

    kind = "grpc, mistakes"

    def __init__(self, soak):
        self.ledger, self.rounds = soak.ledger, 0
        self.client = soak.client(tritonclient.grpc)
        self.channel = grpc.insecure_channel(soak.grpc)
        self.raw = self.channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")

    def step(self):
        number = self.ledger.begin(self.kind)
        self.rounds += 1
        try:
            if self.rounds % 2:
                self.raw(b"\x0a\xff\xff\xff\xff\x0f", timeout=PATIENCE)
            else:
                self.client.infer("simple", [tensor(tritonclient.grpc, "INPUT0", rows(1, 2))])
        except (grpc.RpcError, InferenceServerException):
            return self.ledger.end(number, "refused")
        return self.ledger.end(number, "wrong", "a wrong message is answered")


class Looks:
    """Health, metadata, index, statistics and metrics."""

    kind = "http, looks"

    def __init__(self, soak):
        self.ledger, self.rounds = soak.ledger, 0
        self.pages = [(Connection(soak.http), path) for path in (
            "/v2/health/live", "/v2/health/ready", "/v2", "/v2/models/simple", "/v2/models/simple/config", "/v2/models/stats",
            "/v1/models")] + [(Connection(soak.metrics), "/metrics")]

    def step(self):
        number = self.ledger.begin(self.kind)
        connection, path = self.pages[self.rounds % len(self.pages)]
        self.rounds += 1
        status, body = connection.ask("GET", path)
        self.ledger.end(number, "right" if status == 200 else "error", f"{status} {body[:200]!r} for {path}")
