"""`torch_digits`: a convolutional network in PyTorch on scikit-learn's handwritten digits."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from .beside import module, record
from .repository import Io
from .training import accuracy, fit, seed


def build(repository):
    folder = repository / "torch_digits"
    seed()
    digits = load_digits()
    images = digits.images.astype(np.float32)
    # The same images are held out as those of the sample `digits`.
    split = train_test_split(images, digits.target, test_size=0.25, random_state=0, stratify=digits.target)
    train, test, train_labels, test_labels = [torch.from_numpy(np.ascontiguousarray(a)) for a in split]
    model = module(folder / "1" / "network.py").Digits()
    fit(model, train, train_labels, epochs=40, batch=64, rate=2e-3)
    score = accuracy(model, test, test_labels)
    torch.save(model.state_dict(), folder / "1" / "weights.pt")
    with torch.inference_mode():
        probabilities = model(test[:3]).numpy()
    record(folder, [(Io("IMAGE", "FP32", [8, 8]), test[:3].numpy())],
           [(Io("DIGIT", "INT64", [1]), probabilities.argmax(1, keepdims=True)),
            (Io("PROBABILITIES", "FP32", [10]), probabilities)])
    return {"held_out_accuracy": round(score, 4), "held_out": len(test)}
