"""A soak: a server with models of several kinds and traffic of all protocols at once, every answer of which is known.

usage: python python/soak --program GALATEA --minutes N [--pace 10] [--folder FOLDER]

`cargo xtask soak --minutes N` runs it. Fails when an answer is lost or wrong, an error was not expected, or memory,
descriptors or threads grow. FOLDER gets the ledger of all requests and the log of the server.
"""

import argparse
import json
import pathlib
import sys
import tempfile
import threading
import time

import tritonclient.grpc
import tritonclient.http

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "python" / "tests"))

# pylint: disable=wrong-import-position
import repository
import triton_traffic as tensors
import text_traffic as texts
import trouble_traffic as trouble
import watch
from ledger import BAD, Ledger
from server import Server

SAMPLES = ROOT / "examples" / "models"
# Part of the time after which memory counts: until then pools and caches fill.
WARM = 0.2
# Growth of memory from the middle to the end that counts as none: a part and an offset in MB.
GROWTH = (0.10, 16)
# Descriptors and threads that may be more at the end than before the traffic, without clients.
SPARE = 16
# Longest wait until the server holds no more than before, in seconds.
CALM_SECONDS = 30


class Soak:
    """What every kind of traffic uses."""

    def __init__(self, server, folder, ledger):
        self.http, self.grpc, self.metrics = server.http, server.grpc, server.metrics
        self.process, self.folder, self.ledger = server.process.pid, folder, ledger
        self.chats = json.loads((SAMPLES / "chat" / "sample_chat.json").read_text(encoding="utf-8"))
        self.clients = []

    def client(self, module):
        if module is tritonclient.http:
            made = module.InferenceServerClient(self.http, connection_timeout=120, network_timeout=120)
        else:
            made = module.InferenceServerClient(self.grpc)
        self.clients.append(made)
        return made

    def close(self):
        for client in self.clients:
            client.close()

    def traffic(self):
        """All kinds, each with its part of the pace."""
        http, grpc = tritonclient.http, tritonclient.grpc
        versions = tensors.Versions()
        simple = [(tensors.Simple(self, module, model), pace) for module in (http, grpc)
                  for model, pace in (("simple", 2), ("simple_ensemble", 1))]
        python = [(tensors.Doubled(self), 1), (tensors.Streams(self), 1)]
        sequences = [(tensors.Sequences(self, 0), 1), (tensors.Sequences(self, 1 << 40), 1)]
        shared = [(tensors.SharedMemory(self, module), 0.5) for module in (http, grpc)]
        updated = [(tensors.Updated(self, module, versions), 1) for module in (http, grpc)]
        changes = [(tensors.Loads(self), 0.1), (tensors.Updates(self, versions), 0.05)]
        written = [(make(self, streamed), 0.1) for make in (texts.Chats, texts.Generated) for streamed in (False, True)]
        gone = [(texts.LeavesChat(self), 0.1), (trouble.Leaves(self), 1), (trouble.Cancels(self), 0.5)]
        wrong = [(make(self), 0.5) for make in (trouble.Malformed, trouble.Mistakes, trouble.GrpcMistakes)]
        looks = [(trouble.Looks(self), 0.5)]
        return [*simple, *python, *sequences, *shared, *updated, *changes, *written, *gone, *wrong, *looks]


class Client(threading.Thread):
    """Repeats a step so many times a second, at most, until the end."""

    def __init__(self, soak, kind, pace, end):
        super().__init__(name=kind.kind)
        self.soak, self.kind, self.pace, self.end = soak, kind, pace, end

    def run(self):
        following = time.monotonic()
        while time.monotonic() < self.end:
            try:
                self.kind.step()
            except Exception as error:  # pylint: disable=broad-except
                # The request stays open in the ledger, which counts it as lost, unless it is ended here.
                self.failed(error)
                return
            following = max(following + 1 / self.pace, time.monotonic())
            time.sleep(max(0.0, min(following, self.end) - time.monotonic()))

    def failed(self, error):
        with self.soak.ledger.lock:
            mine = [number for number, kind in self.soak.ledger.open.items() if kind == self.kind.kind]
        for number in mine:
            self.soak.ledger.end(number, "error", f"{type(error).__name__}: {error}")


def calm(process, before):
    """Waits until the server holds no more than before the traffic, and gives what it holds."""
    deadline = time.monotonic() + CALM_SECONDS
    while True:
        held = watch.look(process)
        more = max(held.descriptors - before.descriptors, held.threads - before.threads)
        if more <= SPARE or time.monotonic() > deadline:
            return held
        time.sleep(0.5)


def run(soak, minutes, pace, looker):
    """Runs the traffic, and gives the faults that are not in the ledger."""
    before = watch.look(soak.process)
    end = time.monotonic() + 60 * minutes
    clients = [Client(soak, kind, part * pace, end) for kind, part in soak.traffic()]
    looker.start()
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    looker.stop()
    start, middle, last = (looker.around(share) for share in (WARM, 0.5 + WARM / 2, 1.0))
    soak.close()
    after = calm(soak.process, before)
    for name, held in (("before", before), ("start", start), ("middle", middle), ("end", last), ("after", after)):
        print(f"{name:<8}{held}")
    faults = []
    for what, one, other in (("the server", middle.server_mb, last.server_mb), ("workers", middle.workers_mb, last.workers_mb)):
        if other > one * (1 + GROWTH[0]) + GROWTH[1]:
            faults.append(f"memory of {what} grew from {one:.1f} MB in the middle to {other:.1f} MB at the end")
    for what in ("descriptors", "threads"):
        if getattr(after, what) > getattr(before, what) + SPARE:
            faults.append(f"{getattr(before, what)} {what} before the traffic, {getattr(after, what)} after it")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--program", required=True, type=pathlib.Path)
    parser.add_argument("--minutes", required=True, type=float)
    parser.add_argument("--pace", type=float, default=10.0, help="steps a second of a kind of traffic of weight one")
    parser.add_argument("--folder", type=pathlib.Path, help="where the ledger and the log go")
    options = parser.parse_args()
    if options.minutes <= 0 or options.pace <= 0:
        parser.error("--minutes and --pace are numbers above 0")
    folder = options.folder or pathlib.Path(tempfile.mkdtemp(prefix="soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(folder / "ledger.jsonl")
    with tempfile.TemporaryDirectory() as models:
        models = pathlib.Path(models)
        repository.make(models, SAMPLES)
        loads = [f"--load-model={name}" for name in repository.LOADED]
        python = f"--backend-config=python,python-executable={sys.executable}"
        server = Server(options.program, "--model-repository", models, "--model-control-mode=explicit",
                        "--allow-client-shm=true", python, *loads, timeout=120)
        with server:
            soak = Soak(server, models, ledger)
            faults = run(soak, options.minutes, options.pace, watch.Watch(server.process.pid))
            ended = server.process.poll()
            if ended is not None:
                faults.append(f"the server ended by itself: {ended}")
        (folder / "server.log").write_text("".join(server.log), encoding="utf-8")
        if ended is None and server.process.returncode != 0:
            faults.append(f"the server ended with {server.process.returncode}")
    ledger.close()
    print("\n".join(ledger.table()))
    faults += [f"{fault['outcome']}: request {fault['request']}, {fault['kind']}: {fault['detail']}" for fault in ledger.faults]
    print(f"{options.minutes:g} minutes: {ledger.total(['right', 'refused', 'left'])} requests as expected, "
          f"{ledger.total(['lost'])} lost, {ledger.total(['wrong'])} wrong, {ledger.total(['error'])} unexpected errors")
    for fault in faults:
        print(fault)
    print(f"The ledger and the log of the server are in {folder}")
    sys.exit(1 if faults or ledger.total(BAD) else 0)


if __name__ == "__main__":
    main()
