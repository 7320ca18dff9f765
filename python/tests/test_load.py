"""32 clients at once: nothing is lost or mixed up, and the batcher's statistics add up."""

import threading
import time

import numpy as np
import tritonclient.grpc
import tritonclient.http

from conftest import SAMPLES, connect
from tensors import check_simple, simple_inputs

CLIENTS = 32
MODEL = "simple"


class Load:
    """What one client sent and what came back."""

    def __init__(self, protocol, server, seed):
        self.protocol, self.server = protocol, server
        self.random = np.random.default_rng(seed)
        self.requests = self.rows = 0
        self.error = None

    def run(self, until):
        try:
            with connect(self.protocol, self.server) as client:
                while time.monotonic() < until:
                    self.once(client)
        except Exception as error:  # noqa: BLE001  reported by the test
            self.error = error

    def once(self, client):
        rows = int(self.random.integers(1, 4))
        first = self.random.integers(-(2**20), 2**20, (rows, 16), dtype=np.int32)
        first, second, inputs = simple_inputs(self.protocol, first, first[:, ::-1].copy())
        self.requests += 1
        self.rows += rows
        check_simple(client.infer(MODEL, inputs), first, second)


def test_32_clients_lose_nothing(start, request):
    seconds = request.config.getoption("--load-seconds")
    server = start("--model-repository", SAMPLES)
    protocols = [tritonclient.http, tritonclient.grpc]
    loads = [Load(protocols[i % 2], server, seed=i) for i in range(CLIENTS)]
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=load.run, args=(until,)) for load in loads]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=seconds + 60)
    assert not any(thread.is_alive() for thread in threads), "a request was never answered"
    assert [load.error for load in loads if load.error] == []
    sent, rows = sum(load.requests for load in loads), sum(load.rows for load in loads)
    print(f"\n{CLIENTS} clients, {seconds} s: {sent} requests, {rows} rows, {sent / seconds:.0f} requests/s")
    adds_up(server, sent, rows)


def adds_up(server, sent, rows):
    with connect(tritonclient.http, server) as client:
        (stats,) = client.get_inference_statistics(MODEL)["model_stats"]
    assert stats["inference_stats"]["success"]["count"] == sent
    assert stats["inference_stats"]["fail"]["count"] == 0
    assert stats["inference_count"] == rows
    batches = {int(batch["batch_size"]): batch["compute_infer"]["count"] for batch in stats["batch_stats"]}
    print("batches by size:", batches)
    assert sum(batches.values()) == stats["execution_count"]
    assert sum(size * count for size, count in batches.items()) == rows
    assert max(batches) <= 8, "a batch exceeds max_batch_size"
    assert stats["execution_count"] < sent, "32 clients at once were never batched"
