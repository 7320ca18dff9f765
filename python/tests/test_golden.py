"""Cases recorded from a real Triton, where GALATEA_SHARED names the folder that holds them.

Each recorded profile gets a server of its own with the recorded flags, over stand-ins for the recorded models. Its
groups run in the recorded order, since counts, sequences and settings depend on it.
"""

import json
import os
import pathlib
import subprocess
import sys

import pytest

import golden_repository

# What needs Triton's Python backend or CUDA, and what the recorded version gets wrong.
SKIP_NEEDS = "python_backend,oracle_bug,cuda_text"

# Models of the profiles that load all they find; the others name theirs.
FOLDERS = {"models_none": ["add_sub", "ctl_badname", "fail_load", "identity_fp32"],
           "models_small": ["identity_fp32", "add_sub", "echo_params", "id_int32", "gen_echo"]}

# Flags beyond the recorded ones.
MORE_FLAGS = {"main": ["--allow-client-shm=true"], "restricted": ["--allow-client-shm=true"]}

PROFILES = ["main", "repo", "none", "lax", "restricted", "trace"]

VERSION = "names Triton's version"
PIPELINE = "the recorded server leaves a second request of a connection unanswered here; this one answers"
OTHERS = "depends on models, requests or loads that need the Python backend"
NEWER_CALL = "the recorded server has no reflection; this one describes its services as newer tools expect"
NEWER_TEXT = "newer versions refuse this as a mistake of the client, and so does this one"
NEWER_FAMILY = "newer versions have the histogram of first responses for every model, and so does this one"
OPENAI = "OpenAI's protocol is spoken on this port too"
ORDER = "an answer and a rejection leave at the same time"

# Requests that are no HTTP/1.
MALFORMED = ("malformed heads and lengths of HTTP/1 are 400, as RFC 9112 demands, where the recorded server closes without an "
             "answer")

# Least share of cases of a profile that are answered alike, leaving aside where the version is named or decides.
SHARE = 0.98

# Reasons that do not show at each run.
UNSTEADY = {ORDER}

# Cases that are answered otherwise, with the reason.
KNOWN = {
    "main": {
        **dict.fromkeys(["http_server_meta.get", "http_server_meta.query", "http_server_meta.get_accept_gzip",
                         "http_server_meta.get_accept_text", "grpc_health.server_metadata", "grpc_wire.gzip_metadata"], VERSION),
        **dict.fromkeys(["http_health.pipelined", "http_wire.notfound_then_ok"], PIPELINE),
        "http_stats.cached_stats": OTHERS,
        "http_features.optional_only": "the server sees that a required input is missing, not the model",
        **dict.fromkeys(["grpc_queue.timeout_rejects", "http_queue.timeout_rejects", "http_sequence.backlog"], ORDER),
        **dict.fromkeys(["http_health.kserve_v1", "http_server_meta.openai_models", "http_server_meta.openai_chat"], OPENAI),
        **dict.fromkeys(["http_infer_json.out_dup", "grpc_infer.out_dup"], NEWER_TEXT),
        "grpc_health.reflection": NEWER_CALL,
        "http_health.live_http10_keepalive": "HTTP/1.0 with keep-alive: the answer carries its length",
        **dict.fromkeys(["http_health.bad_header", "http_health.lf_only", "http_wire.length_text"], MALFORMED),
        "http_health.no_host": "HTTP/1.1 without `Host` is 400, as RFC 9112 demands",
        "http_health.version_09": "an HTTP/0.9 request is closed instead of waited on",
        "http_infer_error.body_not_utf8": "an identifier that is not UTF-8 is shown with a replacement character",
        "http_shm.infer_out_page_region": "the recorded server does not write into a region that begins at a later page",
    },
    "repo": {**dict.fromkeys(["http_repository.config_a_plain", "grpc_repository.index"], OTHERS),
             "http_repository.index_ready_str": NEWER_TEXT},
    "lax": {**dict.fromkeys(["lax.metadata", "lax.grpc_metadata"], VERSION),
            **dict.fromkeys(["lax.metrics", "lax.metrics_samples"], NEWER_FAMILY)},
    "restricted": {"restricted_http.metadata": VERSION},
}


@pytest.fixture(scope="module")
def recorded():
    folder = os.environ.get("GALATEA_SHARED")
    if not folder:
        pytest.skip("GALATEA_SHARED names no folder with recorded cases")
    return pathlib.Path(folder) / "triton-golden"


def write_repository(recorded, profile, out):
    """The models of a profile; gives those that are to be loaded by name."""
    names = set(golden_repository.write_all(recorded / "models", out))
    wanted = FOLDERS.get(profile["repository"])
    if wanted is None:
        # The index shows these too.
        golden_repository.write_rest(recorded / "models", out)
    else:
        golden_repository.keep(out, wanted)
    return [name for name in profile.get("load") or [] if name in names and (wanted is None or name in wanted)]


def replay(recorded, name, start, folder):
    profile = json.loads((recorded / "manifest.json").read_text())["profiles"][name]
    repository, report = folder / "models", folder / "verdicts.json"
    load = write_repository(recorded, profile, repository)
    flags = [flag.replace("$SCRATCH", str(folder)) for flag in profile["flags"]] + MORE_FLAGS.get(name, [])
    if load:
        flags += ["--model-control-mode=explicit", *(f"--load-model={model}" for model in load)]
    server = start("--model-repository", repository, *flags)
    groups = ",".join(group["group"] for group in profile["groups"])
    done = subprocess.run([sys.executable, str(recorded / "replay.py"), "--http", server.http, "--grpc", server.grpc,
                           "--metrics", server.metrics, "--profile", name, "--group", groups, "--skip-missing",
                           "--skip-needs", SKIP_NEEDS, "--repo", str(repository), "--norm", f"{folder}=$SCRATCH",
                           "--json", str(report)],
                          capture_output=True, text=True, check=False, timeout=600)
    assert report.exists(), done.stdout + done.stderr
    return json.loads(report.read_text()), done.stdout


@pytest.mark.timeout(660)
@pytest.mark.parametrize("profile", PROFILES)
def test_recorded_cases_are_answered_alike(recorded, profile, start, tmp_path):
    verdicts, text = replay(recorded, profile, start, tmp_path)
    print(text[text.rfind("\ngroup "):])
    known = KNOWN.get(profile, {})
    differing = {verdict["name"] for verdict in verdicts if not verdict["strict"]}
    unexpected = [verdict for verdict in verdicts if verdict["name"] in differing - set(known)]
    for verdict in unexpected:
        print(verdict["name"], json.dumps(verdict["diff"])[:600])
    assert not unexpected, f"{len(unexpected)} of {len(verdicts)} cases differ"
    # What newer versions of the recorded server answer otherwise themselves says nothing against this one.
    aside = {name for name, reason in known.items() if reason in (VERSION, NEWER_TEXT, NEWER_FAMILY)}
    share = 1 - len(differing - aside) / len(verdicts)
    assert share >= SHARE, f"{share:.1%} of {len(verdicts)} cases are alike"
    stale = {name for name, reason in known.items() if reason not in UNSTEADY} - differing
    assert not stale, f"now alike, so to be taken off the list: {sorted(stale)}"


def test_every_difference_is_documented():
    page = (pathlib.Path(__file__).parents[2] / "docs" / "protocols.md").read_text()
    missing = [name for cases in KNOWN.values() for name, reason in cases.items() if f"`{name}`" not in page or reason not in page]
    assert not missing, f"not in docs/protocols.md: {missing}"
