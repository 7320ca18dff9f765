"""The network, for the model and for the script that trains it."""

import torch
from torch import nn


class Digits(nn.Module):
    """Pixels 0 to 16 as `[batch, 8, 8]` in, probabilities of the ten digits out."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(0.3), nn.Linear(32 * 4, 10))

    def logits(self, image):
        return self.head(self.features(image.unsqueeze(1) / 16))

    def forward(self, image):
        return torch.softmax(self.logits(image), -1)
