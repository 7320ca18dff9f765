"""Language models through OpenAI's own client: sync, async, streams, tools and structured output."""

import asyncio
import json
import math
import os
import pathlib
import shutil
import subprocess

import numpy as np
import openai
import pytest

from conftest import SAMPLES
from server import Server

# A model that was trained on books where there is one, else the sample.
SHARED = pathlib.Path(os.environ.get("GALATEA_SHARED", "/nowhere"))
BOOKS = SHARED / "models" / "books-qwen2-draft-2m"
CHECKPOINT = BOOKS if BOOKS.is_dir() else SAMPLES / "chat" / "1"
MESSAGES = [{"role": "user", "content": "It was a dark night."}]

GOLDEN = pathlib.Path(__file__).parents[2] / "golden" / "llm"


@pytest.fixture(scope="module")
def llm(program, tmp_path_factory):
    """A server with a small checkpoint, written as for Triton's vLLM backend."""
    repository = tmp_path_factory.mktemp("models")
    version = repository / "books" / "1"
    version.mkdir(parents=True)
    arguments = {"model": str(CHECKPOINT), "max_model_len": 1024, "num_gpu_blocks_override": 128}
    (version / "model.json").write_text(json.dumps(arguments))
    (repository / "books" / "config.pbtxt").write_text('backend: "vllm"\n')
    with Server(program, "--model-repository", repository) as running:
        yield running


@pytest.fixture(scope="module")
def client(llm):
    return openai.OpenAI(base_url=f"http://{llm.http}/v1", api_key="none", max_retries=0)


def test_models_are_listed(client):
    assert [model.id for model in client.models.list()] == ["books"]
    assert client.models.retrieve("books").object == "model"
    with pytest.raises(openai.NotFoundError) as error:
        client.models.retrieve("papers")
    assert error.value.code == "model_not_found"


def test_a_chat_whole_and_in_pieces_is_the_same(client):
    options = dict(model="books", messages=MESSAGES, temperature=0, max_tokens=12)
    whole = client.chat.completions.create(**options)
    assert whole.choices[0].finish_reason in ("length", "stop")
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens
    pieces = client.chat.completions.create(**options, stream=True, stream_options={"include_usage": True})
    text, usage = "", None
    for piece in pieces:
        usage = piece.usage or usage
        for choice in piece.choices:
            text += choice.delta.content or ""
    assert text == whole.choices[0].message.content
    assert usage.total_tokens == whole.usage.total_tokens


async def test_many_chats_at_once(llm):
    async with openai.AsyncOpenAI(base_url=f"http://{llm.http}/v1", api_key="none") as client:
        options = dict(model="books", messages=MESSAGES, max_tokens=6, temperature=0.8)
        stream = await client.chat.completions.create(**options, seed=7, stream=True)
        text = ""
        async for piece in stream:
            text += piece.choices[0].delta.content or ""
        again = await client.chat.completions.create(**options, seed=7)
        assert text == again.choices[0].message.content


def test_completions_have_probabilities(client):
    answer = client.completions.create(model="books", prompt=["Once there was", "The sea"], max_tokens=4, temperature=0,
                                       logprobs=2, echo=True)
    assert [choice.text.startswith(prompt) for choice, prompt in zip(answer.choices, ["Once there was", "The sea"])]
    first = answer.choices[0].logprobs
    assert first.token_logprobs[0] is None and len(first.tokens) == len(first.token_logprobs)
    assert "".join(first.tokens) == answer.choices[0].text
    chosen = client.chat.completions.create(model="books", messages=MESSAGES, max_tokens=3, logprobs=True,
                                            top_logprobs=4, n=2)
    assert len(chosen.choices) == 2
    assert all(len(token.top_logprobs) == 4 for token in chosen.choices[0].logprobs.content)


def test_answers_follow_a_schema(client):
    schema = {"type": "object", "properties": {"mood": {"enum": ["dark", "light"]}}, "required": ["mood"],
              "additionalProperties": False}
    answer = client.chat.completions.create(
        model="books", messages=MESSAGES, max_tokens=400, temperature=0,
        response_format={"type": "json_schema", "json_schema": {"name": "mood", "schema": schema}})
    assert json.loads(answer.choices[0].message.content)["mood"] in ("dark", "light")
    answer = client.chat.completions.create(model="books", messages=MESSAGES,
                                            extra_body={"guided_choice": ["moon", "star"]})
    assert answer.choices[0].message.content in ("moon", "star")


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "light"}}])
def test_tools_are_called(client, choice):
    parameters = {"type": "object", "properties": {"on": {"enum": ["yes", "no"]}}, "required": ["on"],
                  "additionalProperties": False}
    options = dict(model="books", messages=MESSAGES, max_tokens=400, temperature=0, parallel_tool_calls=False,
                   tools=[{"type": "function", "function": {"name": "light", "parameters": parameters}}],
                   tool_choice=choice)
    call = client.chat.completions.create(**options).choices[0].message.tool_calls[0]
    assert call.function.name == "light" and call.id
    assert json.loads(call.function.arguments)["on"] in ("yes", "no")
    arguments = ""
    for piece in client.chat.completions.create(**options, stream=True):
        for part in piece.choices[0].delta.tool_calls or []:
            arguments += part.function.arguments or ""
    assert json.loads(arguments) == json.loads(call.function.arguments)


def test_errors_are_openais(client):
    with pytest.raises(openai.BadRequestError) as error:
        client.chat.completions.create(model="books", messages=MESSAGES, temperature=-1)
    assert error.value.param == "temperature"
    with pytest.raises(openai.BadRequestError) as error:
        client.completions.create(model="books", prompt="night " * 2000)
    assert error.value.code == "context_length_exceeded"
    with pytest.raises(openai.NotFoundError):
        client.completions.create(model="papers", prompt="x")


def write_encoder(name, folder):
    """A copy of a tiny encoder, with a tokenizer of the words a4 to a63."""
    shutil.copytree(GOLDEN / name, folder)
    special = ["[UNK]", "[PAD]", "[CLS]", "[SEP]"]
    words = {word: at for at, word in enumerate(special)} | {f"a{at}": at for at in range(4, 64)}
    added = [{"id": at, "content": word, "special": True, "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": False} for at, word in enumerate(special)]
    tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
                 "pre_tokenizer": {"type": "Whitespace"}, "decoder": None,
                 "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
                 "model": {"type": "WordLevel", "vocab": words, "unk_token": "[UNK]"}}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))


@pytest.fixture(scope="module")
def encoders(program, tmp_path_factory):
    """A server with a model of vectors and a cross-encoder."""
    repository = tmp_path_factory.mktemp("encoders")
    write_encoder("bert-mean", repository / "mean")
    write_encoder("bert-rank", repository / "rank")
    with Server(program, "--model-repository", repository) as running:
        yield running


def recorded(name):
    return json.loads((GOLDEN / name / "golden.json").read_text())["cases"]


def test_embeddings_are_those_of_the_reference_library(encoders):
    client = openai.OpenAI(base_url=f"http://{encoders.http}/v1", api_key="none", max_retries=0)
    cases = recorded("bert-mean")
    # The client asks for base64, and reads that.
    answer = client.embeddings.create(model="mean", input=[case["ids"] for case in cases])
    for found, case in zip(answer.data, cases, strict=True):
        assert found.embedding == pytest.approx(case["normalised"], abs=2e-4)
    assert answer.usage.prompt_tokens == sum(len(case["ids"]) for case in cases)
    plain = client.embeddings.create(model="mean", input="a5 a6", encoding_format="float")
    short = client.embeddings.create(model="mean", input="a5 a6", dimensions=8, user="someone")
    part = plain.data[0].embedding[:8]
    length = math.sqrt(sum(number * number for number in part))
    assert short.data[0].embedding == pytest.approx([number / length for number in part], abs=1e-5)
    assert sorted(model.id for model in client.models.list()) == ["mean", "rank"]
    with pytest.raises(openai.BadRequestError) as error:
        client.embeddings.create(model="mean", input="a5 " * 100)
    assert error.value.code == "context_length_exceeded"
    with pytest.raises(openai.BadRequestError, match="is an encoder"):
        client.chat.completions.create(model="mean", messages=MESSAGES)


async def test_many_embeddings_at_once_are_as_each_alone(encoders):
    cases = recorded("bert-mean")
    async with openai.AsyncOpenAI(base_url=f"http://{encoders.http}/v1", api_key="none") as client:
        asked = [client.embeddings.create(model="mean", input=case["ids"]) for case in cases * 8]
        for answer, case in zip(await asyncio.gather(*asked), cases * 8, strict=True):
            assert answer.data[0].embedding == pytest.approx(case["normalised"], abs=2e-4)


def test_ranks_come_in_their_order(encoders):
    client = openai.OpenAI(base_url=f"http://{encoders.http}/v1", api_key="none", max_retries=0)
    body = {"model": "rank", "query": "a5 a6", "documents": ["a7", "a8 a9", "a10"], "top_n": 2}
    answer = client.post("/rerank", body=body, cast_to=object)
    scores = [result["relevance_score"] for result in answer["results"]]
    assert len(scores) == 2 and scores == sorted(scores, reverse=True)
    assert answer["results"][0]["document"]["text"] == body["documents"][answer["results"][0]["index"]]


def test_a_checkpoint_runs_on_tokens_as_the_reference_library(program, tmp_path):
    """Padding stands on the left in one row and on the right in another."""
    for name in ("llama", "gpt2", "qwen2"):
        cases = [case for case in recorded(name) if len(case["ids"]) > 1]
        longest = max(len(case["ids"]) for case in cases)
        ids, mask = np.zeros((2, len(cases), longest), np.int64)
        spans = []
        for row, case in enumerate(cases):
            length = len(case["ids"])
            start = longest - length if row % 2 else 0
            ids[row, start:start + length] = case["ids"]
            mask[row, start:start + length] = 1
            spans.append(start + length)
        np.savez(tmp_path / "in.npz", input_ids=ids, attention_mask=mask)
        command = [str(program), "run", str(GOLDEN / name), "--inputs", str(tmp_path / "in.npz"), "--outputs",
                   str(tmp_path / "out")]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        logits = np.load(tmp_path / "out0.npz")["logits"]
        for row, (case, end) in enumerate(zip(cases, spans)):
            wanted = np.array(case["logits"], np.float32)
            assert np.abs(logits[row, end - len(wanted):end] - wanted).max() < 1e-3


def test_an_encoder_and_t5_run_on_tokens(program, tmp_path):
    case = recorded("bert-mean")[2]
    np.savez(tmp_path / "in.npz", input_ids=np.array([case["ids"]]))
    run = [str(program), "run"]
    inputs = ["--inputs", str(tmp_path / "in.npz"), "--outputs", str(tmp_path / "out")]
    subprocess.run([*run, str(GOLDEN / "bert-mean"), *inputs], check=True, capture_output=True, timeout=120)
    found = np.load(tmp_path / "out0.npz")
    assert np.abs(found["last_hidden_state"][0, -1] - np.array(case["last_row"])).max() < 1e-3
    assert np.abs(found["embeddings"][0] - np.array(case["normalised"])).max() < 1e-3
    case = recorded("t5")[1]
    np.savez(tmp_path / "in.npz", input_ids=np.array([case["ids"]]), decoder_input_ids=np.array([case["after"]]))
    subprocess.run([*run, str(GOLDEN / "t5"), *inputs], check=True, capture_output=True, timeout=120)
    wanted = np.array(case["logits"], np.float32)
    found = np.load(tmp_path / "out0.npz")["logits"]
    assert np.abs(found[0, -len(wanted):] - wanted).max() < 1e-3
    wrong = subprocess.run([*run, str(GOLDEN / "llama"), *inputs], capture_output=True, text=True, timeout=120,
                           check=False)
    assert wrong.returncode == 1 and "input 'decoder_input_ids' found, expected input_ids" in wrong.stderr


@pytest.mark.skipif(not BOOKS.is_dir(), reason="GALATEA_SHARED names no trained checkpoint")
def test_prompts_go_on_as_recorded(program, tmp_path):
    golden = json.loads((SHARED / "models" / "golden.json").read_text())
    for name in ("books-qwen2-draft-2m", "books-gpt2-5m"):
        case = golden[name]["cases"][0]
        command = [str(program), "run", str(SHARED / "models" / name), "--prompt", case["prompt"], "--max-tokens", "6"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
        text = done.stdout.rstrip("\n")
        assert text and case["greedy_text"].startswith(case["prompt"] + text)
    # T5 writes another text.
    repository = tmp_path / "models"
    (repository / "t5" / "1").mkdir(parents=True)
    (repository / "t5" / "1" / "model.json").write_text(json.dumps({"model": str(SHARED / "models" / "books-t5-7m")}))
    (repository / "t5" / "config.pbtxt").write_text('backend: "vllm"\n')
    case = golden["books-t5-7m"]["cases"][0]
    with Server(program, "--model-repository", repository) as running:
        client = openai.OpenAI(base_url=f"http://{running.http}/v1", api_key="none", max_retries=0)
        answer = client.completions.create(model="t5", prompt=case["ids"], max_tokens=12, temperature=0,
                                           extra_body={"return_token_ids": True})
        assert answer.choices[0].model_extra["token_ids"] == case["greedy_ids"][1:13]


def test_a_terminal_talks(program):
    command = [str(program), "chat", str(CHECKPOINT), "--context", "256", "--temperature", "0", "--max-tokens", "5"]
    done = subprocess.run(command, input="Good day.\n/dance\n/bye\n", capture_output=True, text=True, timeout=120,
                          check=True)
    assert done.stdout.strip() and "/reset forgets" in done.stderr
    wrong = subprocess.run([*command, "--prompt", "x", "--min-p", "2"], capture_output=True, text=True, timeout=120,
                           check=False)
    assert wrong.returncode == 1 and "min_p: 2 found" in wrong.stderr
