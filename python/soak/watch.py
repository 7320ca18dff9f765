"""Memory, descriptors and threads of the server and its workers, looked at every second."""

import dataclasses
import os
import pathlib
import threading

LOOK_SECONDS = 1.0


@dataclasses.dataclass
class Held:
    """What processes hold at a time."""

    server_mb: float
    workers_mb: float
    descriptors: int
    threads: int
    processes: int

    def __str__(self):
        return (f"{self.server_mb:8.1f} MB, workers {self.workers_mb:8.1f} MB, {self.descriptors:4} descriptors, "
                f"{self.threads:4} threads, {self.processes:3} processes")


def status(process):
    """Resident memory in MB and the number of threads; zeros for a process that has gone."""
    try:
        text = pathlib.Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    except OSError:
        return 0.0, 0
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return int(fields.get("VmRSS", "0 kB").split()[0]) / 1024, int(fields.get("Threads", "0"))


def descendants(process):
    """All processes that a process has started, and theirs."""
    found = []
    for task in pathlib.Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = task.read_text(encoding="utf-8").split()
        except OSError:
            continue
        for child in children:
            found += [int(child), *descendants(int(child))]
    return found


def look(process):
    """What the server holds now."""
    memory, threads = status(process)
    workers = descendants(process)
    try:
        descriptors = len(os.listdir(f"/proc/{process}/fd"))
    except OSError:
        descriptors = 0
    return Held(memory, sum(status(one)[0] for one in workers), descriptors, threads, 1 + len(workers))


class Watch(threading.Thread):
    """Looks until it is told to stop."""

    def __init__(self, process):
        super().__init__(daemon=True, name="watch")
        self.process = process
        self.ended = threading.Event()
        self.seen = []

    def run(self):
        while not self.ended.wait(LOOK_SECONDS):
            self.seen.append(look(self.process))

    def stop(self):
        self.ended.set()
        self.join()

    def around(self, share):
        """The most that was held around a share of the time."""
        middle = int(share * (len(self.seen) - 1))
        near = self.seen[max(0, middle - 10):middle + 11]
        fields = [field.name for field in dataclasses.fields(Held)]
        return Held(**{name: max(getattr(one, name) for one in near) for name in fields})
