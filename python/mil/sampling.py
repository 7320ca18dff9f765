"""Oracles of operators that sample images, checked against torch and the examples that
coremltools gives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch.nn import functional


def grid(mode: str, length: float, count: int) -> np.ndarray:
    """Where `count` points lie in [0, length - 1], as the text of `resize_bilinear` says."""
    i = np.arange(count)
    if mode == "ALIGN_CORNERS" and count == 1:
        points = np.array([(length - 1) / 2])
    elif mode in ("STRICT_ALIGN_CORNERS", "ALIGN_CORNERS"):
        points = i * ((length - 1) / max(1, count - 1))
    elif mode == "DEFAULT":
        points = i * (length / count)
    elif mode == "OFFSET_CORNERS":
        delta = max(1, length - 1) / count
        points = 0.5 * delta + i * delta
    else:
        spacing = length / count
        points = i * spacing + 0.5 * spacing - 0.5
    return np.clip(points, min(0, length - 1), max(0, length - 1))


def at_points(x: np.ndarray, points: np.ndarray, axis: int) -> np.ndarray:
    """Linear interpolation along one axis."""
    low = np.clip(np.floor(points).astype(int), 0, x.shape[axis] - 1)
    high = np.minimum(low + 1, x.shape[axis] - 1)
    share = (points - low).reshape([-1 if at == axis % x.ndim else 1 for at in range(x.ndim)])
    return np.take(x, low, axis) * (1 - share) + np.take(x, high, axis) * share


def resized(x: np.ndarray, lengths: tuple[int, ...], mode: str) -> np.ndarray:
    """Linear interpolation along the last axes."""
    for axis, count in zip(range(-len(lengths), 0), lengths, strict=True):
        x = at_points(x, grid(mode, x.shape[axis], count), axis)
    return x


def nearest(x: np.ndarray, lengths: tuple[int, ...]) -> np.ndarray:
    """The value at or before each point of a grid that begins at 0."""
    for axis, count in zip(range(-len(lengths), 0), lengths, strict=True):
        x = np.take(x, np.arange(count) * x.shape[axis] // count, axis)
    return x


def cropped(
    x: np.ndarray, boxes: np.ndarray, images: np.ndarray, height: int, width: int, *,
    normalized: bool = False, scale: float = 1.0, coordinates: str = "CORNERS_HEIGHT_FIRST",
    mode: str = "DEFAULT", pad: float = 0.0,
) -> np.ndarray:
    """`crop_resize`: [box, channel, height, width]. Points outside of the image are `pad`."""
    result = np.empty((len(boxes), x.shape[1], height, width))
    for index, (box, image) in enumerate(zip(boxes, images, strict=True)):
        box = np.asarray(box, np.float64) * scale
        if coordinates.endswith("WIDTH_FIRST"):
            box = box[[1, 0, 3, 2]]
        if coordinates.startswith("CENTER"):
            box = np.concatenate([box[:2] - box[2:] / 2, box[:2] + box[2:] / 2])
        if normalized:
            box = box * (np.array([*x.shape[2:], *x.shape[2:]]) - 1)
        rows = box[0] + grid(mode, box[2] - box[0] + 1, height)
        columns = box[1] + grid(mode, box[3] - box[1] + 1, width)
        taken = at_points(at_points(x[image], rows, 1), columns, 2)
        outside_rows = (rows < 0) | (rows > x.shape[2] - 1)
        outside_columns = (columns < 0) | (columns > x.shape[3] - 1)
        taken[:, outside_rows[:, None] | outside_columns[None]] = pad
        result[index] = taken
    return result


def unnormalized(points: np.ndarray, length: int, mode: str, align_corners: bool) -> np.ndarray:
    """Coordinates in pixels."""
    if mode == "unnormalized":
        return points
    share = (points + 1) / 2 if mode == "normalized_minus_one_to_one" else points
    return share * (length - 1) if align_corners else share * length - 0.5


def reflected(points: np.ndarray, low: float, high: float) -> np.ndarray:
    """Points reflected at two bounds until they lie between."""
    if high == low:
        return np.full_like(points, low)
    span = high - low
    folded = np.abs(points - low) % (2 * span)
    return np.minimum(folded, 2 * span - folded) + low


def inside(points: np.ndarray, length: int, padding: str) -> np.ndarray:
    """Points that a padding brings back into the image."""
    if padding == "reflection":
        points = reflected(points, 0, length - 1)
    elif padding == "symmetric":
        points = reflected(points, -0.5, length - 0.5)
    return points if padding == "constant" else np.clip(points, 0, length - 1)


def pixel(image: np.ndarray, row: int, column: int, value: float) -> np.ndarray:
    """All channels at one place, or the padding's value."""
    _, height, width = image.shape
    if 0 <= row < height and 0 <= column < width:
        return image[:, row, column]
    return np.full(len(image), value)


def sampled(
    x: np.ndarray, coordinates: np.ndarray, *, sampling_mode: str, padding_mode: str,
    padding_value: float, coordinates_mode: str, align_corners: bool,
) -> np.ndarray:
    """`resample`: [image, channel, row, column]."""
    n, rows, columns, _ = coordinates.shape
    result = np.empty((n, x.shape[1], rows, columns))
    where = [
        inside(
            unnormalized(
                coordinates[..., at].astype(np.float64), length, coordinates_mode, align_corners
            ),
            length, padding_mode,
        )
        for at, length in ((0, x.shape[3]), (1, x.shape[2]))
    ]
    for image, row, column in np.ndindex(n, rows, columns):
        h, w = where[1][image, row, column], where[0][image, row, column]
        if sampling_mode == "nearest":
            value = pixel(x[image], int(np.rint(h)), int(np.rint(w)), padding_value)
        else:
            value = between(x[image], h, w, padding_value)
        result[image, :, row, column] = value
    return result


def between(image: np.ndarray, h: float, w: float, value: float) -> np.ndarray:
    """Bilinear interpolation of four pixels."""
    row, column = int(np.floor(h)), int(np.floor(w))
    down, right = h - row, w - column
    above = pixel(image, row, column, value) * (1 - right)
    above = above + pixel(image, row, column + 1, value) * right
    below = pixel(image, row + 1, column, value) * (1 - right)
    below = below + pixel(image, row + 1, column + 1, value) * right
    return above * (1 - down) + below * down


def transformed(x: np.ndarray, matrix: np.ndarray, height: int, width: int) -> np.ndarray:
    """`affine`: bilinear, zeros around, corners aligned."""
    rows, columns = np.linspace(-1, 1, height), np.linspace(-1, 1, width)
    w, h = np.meshgrid(columns, rows)
    matrix = np.broadcast_to(matrix, (len(x), 6))
    points = np.stack([
        np.stack([a[0] * w + a[1] * h + a[2], a[3] * w + a[4] * h + a[5]], -1) for a in matrix
    ])
    return sampled(
        x, points, sampling_mode="bilinear", padding_mode="constant", padding_value=0.0,
        coordinates_mode="normalized_minus_one_to_one", align_corners=True,
    )


def check_grids() -> None:
    """The examples in the texts of the operators."""
    examples = {
        ("UNALIGN_CORNERS", 5): [0, 0.1, 0.5, 0.9, 1], ("ALIGN_CORNERS", 5): [0, 0.25, 0.5, 0.75, 1],
        ("DEFAULT", 5): [0, 0.4, 0.8, 1, 1], ("OFFSET_CORNERS", 5): [0.1, 0.3, 0.5, 0.7, 0.9],
        ("UNALIGN_CORNERS", 6): [0, 0, 1 / 3, 2 / 3, 1, 1],
        ("STRICT_ALIGN_CORNERS", 6): [0, 0.2, 0.4, 0.6, 0.8, 1],
        ("DEFAULT", 6): [0, 1 / 3, 2 / 3, 1, 1, 1],
    }
    for (mode, count), points in examples.items():
        assert np.allclose(grid(mode, 2, count), points), mode
    x = np.random.default_rng(1).normal(size=(1, 2, 3, 4))
    for mode, aligned in (("UNALIGN_CORNERS", False), ("STRICT_ALIGN_CORNERS", True)):
        theirs = functional.interpolate(
            torch.from_numpy(x), (5, 7), mode="bilinear", align_corners=aligned
        )
        assert np.allclose(resized(x, (5, 7), mode), theirs.numpy()), mode
    theirs = functional.interpolate(torch.from_numpy(x), (5, 2), mode="nearest")
    assert np.array_equal(nearest(x, (5, 2)), theirs.numpy())


def check_crops() -> None:
    """Results that coremltools' tests expect."""
    x = np.arange(1, 17, dtype=float).reshape(1, 1, 4, 4)
    boxes = np.array([[0.1, 0.3, 1.3, 1.0], [0.5, 1.8, 1.0, 0.3], [0.0, 0.4, 0.6, 0.7]])
    found = cropped(x, boxes, np.zeros(3, int), 2, 2, normalized=True, mode="ALIGN_CORNERS", pad=10)
    wanted = [3.1, 5.2, 10, 10, 10, 7.9, 10, 13.9, 2.2, 3.1, 9.4, 10.3]
    assert np.allclose(found.ravel(), wanted), found


def check_samples() -> None:
    """torch's `grid_sample`, and results that coremltools' tests expect."""
    rng = np.random.default_rng(2)
    x, points = rng.normal(size=(2, 2, 3, 4)), rng.uniform(-2.5, 2.5, (2, 3, 2, 2))
    check: Callable = functional.grid_sample
    for mode in ("bilinear", "nearest"):
        for ours, theirs, aligned in (
            ("constant", "zeros", True), ("constant", "zeros", False), ("border", "border", True),
            ("border", "border", False), ("reflection", "reflection", True),
            ("symmetric", "reflection", False),
        ):
            expected = check(torch.from_numpy(x), torch.from_numpy(points), mode, theirs, aligned)
            found = sampled(
                x, points, sampling_mode=mode, padding_mode=ours, padding_value=0.0,
                coordinates_mode="normalized_minus_one_to_one", align_corners=aligned,
            )
            assert np.allclose(found, expected.numpy()), (mode, ours, aligned)
    x = np.array([11.0, 22, 33, 44]).reshape(1, 1, 2, 2)
    points = np.array([-1, -2, -3.7, -1, 0, 0, 3.5, 1.2]).reshape(1, 2, 2, 2)
    for sampling, padding, value, mode, aligned, wanted in (
        ("bilinear", "constant", 6.17, "normalized_minus_one_to_one", True, [8.585, 6.17, 27.5, 6.17]),
        ("nearest", "border", -1, "unnormalized", False, [11, 11, 11, 44]),
        ("bilinear", "reflection", -1, "normalized_zero_to_one", True, [22, 36.3, 11, 34.1]),
        ("nearest", "symmetric", -1, "normalized_zero_to_one", False, [22, 33, 11, 33]),
    ):
        found = sampled(
            x, points, sampling_mode=sampling, padding_mode=padding, padding_value=value,
            coordinates_mode=mode, align_corners=aligned,
        )
        assert np.allclose(found.ravel(), wanted), (sampling, padding, found)
    found = transformed(x, np.array([[-1, -2, -3.7, -1, 3.5, 1.2]]), 2, 5).ravel()
    assert np.allclose(found, [10.7525, 5.94, 2.5025, 0.44, 0, 0, 0, 0, 0, 0]), found
    matrix = rng.normal(size=(2, 6)) / 2
    x = rng.normal(size=(2, 2, 3, 4))
    points = functional.affine_grid(torch.from_numpy(matrix).reshape(2, 2, 3), [2, 2, 4, 3], True)
    expected = check(torch.from_numpy(x), points, "bilinear", "zeros", True)
    assert np.allclose(transformed(x, matrix, 4, 3), expected.numpy())
