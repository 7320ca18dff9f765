"""`lstm`: predicts the next character of Shakespearean English, from the bytes before it."""

import numpy as np
import torch
from torch import nn

from .corpus import sentences
from .repository import Io, write
from .training import accuracy, fit, seed, to_onnx

WINDOW = 48
FIRST, LAST = 32, 126  # printable ASCII: class i is the character 32 + i
PROMPT = "To be, or not to be, that is the questio"


class NextCharacter(nn.Module):
    """ASCII bytes `[batch, length]` in; probabilities of the 95 printable characters out."""

    def __init__(self, width=32, hidden=160):
        super().__init__()
        self.embedding = nn.Embedding(256, width)
        self.lstm = nn.LSTM(width, hidden, batch_first=True)
        self.linear = nn.Linear(hidden, LAST - FIRST + 1)

    def steps(self, text):
        return self.linear(self.lstm(self.embedding(text.long()))[0])

    def logits(self, text):
        return self.steps(text).flatten(0, 1) if self.training else self.steps(text)[:, -1]

    def forward(self, text):
        return torch.softmax(self.linear(self.lstm(self.embedding(text.long()))[0][:, -1]), -1)


class EveryStep(nn.Module):
    """Trains on the prediction after each byte of a window, not only the last."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def logits(self, text):
        return self.model.steps(text).transpose(1, 2)


def windows(text):
    codes = torch.tensor(bytearray(text.encode("ascii")), dtype=torch.uint8)
    usable = (len(codes) - 1) // WINDOW * WINDOW
    return codes[:usable].view(-1, WINDOW), codes[1:usable + 1].view(-1, WINDOW).long() - FIRST


def labels():
    return ["space" if code == 32 else chr(code) for code in range(FIRST, LAST + 1)]


def build(repository):
    seed()
    lines = [text for label, text in sentences() if label == "drama"]
    cut = len(lines) * 9 // 10
    train, test = windows(" ".join(lines[:cut])), windows(" ".join(lines[cut:]))
    model = NextCharacter()
    fit(EveryStep(model), *train, epochs=50, batch=32, rate=4e-3)
    model.eval()
    score = accuracy(model, test[0], test[1][:, -1])
    print(f"  held-out accuracy {score:.4f} on {len(test[0])} windows of {WINDOW}")
    example = np.frombuffer(PROMPT.encode(), dtype=np.uint8).reshape(1, -1)
    onnx_bytes = to_onnx(model, torch.from_numpy(np.concatenate([example, example])), "TEXT_BYTES", "PROBABILITIES",
                         {"TEXT_BYTES": {0: "batch", 1: "length"}, "PROBABILITIES": {0: "batch"}})
    write(repository, "lstm", onnx_bytes, [Io("TEXT_BYTES", "UINT8", [-1])],
          [Io("PROBABILITIES", "FP32", [LAST - FIRST + 1], labels())], {"TEXT_BYTES": example})
    return {"held_out_next_character_accuracy": round(score, 4), "held_out": len(test[0])}
