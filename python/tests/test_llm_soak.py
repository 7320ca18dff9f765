"""Many clients of a language model at once for a while: each stream ends as it should or was left, whoever leaves
leaves nothing behind, and memory stays flat."""

import http.client
import json
import random
import socket
import threading
import time

import pytest

from conftest import SAMPLES, until
from test_soak import Worker, resident_mb

CLIENTS = 64
CHATS = json.loads((SAMPLES / "chat" / "sample_chat.json").read_text(encoding="utf-8"))
# A question with what comes before it, and the answer.
KNOWN = [(chat[:at], message["content"]) for chat in CHATS for at, message in enumerate(chat)
         if message["role"] == "assistant"]


@pytest.fixture
def server(start, tmp_path):
    """The sample with so few blocks that not all requests have room at once."""
    version = tmp_path / "chat" / "1"
    version.mkdir(parents=True)
    arguments = {"model": str(SAMPLES / "chat" / "1"), "max_model_len": 256, "num_gpu_blocks_override": 160,
                 "max_num_seqs": 48}
    (version / "model.json").write_text(json.dumps(arguments))
    (tmp_path / "chat" / "config.pbtxt").write_text('backend: "vllm"\n')
    return start("--model-repository", tmp_path)


class Client:
    """One of many: does what chance says, each time on a connection of its own."""

    def __init__(self, address, seed):
        self.host, port = address.rsplit(":", 1)
        self.port = int(port)
        self.chance = random.Random(seed)
        self.counts = {"whole": 0, "streams": 0, "left": 0, "triton": 0, "sampled": 0}

    def step(self, _number):
        what = self.chance.choices([self.whole, self.stream, self.leave, self.sampled, self.triton, self.torn],
                                   [2, 4, 4, 1, 1, 1])[0]
        what(*self.chance.choice(KNOWN))

    def post(self, path, body):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=300)
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        return connection

    def body(self, messages, **options):
        return {"model": "chat", "messages": messages, "temperature": 0, "user": str(self.chance.randrange(8)), **options}

    def whole(self, messages, expected):
        connection = self.post("/v1/chat/completions", self.body(messages))
        answer = connection.getresponse()
        found = json.load(answer)
        connection.close()
        assert answer.status == 200, found
        assert found["choices"][0]["message"]["content"] == expected
        self.counts["whole"] += 1

    def events(self, connection):
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        for line in answer:
            if line.startswith(b"data: "):
                yield line[6:].strip()

    def stream(self, messages, expected):
        connection = self.post("/v1/chat/completions", self.body(messages, stream=True))
        text, reason, last = "", None, None
        for last in self.events(connection):
            if last != b"[DONE]":
                choice = json.loads(last)["choices"][0]
                text += choice["delta"].get("content") or ""
                reason = choice["finish_reason"] or reason
        connection.close()
        assert (text, reason, last) == (expected, "stop", b"[DONE]")
        self.counts["streams"] += 1

    def leave(self, messages, _expected):
        """Goes away at once, or in the middle of the stream."""
        connection = self.post("/v1/chat/completions", self.body(messages, stream=True, max_tokens=150, ignore_eos=True))
        patience = self.chance.randrange(12)
        if patience:
            for _ in zip(self.events(connection), range(patience)):
                pass
        connection.close()
        self.counts["left"] += 1

    def sampled(self, messages, _expected):
        options = {"temperature": 1.2, "seed": self.chance.randrange(1000), "n": 3, "max_tokens": 40, "logprobs": True}
        connection = self.post("/v1/chat/completions", self.body(messages, **options))
        found = json.load(connection.getresponse())
        connection.close()
        assert [choice["finish_reason"] in ("stop", "length") for choice in found["choices"]] == [True] * 3, found
        self.counts["sampled"] += 1

    def triton(self, messages, _expected):
        body = {"text_input": messages[-1]["content"], "stream": True,
                "sampling_parameters": json.dumps({"max_tokens": 20, "temperature": 0})}
        connection = self.post("/v2/models/chat/generate_stream", body)
        pieces = [json.loads(event) for event in self.events(connection)]
        connection.close()
        assert pieces and all("text_output" in piece for piece in pieces), pieces
        self.counts["triton"] += 1

    def torn(self, messages, _expected):
        """Leaves before the request is whole."""
        body = json.dumps(self.body(messages))
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection((self.host, self.port), timeout=60) as connection:
            connection.sendall((head + body)[: self.chance.randrange(1, len(head + body))].encode())
        self.counts["left"] += 1


def metrics(server):
    """The engine's numbers by the names of vLLM."""
    host, port = server.metrics.rsplit(":", 1)
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    connection.request("GET", "/metrics")
    found = {}
    for line in connection.getresponse().read().decode().splitlines():
        if line.startswith("vllm:") and "_bucket" not in line:
            name, value = line.rsplit(" ", 1)
            found[name.split("{")[0]] = found.get(name.split("{")[0], 0.0) + float(value)
    connection.close()
    return found


@pytest.mark.timeout(1500)
def test_many_clients_of_a_language_model(server, request):
    seconds = request.config.getoption("--llm-soak-seconds")
    began = time.monotonic()
    clients = [Client(server.http, seed) for seed in range(CLIENTS)]
    workers = [Worker(f"client {seed}", began + seconds, client.step) for seed, client in enumerate(clients)]
    for worker in workers:
        worker.start()
    memory = []
    for part in (3, 2, 1):
        time.sleep(max(0.0, began + seconds / part - time.monotonic()))
        memory.append(resident_mb(server.process.pid))
    for worker in workers:
        worker.join()
    faults = {worker.name: worker.fault for worker in workers if worker.fault}
    assert not faults, faults
    assert all(worker.rounds for worker in workers)

    def idle():
        found = metrics(server)
        return not any(found[f"vllm:{name}"] for name in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"))

    until(idle, "an engine without requests and blocks")
    found = metrics(server)
    counts = {what: sum(client.counts[what] for client in clients) for what in clients[0].counts}
    print(f"{seconds} s, {CLIENTS} clients: {counts}, {found['vllm:generation_tokens_total']:.0f} tokens, "
          f"{found['vllm:num_preemptions_total']:.0f} preemptions; MB after a third, a half and all: "
          + ", ".join(f"{size:.1f}" for size in memory))
    assert counts["streams"] and counts["left"], counts
    assert memory[2] < memory[0] * 1.2 + 8, memory
