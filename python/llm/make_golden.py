"""Write golden/llm: tiny random checkpoints of every architecture, with what the reference libraries
give for them.

usage: make_golden.py FOLDER [NAME...]      needs torch, transformers, sentence-transformers
"""

import json
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

import torch
import transformers

VOCABULARY = 64
TINY = dict(
    vocab_size=VOCABULARY, hidden_size=32, intermediate_size=40, num_hidden_layers=2,
    num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
    bos_token_id=0, eos_token_id=1, pad_token_id=1,
)
# Lengths of the sequences: the last one is longer than windows and lengths of training.
LENGTHS = (1, 5, 12, 40)


def rope(kind, **parameters):
    return dict(rope_parameters=dict(rope_type=kind, rope_theta=10000.0, **parameters))


def scaled(**changes):
    return {**TINY, **changes}


DECODERS = {
    "llama": ("Llama", scaled()),
    "llama-biases": ("Llama", scaled(attention_bias=True, mlp_bias=True, tie_word_embeddings=True)),
    "llama-linear": ("Llama", scaled(**rope("linear", factor=4.0))),
    "llama-dynamic": ("Llama", scaled(**rope("dynamic", factor=2.0))),
    "llama-yarn": ("Llama", scaled(**rope(
        "yarn", factor=4.0, original_max_position_embeddings=16))),
    "llama-llama3": ("Llama", scaled(**rope(
        "llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=16))),
    "mistral-window": ("Mistral", scaled(sliding_window=8, head_dim=16)),
    "qwen2": ("Qwen2", scaled(tie_word_embeddings=True)),
    "qwen2-window": ("Qwen2", scaled(use_sliding_window=True, sliding_window=8, max_window_layers=1)),
    "qwen3": ("Qwen3", scaled(head_dim=16)),
    "olmo2": ("Olmo2", scaled(head_dim=8, rms_norm_eps=1e-5)),
    "gemma3": ("Gemma3", scaled(
        num_hidden_layers=4, head_dim=8, intermediate_size=24, query_pre_attn_scalar=12,
        sliding_window=8, layer_types=["sliding_attention", "full_attention"] * 2,
        rope_parameters={
            "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
            "full_attention": {"rope_type": "linear", "rope_theta": 1000.0, "factor": 8.0},
        },
        attn_logit_softcapping=5.0, final_logit_softcapping=6.0)),
    "gpt2": ("GPT2", dict(
        vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_inner=48, n_positions=64,
        bos_token_id=0, eos_token_id=1, pad_token_id=1)),
}

ENCODER = dict(
    vocab_size=VOCABULARY, hidden_size=32, intermediate_size=40, num_hidden_layers=2,
    num_attention_heads=4, max_position_embeddings=64, pad_token_id=1,
)
# Class, configuration, and how sentence-transformers makes one vector of the rows.
ENCODERS = {
    "bert-mean": ("BertModel", "BertConfig", {**ENCODER, "type_vocab_size": 2}, "mean"),
    "bert-cls": ("BertModel", "BertConfig", {**ENCODER, "type_vocab_size": 2}, "cls"),
    "roberta-max": ("RobertaModel", "RobertaConfig", {**ENCODER, "type_vocab_size": 1}, "max"),
    "distilbert-mean": ("DistilBertModel", "DistilBertConfig", dict(
        vocab_size=VOCABULARY, dim=32, hidden_dim=40, n_layers=2, n_heads=4,
        max_position_embeddings=64, pad_token_id=1), "mean"),
}
RERANKERS = {
    "bert-rank": ("BertForSequenceClassification", "BertConfig", {
        **ENCODER, "type_vocab_size": 2, "num_labels": 1}),
    "xlm-roberta-rank": ("XLMRobertaForSequenceClassification", "XLMRobertaConfig", {
        **ENCODER, "type_vocab_size": 1, "num_labels": 1}),
    "distilbert-rank": ("DistilBertForSequenceClassification", "DistilBertConfig", dict(
        vocab_size=VOCABULARY, dim=32, hidden_dim=40, n_layers=2, n_heads=4,
        max_position_embeddings=64, pad_token_id=1, num_labels=1)),
}
T5 = dict(
    vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=40, num_layers=2, num_decoder_layers=2,
    num_heads=4, relative_attention_num_buckets=8, relative_attention_max_distance=20,
    decoder_start_token_id=0, pad_token_id=0, eos_token_id=1,
)
SEQUENCE_PAIRS = {
    "t5": {**T5, "feed_forward_proj": "relu", "tie_word_embeddings": True},
    "flan-t5": {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
}


def randomise(model, seed):
    """Weights that make every part of the model matter, as BF16 can hold them."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            values = torch.randn(parameter.shape, generator=generator)
            if parameter.dim() < 2:
                values = values * 0.2 + (1.0 if "norm" in name.lower() and "bias" not in name else 0.0)
            elif "embed" in name or "wte" in name or "wpe" in name or "shared" in name:
                values = values * 0.5
            else:
                values = values * 1.5 / parameter.shape[-1] ** 0.5
            parameter.copy_(values.to(torch.bfloat16).float())
    model.eval()
    return model


def sequences(lengths, first=2):
    generator = torch.Generator().manual_seed(7)
    return [
        torch.randint(first, VOCABULARY, (length,), generator=generator).tolist()
        for length in lengths
    ]


def rounded(tensor):
    return [float(f"{value:.6g}") for value in tensor.flatten().tolist()]


def save(folder, model, golden):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    # The library knows which weights are tied and how files of this architecture name them.
    model.to(torch.bfloat16).save_pretrained(folder)
    for name in folder.iterdir():
        if name.name not in ("config.json", "model.safetensors"):
            name.unlink()
    assert (folder / "model.safetensors").stat().st_size <= 100_000, folder
    (folder / "golden.json").write_text(json.dumps(golden) + "\n")


def decoder(name, seed):
    kind, sizes = DECODERS[name]
    config_class = "Gemma3TextConfig" if kind == "Gemma3" else f"{kind}Config"
    model_class = {"GPT2": "GPT2LMHeadModel"}.get(kind, f"{kind}ForCausalLM")
    config = getattr(transformers, config_class)(**sizes, attn_implementation="eager")
    model = randomise(getattr(transformers, model_class)(config), seed)
    # The library's Gemma 3 reads this bound but does not hand it to its attention.
    softcap = sizes.get("attn_logit_softcapping")
    bounds = {} if softcap is None else dict(softcap=softcap)
    cases = []
    for ids in sequences(LENGTHS):
        with torch.no_grad():
            logits = model(torch.tensor([ids]), **bounds).logits[0]
        # Of long sequences the last rows.
        cases.append(dict(ids=ids, logits=[rounded(row) for row in logits[-4:]]))
    return model, dict(cases=cases)


def encoder(name, seed):
    model_class, config_class, sizes, pooling = ENCODERS[name]
    config = getattr(transformers, config_class)(**sizes, attn_implementation="eager")
    model = randomise(getattr(transformers, model_class)(config), seed)
    from sentence_transformers.sentence_transformer.modules import Pooling
    pool = Pooling(32, pooling_mode=pooling)
    cases = []
    for ids in sequences(LENGTHS):
        mask = torch.ones(1, len(ids), dtype=torch.long)
        with torch.no_grad():
            rows = model(torch.tensor([ids]), attention_mask=mask).last_hidden_state
            whole = pool(dict(token_embeddings=rows, attention_mask=mask))["sentence_embedding"]
            unit = torch.nn.functional.normalize(whole, dim=1)
        cases.append(dict(ids=ids, last_row=rounded(rows[0, -1]), embedding=rounded(whole),
                          normalised=rounded(unit)))
    return model, dict(cases=cases)


def save_encoder(folder, model, golden, pooling):
    save(folder, model, golden)
    modules = [
        dict(idx=0, name="0", path="", type="sentence_transformers.models.Transformer"),
        dict(idx=1, name="1", path="1_Pooling", type="sentence_transformers.models.Pooling"),
        dict(idx=2, name="2", path="2_Normalize", type="sentence_transformers.models.Normalize"),
    ]
    (folder / "modules.json").write_text(json.dumps(modules, indent=1) + "\n")
    (folder / "1_Pooling").mkdir()
    modes = {
        "mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token",
        "max": "pooling_mode_max_tokens",
    }
    settings = {"word_embedding_dimension": 32, **{mode: mode == modes[pooling] for mode in modes.values()}}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(settings, indent=1) + "\n")


def reranker(name, seed):
    model_class, config_class, sizes = RERANKERS[name]
    config = getattr(transformers, config_class)(**sizes, attn_implementation="eager")
    model = randomise(getattr(transformers, model_class)(config), seed)
    cases = []
    for ids in sequences(LENGTHS):
        second = len(ids) // 2
        types = [0] * (len(ids) - second) + [1] * second
        kinds = {}
        if sizes.get("type_vocab_size") == 2:
            kinds["token_type_ids"] = torch.tensor([types])
        with torch.no_grad():
            logit = model(torch.tensor([ids]), **kinds).logits
        cases.append(dict(ids=ids, types=types, logit=rounded(logit), score=rounded(logit.sigmoid())))
    return model, dict(cases=cases)


def sequence_pair(name, seed):
    config = transformers.T5Config(**SEQUENCE_PAIRS[name])
    model = randomise(transformers.T5ForConditionalGeneration(config), seed)
    cases = []
    for ids, after in zip(sequences(LENGTHS), sequences((30, 12, 5, 2))):
        after = [0, *after]
        with torch.no_grad():
            found = model(torch.tensor([ids]), decoder_input_ids=torch.tensor([after]))
        cases.append(dict(
            ids=ids, last_row=rounded(found.encoder_last_hidden_state[0, -1]), after=after,
            logits=[rounded(row) for row in found.logits[0][-4:]]))
    return model, dict(cases=cases)


def main():
    target, wanted = Path(sys.argv[1]), set(sys.argv[2:])
    torch.set_num_threads(1)
    everything = [
        *((name, decoder) for name in DECODERS), *((name, encoder) for name in ENCODERS),
        *((name, reranker) for name in RERANKERS), *((name, sequence_pair) for name in SEQUENCE_PAIRS),
    ]
    for seed, (name, make) in enumerate(everything):
        if wanted and name not in wanted:
            continue
        model, golden = make(name, seed)
        golden["made_with"] = {
            package: version(package)
            for package in ("torch", "transformers", "sentence-transformers")
        }
        if make is encoder:
            save_encoder(target / name, model, golden, ENCODERS[name][3])
        else:
            save(target / name, model, golden)
        print(name)


if __name__ == "__main__":
    main()
