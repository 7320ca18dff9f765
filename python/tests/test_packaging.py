"""The files that macOS reads: a LaunchAgent, entitlements, and a workflow for hosted Macs."""

import json
import plistlib
import re
import subprocess
import urllib.request

from conftest import ROOT, SAMPLES
from server import Server

MACOS = ROOT / "packaging" / "macos"


def test_the_launch_agent_starts_a_server_with_its_flags(program):
    agent = plistlib.loads((MACOS / "galatea.serve.plist").read_bytes())
    name, command, *flags = agent["ProgramArguments"]
    assert (name, command) == ("/usr/local/bin/galatea", "serve")
    assert agent["KeepAlive"] == {"SuccessfulExit": False} and agent["RunAtLoad"] is True
    flags = [re.sub("/Users/NAME/Models", str(SAMPLES), flag) for flag in flags]
    assert any(str(SAMPLES) in flag for flag in flags)
    with Server(program, *flags) as server, urllib.request.urlopen(f"http://{server.http}/v2/health/ready") as answer:
        assert answer.status == 200


def test_entitlements_are_those_that_the_program_needs():
    assert plistlib.loads((MACOS / "galatea.entitlements").read_bytes()) == {"com.apple.security.cs.allow-jit": True}


def test_the_workflow_for_hosted_macs_runs_commands_that_exist(program, tmp_path):
    text = (ROOT / ".github" / "workflows" / "macos.yml").read_text()
    commands = re.findall(r"target/release/galatea ([^|\n]*)", text)
    assert [command.split()[0] for command in commands] == ["selftest", "chip", "hwbench"]
    options = commands[0].replace("--full", "--quick").split()[1:]
    ran = subprocess.run([program, "selftest", *options], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    lines = [json.loads(line) for line in (tmp_path / "report.jsonl").read_text().splitlines()]
    assert len(lines) >= 40
    assert not [line for line in lines if line["outcome"] in ("failed", "crashed", "timed_out")]
    assert "<html" in (tmp_path / "report.html").read_text()
