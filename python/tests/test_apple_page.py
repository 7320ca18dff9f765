"""What docs/apple-silicon.md says was proved is proved by tests that exist."""

import json
import re
from pathlib import Path

import pytest
from server import run_to_end

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "apple-silicon.md"


def rows():
    """Returns the cells of each promise."""
    part = PAGE.read_text().split("## What was promised", 1)[1].split("\n## ", 1)[0]
    cells = [line.strip("|").split("|") for line in part.splitlines() if re.match(r"\| \d+ \|", line)]
    return [[cell.strip() for cell in row] for row in cells]


def functions():
    """Returns the names of all functions of tests and sources."""
    files = [*(ROOT / "crates").rglob("*.rs"), *(ROOT / "python" / "tests").glob("*.py")]
    found = set()
    for path in files:
        found.update(re.findall(r"\b(?:fn|def) (\w+)\(", path.read_text()))
    return found


def test_every_proof_is_a_test():
    found = functions()
    for number, _, _, proofs in rows():
        names = re.findall(r"`(\w{12,})`", proofs)
        assert names, f"promise {number} has no proof"
        missing = [name for name in names if name not in found]
        assert not missing, f"promise {number}: {missing} are no tests"


def test_every_promise_has_a_row():
    assert [int(row[0]) for row in rows()] == list(range(1, 31))


CHIPS = ["m1-pro", "m1-max", "m1-ultra", "m2-pro", "m2-max"]
UNITS = {"GPU": "gpu", "Neural Engine": "neural_engine", "CPU": "cpu"}


def expectations():
    """Returns the page's part with predictions, the models of its trace, and its table: cells by the first one."""
    part = PAGE.read_text().split("## What to expect", 1)[1].split("\n## ", 1)[0]
    models = [json.loads(line) for line in part.split("```")[1].strip().splitlines()]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line.startswith("| ")]
    return part, {model["model"]: model for model in models}, cells


def predicted(program, tmp_path, model, requests):
    """Returns the requests and the tokens per second of each chip for such a trace."""
    trace = tmp_path / "trace.jsonl"
    trace.write_text("\n".join(json.dumps(line) for line in [model, *requests]) + "\n")
    found = []
    for chip in CHIPS:
        status, log = run_to_end(program, "simulate", "--trace", trace, "--chip", chip, "--json")
        assert status == 0, log
        report = json.loads(next(line for line in log.splitlines() if line.startswith("{")))
        found.append((report["requests_per_second"], report["tokens_per_second"]))
    return found


def test_the_simulator_predicts_what_the_page_says(program, tmp_path):
    _, models, cells = expectations()
    subject, checked = None, 0
    for name, *figures in cells:
        for title, model in [("ResNet-50", "resnet"), ("BERT-base", "bert"), ("GPT-2", "gpt")]:
            subject = model if name.startswith(title) else subject
        texts = re.match(r"predicted, (\d+) texts", name)
        unit = UNITS.get(name.removeprefix("predicted, "), "cpu")
        if not name.startswith("predicted, "):
            continue
        model = {**models[subject], "units": [unit]}
        if subject == "gpt":
            request = {"time": 0, "model": "gpt", "kind": "generate", "prompt": 8, "output": 128}
            found = predicted(program, tmp_path, model, [request] * (int(texts[1]) if texts else 1))
        else:
            request = {"time": 0, "model": subject, "kind": "infer", "batch": 1}
            found = predicted(program, tmp_path, model, [request] * 1600)
        rates = [rate[1 if subject == "gpt" else 0] for rate in found]
        assert [float(figure.replace(",", "")) for figure in figures] == pytest.approx(rates, rel=0.01), f"{subject}: {name}"
        checked += 1
    assert checked == 9


def test_differences_above_a_quarter_have_their_reasons():
    part, _, cells = expectations()
    reasons = part.split("Where they differ by more than a quarter:", 1)[1]
    target = None
    for name, *figures in cells:
        if name.endswith("target"):
            target = name.split(",")[0], [float(figure.replace(",", "")) for figure in figures]
        elif name.startswith("predicted") and target:
            rates = [float(figure.replace(",", "")) for figure in figures]
            far = any(abs(rate / wanted - 1) > 0.25 for rate, wanted in zip(rates, target[1]))
            assert not far or target[0].split("-")[0] in reasons, f"{target[0]}: {name} has no reason"
