"""Wrong requests get an error that says what and where, and the server goes on."""

import json
import socket
import urllib.error
import urllib.request

import numpy as np
import pytest
from tritonclient.utils import InferenceServerException

from tensors import check_simple, simple_inputs


@pytest.fixture(autouse=True)
def goes_on_serving(protocol, client):
    yield
    first, second, inputs = simple_inputs(protocol)
    check_simple(client.infer("simple", inputs), first, second)


def one_input(protocol, name="INPUT0", shape=(1, 16), datatype="INT32", dtype=np.int32):
    tensor = protocol.InferInput(name, list(shape), datatype)
    tensor.set_data_from_numpy(np.ones(shape, dtype=dtype))
    return tensor


def refused(client, model, inputs, **options):
    with pytest.raises(InferenceServerException) as caught:
        client.infer(model, inputs, **options)
    return caught.value.message()


def test_an_unknown_model_is_named(protocol, client):
    assert "nosuch" in refused(client, "nosuch", simple_inputs(protocol)[2])


def test_an_unknown_version_is_named(protocol, client):
    message = refused(client, "simple", simple_inputs(protocol)[2], model_version="9")
    assert "simple" in message and "9" in message


def test_a_wrong_input_name_is_named(protocol, client):
    message = refused(client, "simple", [one_input(protocol), one_input(protocol, "INPUT9")])
    assert "INPUT9" in message or "INPUT1" in message


def test_a_missing_input_is_counted(protocol, client):
    assert "simple" in refused(client, "simple", [one_input(protocol)])


def test_a_wrong_shape_says_both_shapes(protocol, client):
    message = refused(client, "simple", [one_input(protocol, shape=(1, 17)), one_input(protocol, "INPUT1")])
    assert "17" in message and "16" in message and "INPUT0" in message


def test_a_wrong_data_type_says_both(protocol, client):
    wrong = one_input(protocol, datatype="FP32", dtype=np.float32)
    message = refused(client, "simple", [wrong, one_input(protocol, "INPUT1")])
    assert "FP32" in message and "INT32" in message


def test_a_batch_over_the_limit_says_the_limit(protocol, client):
    inputs = [one_input(protocol, name, (9, 16)) for name in ("INPUT0", "INPUT1")]
    assert "8" in refused(client, "simple", inputs)


def test_an_unknown_output_is_named(protocol, client):
    outputs = [protocol.InferRequestedOutput("OUTPUT9")]
    assert "OUTPUT9" in refused(client, "simple", simple_inputs(protocol)[2], outputs=outputs)


def test_too_few_bytes_are_refused(protocol, client):
    tensor = one_input(protocol)
    if hasattr(tensor, "_raw_content") and tensor._raw_content is not None:
        tensor._raw_content = tensor._raw_content[:-4]
    else:
        tensor._raw_data = tensor._raw_data[:-4]
        tensor._parameters["binary_data_size"] = len(tensor._raw_data)
    message = refused(client, "simple", [tensor, one_input(protocol, "INPUT1")])
    assert "INPUT0" in message and "60" in message and "64" in message


def test_strings_that_are_not_numbers_are_refused(protocol, client):
    words = np.array([["seven"] * 16], dtype=object)
    inputs = []
    for name in ("INPUT0", "INPUT1"):
        inputs.append(protocol.InferInput(name, [1, 16], "BYTES"))
        inputs[-1].set_data_from_numpy(words)
    assert refused(client, "simple_string", inputs)


HOSTILE = {
    "not JSON": b"{",
    "not an object": b"[]",
    "no inputs": b"{}",
    "inputs of a wrong kind": b'{"inputs": 7}',
    "2^63 elements": json.dumps({"inputs": [
        {"name": "INPUT0", "shape": [2**31, 2**32], "datatype": "INT32", "data": [1]}]}).encode(),
    "a negative size": b'{"inputs": [{"name": "INPUT0", "shape": [-1, 16], "datatype": "INT32", "data": []}]}',
    "a huge number": b'{"inputs": [{"name": "INPUT0", "shape": [1e400], "datatype": "INT32", "data": [1]}]}',
    "deep nesting": b'{"inputs":' + b"[" * 100_000,
    "bytes that are not UTF-8": b'{"inputs": "\xff\xfe"}',
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_body_is_refused_with_a_reason(server, what):
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"http://{server.http}/v2/models/simple/infer", HOSTILE[what], timeout=20)
    # Triton answers 500 where the JSON itself is wrong, 400 where its content is.
    assert caught.value.code in (400, 500)
    assert json.load(caught.value)["error"]


def test_a_connection_cut_in_the_body_harms_nobody(server):
    host, port = server.http.rsplit(":", 1)
    with socket.create_connection((host, int(port))) as half:
        half.sendall(b"POST /v2/models/simple/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{\"inputs\"")
    with urllib.request.urlopen(f"http://{server.http}/v2/health/ready", timeout=10) as answer:
        assert answer.status == 200


def test_an_unknown_path_is_not_found(server):
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"http://{server.http}/v2/nosuch", timeout=10)
    assert caught.value.code == 404
