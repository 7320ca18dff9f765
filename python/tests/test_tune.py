"""`galatea tune` and `galatea hwbench`: records are kept, merged and read, and every kernel is timed."""

import json

from conftest import SAMPLES
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
