"""Every sample model gives its recorded answer over both protocols."""

import urllib.request
import json

import numpy as np
import pytest
import tritonclient.http

from conftest import sample, sample_names
from tensors import array, check_outputs, wire_inputs

NO_JSON_FORM = ("FP16", "BF16")


@pytest.mark.parametrize("name", sample_names())
def test_a_sample_answers_as_recorded(protocol, client, name):
    request, expected = sample(name, "input"), sample(name, "output")
    result = client.infer(name, wire_inputs(protocol, request["inputs"]))
    check_outputs(result, expected["outputs"])


@pytest.mark.parametrize("name", sample_names())
def test_the_sample_file_is_a_request_as_it_stands(server, name):
    request, expected = sample(name, "input"), sample(name, "output")
    if request["inputs"][0]["datatype"] in NO_JSON_FORM:
        pytest.skip("the wire has no JSON form of this data type")
    body = json.dumps(request).encode()
    with urllib.request.urlopen(f"http://{server.http}/v2/models/{name}/infer", body) as answer:
        found = json.load(answer)
    assert found["model_name"] == name and found["model_version"] == "1"
    for got, wanted in zip(found["outputs"], expected["outputs"], strict=True):
        assert (got["name"], got["datatype"], got["shape"]) == (wanted["name"], wanted["datatype"], wanted["shape"])
        np.testing.assert_array_equal(np.isclose(array(got), array(wanted), rtol=1e-4, atol=1e-6)
                                      if wanted["datatype"].startswith("FP") else array(got) == array(wanted), True)


@pytest.mark.parametrize("name", sample_names())
def test_json_and_binary_data_mix(server, name):
    request, expected = sample(name, "input"), sample(name, "output")
    if request["inputs"][0]["datatype"] in NO_JSON_FORM:
        pytest.skip("the wire has no JSON form of this data type")
    http = tritonclient.http
    with http.InferenceServerClient(server.http) as client:
        outputs = [http.InferRequestedOutput(o["name"], binary_data=True) for o in expected["outputs"]]
        result = client.infer(name, wire_inputs(http, request["inputs"], binary_data=False), outputs=outputs)
    check_outputs(result, expected["outputs"])


def test_digits_are_labelled(protocol, client):
    request = sample("digits", "input")
    option = {"class_count": 3}
    result = client.infer("digits", wire_inputs(protocol, request["inputs"]),
                          outputs=[protocol.InferRequestedOutput("PROBABILITIES", **option)])
    rows = result.as_numpy("PROBABILITIES")
    wanted = array(sample("digits", "output")["outputs"][0])
    names = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    assert rows.shape == (2, 3)
    for row, probabilities in zip(rows, wanted):
        value, index, label = row[0].decode().split(":")
        assert int(index) == probabilities.argmax() and label == names[int(index)]
        assert float(value) == pytest.approx(probabilities.max(), abs=1e-4)


@pytest.mark.parametrize("name", ["digits", "sentence", "lstm", "simple"])
def test_a_row_in_a_batch_equals_the_row_alone(protocol, client, name):
    tensors = sample(name, "input")["inputs"]
    row = [np.asarray(array(t))[:1] for t in tensors]
    alone = client.infer(name, as_inputs(protocol, tensors, row))
    batch = client.infer(name, as_inputs(protocol, tensors, [np.repeat(r, 4, axis=0) for r in row]))
    for output in sample(name, "output")["outputs"]:
        single, rows = alone.as_numpy(output["name"]), batch.as_numpy(output["name"])
        assert rows.shape[0] == 4
        # Sums may be taken in another order at another batch size.
        np.testing.assert_allclose(rows, np.repeat(single, 4, axis=0), rtol=1e-4, atol=1e-6)


def test_padding_does_not_change_a_sentence(protocol, client):
    tensor = sample("sentence", "input")["inputs"][0]
    row = array(tensor)[:1]
    row = row[:, : int((row != 0).sum())]
    padded = np.concatenate([row, np.zeros((1, 50), dtype=np.uint8)], axis=1)
    answers = [client.infer("sentence", as_inputs(protocol, [tensor], [r])).as_numpy("PROBABILITIES") for r in (row, padded)]
    np.testing.assert_allclose(*answers, rtol=1e-4, atol=1e-6)


def as_inputs(protocol, tensors, values):
    inputs = []
    for tensor, value in zip(tensors, values):
        inputs.append(protocol.InferInput(tensor["name"], list(value.shape), tensor["datatype"]))
        inputs[-1].set_data_from_numpy(np.ascontiguousarray(value))
    return inputs
