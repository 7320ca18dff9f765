"""`sentence`: says whether an English sentence is drama, a manual or legal text, from its bytes."""

import random

import numpy as np
import torch
from torch import nn

from .corpus import sentences
from .repository import Io, write
from .training import accuracy, fit, seed, to_onnx

LABELS = ["drama", "manual", "legal"]
EXAMPLES = ["But soft, what light through yonder window breaks?", "Return the number of items in the queue."]


class Sentence(nn.Module):
    """UTF-8 bytes `[batch, length]`, padded with zeros, in; probabilities of the labels out."""

    def __init__(self, width=24, filters=96):
        super().__init__()
        self.embedding = nn.Embedding(256, width, padding_idx=0)
        self.convolution = nn.Conv1d(width, filters, 5, padding=2)
        self.dropout = nn.Dropout(0.4)
        self.linear = nn.Linear(filters, len(LABELS))

    def logits(self, text):
        text = text.long()
        present = (text != 0).float().unsqueeze(1)
        features = torch.relu(self.convolution(self.embedding(text).transpose(1, 2)))
        # Padding never wins the maximum: features are not negative and padded places become zero.
        return self.linear(self.dropout((features * present).amax(2)))

    def forward(self, text):
        return torch.softmax(self.logits(text), -1)


def to_bytes(texts):
    """Zero-padded UINT8 rows, at least 5 long (the width of the convolution)."""
    encoded = [text.encode() for text in texts]
    rows = np.zeros((len(encoded), max(5, *map(len, encoded))), dtype=np.uint8)
    for row, data in zip(rows, encoded):
        row[: len(data)] = np.frombuffer(data, dtype=np.uint8)
    return rows


def build(repository):
    seed()
    pairs = sentences()
    random.Random(1).shuffle(pairs)
    cut = len(pairs) * 4 // 5
    inputs = torch.from_numpy(to_bytes([text for _, text in pairs]))
    targets = torch.tensor([LABELS.index(label) for label, _ in pairs])
    model = Sentence()
    fit(model, inputs[:cut], targets[:cut], epochs=15, batch=32, rate=3e-3)
    score = accuracy(model, inputs[cut:], targets[cut:])
    print(f"  held-out accuracy {score:.4f} on {len(pairs) - cut} sentences")
    example = to_bytes(EXAMPLES)
    onnx_bytes = to_onnx(model, torch.from_numpy(example), "TEXT_BYTES", "PROBABILITIES",
                         {"TEXT_BYTES": {0: "batch", 1: "length"}, "PROBABILITIES": {0: "batch"}})
    write(repository, "sentence", onnx_bytes, [Io("TEXT_BYTES", "UINT8", [-1])],
          [Io("PROBABILITIES", "FP32", [len(LABELS)], LABELS)], {"TEXT_BYTES": example}, max_batch_size=16,
          extra="dynamic_batching { }\n")
    return {"held_out_accuracy": round(score, 4), "held_out": len(pairs) - cut}
