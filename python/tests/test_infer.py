"""Inference as client programs do it: synchronous, asynchronous, with identifiers and choices."""

import queue

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http

from conftest import connect
from tensors import check_simple, simple_inputs


def test_a_request_identifier_comes_back(protocol, client):
    first, second, inputs = simple_inputs(protocol)
    result = client.infer("simple", inputs, request_id="seven")
    check_simple(result, first, second)
    response = result.get_response()
    assert (response["id"] if isinstance(response, dict) else response.id) == "seven"


def test_only_the_requested_output_is_sent(protocol, client):
    first, second, inputs = simple_inputs(protocol)
    result = client.infer("simple", inputs, outputs=[protocol.InferRequestedOutput("OUTPUT1")])
    np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), first - second)
    assert result.as_numpy("OUTPUT0") is None


def test_a_version_can_be_named(protocol, client):
    first, second, inputs = simple_inputs(protocol)
    check_simple(client.infer("simple", inputs, model_version="1"), first, second)


@pytest.mark.parametrize("rows", [1, 3, 8])
def test_batches_up_to_the_limit(protocol, client, rows):
    first = np.random.default_rng(rows).integers(-1000, 1000, (rows, 16), dtype=np.int32)
    first, second, inputs = simple_inputs(protocol, first, first[::-1].copy())
    check_simple(client.infer("simple", inputs), first, second)


def test_integers_wrap_as_onnx_says(protocol, client):
    first = np.full((1, 16), np.iinfo(np.int32).max, dtype=np.int32)
    with np.errstate(over="ignore"):
        first, second, inputs = simple_inputs(protocol, first)
        check_simple(client.infer("simple", inputs), first, second)


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_compressed_bodies(server, algorithm):
    with connect(tritonclient.http, server) as client:
        first, second, inputs = simple_inputs(tritonclient.http)
        result = client.infer("simple", inputs, request_compression_algorithm=algorithm,
                              response_compression_algorithm=algorithm)
    check_simple(result, first, second)


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_compressed_messages(server, algorithm):
    with connect(tritonclient.grpc, server) as client:
        first, second, inputs = simple_inputs(tritonclient.grpc)
        check_simple(client.infer("simple", inputs, compression_algorithm=algorithm), first, second)


def test_http_requests_in_flight_together(server):
    with connect(tritonclient.http, server, concurrency=8) as client:
        first, second, inputs = simple_inputs(tritonclient.http)
        pending = [client.async_infer("simple", inputs) for _ in range(64)]
        for request in pending:
            check_simple(request.get_result(), first, second)


def test_grpc_requests_in_flight_together(server):
    answers = queue.Queue()
    with connect(tritonclient.grpc, server) as client:
        first, second, inputs = simple_inputs(tritonclient.grpc)
        for _ in range(64):
            client.async_infer("simple", inputs, callback=lambda result, error: answers.put((result, error)))
        for _ in range(64):
            result, error = answers.get(timeout=30)
            assert error is None
            check_simple(result, first, second)


async def test_http_from_an_event_loop(server):
    import asyncio

    import tritonclient.http.aio as aio

    async with aio.InferenceServerClient(server.http) as client:
        assert await client.is_server_ready() and await client.is_model_ready("simple")
        first, second, inputs = simple_inputs(aio)
        for result in await asyncio.gather(*(client.infer("simple", inputs) for _ in range(32))):
            check_simple(result, first, second)


async def test_grpc_from_an_event_loop(server):
    import asyncio

    import tritonclient.grpc.aio as aio

    async with aio.InferenceServerClient(server.grpc) as client:
        assert await client.is_server_ready() and await client.is_model_ready("simple")
        first, second, inputs = simple_inputs(aio)
        for result in await asyncio.gather(*(client.infer("simple", inputs) for _ in range(32))):
            check_simple(result, first, second)


def test_strings_survive(protocol, client):
    words = np.array([["", "plain", "ünïcode", "x" * 10_000, "a\nb"]], dtype=object)
    tensor = protocol.InferInput("INPUT0", list(words.shape), "BYTES")
    tensor.set_data_from_numpy(words)
    found = client.infer("identity_bytes", [tensor]).as_numpy("OUTPUT0")
    assert [value.decode() for value in found[0]] == list(words[0])


def test_any_bytes_survive_in_binary(protocol, client):
    raw = np.array([[bytes(range(256)), b"\xff\x00\xfe"]], dtype=object)
    tensor = protocol.InferInput("INPUT0", list(raw.shape), "BYTES")
    tensor.set_data_from_numpy(raw)
    assert list(client.infer("identity_bytes", [tensor]).as_numpy("OUTPUT0")[0]) == list(raw[0])


@pytest.mark.parametrize("name, datatype, values", [
    ("identity_fp32", "FP32", np.array([[np.nan, np.inf, -np.inf, -0.0, 1e-45]], dtype=np.float32)),
    ("identity_int64", "INT64", np.array([[2**63 - 1, -(2**63), 2**53 + 1]], dtype=np.int64)),
    ("identity_uint64", "UINT64", np.array([[2**64 - 1, 0]], dtype=np.uint64)),
    ("identity_fp64", "FP64", np.array([[0.1, 1e308, 5e-324]], dtype=np.float64)),
    ("identity_fp16", "FP16", np.array([[65504.0, 6e-8, -1.5]], dtype=np.float16)),
])
def test_extreme_values_survive(protocol, client, name, datatype, values):
    tensor = protocol.InferInput("INPUT0", list(values.shape), datatype)
    tensor.set_data_from_numpy(values)
    found = client.infer(name, [tensor]).as_numpy("OUTPUT0")
    assert found.tobytes() == values.tobytes()


def test_an_empty_dimension_is_answered_empty(protocol, client):
    tensor = protocol.InferInput("INPUT0", [1, 0], "FP32")
    tensor.set_data_from_numpy(np.zeros((1, 0), dtype=np.float32))
    found = client.infer("identity_fp32", [tensor]).as_numpy("OUTPUT0")
    assert found.shape == (1, 0)
