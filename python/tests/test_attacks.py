"""Attacks on a running server that take too much of something: threads, memory, time, folders, connections.

Each gets an answer in bounded time, and the server goes on.
"""

import base64
import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import socket
import sys
import time

import numpy as np
import pytest

from conftest import SAMPLES, until
from test_faults import ask, load, still_serves

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what processes have is read from /proc")


def threads(server):
    return len(os.listdir(f"/proc/{server.process.pid}/task"))


def peak(server):
    """Largest memory of the server so far in MiB."""
    status = pathlib.Path("/proc", str(server.process.pid), "status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) >> 10


def repository(tmp_path, *samples):
    folder = tmp_path / "models"
    for name in ("simple", *samples):
        shutil.copytree(SAMPLES / name, folder / name)
    return folder


def chat(server, **fields):
    body = {"model": "chat", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4, **fields}
    return ask(server, "/v1/chat/completions", body)


# What is added to a configuration, and a part of the error.
TOO_MANY = [
    ('parameters { key: "intra_op_thread_count" value { string_value: "1000000000" } }', "from 0 to 1024"),
    ('parameters { key: "intra_op_thread_count" value { string_value: "1025" } }', "from 0 to 1024"),
    ("instance_group [{ count: 1000000 kind: KIND_CPU }]", "at most 1024"),
    ("instance_group [{ count: 1025 kind: KIND_CPU }]", "at most 1024"),
    ("instance_group [{ count: 1000 kind: KIND_CPU }]\n" * 50, "50000 instances together"),
]


def test_threads_without_end_are_refused(start, tmp_path):
    folder = repository(tmp_path, "digits")
    server = start("--model-repository", folder, "--model-control-mode=explicit", "--load-model=simple")
    path = folder / "digits" / "config.pbtxt"
    whole = path.read_text()
    before = threads(server)
    for more, text in TOO_MANY:
        path.write_text(f"{whole}\n{more}")
        status, answer = load(server, "digits")
        assert status == 400 and text in answer, f"{more[:80]}: {status} {answer}"
        assert threads(server) <= before + 4
        still_serves(server)
    path.write_text(f'{whole}\nparameters {{ key: "intra_op_thread_count" value {{ string_value: "3" }} }}')
    assert load(server, "digits")[0] == 200


def test_a_thread_count_of_a_flag_is_refused(start, tmp_path):
    server = start("--model-repository", repository(tmp_path, "digits"), "--model-control-mode=explicit",
                   "--backend-config=onnxruntime,intra_op_thread_count=1000000")
    status, answer = load(server, "digits")
    assert status == 400 and "from 0 to 1024" in answer, answer


# Texts of a few characters that stand for grammars of millions.
EXPLOSIONS = {
    "guided_regex": ["(a{1000}){1000}", "a{1000000}", "((a{100}){100}){100}", "((x?){500}){500}b"],
    "guided_grammar": [
        "start: T0\n" + "".join(f"T{level}: T{level + 1} T{level + 1}\n" for level in range(60)) + 'T60: "a"\n',
        "root ::= r0\n" + "".join(f"r{level} ::= r{level + 1} r{level + 1}\n" for level in range(60)) + 'r60 ::= "a"\n',
        "root ::= " + " | ".join(f'"{number}" root "{number}"' for number in range(3000)) + ' | "a"',
    ],
    "guided_json": [
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"allOf": [{"anyOf": [{"properties": {f"p{part}": {"const": value}}} for value in range(4)]} for part in range(12)]},
        {"type": "integer", "minimum": -10**300, "maximum": 10**300},
    ],
}


def test_grammars_that_explode_take_bounded_memory(start, tmp_path):
    server = start("--model-repository", repository(tmp_path, "chat"))
    assert chat(server)[0] == 200
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        asked = [pool.submit(chat, server, **{kind: grammar}) for kind, some in EXPLOSIONS.items() for grammar in some]
        # Each of so many answers follows the grammar.
        asked.append(pool.submit(chat, server, n=64, guided_regex="(a{1000}){1000}"))
        asked += [pool.submit(chat, server, guided_regex="(a{1000}){1000}") for _ in range(8)]
        # Others are answered meanwhile, those with grammars of their own too.
        status, text = chat(server, guided_regex="[a-z]{1,5}")
        assert status == 200, text
        answers = [one.result() for one in asked]
    for status, text in answers:
        assert status in (200, 400, 503), text
        assert "panic" not in text or "cannot be compiled" in text, text
    assert peak(server) < 2000
    still_serves(server)
    assert chat(server, guided_regex="[a-z]{1,5}")[0] == 200


def test_folders_of_a_killed_server_go_with_the_next_start(start, tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    arguments = ["--model-repository", repository(tmp_path), "--model-control-mode=explicit"]
    server = start(*arguments)
    content = base64.b64encode((SAMPLES / "simple" / "1" / "model.onnx").read_bytes()).decode()
    config = json.dumps({"backend": "onnxruntime", "max_batch_size": 8})
    body = {"parameters": {"config": config, "file:1/model.onnx": content}}
    assert ask(server, "/v2/repository/models/given/load", body)[0] == 200
    left = set(temporary.iterdir())
    assert left
    living = start(*arguments)
    assert ask(living, "/v2/repository/models/given/load", body)[0] == 200
    server.stop(signal.SIGKILL)
    assert left <= set(temporary.iterdir())
    start(*arguments)
    assert not left & set(temporary.iterdir())
    # What another server has stays.
    assert len(set(temporary.iterdir())) == 1
    assert ask(living, "/v2/models/given/ready")[0] == 200
    assert living.stop() == 0
    assert not any(temporary.iterdir())


def test_a_client_that_reads_too_slowly_loses_its_answer(start, tmp_path):
    server = start("--model-repository", repository(tmp_path, "identity_fp32"), "--client-stall-secs=1")
    values = np.zeros((1, 8 << 20), np.float32)
    text = json.dumps({"inputs": [{"name": "INPUT0", "shape": list(values.shape), "datatype": "FP32",
                                   "parameters": {"binary_data_size": values.nbytes}}],
                       "outputs": [{"name": "OUTPUT0", "parameters": {"binary_data": True}}]}).encode()
    host, port = server.http.split(":")
    head = (f"POST /v2/models/identity_fp32/infer HTTP/1.1\r\nHost: {server.http}\r\nInference-Header-Content-Length: {len(text)}"
            f"\r\nContent-Length: {len(text) + values.nbytes}\r\n\r\n").encode()
    for wait in (3600.0, 0.2):
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect((host, int(port)))
            client.sendall(head + text + values.tobytes())
            client.settimeout(min(wait, 3))
            # A byte now and then, or none at all until the server has had enough.
            received = 0
            end = time.monotonic() + 3
            while time.monotonic() < end:
                received += len(client.recv(1))
                time.sleep(min(wait, 3))
            client.settimeout(30)
            while part := read(client):
                received += len(part)
            assert received < values.nbytes
        still_serves(server)


def read(client):
    try:
        return client.recv(1 << 20)
    except ConnectionResetError:
        return b""


def frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def next_frame(client):
    head = read_exactly(client, 9)
    return head[3], int.from_bytes(head[5:9], "big"), read_exactly(client, int.from_bytes(head[:3], "big"))


def read_exactly(client, count):
    found = b""
    while len(found) < count:
        part = client.recv(count - len(found))
        assert part, "the connection ended"
        found += part
    return found


def test_a_grpc_client_that_lets_no_answer_through_loses_its_call(start, tmp_path):
    server = start("--model-repository", repository(tmp_path), "--client-stall-secs=1")
    path = b"/inference.GRPCInferenceService/ServerMetadata"
    text = [b"\x83\x86\x04", bytes([len(path)]), path, b"\x01\x09localhost", b"\x0f\x10\x10application/grpc", b"\x00\x02te\x08trailers"]
    with socket.create_connection(server.grpc.split(":"), timeout=30) as client:
        # Streams begin with windows of no bytes.
        settings = frame(4, 0, 0, b"\x00\x04\x00\x00\x00\x00")
        client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings)
        client.sendall(frame(1, 4, 1, b"".join(text)) + frame(0, 1, 1, b"\0" * 5))
        kinds = []
        while True:
            kind, stream, payload = next_frame(client)
            kinds.append(kind)
            if stream == 1 and kind == 3:
                break
        # There was a head, no data, and an end: enhance your calm.
        assert 1 in kinds and 0 not in kinds and payload == b"\0\0\0\x0b"
        # The connection goes on.
        client.sendall(frame(6, 0, 0, b"12345678"))
        while next_frame(client) != (6, 0, b"12345678"):
            pass
    still_serves(server)
