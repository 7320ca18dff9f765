"""`galatea tune` and `galatea hwbench`: records are kept, merged and read, and every kernel is timed."""

import json
import shutil
import time
import urllib.request

import pytest

from conftest import SAMPLES, until
from server import run_to_end

DIGITS = SAMPLES / "digits" / "1" / "model.onnx"


def test_records_are_kept_merged_and_read(program, tmp_path):
    first, second, both = (tmp_path / name for name in ("first.jsonl", "second.jsonl", "both.jsonl"))
    for file, strategy in [(first, "exhaustive"), (second, "genetic")]:
        status, log = run_to_end(program, "tune", DIGITS, "--database", file, "--strategy", strategy, "--threads", "2",
                                 "--samples", "2", "--seconds", "30", "--batch", "4", timeout=300)
        assert status == 0, log
        assert "records in" in log
    head, *records = [json.loads(line) for line in first.read_text().splitlines()]
    assert head == {"format": "galatea tuning", "version": 1}
    assert records and all(record["choice"] and record["trials"] >= 1 for record in records)
    assert any(record["family"].startswith("threads ") for record in records)
    status, log = run_to_end(program, "tune", "--merge", first, second, "--output", both)
    assert status == 0 and f"{len(records)} records" in log, log
    status, log = run_to_end(program, "tune", "--inspect", both, "--json")
    assert status == 0
    shown = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    assert [record["family"] for record in shown] == [record["family"] for record in records]


def test_mistakes_are_named(program, tmp_path):
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"format":"galatea tuning","version":9}\n')
    for arguments, text, expected in [
        (["--inspect", broken], "version Some(9)", 1),
        (["--inspect", tmp_path / "none"], "cannot be read", 1),
        (["--merge", "--output", tmp_path / "x"], "MODEL|FILE is missing", 2),
        (["--merge", broken], "--output is missing", 2),
        ([DIGITS, "--strategy", "luck"], "exhaustive, grid, adaptive, genetic", 2),
        ([DIGITS, "--database", broken], "version Some(9)", 1),
    ]:
        status, log = run_to_end(program, "tune", *arguments)
        assert status == expected and text in log, log


def test_every_kernel_is_timed(program):
    status, log = run_to_end(program, "hwbench", "16,64,48", "--threads", "2", "--samples", "2", "--json", timeout=300)
    assert status == 0, log
    found = json.loads(next(line for line in log.splitlines() if line.startswith("{")))
    kernels = found["kernels"]
    names = {kernel["kernel"].split("-")[0] for kernel in kernels}
    assert names == {"f32", "bf16", "int8", "f32_q8", "f32_q4", "bf16_q4"}
    assert sum(kernel["chosen"] for kernel in kernels) == len(names)
    # What the peak shows to be slower than the best is not run.
    pruned = [kernel for kernel in kernels if kernel["refused"]]
    assert all("the hardware needs" in kernel["refused"] for kernel in pruned)
    assert all(kernel["time_ns"] > 0 for kernel in kernels if kernel not in pruned)
    status, log = run_to_end(program, "hwbench", "16,64")
    assert status == 2 and "expected M,K,N" in log, log


def test_curves_are_drawn(program, tmp_path):
    picture = tmp_path / "bench.svg"
    status, log = run_to_end(program, "bench", DIGITS, "--batch", "1,4", "--threads", "1,2", "--seconds", "0.05",
                             "--json", "--no-model-cache", "--plot", picture, timeout=300)
    assert status == 0, log
    points = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    assert [(point["threads"], point["batch"]) for point in points] == [(1, 1), (1, 4), (2, 1), (2, 4)]
    text = picture.read_text()
    # A panel for each list, each with every point.
    assert text.startswith("<svg") and text.count("<circle") == 8
    assert "digits: time of a run by batch" in text and "digits: time of a run by threads" in text
    picture = tmp_path / "tune.svg"
    status, log = run_to_end(program, "tune", DIGITS, "--database", tmp_path / "a.jsonl", "--threads", "2",
                             "--samples", "1", "--seconds", "20", "--batch", "4", "--plot", picture, timeout=300)
    assert status == 0 and picture.read_text().count("<circle") > 1, log
    for flags, text, expected in [
        (["--plot", picture], "--plot needs a list", 1),
        (["--batch", "1,x"], "--batch expects a number, or N,N", 2),
        (["--sequence", "8"], "no input has an axis along a sequence", 1),
        (["--batch", "1,2", "--profile"], "--profile goes with one batch", 1),
    ]:
        status, log = run_to_end(program, "bench", DIGITS, *flags)
        assert status == expected and text in log, log


def test_the_chip_is_described_as_far_as_it_is_known(program):
    status, log = run_to_end(program, "chip", "--json")
    assert status == 0, log
    found = json.loads(next(line for line in log.splitlines() if line.startswith("{")))
    assert set(found["kernels"]) == {"f32", "bf16", "int8"}
    assert sum(kind["cores"] for kind in found["cores"]) >= 1
    assert None not in found.values()
def tuning(server, model="digits"):
    """The metrics of a model's kernel tuning, and the number of records, by the ends of their names."""
    with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    found = {}
    for line in lines:
        if line.startswith("galatea_tuning_") and (f'"{model}"' in line or "{" not in line):
            name, value = line.rsplit(" ", 1)
            found[name.removeprefix("galatea_tuning_").split("{")[0]] = float(value)
    return found


def digits(folder, metal):
    """A repository with the sample `digits`, which has this `metal_config`."""
    shutil.copytree(SAMPLES / "digits", folder / "digits")
    (folder / "digits" / "metal_config.json").write_text(json.dumps(metal))
    return ["--model-repository", folder, "--provider=cpu", "--auto-tuning-share=1"]


def asked(server):
    """The sample request, and the first of its answers."""
    body = (SAMPLES / "digits" / "sample_input.json").read_bytes()
    request = urllib.request.Request(f"http://{server.http}/v2/models/digits/infer", data=body)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.loads(answer.read())["outputs"][0]["data"]


def test_kernels_are_measured_while_a_server_is_idle(program, start, tmp_path):
    cache = tmp_path / "cache"
    models = digits(tmp_path / "models", {"enable_auto_tuning": True, "auto_tuning_seconds": 20})
    server = start(*models, "--cache-dir", cache)
    before = asked(server)
    until(lambda: tuning(server).get("settled") == 1, "the end of the measurements")
    found = tuning(server)
    assert found["measured_total"] > 0 and found["records"] == found["measured_total"], found
    assert 0 < found["seconds_total"] <= 21, found
    assert asked(server) == pytest.approx(before, abs=1e-5)
    assert server.stop() == 0
    assert any("measured" in line and "while the server was idle" in line for line in server.log)
    file = next(cache.rglob("tuning.jsonl"))
    head, *records = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(records) == found["records"]
    # The next start finds them, and so does `explain`.
    again = start(*models, "--cache-dir", cache)
    until(lambda: tuning(again).get("settled") == 1, "the look at the records")
    assert tuning(again)["measured_total"] == 0
    assert tuning(again)["records"] == found["records"]
    again.stop()
    status, log = run_to_end(program, "explain", tmp_path / "models" / "digits", "--cache-dir", cache)
    assert status == 0 and "choices between kernels have a record" in log, log
    assert all(record["choice"] in log for record in records if record["family"].startswith("conv")), log
    # Records of another chip are not used, and stay.
    for record in records:
        record["machine"] = record["machine"].replace(record["machine"].split(",")[0], "another chip")
    file.write_text("".join(json.dumps(line) + "\n" for line in [head, *records]))
    third = start(*models, "--cache-dir", cache)
    until(lambda: tuning(third).get("settled") == 1, "the end of the measurements")
    assert tuning(third)["measured_total"] > 0
    third.stop()
    assert sum('"another chip' in line for line in file.read_text().splitlines()) == len(records)


def written(server):
    """The text that the sample checkpoint `chat` writes, which is the same each time."""
    body = json.dumps({"model": "chat", "prompt": "The capital", "max_tokens": 12, "temperature": 0}).encode()
    request = urllib.request.Request(f"http://{server.http}/v1/completions", data=body,
                                     headers={"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())["choices"][0]["text"]


def test_kernels_of_a_checkpoint_are_measured_while_a_server_is_idle(start, tmp_path):
    models = tmp_path / "models"
    shutil.copytree(SAMPLES / "chat", models / "chat")
    (models / "chat" / "metal_config.json").write_text(
        json.dumps({"enable_auto_tuning": True, "auto_tuning_seconds": 10}))
    arguments = ["--model-repository", models, "--provider=cpu", "--auto-tuning-share=1", "--cache-dir", tmp_path / "cache"]
    server = start(*arguments)
    before = written(server)
    until(lambda: tuning(server, "chat").get("settled") == 1, "the end of the measurements")
    found = tuning(server, "chat")
    assert found["measured_total"] > 0 and 0 < found["seconds_total"] <= 11, found
    assert found["records"] == found["measured_total"], found
    # Other kernels add in another order, which changes no word of this text.
    assert written(server) == before
    assert server.stop() == 0
    assert any("measured" in line and "while the server was idle" in line for line in server.log)
    # The next start finds the records.
    again = start(*arguments)
    written(again)
    until(lambda: tuning(again, "chat").get("settled") == 1, "the look at the records")
    assert tuning(again, "chat")["records"] >= found["records"]


def test_nothing_is_measured_under_load(start, tmp_path):
    server = start(*digits(tmp_path / "models", {"enable_auto_tuning": True}), "--cache-dir", tmp_path / "cache")
    end = time.monotonic() + 4
    while time.monotonic() < end:
        asked(server)
    assert tuning(server)["measured_total"] == 0
    assert not list((tmp_path / "cache").rglob("tuning.jsonl"))
    until(lambda: tuning(server)["measured_total"] > 0, "a measurement without requests")


@pytest.mark.parametrize(("metal", "flags", "measures"), [
    ({}, [], False),
    ({}, ["--auto-tuning=always"], True),
    ({"enable_auto_tuning": False}, ["--auto-tuning=always"], False),
    ({"preset": "low_latency"}, [], True),
    ({"enable_auto_tuning": False}, ['--metal-config={"enable_auto_tuning": true}'], False),
    ({}, ['--metal-config={"enable_auto_tuning": true}'], True),
])
def test_fields_and_flags_say_whose_kernels_are_measured(start, tmp_path, metal, flags, measures):
    arguments = digits(tmp_path / "models", metal)
    # Models are measured in the order of their names: this one is the last.
    digits(tmp_path / "other", {"enable_auto_tuning": True, "auto_tuning_seconds": 1})
    shutil.move(tmp_path / "other" / "digits", tmp_path / "models" / "eager")
    config = tmp_path / "models" / "eager" / "config.pbtxt"
    config.write_text(config.read_text().replace('"digits"', '"eager"'))
    server = start(*arguments, *flags, "--auto-tuning-seconds=1", "--cache-dir", tmp_path / "cache")
    until(lambda: tuning(server, "eager").get("settled") == 1, "the measurements of the other model")
    assert (tuning(server, "digits").get("measured_total", 0) > 0) == measures


def test_a_server_may_measure_nothing(start, tmp_path):
    server = start(*digits(tmp_path / "models", {"enable_auto_tuning": True}), "--auto-tuning=never")
    assert any("--auto-tuning=never measures nothing" in line for line in server.log)
    assert tuning(server) == {}


@pytest.mark.parametrize(("flag", "said"), [
    ("--auto-tuning=often", "never"),
    ("--auto-tuning-seconds=0", "from 1 to 86400"),
    ("--auto-tuning-share=0", "expected a share of a core above 0 and up to 1"),
    ("--auto-tuning-share=much", "'much' found"),
])
def test_wrong_limits_of_tuning_are_named(program, tmp_path, flag, said):
    (tmp_path / "models").mkdir()
    status, log = run_to_end(program, "serve", "--model-repository", tmp_path / "models", flag)
    assert status != 0 and said in log, log
