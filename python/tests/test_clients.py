"""Inference with each of the stock client's kinds: blocking, with futures, with callbacks, in streams and in coroutines."""

import asyncio
import urllib.request

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio
from tritonclient.utils import InferenceServerException, triton_to_np_dtype

import client_models
from answers import LONG, Answers
from conftest import connect, until
from server import Server
from tensors import check_simple, simple_inputs

INT32_PARAMETERS = {"a_text": "x", "a_number": 5, "a_truth": True}


@pytest.fixture(scope="module")
def server(program, tmp_path_factory):
    repository = client_models.write(tmp_path_factory.mktemp("models"))
    with Server(program, "--model-repository", repository) as running:
        yield running


def given(module, name, values, datatype="INT32", dtype=np.int32, **options):
    values = np.array(values, dtype)
    tensor = module.InferInput(name, list(values.shape), datatype)
    tensor.set_data_from_numpy(values, **options)
    return tensor


def echo_inputs(module, values):
    return [given(module, "INPUT0", [values])]


def echoed(result):
    return result.as_numpy("OUTPUT0").tolist()


def repeat_inputs(values, delay=0):
    grpc = tritonclient.grpc
    return [given(grpc, "IN", values), given(grpc, "DELAY", [delay] * len(values), "UINT32", np.uint32),
            given(grpc, "WAIT", [0], "UINT32", np.uint32)]


def request_id(result):
    response = result.get_response()
    return response.get("id") if isinstance(response, dict) else response.id


# ---- blocking

def test_every_option_of_a_request(protocol, client):
    result = client.infer("echo", echo_inputs(protocol, [1, 2, 3]), model_version="1", request_id="seven",
                          outputs=[protocol.InferRequestedOutput("OUTPUT0")], priority=1, timeout=LONG * 1000000,
                          headers={"x-mine": "1"}, parameters=INT32_PARAMETERS)
    assert (request_id(result), echoed(result)) == ("seven", [[1, 2, 3]])


def test_a_priority_that_there_is_not_counts_as_the_usual_one(protocol, client):
    assert echoed(client.infer("echo", echo_inputs(protocol, [1]), priority=9)) == [[1]]


def test_strings_as_bytes_and_as_json(protocol, client):
    values = [[b"", "h\u00e9llo \u4e16".encode(), b"x" * 5000]]
    tensor = given(protocol, "INPUT0", values, "BYTES", object)
    assert client.infer("texts", [tensor]).as_numpy("OUTPUT0").tolist() == values
    if protocol is tritonclient.http:
        tensor = given(protocol, "INPUT0", values, "BYTES", object, binary_data=False)
        outputs = [protocol.InferRequestedOutput("OUTPUT0", binary_data=False)]
        result = client.infer("texts", [tensor], outputs=outputs)
        assert result.get_output("OUTPUT0")["data"] == [value.decode() for value in values[0]]


def test_half_floats_of_both_kinds(protocol, client):
    # Older clients hold BF16 as float32, newer ones as a type of its own.
    result = client.infer("halves", [given(protocol, "INPUT0", [[1.5, -2.0, 3.0e38]], "BF16", triton_to_np_dtype("BF16"))])
    np.testing.assert_allclose(result.as_numpy("OUTPUT0").astype(np.float32), [[1.5, -2.0, 3.0e38]], rtol=1 / 128)


def test_an_optional_input(protocol, client):
    tensors = [given(protocol, name, [[1, 2]], "FP32", np.float32) for name in ("INPUT0", "INPUT1")]
    assert echoed(client.infer("optional", tensors)) == [[2, 4]]
    assert echoed(client.infer("optional", tensors[:1])) == [[101, 102]]
    with pytest.raises(InferenceServerException, match="INPUT0"):
        client.infer("optional", tensors[1:])


def test_classes_have_labels(protocol, client):
    scores = given(protocol, "INPUT0", [[0.1, 0.7, 0.15, 0.05], [4, 3, 2, 1]], "FP32", np.float32)
    result = client.infer("scores", [scores], outputs=[protocol.InferRequestedOutput("OUTPUT0", class_count=2)])
    texts = [[text.decode().split(":") for text in row] for row in result.as_numpy("OUTPUT0")]
    assert [[(int(number), label) for _, number, label in row] for row in texts] == [
        [(1, "dog"), (2, "bird")], [(0, "cat"), (1, "dog")]]
    assert float(texts[0][0][0]) == pytest.approx(0.7)


@pytest.mark.parametrize("request_algorithm", [None, "gzip", "deflate"])
@pytest.mark.parametrize("response_algorithm", [None, "gzip", "deflate"])
def test_http_compression_in_both_directions(server, request_algorithm, response_algorithm):
    first, second, inputs = simple_inputs(tritonclient.http)
    with connect(tritonclient.http, server) as client:
        check_simple(client.infer("simple", inputs, request_compression_algorithm=request_algorithm,
                                  response_compression_algorithm=response_algorithm), first, second)


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_grpc_compression(server, algorithm):
    first, second, inputs = simple_inputs(tritonclient.grpc)
    with connect(tritonclient.grpc, server) as client:
        check_simple(client.infer("simple", inputs, compression_algorithm=algorithm), first, second)


# ---- sequences

@pytest.mark.parametrize("model, name", [("sums", 1 << 40), ("sums", 7), ("slots", 8), ("named_sums", "a sequence"), ("sums_and_id", 9)])
def test_sequences(protocol, client, model, name):
    steps = [3, 5, 7]
    name = name if isinstance(name, int) or protocol is tritonclient.grpc else name + " over http"
    outputs = [client.infer(model, [given(protocol, "INPUT", [[value]])], sequence_id=name, sequence_start=at == 0,
                            sequence_end=at == 2).as_numpy("OUTPUT")[0][0] for at, value in enumerate(steps)]
    assert outputs == [3, 8, 15 + (name if model == "sums_and_id" else 0)]


def test_a_sequence_must_begin_and_have_a_name(protocol, client):
    step = [given(protocol, "INPUT", [[1]])]
    with pytest.raises(InferenceServerException, match="START|start"):
        client.infer("sums", step, sequence_id=404)
    with pytest.raises(InferenceServerException, match="correlation ID"):
        client.infer("sums", step)


# ---- futures and callbacks

def test_http_futures(server):
    with connect(tritonclient.http, server, concurrency=4) as client:
        calls = [client.async_infer("echo", echo_inputs(tritonclient.http, [n]), request_id=str(n)) for n in range(20)]
        for number, call in enumerate(calls):
            result = call.get_result(timeout=LONG)
            assert (request_id(result), echoed(result)) == (str(number), [[number]])
        with pytest.raises(InferenceServerException, match="unknown model"):
            client.async_infer("absent", echo_inputs(tritonclient.http, [1])).get_result(timeout=LONG)


def metric(server, *start):
    """Sum of the metrics whose lines begin so."""
    with urllib.request.urlopen(f"http://{server.metrics}/metrics") as page:
        lines = page.read().decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(start))


def ended(server):
    """Requests to the endless model that have come to an end: only those that were cancelled can."""
    return metric(server, 'nv_inference_request_failure{model="endless"', 'nv_inference_request_success{model="endless"')


def waiting(server):
    """Requests that wait for the instance of the endless model."""
    return metric(server, 'nv_inference_pending_request_count{model="endless"')


def test_grpc_callbacks(server):
    answers = Answers()
    with connect(tritonclient.grpc, server) as client:
        for number in range(20):
            client.async_infer("echo", echo_inputs(tritonclient.grpc, [number]), answers, request_id=str(number),
                               client_timeout=LONG, compression_algorithm="gzip")
        results = [answers.next() for _ in range(20)]
        assert sorted((int(request_id(result)), echoed(result)[0][0]) for result in results) == [(n, n) for n in range(20)]
        client.async_infer("absent", echo_inputs(tritonclient.grpc, [1]), answers)
        with pytest.raises(InferenceServerException, match="unknown model"):
            answers.next()


def test_cancelling_a_call_ends_its_work(server):
    answers, before = Answers(), ended(server)
    with connect(tritonclient.grpc, server) as client:
        calls = [client.async_infer("endless", echo_inputs(tritonclient.grpc, [n]), answers) for n in range(3)]
        # One runs, the others wait.
        until(lambda: waiting(server) == 2, "the requests")
        for call in calls:
            call.cancel()
        for _ in calls:
            with pytest.raises(InferenceServerException, match="(?i)cancelled"):
                answers.next()
    until(lambda: ended(server) == before + 3, "the cancellations")


def test_a_client_that_stops_waiting_cancels(server):
    before = ended(server)
    with connect(tritonclient.grpc, server) as client:
        with pytest.raises(InferenceServerException, match="Deadline Exceeded"):
            client.infer("endless", echo_inputs(tritonclient.grpc, [1]), client_timeout=0.3)
    until(lambda: ended(server) == before + 1, "the cancellation")


def test_an_http_client_that_leaves_cancels(server):
    before = ended(server)
    with connect(tritonclient.http, server, network_timeout=0.3) as client:
        with pytest.raises(Exception, match="(?i)tim"):
            client.infer("endless", echo_inputs(tritonclient.http, [1]))
    until(lambda: ended(server) == before + 1, "the cancellation")


# ---- streams

@pytest.fixture
def stream(server):
    """A client with an open stream, and the answers of it."""
    answers = Answers()
    with connect(tritonclient.grpc, server) as client:
        client.start_stream(answers)
        yield client, answers


def test_a_stream_answers_in_order(stream):
    client, answers = stream
    for number in range(50):
        client.async_stream_infer("echo", echo_inputs(tritonclient.grpc, [number]), request_id=str(number), priority=1 + number % 3)
    got = [answers.next() for _ in range(50)]
    assert [(request_id(result), echoed(result)) for result in got] == [(str(n), [[n]]) for n in range(50)]


def test_an_error_in_a_stream_ends_one_request_only(stream):
    client, answers = stream
    client.async_stream_infer("absent", echo_inputs(tritonclient.grpc, [1]), request_id="first")
    with pytest.raises(InferenceServerException, match="absent"):
        answers.next()
    client.async_stream_infer("echo", echo_inputs(tritonclient.grpc, [2]))
    assert echoed(answers.next()) == [[2]]


def test_two_sequences_in_a_stream(stream):
    client, answers = stream
    for at, value in enumerate([1, 2, 3]):
        for name, sign in [(1001, 1), (1002, -1)]:
            client.async_stream_infer("sums", [given(tritonclient.grpc, "INPUT", [[sign * value]])], request_id=f"{name}",
                                      sequence_id=name, sequence_start=at == 0, sequence_end=at == 2)
    sums = {"1001": [], "1002": []}
    for _ in range(6):
        result = answers.next()
        sums[request_id(result)].append(int(result.as_numpy("OUTPUT")[0][0]))
    assert sums == {"1001": [1, 3, 6], "1002": [-1, -3, -6]}


def test_a_sequence_named_by_a_string_in_a_compressed_stream(server):
    answers = Answers()
    with connect(tritonclient.grpc, server) as client:
        client.start_stream(answers, compression_algorithm="deflate", stream_timeout=LONG, headers={"x-mine": "1"})
        for at, value in enumerate([4, 5]):
            client.async_stream_infer("named_sums", [given(tritonclient.grpc, "INPUT", [[value]])], sequence_id="streamed",
                                      sequence_start=at == 0, sequence_end=at == 1)
        assert [int(answers.next().as_numpy("OUTPUT")[0][0]) for _ in range(2)] == [4, 9]


def parts(answers):
    """The results up to the final one, which is left out where it is empty."""
    results = []
    while True:
        result = answers.next()
        response = result.get_response()
        if response.outputs:
            results.append(result)
        if response.parameters["triton_final_response"].bool_param:
            return results


@pytest.mark.parametrize("values", [[], [5], [9, 8, 7]])
def test_decoupled_responses_and_the_final_flag(stream, values):
    client, answers = stream
    client.async_stream_infer("repeat", repeat_inputs(values), request_id="r", enable_empty_final_response=True)
    results = parts(answers)
    assert [int(result.as_numpy("OUT")[0]) for result in results] == values
    assert [int(result.as_numpy("IDX")[0]) for result in results] == list(range(len(values)))
    assert {request_id(result) for result in results} <= {"r"}


def test_other_decoupled_models(stream):
    client, answers = stream
    client.async_stream_infer("square", [given(tritonclient.grpc, "IN", [3])], enable_empty_final_response=True)
    assert [int(result.as_numpy("OUT")[0]) for result in parts(answers)] == [3, 3, 3]
    client.async_stream_infer("count_down", [given(tritonclient.grpc, "INPUT", [[4]])], enable_empty_final_response=True,
                              sequence_id=77, sequence_start=True, sequence_end=True)
    assert [int(result.as_numpy("OUTPUT")[0][0]) for result in parts(answers)] == [3, 2, 1, 0]


def test_an_answer_alone_is_final(stream):
    client, answers = stream
    client.async_stream_infer("echo", echo_inputs(tritonclient.grpc, [1]), enable_empty_final_response=True)
    assert [echoed(result) for result in parts(answers)] == [[[1]]]


def test_a_decoupled_model_needs_a_stream(protocol, client):
    tensors = [given(protocol, "IN", [1])]
    with pytest.raises(InferenceServerException, match="decoupled"):
        client.infer("square", tensors)


def test_cancelling_a_stream_ends_its_work(server):
    answers = Answers()
    with connect(tritonclient.grpc, server) as client:
        client.start_stream(answers)
        client.async_stream_infer("repeat", repeat_inputs([1, 2], delay=3600000)[:1] + [
            given(tritonclient.grpc, "DELAY", [0, 3600000], "UINT32", np.uint32), given(tritonclient.grpc, "WAIT", [0], "UINT32", np.uint32)])
        assert int(answers.next().as_numpy("OUT")[0]) == 1
        client.stop_stream(cancel_requests=True)
        # Its only instance is free again.
        client.start_stream(answers)
        client.async_stream_infer("repeat", repeat_inputs([3]), request_id="next")
        while True:
            result, error = answers.all.get(timeout=LONG)
            if error is None:
                break
            assert "ancelled" in str(error)
        assert (request_id(result), int(result.as_numpy("OUT")[0])) == ("next", 3)


# ---- coroutines

async def test_http_coroutines(server):
    module = tritonclient.http
    async with tritonclient.http.aio.InferenceServerClient(server.http) as client:
        results = await asyncio.gather(*(client.infer("echo", echo_inputs(module, [n]), request_id=str(n), priority=1)
                                         for n in range(20)))
        assert [(request_id(result), echoed(result)) for result in results] == [(str(n), [[n]]) for n in range(20)]
        first, second, inputs = simple_inputs(module)
        for algorithm in ["gzip", "deflate"]:
            check_simple(await client.infer("simple", inputs, request_compression_algorithm=algorithm,
                                            response_compression_algorithm=algorithm), first, second)
        sums = [await client.infer("sums", [given(module, "INPUT", [[value]])], sequence_id=2001, sequence_start=at == 0,
                                   sequence_end=at == 1) for at, value in enumerate([2, 4])]
        assert [int(result.as_numpy("OUTPUT")[0][0]) for result in sums] == [2, 6]
        with pytest.raises(InferenceServerException, match="unknown model"):
            await client.infer("absent", echo_inputs(module, [1]))


async def test_grpc_coroutines(server):
    module = tritonclient.grpc
    async with tritonclient.grpc.aio.InferenceServerClient(server.grpc) as client:
        results = await asyncio.gather(*(client.infer("echo", echo_inputs(module, [n]), request_id=str(n), timeout=LONG * 1000000)
                                         for n in range(20)))
        assert [(request_id(result), echoed(result)) for result in results] == [(str(n), [[n]]) for n in range(20)]
        first, second, inputs = simple_inputs(module)
        check_simple(await client.infer("simple", inputs, compression_algorithm="gzip"), first, second)
        with pytest.raises(InferenceServerException, match="unknown model"):
            await client.infer("absent", echo_inputs(module, [1]))


async def test_a_stream_of_coroutines(server):
    async def requests():
        for at, value in enumerate([1, 10, 100]):
            yield {"model_name": "sums", "inputs": [given(tritonclient.grpc, "INPUT", [[value]])], "sequence_id": 3001,
                   "sequence_start": at == 0, "sequence_end": at == 2, "request_id": str(at)}
        yield {"model_name": "repeat", "inputs": repeat_inputs([6, 7])}

    async with tritonclient.grpc.aio.InferenceServerClient(server.grpc) as client:
        got = []
        async for result, error in client.stream_infer(requests(), stream_timeout=LONG):
            assert error is None, error
            got.append(result)
        sums = [result for result in got if result.get_response().model_name == "sums"]
        assert [int(result.as_numpy("OUTPUT")[0][0]) for result in sums] == [1, 11, 111]
        repeated = [result for result in got if result.get_response().model_name == "repeat"]
        assert [int(result.as_numpy("OUT")[0]) for result in repeated] == [6, 7]


async def test_cancelling_a_stream_of_coroutines(server):
    async def requests():
        yield {"model_name": "echo", "inputs": echo_inputs(tritonclient.grpc, [5])}
        for _ in range(2):
            yield {"model_name": "endless", "inputs": echo_inputs(tritonclient.grpc, [6])}

    before = ended(server)
    async with tritonclient.grpc.aio.InferenceServerClient(server.grpc) as client:
        responses = client.stream_infer(requests())
        result, error = await responses.__anext__()
        assert error is None and echoed(result) == [[5]]
        await asyncio.to_thread(until, lambda: waiting(server) == 1, "the requests")
        assert responses.cancel()
        with pytest.raises(asyncio.CancelledError):
            await responses.__anext__()
    await asyncio.to_thread(until, lambda: ended(server) == before + 2, "the cancellations")


async def test_cancelling_a_coroutine_ends_its_work(server):
    before = ended(server)
    async with tritonclient.grpc.aio.InferenceServerClient(server.grpc) as client:
        calls = [asyncio.create_task(client.infer("endless", echo_inputs(tritonclient.grpc, [n]))) for n in range(2)]
        await asyncio.to_thread(until, lambda: waiting(server) == 1, "the requests")
        for call in calls:
            call.cancel()
        for call in calls:
            with pytest.raises(asyncio.CancelledError):
                await call
        await asyncio.to_thread(until, lambda: ended(server) == before + 2, "the cancellations")
