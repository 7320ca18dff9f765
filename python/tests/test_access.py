"""Keys of clients, and what a running server reads again: keys, certificates and its log."""

import os
import re
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request

import openai
import pytest
import tritonclient.grpc
import tritonclient.http
import trustme

from conftest import SAMPLES
from server import ANY_PORT, run_to_end
from tensors import check_simple, simple_inputs


def write_keys(path, text, mode=0o600):
    path.write_text(text)
    path.chmod(mode)
    return path


def fetch(address, path, key=None):
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    request = urllib.request.Request(f"http://{address}{path}", headers=headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read()


def status(address, path, key=None):
    try:
        fetch(address, path, key)
        return 200
    except urllib.error.HTTPError as error:
        return error.code


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.02)


def test_stock_clients_send_their_keys(start, tmp_path):
    keys = write_keys(tmp_path / "keys", "team:a-key-that-is-long-enough\n")
    server = start("--model-repository", SAMPLES, "--api-key-file", keys)
    assert any("1 keys of" in line for line in server.log)
    headers = {"authorization": "Bearer a-key-that-is-long-enough"}
    for module, address in [(tritonclient.http, server.http), (tritonclient.grpc, server.grpc)]:
        with module.InferenceServerClient(address) as client:
            assert client.is_server_live()
            left, right, inputs = simple_inputs(module)
            with pytest.raises(tritonclient.utils.InferenceServerException) as refused:
                client.infer("simple", inputs)
            assert refused.value.status() in ("401", "StatusCode.UNAUTHENTICATED")
            check_simple(client.infer("simple", inputs, headers=dict(headers)), left, right)
    with pytest.raises(openai.AuthenticationError) as refused:
        openai.OpenAI(base_url=f"http://{server.http}/v1", api_key="wrong", max_retries=0).models.list()
    assert refused.value.code == "invalid_api_key"
    openai.OpenAI(base_url=f"http://{server.http}/v1", api_key="a-key-that-is-long-enough").models.list()
    assert status(server.metrics, "/metrics") == 401
    assert b"nv_inference_count" in fetch(server.metrics, "/metrics", "a-key-that-is-long-enough")


def test_keys_are_read_again_and_a_broken_file_keeps_the_old_ones(start, tmp_path):
    keys = write_keys(tmp_path / "keys", "a:the-first-of-the-keys\n")
    server = start("--model-repository", SAMPLES, "--api-key-file", keys)
    assert status(server.http, "/v2", "the-first-of-the-keys") == 200
    write_keys(keys, "nothing that is a key\n")
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: any("the keys stay as they were" in line for line in server.log))
    assert status(server.http, "/v2", "the-first-of-the-keys") == 200
    write_keys(keys, "a:the-second-of-the-keys\n")
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: status(server.http, "/v2", "the-second-of-the-keys") == 200)
    assert status(server.http, "/v2", "the-first-of-the-keys") == 401
    assert not any("of-the-keys" in line for line in server.log)


def test_a_file_of_keys_that_others_can_read_is_refused(program, tmp_path):
    keys = write_keys(tmp_path / "keys", "a:the-first-of-the-keys\n", mode=0o644)
    code, log = run_to_end(program, "serve", "--model-repository", SAMPLES, "--api-key-file", keys)
    assert code == 1
    assert "has the mode 0644, expected 0600" in log and "the-first-of-the-keys" not in log


def test_restrictions_stand_in_a_file(start, tmp_path):
    groups = write_keys(tmp_path / "groups", "model-repository:admin-key=secret\n")
    server = start("--model-repository", SAMPLES, f"--http-restricted-api=@{groups}", f"--grpc-restricted-protocol=@{groups}")
    if os.path.exists("/proc/self/cmdline"):
        with open(f"/proc/{server.process.pid}/cmdline", "rb") as line:
            assert b"secret" not in line.read()
    with tritonclient.http.InferenceServerClient(server.http) as client:
        assert client.get_model_repository_index(headers={"admin-key": "secret"})
        with pytest.raises(tritonclient.utils.InferenceServerException):
            client.get_model_repository_index()
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        assert client.get_model_repository_index(headers={"triton-grpc-protocol-admin-key": "secret"}).models


def test_signals_that_do_not_stop_the_server(start):
    server = start("--model-repository", SAMPLES)
    for number, name in [(signal.SIGQUIT, "SIGQUIT"), (signal.SIGUSR1, "SIGUSR1"), (signal.SIGUSR2, "SIGUSR2")]:
        server.process.send_signal(number)
        wait_for(lambda: any(f"{name} has no effect" in line for line in server.log))
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: any("Signal (1) received" in line for line in server.log))
    assert status(server.http, "/v2/health/ready") == 200
    assert server.stop() == 0


def test_certificates_and_the_log_are_read_again(program, tmp_path):
    authority = trustme.CA()
    certificate, key, log, old = (tmp_path / name for name in ("server.pem", "server.key", "log", "log.1"))

    def issue():
        issued = authority.issue_cert("localhost", "127.0.0.1")
        certificate.write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))
        issued.private_key_pem.write_to_path(key)

    def shown(port):
        context = ssl.create_default_context()
        authority.configure_trust(context)
        with socket.create_connection(("127.0.0.1", port), timeout=20) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as wrapped:
                return wrapped.getpeercert(binary_form=True)

    def logged(path, text):
        return path.exists() and text in path.read_text()

    issue()
    tls = ["--http-use-ssl=true", f"--http-server-cert={certificate}", f"--http-server-key={key}"]
    process = subprocess.Popen([program, "serve", *ANY_PORT, "--model-repository", SAMPLES, "--log-file", log, *tls])
    try:
        wait_for(lambda: logged(log, "Started HTTPService at") and logged(log, "Started Metrics Service at"), 60)
        port = int(re.search(r"Started HTTPService at [^:]+:(\d+)", log.read_text())[1])
        first = shown(port)
        issue()
        log.rename(old)
        process.send_signal(signal.SIGHUP)
        wait_for(lambda: logged(log, "HTTPService has read its certificates again"))
        before = old.read_text()
        second = shown(port)
        assert second != first
        key.write_text("no key")
        process.send_signal(signal.SIGHUP)
        wait_for(lambda: logged(log, "the certificates stay as they were"))
        assert shown(port) == second
        assert old.read_text() == before
    finally:
        process.terminate()
        assert process.wait(timeout=40) == 0
