"""Times a model in Python beside the real Triton, in one run.

usage: compare_python_models.py GALATEA PACKAGES [--seconds 3] [--rounds 5] [--only TEXT] [--json OUT]

PACKAGES is the folder `site-packages` of an environment with nvidia-pytriton, which has a tritonserver and its Python
backend, and NumPy; both servers' models run in that environment's Python. The model is an identity, plain and with
dynamic batching. The servers are measured in turns, round by round, and the ratio is that of the medians, so that other
work on the machine hits both. CPU time is that of the server's whole process tree. Needs wrk (HTTP) and h2load (gRPC)
on the path.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import sys
import tempfile

from compare_servers import Peer, infer_grpc, infer_http, measure

MODEL = '''import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            tensor = pb_utils.get_input_tensor_by_name(request, "INPUT0")
            output = pb_utils.Tensor("OUTPUT0", tensor.as_numpy())
            responses.append(pb_utils.InferenceResponse([output]))
        return responses
'''
CONFIG = '''backend: "python"
max_batch_size: 8
input { name: "INPUT0" data_type: TYPE_FP32 dims: -1 }
output { name: "OUTPUT0" data_type: TYPE_FP32 dims: -1 }
instance_group { count: 1 kind: KIND_CPU }
'''
MODELS = {"identity": "", "identity_batched": "dynamic_batching { }\n"}
# Name, bytes of the tensor, clients.
LOADS = (("1 KB", 1 << 10, 8), ("1 KB", 1 << 10, 1), ("64 KB", 1 << 16, 8), ("16 MB", 1 << 24, 1), ("16 MB", 1 << 24, 2),
         ("16 MB", 1 << 24, 8))
PATHS = {"http": "/v2/models/{model}/infer", "grpc": "/inference.GRPCInferenceService/ModelInfer"}


def scenarios():
    """Name, protocol, path, body and headers; then bytes and clients."""
    for size_name, size, clients in LOADS:
        for model in MODELS:
            for protocol in PATHS:
                path = PATHS[protocol].format(model=model)
                if protocol == "http":
                    body, headers = infer_http(size // 4)
                else:
                    body, headers = infer_grpc(size // 4, model), {}
                yield (f"{model} {size_name} {protocol} {clients}", protocol, path, body, headers), size, clients


def write_repository(folder):
    for model, more in MODELS.items():
        version = folder / model / "1"
        version.mkdir(parents=True)
        (version / "model.py").write_text(MODEL)
        (folder / model / "config.pbtxt").write_text(CONFIG + more)


def triton_command(packages, folder, repository):
    """The command of the real server, with a backend folder that has the stub of this Python's version."""
    root = packages / "pytriton" / "tritonserver"
    version = packages.parent.name.removeprefix("python")
    backend = folder / "backends" / "python"
    shutil.copytree(root / "backends" / "python", backend)
    stub = root / "python_backend_stubs" / version / "triton_python_backend_stub"
    if not stub.exists():
        sys.exit(f"{stub} is not there: no stub for Python {version}")
    # Started where it lies, as it finds its libraries from there.
    start = backend / "triton_python_backend_stub"
    start.write_text(f'#!/bin/sh\nexec "{stub}" "$@"\n')
    start.chmod(0o755)
    libraries = f"{packages / 'nvidia_pytriton.libs'}:{os.environ.get('LD_LIBRARY_PATH', '')}"
    # The stub runs what `python3` on the path belongs to.
    path = f"{packages.parents[2] / 'bin'}:{os.environ['PATH']}"
    return (f"env LD_LIBRARY_PATH={libraries} PATH={path} {root / 'bin' / 'tritonserver'} "
            f"--model-repository {repository} --backend-directory {folder / 'backends'} "
            "--http-port {http} --grpc-port {grpc} --metrics-port {metrics}")


def compare(peers, given):
    rows = []
    for scenario, size, clients in scenarios():
        if given.only not in scenario[0]:
            continue
        found = {peer.name: [] for peer in peers}
        for _ in range(given.rounds):
            for peer in peers:
                found[peer.name].append(measure(peer, scenario, clients, given.seconds))
        row = {"scenario": scenario[0], "bytes": size, "clients": clients}
        for name, rounds in found.items():
            row[name] = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
            row[name]["all_per_s"] = [round(one["per_s"], 1) for one in rounds]
            row[name]["errors"] = sum(one["errors"] for one in rounds)
        ours, theirs = (row[peer.name] for peer in peers)
        row["ratio"] = ours["per_s"] / theirs["per_s"]
        rows.append(row)
        print(line(row, [peer.name for peer in peers]), flush=True)
    return rows


def line(row, names):
    cells = [row["scenario"]]
    for name in names:
        one = row[name]
        errors = f", {one['errors']} ERRORS" if one["errors"] else ""
        cells.append(f"{one['per_s']:.0f}/s ({min(one['all_per_s']):.0f} to {max(one['all_per_s']):.0f}), p50 "
                     f"{one['p50_ms']:.3f}, p99 {one['p99_ms']:.3f} ms, {one['cpu_us']:.0f} us CPU{errors}")
    return "| " + " | ".join([*cells, f"{row['ratio']:.2f}"]) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("galatea")
    parser.add_argument("packages", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="scenarios with this text in their names")
    parser.add_argument("--json", type=pathlib.Path)
    given = parser.parse_args()
    packages = given.packages.resolve()
    python = packages.parents[2] / "bin" / "python"
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        repository = folder / "models"
        write_repository(repository)
        ours = (f"{given.galatea} serve --model-repository {repository} --backend-config=python,python-executable={python} "
                "--http-port {http} --grpc-port {grpc} --metrics-port {metrics}")
        peers = []
        try:
            for name, command in (("galatea", ours), ("triton", triton_command(packages, folder, repository))):
                peers.append(Peer(name, command))
                peers[-1].wait_ready()
            print("| scenario | galatea | triton | requests/s, galatea to triton |\n|---|---|---|---|", flush=True)
            rows = compare(peers, given)
        finally:
            for peer in peers:
                peer.stop()
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
