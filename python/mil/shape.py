"""Cases of operators that move values and change shapes."""

from __future__ import annotations

import numpy as np
import torch
from coremltools.converters.mil import Builder as mb

from .case import Family, f16, f32, i32, words

# Types that operators of this family take since iOS17, besides those of before.
SMALL = (np.int8, np.uint8, np.int16, np.uint16)
BEFORE = ((f32, 15), (f16, 16), (i32, 15), (np.bool_, 15))


def values(family: Family, dtype: type, *shape: int) -> np.ndarray:
    """Values of any type."""
    if dtype == np.bool_:
        return family.bits(*shape)
    if np.dtype(dtype).kind == "f":
        return family.normal(*shape, dtype=dtype)
    low = 0 if np.dtype(dtype).kind == "u" else -100
    return family.ints(low, 100, *shape, dtype=dtype)


def of_all_types(family: Family, operator: str, shape: tuple[int, ...], expect, params: dict,
                 small: bool = True) -> None:
    """A case of one operator for each type that it takes."""
    kinds = [*BEFORE, *((dtype, 17) for dtype in SMALL)] if small else list(BEFORE)
    for dtype, opset in kinds:
        family.one(
            f"{operator}_of_{words(dtype)}_of_ios{opset}", operator,
            {"x": values(family, dtype, *shape)}, expect, opset, params,
        )


def reshapes(family: Family) -> None:
    """`reshape` to known, inferred and computed shapes."""
    of_all_types(family, "reshape", (2, 3, 2), lambda x: x.reshape(3, 4), {"shape": [3, 4]})
    for name, x, shape, to in (
        ("with_a_length_to_infer", (2, 3, 2), [-1, 4], (3, 4)),
        ("that_keeps_two_lengths", (2, 3, 2, 2), [0, -1, 0, 1], (2, 6, 2, 1)),
        ("to_rank_5", (4, 3), [2, 1, 2, 1, 3], (2, 1, 2, 1, 3)),
        ("to_a_vector", (2, 1, 3), [-1], (6,)),
    ):
        family.one(
            f"reshape_{name}", "reshape", {"x": family.normal(*x)},
            lambda x, to=to: x.reshape(to), 15, {"shape": shape},
        )
    for name, x, shape, to in (
        ("counts_kept_lengths_from_the_last", (2, 6), [1, 0, -1, 0], (1, 1, 2, 6)),
        ("counts_kept_lengths_from_the_last_with_fewer_axes", (2, 3, 4), [-1, 0], (6, 4)),
    ):
        family.one(
            f"reshape_of_ios17_{name}", "reshape", {"x": family.normal(*x)},
            lambda x, to=to: x.reshape(to), 17, {"shape": shape},
        )
    for dtype in (np.int8, np.int16):
        family.one(
            f"reshape_to_a_shape_of_{words(dtype)}_of_ios17", "reshape",
            {"x": family.normal(2, 3)}, lambda x: x.reshape(3, 2), 17,
            {"shape": np.array([3, 2], dtype)},
        )
    family.one(
        "reshape_to_a_shape_that_is_an_input", "reshape",
        {"x": family.normal(2, 6), "shape": np.array([3, 4], i32)},
        lambda x, shape: x.reshape(shape),
    )

    def flatten(x):
        lengths = mb.shape(x=x)
        first = mb.slice_by_index(x=lengths, begin=[0], end=[1])
        return mb.reshape(x=x, shape=mb.concat(values=[first, np.array([-1], i32)], axis=0))

    family.add(
        "reshape_to_a_computed_shape", ["reshape", "shape", "slice_by_index", "concat"],
        {"x": family.normal(3, 2, 2)}, flatten, lambda x: x.reshape(x.shape[0], -1),
        flexible={"x": {0: "n"}}, fold=False,
    )
    family.one(
        "reshape_of_an_unknown_axis", "reshape", {"x": family.normal(3, 4)},
        lambda x: x.reshape(-1, 2, 2), 15, {"shape": [-1, 2, 2]}, flexible={"x": {0: "n"}},
    )


def likes(family: Family) -> None:
    """`reshape_like`."""

    def like(begins, ends, masks):
        def build(x, a, b):
            return mb.reshape_like(
                x=x, ref_tensors=(a, b), begins=begins, ends=ends, end_masks=masks
            )

        return build

    for opset, dtype in ((16, f32), (16, i32), (17, np.int8), (17, np.uint16)):
        family.add(
            f"reshape_like_of_{words(dtype)}_of_ios{opset}", "reshape_like",
            {"x": values(family, dtype, 6, 10), "a": family.normal(2, 3, 4),
             "b": family.normal(1, 5, 2)},
            like((0, 1), (2, 0), (False, True)), lambda x, a, b: x.reshape(2, 3, 5, 2), opset=opset,
        )
    family.add(
        "reshape_like_a_part_of_each", "reshape_like",
        {"x": family.normal(3, 4), "a": family.normal(2, 6), "b": family.normal(5, 2, 1)},
        like((1, 1), (2, 2), (False, False)), lambda x, a, b: x.reshape(6, 2), opset=16,
    )


def axes(family: Family) -> None:
    """`transpose`, `expand_dims`, `squeeze`, `reverse`, `flatten2d`, `shape`."""
    of_all_types(family, "transpose", (2, 3, 2), lambda x: x.transpose(2, 0, 1), {"perm": [2, 0, 1]})
    for perm in ([0], [1, 0], [0, -1, 1], [3, 1, 0, 2], [4, 2, 0, 3, 1]):
        shape = (2, 3, 1, 2, 2)[: len(perm)]
        family.one(
            f"transpose_of_rank_{len(perm)}", "transpose", {"x": family.normal(*shape)},
            lambda x, p=perm: x.transpose(p), 15, {"perm": perm},
        )
    family.one(
        "transpose_of_unknown_axes", "transpose", {"x": family.normal(2, 3, 2)},
        lambda x: x.transpose(1, 2, 0), 15, {"perm": [1, 2, 0]}, flexible={"x": {0: "n", 1: "m"}},
    )
    of_all_types(family, "expand_dims", (2, 3), lambda x: x[:, None], {"axes": [1]})
    for name, where, to in (("two_axes", [0, 2], (1, 2, 1, 3)), ("negative_axes", [-1, 0], (1, 2, 3, 1)),
                            ("three_axes", [0, 1, -1], (1, 1, 2, 3, 1))):
        family.one(
            f"expand_dims_with_{name}", "expand_dims", {"x": family.normal(2, 3)},
            lambda x, to=to: x.reshape(to), 15, {"axes": where},
        )
    of_all_types(family, "squeeze", (2, 1, 3), lambda x: x[:, 0], {"axes": [1]})
    for name, shape, params, to in (
        ("all_axes_of_length_one", (1, 2, 1, 3), {}, (2, 3)),
        ("negative_axes", (2, 1, 3, 1), {"axes": [-1, -3]}, (2, 3)),
        ("one_of_two_axes", (1, 1, 4), {"axes": [0]}, (1, 4)),
    ):
        family.one(
            f"squeeze_of_{name}", "squeeze", {"x": family.normal(*shape)},
            lambda x, to=to: x.reshape(to), 15, params,
        )
    family.one(
        "squeeze_leaves_axes_that_are_longer", "squeeze", {"x": family.normal(2, 1, 3)},
        lambda x: x[:, 0], 15, {"axes": [0, 1]}, fold=False,
    )
    family.one("squeeze_to_no_axes", "squeeze", {"x": family.normal(1)}, lambda x: x[0], 15,
               {"axes": [0]})
    of_all_types(family, "reverse", (2, 3), lambda x: x[:, ::-1], {"axes": [1]})
    family.one("reverse_of_all_axes", "reverse", {"x": family.normal(2, 3)},
               lambda x: x[::-1, ::-1])
    family.one("reverse_of_negative_axes", "reverse", {"x": family.normal(2, 2, 3, 1)},
               lambda x: x[:, ::-1, ::-1], 15, {"axes": [-2, 1]})
    of_all_types(family, "flatten2d", (2, 3, 2), lambda x: x.reshape(2, 6), {}, small=False)
    for axis, shape, to in ((-1, (2, 3, 2), (6, 2)), (2, (1, 2, 3, 2), (2, 6)), (-1, (3,), (1, 3)),
                            (1, (3,), (3, 1)), (3, (1, 2, 1, 2, 2), (2, 4))):
        family.one(
            f"flatten2d_of_rank_{len(shape)}_at_{axis}".replace("-", "minus_"), "flatten2d",
            {"x": family.normal(*shape)}, lambda x, to=to: x.reshape(to), 15, {"axis": axis},
        )
    for dtype, opset in BEFORE:
        family.one(
            f"shape_of_{words(dtype)}_of_ios{opset}", "shape", {"x": values(family, dtype, 2, 1, 3)},
            lambda x: np.array(x.shape), opset,
        )
    family.one("shape_of_unknown_axes", "shape", {"x": family.normal(3, 2, 1)},
               lambda x: np.array(x.shape), 15, flexible={"x": {0: "n", 2: "m"}})
    for dtype, opset in BEFORE:
        family.one(f"identity_of_{words(dtype)}_of_ios{opset}", "identity",
                   {"x": values(family, dtype, 2, 2)}, lambda x: x, opset)


def sequences(family: Family) -> None:
    """`reverse_sequence`, `sliding_windows`."""

    def reversed_sequence(x, lengths, seq_axis=0, batch_axis=0):
        result = np.moveaxis(x.copy(), (batch_axis, seq_axis), (0, 1))
        for row, length in zip(result, lengths):
            row[:length] = row[:length][::-1].copy()
        return np.moveaxis(result, (0, 1), (batch_axis, seq_axis))

    for shape, seq, batch in (((3, 4), 1, 0), ((4, 2, 2), 0, 1), ((2, 2, 3), 2, 0)):
        lengths = family.ints(0, shape[seq] + 1, shape[batch])
        lengths[0] = shape[seq]
        family.one(
            f"reverse_sequence_along_axis_{seq}_for_each_of_axis_{batch}", "reverse_sequence",
            {"x": family.normal(*shape), "lengths": lengths},
            lambda x, lengths, s=seq, b=batch: reversed_sequence(x, lengths, s, b), 15,
            {"seq_axis": seq, "batch_axis": batch}, fold=False,
        )
    for dtype, opset in (*BEFORE[1:], *((dtype, 17) for dtype in SMALL)):
        for of in (i32, np.int8, np.int16) if dtype == np.int8 else (i32,):
            family.one(
                f"reverse_sequence_of_{words(dtype)}_with_lengths_in_{words(of)}_of_ios{opset}",
                "reverse_sequence",
                {"x": values(family, dtype, 2, 4), "lengths": np.array([3, 2], of)},
                lambda x, lengths: reversed_sequence(x, lengths, 1, 0), opset, {"seq_axis": 1},
                fold=False,
            )

    def windows(x, axis, size, stride=1):
        axis %= x.ndim
        result = np.lib.stride_tricks.sliding_window_view(x, size, axis)
        result = np.moveaxis(result, -1, axis + 1)
        return np.take(result, range(0, result.shape[axis], stride), axis)

    for shape, params in (((6,), {"axis": 0, "size": 3}), ((2, 5), {"axis": 1, "size": 2, "stride": 2}),
                          ((5, 2, 2), {"axis": 0, "size": 3, "stride": 1}),
                          ((1, 2, 7), {"axis": -1, "size": 3, "stride": 3})):
        family.one(
            f"sliding_windows_of_rank_{len(shape)}_along_axis_{params['axis']}".replace("-", "minus_"),
            "sliding_windows", {"x": family.normal(*shape)},
            lambda x, p=params: windows(x, **p), 15, params,
        )
    for dtype, opset in ((f16, 16), (i32, 15), (np.bool_, 17), *((dtype, 17) for dtype in SMALL)):
        family.one(
            f"sliding_windows_of_{words(dtype)}_of_ios{opset}", "sliding_windows",
            {"x": values(family, dtype, 5)}, lambda x: windows(x, 0, 2), opset,
            {"axis": 0, "size": 2},
        )


def blocks(family: Family) -> None:
    """Values that go from depth or batch to space, and back."""

    def to_depth(x, b):
        n, c, h, w = x.shape
        x = x.reshape(n, c, h // b, b, w // b, b)
        return x.transpose(0, 3, 5, 1, 2, 4).reshape(n, c * b * b, h // b, w // b)

    def to_space(x, b):
        n, c, h, w = x.shape
        x = x.reshape(n, b, b, c // b // b, h, w)
        return x.transpose(0, 3, 4, 1, 5, 2).reshape(n, c // b // b, h * b, w * b)

    def to_batch(x, block, paddings):
        x = np.pad(x, [(0, 0), (0, 0), *map(tuple, paddings)])
        n, c, h, w = x.shape
        x = x.reshape(n, c, h // block[0], block[0], w // block[1], block[1])
        return x.transpose(3, 5, 0, 1, 2, 4).reshape(-1, c, h // block[0], w // block[1])

    def from_batch(x, block, crops):
        n, c, h, w = x.shape
        n //= block[0] * block[1]
        x = x.reshape(block[0], block[1], n, c, h, w).transpose(2, 3, 4, 0, 5, 1)
        x = x.reshape(n, c, h * block[0], w * block[1])
        (top, bottom), (left, right) = crops
        return x[:, :, top : x.shape[2] - bottom, left : x.shape[3] - right]

    why = "the order of channels is TensorFlow's, whose models these operators are made of"
    for b, dtype, opset in ((2, f32, 15), (3, f32, 15), (2, f16, 16)):
        family.one(f"space_to_depth_by_{b}_in_{words(dtype)}", "space_to_depth",
                   {"x": family.normal(1, 2, b * 2, b, dtype=dtype)},
                   lambda x, b=b: to_depth(x, b), opset, {"block_size": b}, why=why)
        family.one(f"depth_to_space_by_{b}_in_{words(dtype)}", "depth_to_space",
                   {"x": family.normal(1, 2 * b * b, 2, 1, dtype=dtype)},
                   lambda x, b=b: to_space(x, b), opset, {"block_size": b}, why=why)
        family.one(f"pixel_shuffle_by_{b}_in_{words(dtype)}", "pixel_shuffle",
                   {"x": family.normal(1, 2 * b * b, 1, 2, dtype=dtype)},
                   lambda x, b=b: torch.pixel_shuffle(torch.from_numpy(x), b).numpy(), opset,
                   {"upscale_factor": b}, oracle="torch")
        family.one(f"pixel_unshuffle_by_{b}_in_{words(dtype)}", "pixel_unshuffle",
                   {"x": family.normal(1, 2, b * 2, b, dtype=dtype)},
                   lambda x, b=b: torch.pixel_unshuffle(torch.from_numpy(x), b).numpy(), 16,
                   {"downscale_factor": np.uint32(b)}, oracle="torch")
    for name, shape, block, around in (
        ("", (2, 1, 2, 4), [2, 2], [[0, 0], [0, 0]]),
        ("_with_unequal_blocks", (1, 2, 4, 3), [2, 3], [[0, 0], [0, 0]]),
        ("_with_padding", (1, 1, 3, 2), [2, 2], [[1, 0], [0, 2]]),
    ):
        around = np.array(around, i32)
        family.one(f"space_to_batch{name}", "space_to_batch", {"x": family.normal(*shape)},
                   lambda x, b=block, p=around: to_batch(x, b, p), 15,
                   {"block_shape": block, "paddings": around})
        n = block[0] * block[1]
        family.one(f"batch_to_space{name.replace('padding', 'crops')}", "batch_to_space",
                   {"x": family.normal(n * 2, 2, 2, 2, dtype=f32)},
                   lambda x, b=block, p=around: from_batch(x, b, p), 15,
                   {"block_shape": block, "crops": around})
    family.one("space_to_batch_in_fp16", "space_to_batch", {"x": family.normal(1, 1, 2, 2, dtype=f16)},
               lambda x: to_batch(x, [2, 1], [(0, 0), (1, 1)]), 16,
               {"block_shape": [2, 1], "paddings": np.array([[0, 0], [1, 1]], i32)})
    family.one("batch_to_space_in_fp16", "batch_to_space", {"x": family.normal(4, 1, 2, 2, dtype=f16)},
               lambda x: from_batch(x, [2, 2], [(0, 1), (1, 0)]), 16,
               {"block_shape": [2, 2], "crops": np.array([[0, 1], [1, 0]], i32)})


def shape() -> Family:
    """Operators that change shapes."""
    family = Family("shape")
    for part in (reshapes, likes, axes, sequences, blocks):
        part(family)
    return family
