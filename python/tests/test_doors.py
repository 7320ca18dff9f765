"""The doors: TLS, Unix sockets, restricted groups, the access log, and leaving in good order."""

import contextlib
import http.client
import itertools
import json
import os
import queue
import resource
import signal
import socket
import ssl
import stat
import subprocess
import threading
import urllib.request

import grpc
import numpy
import pytest
import tritonclient.grpc
import tritonclient.http
import trustme

from conftest import SAMPLES
from server import Server, run_to_end
from tensors import check_simple, simple_inputs


@pytest.fixture(scope="session")
def authority():
    return trustme.CA()


@pytest.fixture(scope="session")
def files(authority, tmp_path_factory):
    """PEM files of the authority, the server and a client by name; and of a client of an authority nobody trusts."""
    folder = tmp_path_factory.mktemp("tls")
    paths = {"root": folder / "root.pem"}
    authority.cert_pem.write_to_path(paths["root"])
    for name, issuer in [("server", authority), ("client", authority), ("stranger", trustme.CA())]:
        issued = issuer.issue_cert("localhost", "127.0.0.1")
        paths[name] = folder / f"{name}.pem"
        paths[f"{name}_key"] = folder / f"{name}.key"
        paths[name].write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))
        issued.private_key_pem.write_to_path(paths[f"{name}_key"])
    return {name: str(path) for name, path in paths.items()}


def tls_flags(door, files, mutual=False):
    flags = [f"--{door}-use-ssl=true", f"--{door}-server-cert={files['server']}", f"--{door}-server-key={files['server_key']}"]
    if mutual:
        flags += [f"--{door}-use-ssl-mutual=true", f"--{door}-root-cert={files['root']}"]
    return flags


def grpc_client(server, files, client=None):
    own = {"private_key": files[f"{client}_key"], "certificate_chain": files[client]} if client else {}
    return tritonclient.grpc.InferenceServerClient(server.grpc, ssl=True, root_certificates=files["root"], **own)


def http_client(server, files, client=None):
    def context():
        made = ssl.create_default_context(cafile=files["root"])
        if client:
            made.load_cert_chain(files[client], files[f"{client}_key"])
        return made

    return tritonclient.http.InferenceServerClient(server.http, ssl=True, ssl_context_factory=context)


@pytest.fixture(scope="module")
def one_way(program, files):
    with contextlib.ExitStack() as stack:
        flags = [*tls_flags("grpc", files), *tls_flags("http", files), "--metrics-use-ssl"]
        yield stack.enter_context(Server(program, "--model-repository", SAMPLES, *flags))


@pytest.mark.parametrize("door", ["grpc", "http"])
def test_inference_over_tls(door, one_way, files):
    module = getattr(tritonclient, door)
    with globals()[f"{door}_client"](one_way, files) as client:
        assert client.is_server_live()
        for _ in range(3):
            first, second, inputs = simple_inputs(module)
            check_simple(client.infer("simple", inputs), first, second)


def test_large_tensors_pass_through_tls(one_way, files):
    values = numpy.arange(3_000_000, dtype=numpy.float32).reshape(1, -1)
    for module, connect in [(tritonclient.grpc, grpc_client), (tritonclient.http, http_client)]:
        with connect(one_way, files) as client:
            tensor = module.InferInput("INPUT0", values.shape, "FP32")
            tensor.set_data_from_numpy(values)
            assert (client.infer("identity_fp32", [tensor]).as_numpy("OUTPUT0") == values).all()


def test_metrics_over_tls(one_way, files):
    context = ssl.create_default_context(cafile=files["root"])
    with urllib.request.urlopen(f"https://{one_way.metrics}/metrics", context=context, timeout=20) as page:
        assert b"nv_inference_count" in page.read()


def test_a_server_that_is_not_trusted_is_refused_by_the_client(one_way, files):
    untrusting = {**files, "root": files["stranger"]}
    with grpc_client(one_way, untrusting) as client, pytest.raises(tritonclient.grpc.InferenceServerException):
        client.is_server_live(client_timeout=5)
    with http_client(one_way, untrusting) as client, pytest.raises(ssl.SSLError):
        client.is_server_live()


def test_plain_text_at_a_tls_door_is_dropped_and_the_door_stays_open(one_way, files):
    for address in (one_way.http, one_way.grpc):
        host, port = address.split(":")
        with socket.create_connection((host, int(port)), timeout=20) as plain:
            plain.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = plain.recv(1000)
            assert not answer.startswith(b"HTTP")
    with http_client(one_way, files) as client:
        assert client.is_server_live()


def test_mutual_tls_lets_in_who_is_known(start, files):
    flags = [*tls_flags("grpc", files, mutual=True), *tls_flags("http", files, mutual=True)]
    server = start("--model-repository", SAMPLES, *flags)
    for module, connect in [(tritonclient.grpc, grpc_client), (tritonclient.http, http_client)]:
        with connect(server, files, "client") as client:
            first, second, inputs = simple_inputs(module)
            check_simple(client.infer("simple", inputs), first, second)
    for stranger in (None, "stranger"):
        with grpc_client(server, files, stranger) as client, pytest.raises(tritonclient.grpc.InferenceServerException):
            client.is_server_live(client_timeout=5)
        with http_client(server, files, stranger) as client, pytest.raises(OSError):
            client.is_server_live()


@pytest.mark.parametrize("flags, text", [
    (["--grpc-use-ssl", "--grpc-server-key=k"], "--grpc-server-cert must be given with --grpc-use-ssl"),
    (["--http-use-ssl", "--http-server-cert=/absent", "--http-server-key=/absent"], "--http-server-cert=/absent cannot be used"),
    (["--http-use-ssl", "--http-server-cert={server_key}", "--http-server-key={server_key}"], "holds no certificate"),
    (["--http-use-ssl", "--http-server-cert={server}", "--http-server-key={client_key}"], "cannot be used together"),
    (["--http-use-ssl-mutual", "--http-server-cert={server}", "--http-server-key={server_key}"], "--http-root-cert must be given"),
])
def test_certificates_that_cannot_be_used_are_named(program, files, flags, text):
    flags = [flag.format(**files) for flag in flags]
    status, log = run_to_end(program, "serve", "--model-repository", SAMPLES, *flags)
    assert status == 1 and text in log


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def get(path, target):
    connection = UnixConnection(path)
    with contextlib.closing(connection):
        connection.request("GET", target)
        return connection.getresponse().read()


def test_all_doors_at_unix_sockets(start, tmp_path):
    paths = {door: str(tmp_path / f"{door}.sock") for door in ("http", "grpc", "metrics")}
    flags = [f"--{door}-address=unix:{path}" for door, path in paths.items()]
    # A socket that nobody listens at any more.
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(paths["http"])
    server = start("--model-repository", SAMPLES, *flags)
    assert all(stat.S_IMODE(os.stat(path).st_mode) == 0o600 for path in paths.values())
    assert b'"name":"simple"' in get(paths["http"], "/v2/models/simple")
    assert b"nv_inference_count" in get(paths["metrics"], "/metrics")
    # By itself the client names the path as the authority of its calls, which the HTTP/2 library refuses.
    authority = [("grpc.default_authority", "localhost")]
    with tritonclient.grpc.InferenceServerClient(f"unix:{paths['grpc']}", channel_args=authority) as client:
        first, second, inputs = simple_inputs(tritonclient.grpc)
        check_simple(client.infer("simple", inputs), first, second)
    assert server.stop() == 0
    assert not any(os.path.exists(path) for path in paths.values())


def test_a_unix_socket_in_use_and_a_file_in_its_place_are_left_alone(start, program, tmp_path):
    taken, file = str(tmp_path / "taken.sock"), tmp_path / "file"
    start("--model-repository", SAMPLES, f"--http-address=unix:{taken}", "--metrics-address=127.0.0.1")
    file.write_text("precious")
    for path, text in [(taken, f"failed to start HTTP service: Unavailable - Socket 'unix:{taken}' already in use"),
                       (str(file), "there is a file that is no socket")]:
        status, log = run_to_end(program, "serve", "--model-repository", SAMPLES, f"--http-address=unix:{path}",
                                 "--metrics-address=127.0.0.1", "--grpc-port=0", "--metrics-port=0")
        assert status == 1 and text in log
    assert b'"name":"simple"' in get(taken, "/v2/models/simple")
    assert file.read_text() == "precious"


def test_two_servers_share_reusable_ports(start, program):
    first = start("--model-repository", SAMPLES, "--reuse-http-port=true", "--reuse-grpc-port=true")
    ports = ["--http-port", first.http.split(":")[1], "--grpc-port", first.grpc.split(":")[1], "--metrics-port", "0"]
    second = start("--model-repository", SAMPLES, "--reuse-http-port=1", "--reuse-grpc-port=on", ports=ports)
    assert (second.http, second.grpc) == (first.http, first.grpc)
    assert first.stop() == 0
    with tritonclient.grpc.InferenceServerClient(second.grpc) as client:
        assert client.is_server_live()


def test_restricted_groups_with_the_stock_client(start):
    groups = ["model-repository,shared-memory:admin-key=secret", "statistics:stat-key=s2"]
    server = start("--model-repository", SAMPLES, *[f"--http-restricted-api={group}" for group in groups],
                   *[f"--grpc-restricted-protocol={group}" for group in groups])
    with tritonclient.http.InferenceServerClient(server.http) as client:
        with pytest.raises(tritonclient.http.InferenceServerException, match="expecting header 'admin-key'"):
            client.get_model_repository_index()
        assert client.get_model_repository_index(headers={"admin-key": "secret"})
        assert client.get_inference_statistics(headers={"stat-key": "s2"})
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        with pytest.raises(tritonclient.grpc.InferenceServerException, match="'triton-grpc-protocol-admin-key'") as refused:
            client.get_model_repository_index(headers={"admin-key": "secret"})
        assert refused.value.status() == "StatusCode.UNAVAILABLE"
        assert client.get_model_repository_index(headers={"triton-grpc-protocol-admin-key": "secret"}).models
        assert client.is_server_live()


def test_each_request_is_a_line_of_the_verbose_log(start):
    server = start("--model-repository", SAMPLES, "--log-verbose=1")
    with tritonclient.http.InferenceServerClient(server.http) as client:
        client.is_model_ready("simple")
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        client.is_server_live()
        with pytest.raises(tritonclient.grpc.InferenceServerException):
            client.get_model_metadata("nosuch")
    assert server.stop() == 0
    log = "".join(server.log)
    assert log.count("HTTP request: GET /v2/models/simple/ready 200 ") == 1
    assert log.count("GRPC request: /inference.GRPCInferenceService/ServerLive Ok ") == 1
    assert log.count("GRPC request: /inference.GRPCInferenceService/ModelMetadata NotFound ") == 1


def test_a_connection_that_is_old_takes_leave(start):
    server = start("--model-repository", SAMPLES, "--grpc-max-connection-age=200", "--grpc-max-connection-age-grace=1000")
    with grpc.insecure_channel(server.grpc) as channel:
        states = queue.Queue()
        grpc.channel_ready_future(channel).result(timeout=20)
        channel.subscribe(states.put)
        seen = []
        while grpc.ChannelConnectivity.IDLE not in seen:
            seen.append(states.get(timeout=20))


def test_a_stop_finishes_what_has_begun_on_open_connections(start):
    server = start("--model-repository", SAMPLES)
    host, port = server.http.split(":")
    busy = socket.create_connection((host, int(port)), timeout=20)
    idle = http.client.HTTPConnection(host, int(port), timeout=20)
    idle.request("GET", "/v2/health/ready")
    assert idle.getresponse().read() == b""
    with contextlib.closing(busy), contextlib.closing(idle):
        # A request whose body is under way keeps the server from ending. The answer to Expect says that it has begun.
        body = b'{"inputs":[]}'
        busy.sendall(b"POST /v2/models/simple/infer HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
        assert busy.recv(100).startswith(b"HTTP/1.1 100")
        server.process.send_signal(signal.SIGTERM)
        while True:
            # A connection that waits while the door closes is reset; the next one is refused.
            with contextlib.suppress(ConnectionResetError):
                try:
                    socket.create_connection((host, int(port)), timeout=20).close()
                except ConnectionRefusedError:
                    break
        idle.request("GET", "/v2/models/simple/ready")
        assert idle.getresponse().status == 200
        busy.sendall(body)
        assert busy.recv(1000).startswith(b"HTTP/1.1 400")
    assert server.process.wait(timeout=20) == 0


def test_a_stop_under_load_answers_what_was_accepted(start):
    """Clients that never pause neither keep the server up nor lose an answer."""
    server = start("--model-repository", SAMPLES)
    host, port = server.http.split(":")
    body = json.dumps({"inputs": [{"name": name, "datatype": "INT32", "shape": [1, 16], "data": list(range(16))}
                                  for name in ("INPUT0", "INPUT1")]})
    answered, broken, going = [], [], threading.Barrier(9)

    def ask_over_http():
        connection = http.client.HTTPConnection(host, int(port), timeout=20)
        for number in itertools.count():
            if number == 20:
                going.wait(timeout=20)
            try:
                connection.request("POST", "/v2/models/simple/infer", body)
            except OSError:
                return  # The door is closed.
            try:
                answer = connection.getresponse()
                text = answer.read()
                # What comes behind the last accepted request is refused in so many words.
                answered.append(200 if answer.status == 503 and b"Server exiting" in text else answer.status)
            except ConnectionError:
                return  # Closed before the request came.
            except (OSError, http.client.HTTPException) as error:
                broken.append(error)
                return

    def ask_over_grpc():
        with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
            for number in itertools.count():
                if number == 20:
                    going.wait(timeout=20)
                _, _, inputs = simple_inputs(tritonclient.grpc)
                try:
                    client.infer("simple", inputs)
                    answered.append(200)
                except tritonclient.grpc.InferenceServerException as error:
                    if error.status() != "StatusCode.UNAVAILABLE":
                        broken.append(error)
                    return

    threads = [threading.Thread(target=ask, daemon=True) for ask in [ask_over_http, ask_over_grpc] * 4]
    for thread in threads:
        thread.start()
    going.wait(timeout=20)
    assert server.stop() == 0
    for thread in threads:
        thread.join(timeout=20)
        assert not thread.is_alive()
    assert not broken and set(answered) == {200}


def test_a_signal_while_models_load_ends_the_program(program, tmp_path):
    model = tmp_path / "slow"
    (model / "1").mkdir(parents=True)
    (model / "config.pbtxt").write_text("""name: "slow" backend: "identity" max_batch_size: 0
        input { name: "INPUT0" data_type: TYPE_FP32 dims: 1 } output { name: "OUTPUT0" data_type: TYPE_FP32 dims: 1 }
        instance_group { kind: KIND_CPU } parameters { key: "creation_delay_sec" value { string_value: "600" } }""")
    process = subprocess.Popen([program, "serve", "--model-repository", tmp_path], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    with process.stdout:
        assert any("Loading models from" in line for line in process.stdout)
        process.send_signal(signal.SIGTERM)
        assert "Told to stop while the models were loading." in process.stdout.read()
    assert process.wait(timeout=20) == 0


def test_requests_that_never_end_are_given_up_after_the_exit_timeout(start):
    server = start("--model-repository", SAMPLES, "--exit-timeout-secs=1")
    host, port = server.http.split(":")
    with socket.create_connection((host, int(port)), timeout=20) as stuck:
        stuck.sendall(b"POST /v2/models/simple/infer HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n")
        assert stuck.recv(100).startswith(b"HTTP/1.1 100")
        assert server.stop() == 1
    assert "Exit timeout expired" in "".join(server.log)


def test_called_as_tritonserver_it_serves_every_address(program, tmp_path):
    link = tmp_path / "tritonserver"
    link.symlink_to(program)
    done = subprocess.run([link, "--help"], stdout=subprocess.PIPE, text=True, check=True)
    assert "--http-address" in done.stdout
    status, log = run_to_end(link, "--model-repository", SAMPLES, "--http-port=8001")
    assert status == 1
    assert "cannot listen to HTTP requests and GRPC requests at the same address and port 0.0.0.0:8001" in log


def test_flags_without_effect_are_told_once(start):
    server = start("--model-repository", SAMPLES, "--enable-peer-access=false", "--cuda-memory-pool-byte-size=0:1000",
                   "--cuda-memory-pool-byte-size=1:1000", "--grpc-http2-max-pings-without-data", "3")
    log = "".join(server.log)
    for name in ("enable-peer-access", "cuda-memory-pool-byte-size", "grpc-http2-max-pings-without-data"):
        assert log.count(f"--{name} has no effect here") == 1


def resident_kib(process):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="reads the memory of the server from /proc")
def test_a_thousand_idle_connections_cost_little(start):
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    server = start("--model-repository", SAMPLES)
    before = resident_kib(server.process)
    assert before < 60_000
    hello = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
    ready = b"GET /v2/health/ready HTTP/1.1\r\nHost: x\r\n\r\n"
    for address, opening in [(server.http, ready), (server.grpc, hello)]:
        host, port = address.split(":")
        with contextlib.ExitStack() as stack:
            for _ in range(1000):
                connection = stack.enter_context(socket.create_connection((host, int(port)), timeout=20))
                connection.sendall(opening)
                assert connection.recv(1000)
            assert resident_kib(server.process) - before < 50_000


def test_answers_of_grpc_are_held_back_for_tests_of_deadlines(start, monkeypatch):
    monkeypatch.setenv("TRITONSERVER_SERVER_DELAY_GRPC_RESPONSE_SEC", "1")
    server = start("--model-repository", SAMPLES)
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        for call in (client.is_server_live, client.get_server_metadata, client.get_model_repository_index):
            with pytest.raises(tritonclient.utils.InferenceServerException, match="Deadline Exceeded"):
                call(client_timeout=0.2)
        assert client.is_server_live(client_timeout=30)
        # Inferences are answered at once.
        _, _, inputs = simple_inputs(tritonclient.grpc)
        client.infer("simple", inputs, client_timeout=30)
