"""Running the program and reading where it listens from its log."""

import collections
import queue
import re
import signal
import subprocess
import threading
import time

LISTENING = re.compile(r"Started (HTTPService|GRPCInferenceService|Metrics Service) at ([^\s\"]+)")
ANY_PORT = ["--http-port", "0", "--grpc-port", "0", "--metrics-port", "0"]


class Server:
    """One `galatea serve` process. As a context manager it is stopped at the end."""

    def __init__(self, program, *arguments, ports=ANY_PORT, timeout=60):
        self.command = [str(program), "serve", *ports, *map(str, arguments)]
        self.timeout = timeout
        self.addresses = {}
        self.log = collections.deque(maxlen=2000)
        self.process = None

    @property
    def http(self):
        return self.addresses["HTTPService"]

    @property
    def grpc(self):
        return self.addresses["GRPCInferenceService"]

    @property
    def metrics(self):
        return self.addresses["Metrics Service"]

    def start(self):
        """Starts and waits until all three services listen."""
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        lines = queue.Queue()
        threading.Thread(target=self._read, args=(lines,), daemon=True).start()
        deadline = time.monotonic() + self.timeout
        while len(self.addresses) < 3:
            try:
                line = lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                line = None
            if line is None:
                self.stop()
                raise RuntimeError(f"{' '.join(self.command)} did not start:\n" + "".join(self.log))
            if found := LISTENING.search(line):
                self.addresses[found[1]] = found[2]
        return self

    def _read(self, lines):
        for line in self.process.stdout:
            self.log.append(line)
            lines.put(line)
        lines.put(None)

    def stop(self, how=signal.SIGTERM):
        """Asks the process to stop and returns its exit status."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            return self.process.wait(timeout=40)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()


def run_to_end(program, *arguments, timeout=60):
    """Runs the program until it exits by itself; its status and everything it printed."""
    done = subprocess.run([str(program), *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=timeout, check=False)
    return done.returncode, done.stdout
