"""The ledger of a soak: every request has a number, and one outcome."""

import collections
import json
import threading

# Outcomes that a server may give: the right answer, a refusal that was expected, or none to a client that has left.
GOOD = ("right", "refused", "left")
# A wrong answer, an error that nobody expected, and no answer at all.
BAD = ("wrong", "error", "lost")
# Faults that are told in full.
MAX_TOLD = 20


class Ledger:
    """Outcomes of requests by kind, also as lines of JSON in a file."""

    def __init__(self, path):
        self.lock = threading.Lock()
        self.file = open(path, "w", encoding="utf-8")  # pylint: disable=consider-using-with
        self.next = 0
        self.open = {}
        self.counts = collections.defaultdict(collections.Counter)
        self.faults = []

    def begin(self, kind):
        """Enters a request of a kind, and gives its number."""
        with self.lock:
            self.next += 1
            self.open[self.next] = kind
            return self.next

    def end(self, number, outcome, detail=None):
        """Enters the outcome of a request. A second one is a fault of its own: an answer that came twice."""
        with self.lock:
            kind = self.open.pop(number, None)
            if kind is None:
                kind, outcome, detail = "answers", "wrong", f"request {number} was answered twice"
            self.counts[kind][outcome] += 1
            line = {"request": number, "kind": kind, "outcome": outcome}
            if outcome in BAD:
                line["detail"] = str(detail)
                if len(self.faults) < MAX_TOLD:
                    self.faults.append(line)
            self.file.write(json.dumps(line) + "\n")

    def check(self, number, found, expected):
        """Enters whether an answer is the expected one."""
        right = found == expected
        self.end(number, "right" if right else "wrong", None if right else f"{found!r}, expected {expected!r}")

    def close(self):
        """Enters what has no outcome as lost."""
        for number in list(self.open):
            self.end(number, "lost", "no answer came")
        self.file.close()

    def total(self, outcomes):
        return sum(count[outcome] for count in self.counts.values() for outcome in outcomes)

    def table(self):
        """Lines of a table of kinds and outcomes."""
        columns = (*GOOD, *BAD)
        yield f"{'requests':<26}" + "".join(f"{name:>10}" for name in columns)
        for kind in sorted(self.counts):
            yield f"{kind:<26}" + "".join(f"{self.counts[kind][name]:>10}" for name in columns)
        yield f"{'all':<26}" + "".join(f"{self.total([name]):>10}" for name in columns)
