"""A language model over gRPC, as clients of Triton's vLLM backend ask it."""

import json
import urllib.request

import numpy as np
import pytest
import tritonclient.grpc
from tritonclient.utils import InferenceServerException

from answers import Answers
from conftest import SAMPLES, connect, until
from server import Server
from test_llm_soak import metrics

# Every token leaves text, so that every step has a response.
GREEDY = {"temperature": "0", "max_tokens": "16", "ignore_eos": True, "skip_special_tokens": False}


@pytest.fixture(scope="module")
def llm(program):
    with Server(program, "--model-repository", SAMPLES, "--model-control-mode=explicit", "--load-model=chat") as running:
        yield running


@pytest.fixture
def stream(llm):
    answers = Answers()
    with connect(tritonclient.grpc, llm) as client:
        client.start_stream(answers)
        yield client, answers


def inputs(text, sampling=None, **flags):
    """The tensors that the example client of Triton's vLLM backend sends."""
    def tensor(name, values, datatype, dtype):
        found = tritonclient.grpc.InferInput(name, [1], datatype)
        found.set_data_from_numpy(np.array(values, dtype))
        return found

    given = [tensor("text_input", [text.encode()], "BYTES", np.object_)]
    given += [tensor(name, [flag], "BOOL", bool) for name, flag in flags.items()]
    sampling = json.dumps(GREEDY if sampling is None else sampling)
    return given + [tensor("sampling_parameters", [sampling.encode()], "BYTES", np.object_)]


def is_final(result):
    return result.get_response().parameters["triton_final_response"].bool_param


def text(result):
    return b"".join(result.as_numpy("text_output").tolist()).decode()


def pieces(answers):
    """The responses to one request; the last one says so, and no other."""
    found = [answers.next()]
    while not is_final(found[-1]):
        found.append(answers.next())
    return found


def responses(server):
    with urllib.request.urlopen(f"http://{server.http}/v2/models/chat/stats") as answer:
        stats = json.load(answer)["model_stats"][0]
    return sum(one["success"]["count"] for one in stats["response_stats"].values()), stats["inference_stats"]


def test_pieces_are_the_whole_answer(llm, stream):
    client, answers = stream
    before, _ = responses(llm)
    client.async_stream_infer("chat", inputs("The capital of", exclude_input_in_output=True), request_id="whole")
    [whole] = pieces(answers)
    client.async_stream_infer("chat", inputs("The capital of", stream=True), request_id="pieces")
    found = pieces(answers)
    assert len(found) > 2
    assert "".join(map(text, found)) == text(whole)
    assert {one.get_response().id for one in found} == {"pieces"}
    assert responses(llm)[0] == before + 1 + len(found)
    client.async_stream_infer("chat", inputs("The capital of"))
    assert text(answers.next()) == "The capital of" + text(whole)


def test_errors_end_one_request_only(stream):
    client, answers = stream
    for given, why in [
        (inputs("x", {"beams": 4}, stream=True), "unknown field `beams`"),
        (inputs("x", {"temperature": "hot"}, stream=True), "sampling_parameters"),
        (inputs("x", stream=True, exclude_input_in_output=False), "is not allowed"),
        (inputs("x", stream=True)[1:], "text_input"),
    ]:
        client.async_stream_infer("chat", given)
        with pytest.raises(InferenceServerException, match=why):
            answers.next()
    client.async_stream_infer("chat", inputs("x", stream=True))
    assert pieces(answers)


def test_requests_of_one_stream_run_side_by_side(stream):
    client, answers = stream
    for number in range(8):
        client.async_stream_infer("chat", inputs("A", stream=True), request_id=str(number))
    texts, ended = {}, set()
    while len(ended) < 8:
        result = answers.next()
        name = result.get_response().id
        assert name not in ended
        texts[name] = texts.get(name, "") + text(result)
        if is_final(result):
            ended.add(name)
    assert len(set(texts.values())) == 1


def test_a_stream_that_is_cancelled_takes_its_requests_back(llm, stream):
    client, answers = stream
    failed = responses(llm)[1]["fail"]["count"]
    endless = GREEDY | {"max_tokens": "1000"}
    for _ in range(4):
        client.async_stream_infer("chat", inputs("A", endless, stream=True))
    answers.next()
    client.stop_stream(cancel_requests=True)
    # Those that had not left the client are never heard of.
    until(lambda: responses(llm)[1]["fail"]["count"] > failed, "the cancellations")
    until(lambda: metrics(llm)["vllm:num_requests_running"] == 0, "an engine without requests")


def test_one_response_needs_a_stream_too(llm):
    with connect(tritonclient.grpc, llm) as client:
        with pytest.raises(InferenceServerException, match="decoupled"):
            client.infer("chat", inputs("x"))
