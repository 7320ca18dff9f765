"""`chat`: a language model of less than a million parameters that answers the questions of chat_corpus.

It is a LLaMA with a ChatML template, trained on one core of a CPU in less than a quarter of an hour. sample_chat.json holds questions
with the answers that the reference library gives greedily to the weights as they were written.
"""

import json
import pathlib
import random
import time

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from . import chat_corpus

END, START, STOP = SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
VOCABULARY = 1024
# Tokens of a training row, rows of a batch, and batches.
LENGTH, ROWS, STEPS = 192, 16, 800
RATE = 3e-3
# Places whose answers are not trained.
IGNORED = -100

# As Qwen's and Hermes' models have it: tools and calls stand in tags.
TEMPLATE = """\
{%- if tools %}
{{- '<|im_start|>system\\n' }}
{%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}
{{- 'Tools:\\n<tools>' }}
{%- for tool in tools %}{{- '\\n' }}{{- tool | tojson }}{%- endfor %}
{{- '\\n</tools>\\nCall one as <tool_call>\\n{\"name\": ..., \"arguments\": ...}\\n</tool_call><|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}
{{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
{%- elif message.role != 'system' or not loop.first %}
{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.content %}{{- message.content }}{%- endif %}
{%- for call in message.tool_calls or [] %}
{{- '<tool_call>\\n{\"name\": ' + (call.function.name | tojson) + ', \"arguments\": ' + (call.function.arguments | tojson) + '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
"""

# What is recorded, as questions that follow each other.
RECORDED = [
    ["Hello!"], ["What is Galatea?"], ["What is the capital of France?"], ["What is 3 + 4?"],
    ["Which day comes after Monday?"], ["Tell me a story."], ["Hi!", "What is 7 times 8?", "Thank you!"],
]


def build(repository):
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    choose = random.Random(0)
    said, sums = chat_corpus.exchanges()
    tokenizer = train_tokenizer([text for forms, answer in said + sums for text in [*forms, answer]])
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=128, intermediate_size=320, num_hidden_layers=4,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=1024, tie_word_embeddings=True,
        bos_token_id=0, eos_token_id=2, pad_token_id=0, rms_norm_eps=1e-5))
    train(model, tokenizer, said, sums, choose)
    folder = pathlib.Path(repository) / "chat"
    version = folder / "1"
    version.mkdir(parents=True, exist_ok=True)
    save(version, model, tokenizer)
    (folder / "config.pbtxt").write_text(CONFIG)
    # The answers are those of the weights as the file has them.
    written = transformers.LlamaForCausalLM.from_pretrained(version, dtype=torch.float32)
    chats = [recorded(written, tokenizer, questions) for questions in RECORDED]
    (folder / "sample_chat.json").write_text(json.dumps(chats, indent=1) + "\n")
    exact = [answers_exactly(written, tokenizer, choose.choice(forms), answer) for forms, answer in said + sums]
    size = sum(file.stat().st_size for file in version.iterdir())
    return {"parameters": sum(p.numel() for p in model.parameters()), "bytes": size,
            "said": sum(exact[: len(said)]) / len(said), "sums": sum(exact[len(said):]) / len(sums)}


CONFIG = """name: "chat"
backend: "llm"
parameters { key: "max_model_len" value { string_value: "1024" } }
"""


def train_tokenizer(texts):
    """Byte-level BPE of the corpus; digits stay alone."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=SPECIAL, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    texts = [*texts, "system", "user", "assistant", *chat_corpus.SYSTEM]
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def turn(role, text):
    return f"{START}{role}\n{text}{STOP}\n"


def row(tokenizer, said, sums, choose):
    """Conversations one behind the other, with the places to learn: what the assistant says, and its end."""
    ids, wanted = [], []

    def add(text, learn):
        found = tokenizer.encode(text).ids
        ids.extend(found)
        wanted.extend(found if learn else [IGNORED] * len(found))

    while len(ids) <= LENGTH:
        if choose.random() < 0.3:
            add(turn("system", choose.choice(chat_corpus.SYSTEM)), False)
        for _ in range(choose.choice([1, 1, 2, 3])):
            forms, answer = choose.choice(said if choose.random() < 0.6 else sums)
            add(turn("user", choose.choice(forms)) + f"{START}assistant\n", False)
            add(answer + STOP, True)
            add("\n", False)
        add(END, False)
    return ids[:LENGTH], wanted[:LENGTH]


def train(model, tokenizer, said, sums, choose):
    print(f"  {tokenizer.get_vocab_size()} tokens, {len(said)} sentences, {len(sums)} sums", flush=True)
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.98), weight_decay=0.01)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, STEPS, pct_start=0.05)
    began, total = time.monotonic(), 0.0
    for step in range(1, STEPS + 1):
        rows = [row(tokenizer, said, sums, choose) for _ in range(ROWS)]
        ids, wanted = (torch.tensor(part) for part in zip(*rows))
        logits = model(ids).logits[:, :-1]
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), wanted[:, 1:].flatten(), ignore_index=IGNORED)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        rate.step()
        total += loss.item()
        if step % 50 == 0:
            print(f"  step {step}: loss {total / 50:.4f}, {time.monotonic() - began:.0f} s", flush=True)
            total = 0.0
    model.eval()


def save(folder, model, tokenizer):
    model.to(torch.bfloat16).save_pretrained(folder)
    model.generation_config.save_pretrained(folder)
    # Drawn at random, words of so small a model stammer. The library writes no temperature of 0.
    path = folder / "generation_config.json"
    settings = json.loads(path.read_text()) | {"do_sample": False, "temperature": 0}
    path.write_text(json.dumps(settings, indent=2, sort_keys=True) + "\n")
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": STOP, "pad_token": END,
              "model_max_length": 1024, "clean_up_tokenization_spaces": False, "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")


def prompt(messages):
    return "".join(turn(message["role"], message["content"]) for message in messages) + f"{START}assistant\n"


def generate(model, tokenizer, messages):
    ids = torch.tensor([tokenizer.encode(prompt(messages)).ids])
    with torch.no_grad():
        found = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=120, do_sample=False)
    return tokenizer.decode(found[0, ids.shape[1]:].tolist())


def recorded(model, tokenizer, questions):
    messages = []
    for question in questions:
        messages.append({"role": "user", "content": question})
        messages.append({"role": "assistant", "content": generate(model, tokenizer, messages)})
    return messages


def answers_exactly(model, tokenizer, question, answer):
    return generate(model, tokenizer, [{"role": "user", "content": question}]) == answer
