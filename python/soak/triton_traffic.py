"""Traffic of a soak in Triton's protocols: inferences over HTTP, gRPC, streams and shared memory, loads and updates."""

import queue
import random
import threading

import numpy as np
import tritonclient.grpc
import tritonclient.http
import tritonclient.utils.shared_memory as shm

import repository

ROW = 16
PATIENCE = 60


def tensor(module, name, values, datatype="INT32"):
    given = module.InferInput(name, list(values.shape), datatype)
    given.set_data_from_numpy(values)
    return given


def rows(*values):
    return np.array([values], np.int32)


class Simple:
    """Sums and differences by `simple`, or doubles by the ensemble of two of them."""

    def __init__(self, soak, module, model):
        self.ledger, self.module, self.model = soak.ledger, module, model
        self.client = soak.client(module)
        self.kind = f"{module.__name__.rsplit('.', 1)[1]} {model}"

    def step(self):
        number = self.ledger.begin(self.kind)
        a = np.arange(number % 1000, number % 1000 + ROW, dtype=np.int32).reshape(1, ROW)
        b = np.full((1, ROW), random.randrange(1000), np.int32)
        names = {"simple": ("INPUT0", "INPUT1", "OUTPUT0", "OUTPUT1"), "simple_ensemble": ("A", "B", "TWICE_A", "TWICE_B")}
        one, other, first, second = names[self.model]
        given = [tensor(self.module, one, a), tensor(self.module, other, b)]
        answer = self.client.infer(self.model, given, request_id=str(number))
        response = answer.get_response()
        name = response["id"] if isinstance(response, dict) else response.id
        expected = (a + b, a - b) if self.model == "simple" else (2 * a, 2 * b)
        found = (answer.as_numpy(first).tolist(), answer.as_numpy(second).tolist(), name)
        self.ledger.check(number, found, (expected[0].tolist(), expected[1].tolist(), str(number)))


class Doubled:
    """Large tensors to and from a Python model, in binary."""

    kind = "http python"

    def __init__(self, soak):
        self.ledger, self.client = soak.ledger, soak.client(tritonclient.http)

    def step(self):
        number = self.ledger.begin(self.kind)
        values = np.full((1, random.choice([3, 9000])), number % 4096, np.float32)
        answer = self.client.infer("double", [tensor(tritonclient.http, "IN", values, "FP32")])
        self.ledger.check(number, bool((answer.as_numpy("OUT") == 2 * values).all()), True)


class Sequences:
    """Sequences of four steps, each answered with the sum so far."""

    def __init__(self, soak, base):
        self.kind = "grpc sequence, large numbers" if base else "grpc sequence"
        self.ledger, self.next, self.client = soak.ledger, base, soak.client(tritonclient.grpc)

    def step(self):
        self.next += 1
        total = 0
        for at in range(4):
            number = self.ledger.begin(self.kind)
            value = random.randrange(1000)
            total += value
            answer = self.client.infer("running_sum", [tensor(tritonclient.grpc, "IN", rows(value))], sequence_id=self.next,
                                       sequence_start=at == 0, sequence_end=at == 3)
            self.ledger.check(number, answer.as_numpy("OUT").tolist(), [[total]])


class Streams:
    """A stream of gRPC with requests to a decoupled Python model, whose answers come several to a request."""

    kind = "grpc stream decoupled"

    def __init__(self, soak):
        self.ledger, self.client = soak.ledger, soak.client(tritonclient.grpc)

    def step(self):
        answers = queue.SimpleQueue()
        self.client.start_stream(lambda result, error: answers.put((result, error)))
        wanted, got = {}, {}
        for count in range(4):
            number = self.ledger.begin(self.kind)
            wanted[str(number)] = list(range(number % 97, number % 97 + count))
            got[str(number)] = []
            self.client.async_stream_infer("repeat", [tensor(tritonclient.grpc, "IN", np.array(wanted[str(number)], np.int32))],
                                           request_id=str(number), enable_empty_final_response=True)
        while wanted:
            result, error = answers.get(timeout=PATIENCE)
            if error is not None:
                raise error
            response = result.get_response()
            if response.id not in wanted:
                raise AssertionError(f"an answer to {response.id!r}, which is answered or was never asked")
            if response.parameters["triton_final_response"].bool_param:
                self.ledger.check(int(response.id), got[response.id], wanted.pop(response.id))
            else:
                got[response.id].append(int(result.as_numpy("OUT")[0]))
        self.client.stop_stream()


class SharedMemory:
    """Inputs and outputs in shared memory that is registered for each request."""

    def __init__(self, soak, module):
        self.ledger, self.module, self.client = soak.ledger, module, soak.client(module)
        self.kind = f"{module.__name__.rsplit('.', 1)[1]} shared memory"
        self.name = f"soak-{self.kind.split()[0]}-{soak.process}"

    def step(self):
        number = self.ledger.begin(self.kind)
        bytes_of_row = 4 * ROW
        region = shm.create_shared_memory_region(self.name, f"/{self.name}", 4 * bytes_of_row)
        try:
            a = np.arange(ROW, dtype=np.int32).reshape(1, ROW)
            b = np.full((1, ROW), number % 1000, np.int32)
            shm.set_shared_memory_region(region, [a, b])
            self.client.register_system_shared_memory(self.name, f"/{self.name}", 4 * bytes_of_row)
            given = [self.module.InferInput(name, [1, ROW], "INT32") for name in ("INPUT0", "INPUT1")]
            wanted = [self.module.InferRequestedOutput(name) for name in ("OUTPUT0", "OUTPUT1")]
            for at, place in enumerate([*given, *wanted]):
                place.set_shared_memory(self.name, bytes_of_row, offset=at * bytes_of_row)
            self.client.infer("simple", given, outputs=wanted)
            found = shm.get_contents_as_numpy(region, np.int32, [2, ROW], offset=2 * bytes_of_row).tolist()
            self.client.unregister_system_shared_memory(self.name)
            self.ledger.check(number, found, [(a + b)[0].tolist(), (a - b)[0].tolist()])
        finally:
            shm.destroy_shared_memory_region(region)


class Loads:
    """A model that is loaded, asked and unloaded."""

    kind = "http load and unload"

    def __init__(self, soak):
        self.ledger, self.client = soak.ledger, soak.client(tritonclient.http)

    def step(self):
        number = self.ledger.begin(self.kind)
        self.client.load_model("coming")
        answer = self.client.infer("coming", [tensor(tritonclient.http, "IN", rows(1, 2, 3, number % 1000))])
        self.client.unload_model("coming")
        self.ledger.check(number, answer.as_numpy("OUT").tolist(), [[2, 3, 4, number % 1000 + 1]])


class Versions:
    """What the model `plus` may add now: what it added before the update that goes on, or will after it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.constants = [1]
        # Constants before this one are no longer served.
        self.served = 0


class Updates:
    """A model whose file is replaced and which is then loaded again, while others ask it."""

    kind = "http update"

    def __init__(self, soak, versions):
        self.ledger, self.versions, self.folder = soak.ledger, versions, soak.folder
        self.client = soak.client(tritonclient.http)

    def step(self):
        number = self.ledger.begin(self.kind)
        versions = self.versions
        with versions.lock:
            constant = versions.constants[-1] + 1
            versions.constants.append(constant)
        repository.plus(repository.model_file(self.folder, "plus"), constant)
        self.client.load_model("plus")
        with versions.lock:
            versions.served = len(versions.constants) - 1
        answer = self.client.infer("plus", [tensor(tritonclient.http, "IN", rows(0, 0, 0, 0))])
        self.ledger.check(number, answer.as_numpy("OUT").tolist(), [[constant] * 4])


class Updated:
    """Requests to the model that is being replaced: each gets what was served at some time between question and answer."""

    def __init__(self, soak, module, versions):
        self.ledger, self.module, self.versions = soak.ledger, module, versions
        self.client = soak.client(module)
        self.kind = f"{module.__name__.rsplit('.', 1)[1]} updated model"

    def step(self):
        number = self.ledger.begin(self.kind)
        with self.versions.lock:
            first = self.versions.served
        answer = self.client.infer("plus", [tensor(self.module, "IN", rows(0, 10, 20, 30))])
        found = answer.as_numpy("OUT").tolist()
        with self.versions.lock:
            allowed = self.versions.constants[first:]
        right = any(found == [[add, 10 + add, 20 + add, 30 + add]] for add in allowed)
        self.ledger.end(number, "right" if right else "wrong", f"{found}, expected one of {allowed} more")
