"""A small detector in the manner of YOLO, for export."""

import torch
import torchvision
from torch import nn


class Block(nn.Sequential):
    """Convolution, batch normalisation, SiLU."""

    def __init__(self, channels, features, kernel=3, stride=1):
        super().__init__(nn.Conv2d(channels, features, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(features), nn.SiLU())


class Split(nn.Module):
    """Half of the channels passes by, half goes through residual blocks; all meet again."""

    def __init__(self, channels, repeats):
        super().__init__()
        half = channels // 2
        self.first = Block(channels, channels, 1)
        self.parts = nn.ModuleList(nn.Sequential(Block(half, half), Block(half, half)) for _ in range(repeats))
        self.last = Block(half * (2 + repeats), channels, 1)

    def forward(self, x):
        parts = list(self.first(x).chunk(2, 1))
        for part in self.parts:
            parts.append(parts[-1] + part(parts[-1]))
        return self.last(torch.cat(parts, 1))


class Pyramid(nn.Module):
    """Pools of growing reach beside each other."""

    def __init__(self, channels):
        super().__init__()
        self.first, self.last = Block(channels, channels // 2, 1), Block(channels * 2, channels, 1)
        self.pool = nn.MaxPool2d(5, 1, 2)

    def forward(self, x):
        steps = [self.first(x)]
        for _ in range(3):
            steps.append(self.pool(steps[-1]))
        return self.last(torch.cat(steps, 1))


class Detector(nn.Module):
    """Boxes (x1, y1, x2, y2), scores and classes of what an image [1,3,H,W] shows."""

    def __init__(self, classes=20, width=32):
        super().__init__()
        w = width
        self.stem = nn.Sequential(Block(3, w, 3, 2), Block(w, 2 * w, 3, 2), Split(2 * w, 1))
        self.down1 = nn.Sequential(Block(2 * w, 4 * w, 3, 2), Split(4 * w, 2))
        self.down2 = nn.Sequential(Block(4 * w, 8 * w, 3, 2), Split(8 * w, 2), Pyramid(8 * w))
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.merge = Split(12 * w, 1)
        self.heads = nn.ModuleList([nn.Conv2d(12 * w, 4 + classes, 1), nn.Conv2d(8 * w, 4 + classes, 1)])
        self.strides = (8, 16)
        # Scores that differ by more than rounding, so that suppression meets no ties.
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")

    def decode(self, features, stride):
        _, _, height, width = features.shape
        rows = torch.arange(height, dtype=torch.float32) + 0.5
        columns = torch.arange(width, dtype=torch.float32) + 0.5
        y, x = torch.meshgrid(rows, columns, indexing="ij")
        left, top, right, bottom = (features[:, :4].sigmoid() * 8).unbind(1)
        boxes = torch.stack([x - left, y - top, x + right, y + bottom], -1) * stride
        return boxes.flatten(1, 2), features[:, 4:].sigmoid().flatten(2).transpose(1, 2)

    def forward(self, image):
        fine = self.down1(self.stem(image))
        coarse = self.down2(fine)
        merged = self.merge(torch.cat([self.up(coarse), fine], 1))
        found = [self.decode(head(x), stride) for head, x, stride in zip(self.heads, (merged, coarse), self.strides, strict=True)]
        boxes, scores = (torch.cat(parts, 1)[0] for parts in zip(*found, strict=True))
        best, classes = scores.max(1)
        kept = torchvision.ops.nms(boxes, best, 0.5)[:100]
        return boxes[kept], best[kept], classes[kept]
