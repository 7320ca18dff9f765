"""Times the front end of Galatea beside another server that speaks Triton's protocol, in one run.

usage: compare_servers.py GALATEA REPOSITORY [--peer COMMAND] [--seconds 2] [--rounds 3] [--json OUT]

REPOSITORY holds the model `identity_fp32` (FP32, [-1], batching, input INPUT0, output OUTPUT0) for Galatea. COMMAND
starts the peer with an equal model of its own; {http}, {grpc} and {metrics} in it stand for the ports. The servers
are measured in turns, round by round, and the best round counts, so that other work on the machine hits both. CPU
time is that of the server's whole process tree. Needs wrk (HTTP) and h2load (gRPC) on the path.
"""

import argparse
import json
import os
import pathlib
import re
import shlex
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

CONNECTIONS = (1, 8, 32)
LUA = """local f = io.open("{body}", "rb")
if f then wrk.body = f:read("*a") f:close() end
wrk.method = "{method}"
{headers}
done = function(summary, latency)
  local errors = summary.errors
  io.write(string.format("RESULT %d %d %d %d %d\\n", summary.requests, summary.duration, latency:percentile(50),
    latency:percentile(99), errors.status + errors.connect + errors.read + errors.write + errors.timeout))
end
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def infer_http(elements):
    """Body and headers of a binary inference of [1, elements]."""
    raw = struct.pack(f"<{elements}f", *range(elements))
    head = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, elements],
                        "parameters": {"binary_data_size": len(raw)}}],
            "outputs": [{"name": "OUTPUT0", "parameters": {"binary_data": True}}]}
    text = json.dumps(head, separators=(",", ":")).encode()
    return text + raw, {"Inference-Header-Content-Length": str(len(text)), "Content-Type": "application/octet-stream"}


def infer_grpc(elements, model="identity_fp32"):
    from tritonclient.grpc import service_pb2
    message = service_pb2.ModelInferRequest(model_name=model)
    tensor = message.inputs.add()
    tensor.name, tensor.datatype = "INPUT0", "FP32"
    tensor.shape.extend([1, elements])
    message.raw_input_contents.append(struct.pack(f"<{elements}f", *range(elements)))
    return message.SerializeToString()


def scenarios():
    """Name, protocol, path, body, headers."""
    yield "health", "http", "/v2/health/ready", b"", {}
    yield "metadata", "http", "/v2/models/identity_fp32", b"", {}
    for elements in (16, 16384):
        yield f"HTTP identity [1,{elements}]", "http", "/v2/models/identity_fp32/infer", *infer_http(elements)
    for elements in (16, 16384):
        yield (f"gRPC identity [1,{elements}]", "grpc", "/inference.GRPCInferenceService/ModelInfer",
               infer_grpc(elements), {})


class Peer:
    """A server process under measurement."""

    def __init__(self, name, command):
        self.name = name
        self.ports = {door: free_port() for door in ("http", "grpc", "metrics")}
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(shlex.split(command.format(**self.ports)), stdout=self.log, stderr=self.log)

    def wait_ready(self, timeout=90):
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['http']}/v2/health/ready", timeout=2):
                    return
            except OSError:
                time.sleep(0.2)
        self.log.seek(0)
        sys.exit(f"{self.name} did not become ready:\n{self.log.read()[-3000:].decode(errors='replace')}")

    def cpu_seconds(self):
        """User and system time of the process and its descendants."""
        children, times = {}, {}
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                fields = (entry / "stat").read_text().rsplit(") ", 1)[1].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
            times[int(entry.name)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        total, todo = 0.0, [self.process.pid]
        while todo:
            one = todo.pop()
            total += times.get(one, 0.0)
            todo += children.get(one, [])
        return total

    def resident_mb(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=60)


def run_wrk(peer, path, body, headers, connections, seconds):
    with tempfile.TemporaryDirectory() as folder:
        body_file = pathlib.Path(folder) / "body"
        if body:
            body_file.write_bytes(body)
        script = pathlib.Path(folder) / "script.lua"
        lines = "\n".join(f'wrk.headers["{name}"] = "{value}"' for name, value in headers.items())
        script.write_text(LUA.format(body=body_file, method="POST" if body else "GET", headers=lines))
        done = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", str(script),
                               f"http://127.0.0.1:{peer.ports['http']}{path}"], capture_output=True, text=True, check=True)
    requests, micros, p50, p99, errors = map(int, re.search(r"RESULT (.*)", done.stdout)[1].split())
    return {"requests": requests, "per_s": requests / (micros / 1e6), "p50_ms": p50 / 1e3, "p99_ms": p99 / 1e3,
            "errors": errors}


def run_h2load(peer, path, body, _headers, connections, seconds):
    with tempfile.TemporaryDirectory() as folder:
        data, log = pathlib.Path(folder) / "body", pathlib.Path(folder) / "log"
        data.write_bytes(b"\0" + struct.pack(">I", len(body)) + body)
        done = subprocess.run(["h2load", "-D", str(seconds), "-c", str(connections), "-m", "1", "-t", "1",
                               "--log-file", str(log), "-d", str(data), "-H", "content-type: application/grpc",
                               "-H", "te: trailers", "-p", "h2c", f"http://127.0.0.1:{peer.ports['grpc']}{path}"],
                              capture_output=True, text=True, check=True)
        times = sorted(int(line.split("\t")[2]) / 1e3 for line in log.read_text().splitlines())
    failed, errored = map(int, re.search(r"(\d+) failed, (\d+) errored", done.stdout).groups())
    at = lambda share: times[min(len(times) - 1, int(len(times) * share))] if times else float("nan")
    return {"requests": len(times), "per_s": len(times) / seconds, "p50_ms": at(0.5), "p99_ms": at(0.99),
            "errors": failed + errored}


def measure(peer, scenario, connections, seconds):
    _, protocol, *rest = scenario
    before = peer.cpu_seconds()
    found = {"http": run_wrk, "grpc": run_h2load}[protocol](peer, *rest, connections, seconds)
    found["cpu_us"] = (peer.cpu_seconds() - before) * 1e6 / max(1, found["requests"])
    return found


def compare(peers, seconds, rounds):
    rows = []
    for scenario in scenarios():
        for connections in CONNECTIONS:
            best = {}
            for _ in range(rounds):
                for peer in peers:
                    found = measure(peer, scenario, connections, seconds)
                    if peer.name not in best or found["per_s"] > best[peer.name]["per_s"]:
                        best[peer.name] = found
            rows.append({"scenario": scenario[0], "connections": connections, **best})
            print(line(rows[-1], [peer.name for peer in peers]), flush=True)
    return rows


def line(row, names):
    cells = [row["scenario"], str(row["connections"])]
    for name in names:
        found = row[name]
        cells.append(f"{found['per_s']:.0f}/s p50 {found['p50_ms']:.3f} p99 {found['p99_ms']:.3f} ms "
                     f"{found['cpu_us']:.0f} us CPU" + (f" {found['errors']} ERRORS" if found["errors"] else ""))
    if len(names) == 2:
        ours, theirs = row[names[0]], row[names[1]]
        cells.append(f"{ours['per_s'] / theirs['per_s']:.2f} / {theirs['p50_ms'] / ours['p50_ms']:.2f} / "
                     f"{theirs['cpu_us'] / ours['cpu_us']:.2f}")
    return "| " + " | ".join(cells) + " |"


def idle_connections(peer, count=1000):
    """Resident memory before and with so many open connections that have each asked once, in MB."""
    before = peer.resident_mb()
    request = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n"
    held = []
    for _ in range(count):
        connection = socket.create_connection(("127.0.0.1", peer.ports["http"]))
        connection.sendall(request)
        connection.recv(4096)
        held.append(connection)
    after = peer.resident_mb()
    for connection in held:
        connection.close()
    return before, after


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("galatea")
    parser.add_argument("repository")
    parser.add_argument("--peer", help="command of the other server")
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    given = parser.parse_args()
    command = (f"{given.galatea} serve --model-repository {given.repository} --model-control-mode explicit "
               "--load-model identity_fp32 --http-port {http} --grpc-port {grpc} --metrics-port {metrics}")
    peers = [Peer("galatea", command)] + ([Peer("peer", given.peer)] if given.peer else [])
    try:
        for peer in peers:
            peer.wait_ready()
        memory = {peer.name: idle_connections(peer) for peer in peers}
        print("| scenario | connections | " + " | ".join(peer.name for peer in peers)
              + (" | ratios: throughput / p50 / CPU" if given.peer else "") + " |")
        rows = compare(peers, given.seconds, given.rounds)
        for name, (before, after) in memory.items():
            print(f"{name}: {before:.1f} MB resident when idle, {after - before:.1f} MB more with 1000 idle connections")
    finally:
        for peer in peers:
            peer.stop()
    if given.json:
        pathlib.Path(given.json).write_text(json.dumps({"rows": rows, "memory_mb": memory}, indent=1))


if __name__ == "__main__":
    main()
