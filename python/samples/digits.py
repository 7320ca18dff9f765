"""`digits`: a convolutional network on scikit-learn's handwritten digits."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from .repository import Io, write
from .training import accuracy, fit, seed, to_onnx

BATCHING = """dynamic_batching {
  preferred_batch_size: [ 8, 16 ]
  max_queue_delay_microseconds: 500
}
"""


class Digits(nn.Module):
    """Pixels 0..16 as `[batch, 1, 8, 8]` in, probabilities of the ten digits out."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 48, 3, padding=1), nn.BatchNorm2d(48), nn.ReLU(), nn.MaxPool2d(2),
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(0.3), nn.Linear(48 * 4, 10))

    def logits(self, image):
        return self.head(self.features(image / 16))

    def forward(self, image):
        return torch.softmax(self.logits(image), -1)


def build(repository):
    seed()
    digits = load_digits()
    images = digits.images.astype(np.float32)[:, None]
    split = train_test_split(images, digits.target, test_size=0.25, random_state=0, stratify=digits.target)
    train, test, train_labels, test_labels = [torch.from_numpy(np.ascontiguousarray(a)) for a in split]
    model = Digits()
    fit(model, train, train_labels, epochs=40, batch=64, rate=2e-3)
    score = accuracy(model, test, test_labels)
    print(f"  held-out accuracy {score:.4f} on {len(test)} images")
    if score < 0.98:
        raise SystemExit("the digits sample promises 98 % on held-out images")
    onnx_bytes = to_onnx(model, test[:2], "IMAGE", "PROBABILITIES",
                         {"IMAGE": {0: "batch"}, "PROBABILITIES": {0: "batch"}})
    names = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    write(repository, "digits", onnx_bytes, [Io("IMAGE", "FP32", [1, 8, 8])],
          [Io("PROBABILITIES", "FP32", [10], names)], {"IMAGE": test[:2].numpy()}, max_batch_size=32, extra=BATCHING)
    return {"held_out_accuracy": round(score, 4), "held_out": len(test)}
