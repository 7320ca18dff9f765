"""What callbacks of the stock gRPC client are called with."""

import queue

# Far longer than anything takes.
LONG = 60


class Answers:
    """A callback that keeps what comes."""

    def __init__(self):
        self.all = queue.Queue()

    def __call__(self, result, error):
        self.all.put((result, error))

    def next(self):
        result, error = self.all.get(timeout=LONG)
        if error is not None:
            raise error
        return result
