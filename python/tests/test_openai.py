"""Language models through OpenAI's own client: sync, async, streams, tools and structured output."""

import json
import os
import pathlib
import subprocess

import openai
import pytest

from server import Server

SHARED = pathlib.Path(os.environ.get("GALATEA_SHARED", "/nowhere"))
CHECKPOINT = SHARED / "models" / "books-qwen2-draft-2m"
MESSAGES = [{"role": "user", "content": "It was a dark night."}]

pytestmark = pytest.mark.skipif(not CHECKPOINT.is_dir(), reason="GALATEA_SHARED names no trained checkpoint")


@pytest.fixture(scope="module")
def llm(program, tmp_path_factory):
    """A server with a small checkpoint, written as for Triton's vLLM backend."""
    repository = tmp_path_factory.mktemp("models")
    version = repository / "books" / "1"
    version.mkdir(parents=True)
    arguments = {"model": str(CHECKPOINT), "max_model_len": 512, "num_gpu_blocks_override": 64}
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
    answer = client.completions.create(model="books", prompt=["Once upon", "The sea"], max_tokens=4, temperature=0,
                                       logprobs=2, echo=True)
    assert [choice.text.startswith(prompt) for choice, prompt in zip(answer.choices, ["Once upon", "The sea"])]
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


def test_a_terminal_talks(program):
    command = [str(program), "chat", str(CHECKPOINT), "--context", "256", "--temperature", "0", "--max-tokens", "5"]
    done = subprocess.run(command, input="Good day.\n/dance\n/bye\n", capture_output=True, text=True, timeout=120,
                          check=True)
    assert done.stdout.strip() and "/reset forgets" in done.stderr
    wrong = subprocess.run([*command, "--prompt", "x", "--min-p", "2"], capture_output=True, text=True, timeout=120,
                           check=False)
    assert wrong.returncode == 1 and "min_p: 2 found" in wrong.stderr
