"""Cases of operators that cut, join, pad and repeat."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from coremltools.converters.mil import Builder as mb

from .case import Family, f16, f32, i32, words
from .shape import BEFORE, SMALL, values


def indices(
    begin: Sequence[int], end: Sequence[int], stride: Sequence[int] | None = None,
    begin_mask: Sequence[bool] | None = None, end_mask: Sequence[bool] | None = None,
    squeeze_mask: Sequence[bool] | None = None,
) -> tuple[slice | int, ...]:
    """NumPy's index for the parameters of `slice_by_index` and `slice_update`."""
    rank = len(begin)
    stride, none = stride or [1] * rank, [False] * rank
    begin_mask, end_mask = begin_mask or none, end_mask or none
    squeeze_mask = squeeze_mask or none
    result: list[slice | int] = []
    for at in range(rank):
        first = None if begin_mask[at] else int(begin[at])
        last = None if end_mask[at] else int(end[at])
        result.append(int(begin[at]) if squeeze_mask[at] else slice(first, last, stride[at]))
    return tuple(result)


# name -> shape, parameters.
SLICES: dict[str, tuple[tuple[int, ...], dict]] = {
    "of_a_vector": ((6,), {"begin": [1], "end": [4]}),
    "of_rank_3": ((3, 4, 2), {"begin": [1, 0, 1], "end": [3, 3, 2]}),
    "with_negative_bounds": ((4, 5), {"begin": [-3, 1], "end": [-1, -1]}),
    "with_strides": ((5, 6), {"begin": [0, 1], "end": [5, 6], "stride": [2, 3]}),
    "with_masks":
        ((4, 5), {"begin": [2, 1], "end": [3, 3], "begin_mask": [True, False],
                  "end_mask": [False, True]}),
    "with_a_negative_stride":
        ((5, 3), {"begin": [4, 0], "end": [1, 3], "stride": [-1, 1]}),
    "backwards_over_everything":
        ((5,), {"begin": [0], "end": [0], "stride": [-2], "begin_mask": [True], "end_mask": [True]}),
    "that_squeezes_an_axis":
        ((3, 4), {"begin": [1, 1], "end": [2, 3], "squeeze_mask": [True, False]}),
    "that_squeezes_negative_places":
        ((3, 2, 4), {"begin": [0, -1, -2], "end": [2, 0, 0], "squeeze_mask": [False, True, True]}),
    "with_an_end_beyond_the_axis": ((3, 4), {"begin": [1, 2], "end": [9, 100]}),
    "of_rank_5":
        ((1, 2, 2, 3, 2), {"begin": [0, 1, 0, 0, 0], "end": [1, 2, 2, 3, 1],
                           "stride": [1, 1, 1, 2, 1]}),
}


def slices(family: Family) -> None:
    """`slice_by_index` and `slice_by_size` with constant bounds, of all types."""
    family.one(
        "slice_by_index_of_nothing", "slice_by_index", {"x": family.normal(3, 2)}, lambda x: x[1:1],
        15, {"begin": [1, 0], "end": [1, 2]},
        why="coremltools gives it this shape; Core ML may refuse tensors without elements",
    )
    for name, (shape, params) in SLICES.items():
        family.one(
            f"slice_by_index_{name}", "slice_by_index", {"x": family.normal(*shape)},
            lambda x, p=params: x[indices(**p)], 15, params,
        )
    for dtype, opset in (*BEFORE, *((dtype, 17) for dtype in SMALL)):
        x = values(family, dtype, 3, 4)
        family.one(
            f"slice_by_index_of_{words(dtype)}_of_ios{opset}", "slice_by_index", {"x": x},
            lambda x: x[1:3, 0:3:2], opset, {"begin": [1, 0], "end": [3, 3], "stride": [1, 2]},
        )
        family.one(
            f"slice_by_size_of_{words(dtype)}_of_ios{opset}", "slice_by_size", {"x": x},
            lambda x: x[1:3, 1:3], opset, {"begin": [1, 1], "size": [2, 2]},
        )
    for dtype in (np.int8, np.int16):
        family.one(
            f"slice_by_index_with_bounds_in_{words(dtype)}_of_ios17", "slice_by_index",
            {"x": family.normal(4, 4)}, lambda x: x[1:3, 0:2], 17,
            {"begin": np.array([1, 0], dtype), "end": np.array([3, 2], dtype)},
        )
        family.one(
            f"slice_by_size_with_bounds_in_{words(dtype)}_of_ios17", "slice_by_size",
            {"x": family.normal(4, 4)}, lambda x: x[2:3, 1:4], 17,
            {"begin": np.array([2, 1], dtype), "size": np.array([1, 3], dtype)},
        )


def slices_of_inputs(family: Family) -> None:
    """The same with bounds that are inputs, or over unknown axes."""
    whole = {"begin": np.array([1, 0], i32), "end": np.array([3, 2], i32)}
    family.one(
        "slice_by_index_with_bounds_that_are_inputs", "slice_by_index",
        {"x": family.normal(4, 3)} | whole,
        lambda x, begin, end: x[begin[0] : end[0], begin[1] : end[1]],
    )
    family.one(
        "slice_by_index_at_a_place_that_is_an_input", "slice_by_index",
        {"x": family.normal(4, 3), "begin": np.array([2, 0], i32)},
        lambda x, begin: x[begin[0], :], 15,
        {"end": [0, 0], "end_mask": [False, True], "squeeze_mask": [True, False]},
    )
    family.one(
        "slice_by_index_of_unknown_axes", "slice_by_index", {"x": family.normal(5, 3)},
        lambda x: x[-2:, :2], 15,
        {"begin": [-2, 0], "end": [0, 2], "end_mask": [True, False]},
        flexible={"x": {0: "n", 1: "m"}},
    )
    for name, shape, begin, size in (
        ("up_to_the_end", (3, 4), [1, 2], [-1, -1]),
        ("of_rank_4", (2, 3, 2, 2), [0, 1, 1, 0], [2, 2, 1, -1]),
        ("of_a_vector", (5,), [2], [3]),
    ):
        ends = [n if s == -1 else b + s for n, b, s in zip(shape, begin, size)]
        family.one(
            f"slice_by_size_{name}", "slice_by_size", {"x": family.normal(*shape)},
            lambda x, b=begin, e=ends: x[tuple(map(slice, b, e))], 15,
            {"begin": begin, "size": size},
        )
    family.one(
        "slice_by_size_with_a_begin_that_is_an_input", "slice_by_size",
        {"x": family.normal(5, 3), "begin": np.array([2, 1], i32)},
        lambda x, begin: x[begin[0] : begin[0] + 2, begin[1] : begin[1] + 2], 15,
        {"size": [2, 2]},
    )
    family.one(
        "slice_by_size_with_bounds_that_are_inputs", "slice_by_size",
        {"x": family.normal(5, 3), "begin": np.array([2, 1], i32), "size": np.array([3, 1], i32)},
        lambda x, begin, size: x[begin[0] : begin[0] + size[0], begin[1] : begin[1] + size[1]],
    )


def updates(family: Family) -> None:
    """`slice_update`."""

    def updated(x, update, where):
        result = x.copy()
        result[where] = update
        return result

    for name, (shape, params) in SLICES.items():
        where = indices(**params)
        part = np.zeros(shape)[where].shape
        family.one(
            f"slice_update_{name}", "slice_update",
            {"x": family.normal(*shape), "update": family.normal(*part)},
            lambda x, update, w=where: updated(x, update, w), 18, params,
        )
    for dtype in (f16, i32, np.bool_, *SMALL):
        family.one(
            f"slice_update_of_{words(dtype)}", "slice_update",
            {"x": values(family, dtype, 3, 4), "update": values(family, dtype, 2, 2)},
            lambda x, update: updated(x, update, np.s_[1:3, 0:3:2]), 18,
            {"begin": [1, 0], "end": [3, 3], "stride": [1, 2]},
        )
    for dtype in (np.int8, np.int16):
        family.one(
            f"slice_update_with_bounds_in_{words(dtype)}", "slice_update",
            {"x": family.normal(3, 3), "update": family.normal(1, 3)},
            lambda x, update: updated(x, update, np.s_[1:2]), 18,
            {"begin": np.array([1, 0], dtype), "end": np.array([2, 3], dtype)},
        )
    family.one(
        "slice_update_with_bounds_that_are_inputs", "slice_update",
        {"x": family.normal(1, 5, 2), "update": family.normal(1, 2, 2),
         "begin": np.array([0, 2, 0], i32), "end": np.array([1, 4, 2], i32)},
        lambda x, update, begin, end: updated(x, update, np.s_[:, begin[1] : end[1]]), 18,
    )


def joins(family: Family) -> None:
    """`concat`, `stack`, `split`."""
    for dtype, opset in (*BEFORE, (np.int8, 17), (np.uint16, 17)):
        family.add(
            f"concat_of_{words(dtype)}_of_ios{opset}", "concat",
            {"a": values(family, dtype, 2, 2), "b": values(family, dtype, 2, 3)},
            lambda a, b: mb.concat(values=(a, b), axis=1),
            lambda a, b: np.concatenate([a, b], 1), opset=opset,
        )
        family.add(
            f"stack_of_{words(dtype)}_of_ios{opset}", "stack",
            {"a": values(family, dtype, 2, 2), "b": values(family, dtype, 2, 2)},
            lambda a, b: mb.stack(values=(a, b), axis=1), lambda a, b: np.stack([a, b], 1),
            opset=opset,
        )
    for rank in (1, 3, 4, 5):
        shape = (2, 1, 2, 1, 2)[:rank]
        family.add(
            f"concat_of_three_of_rank_{rank}_along_the_last_axis", "concat",
            {name: family.normal(*shape) for name in "abc"},
            lambda a, b, c: mb.concat(values=(a, b, c), axis=-1),
            lambda a, b, c: np.concatenate([a, b, c], -1),
        )
    family.add("concat_of_one", "concat", {"a": family.normal(2, 3)},
               lambda a: mb.concat(values=(a,), axis=0), lambda a: a)
    family.add(
        "concat_of_unknown_axes", "concat", {"a": family.normal(3, 2), "b": family.normal(1, 2)},
        lambda a, b: mb.concat(values=(a, b), axis=0), lambda a, b: np.concatenate([a, b]),
        flexible={"a": {0: "n"}, "b": {0: "m"}},
    )
    for axis in (0, 1, -2):
        family.add(
            f"concat_that_interleaves_axis_{axis}".replace("-", "minus_"), "concat",
            {"a": family.normal(3, 2, 2), "b": family.normal(3, 2, 2)},
            lambda a, b, x=axis: mb.concat(values=(a, b), axis=x, interleave=True),
            lambda a, b, x=axis % 3: np.stack([a, b], x + 1).reshape(
                *a.shape[:x], 2 * a.shape[x], *a.shape[x + 1 :]
            ),
            fold=False,
        )
    for axis in (0, -1, 2):
        family.add(
            f"stack_of_three_along_axis_{axis}".replace("-", "minus_"), "stack",
            {name: family.normal(2, 3) for name in "abc"},
            lambda a, b, c, x=axis: mb.stack(values=(a, b, c), axis=x),
            lambda a, b, c, x=axis: np.stack([a, b, c], x),
        )
    for dtype, opset in BEFORE:
        family.one(
            f"split_of_{words(dtype)}_of_ios{opset}", "split", {"x": values(family, dtype, 2, 6)},
            lambda x: tuple(np.split(x, 3, 1)), opset, {"num_splits": 3, "axis": 1},
        )
    for name, params in (
        ("by_sizes", {"split_sizes": [1, 3, 2], "axis": 0}),
        ("by_sizes_and_their_count", {"split_sizes": [4, 2], "num_splits": 2, "axis": 0}),
        ("along_a_negative_axis", {"split_sizes": [1, 1], "axis": -1}),
    ):
        cuts = np.cumsum(params["split_sizes"])[:-1]
        family.one(
            f"split_{name}", "split", {"x": family.normal(6, 2)},
            lambda x, c=cuts, a=params["axis"]: tuple(np.split(x, c, a)), 15, params,
        )


def pads(family: Family) -> None:
    """`pad`, `tile`, `crop`."""
    modes = {"constant": "constant", "reflect": "reflect", "replicate": "edge"}
    for mode, theirs in modes.items():
        for name, shape, pad, opset, dtype in (
            ("all_axes", (2, 3), [1, 0, 2, 1], 15, f32),
            ("the_last_axis", (1, 2, 4), [2, 1], 15, f32),
            ("two_axes_of_rank_4", (1, 2, 3, 3), [1, 1, 2, 0], 15, f32),
            ("two_axes_in_fp16", (2, 3), [1, 1, 0, 2], 16, f16),
        ):
            rows = [(0, 0)] * (len(shape) - len(pad) // 2)
            rows += [tuple(pad[at : at + 2]) for at in range(0, len(pad), 2)]
            family.one(
                f"pad_{mode}_of_{name}", "pad", {"x": family.normal(*shape, dtype=dtype)},
                lambda x, r=rows, m=theirs: np.pad(x, r, m), opset,
                {"pad": np.array(pad, i32), "constant_val": dtype(0)}
                | ({"mode": mode} if mode != "constant" else {}),
            )
    family.one(
        "pad_with_a_value", "pad", {"x": family.normal(2, 1, 2, 1, 2)},
        lambda x: np.pad(x, [(0, 0), (0, 0), (0, 0), (1, 0), (0, 2)], constant_values=-1.5), 15,
        {"pad": [1, 0, 0, 2], "constant_val": f32(-1.5)},
    )
    family.one(
        "pad_by_lengths_that_are_inputs", "pad",
        {"x": family.normal(2, 3), "pad": np.array([1, 0, 0, 2], i32)},
        lambda x, pad: np.pad(x, [(pad[0], pad[1]), (pad[2], pad[3])]), 15,
    )
    family.one("pad_of_an_unknown_axis", "pad", {"x": family.normal(2, 3)},
               lambda x: np.pad(x, [(0, 0), (1, 2)]), 15, {"pad": [0, 0, 1, 2]},
               flexible={"x": {1: "n"}})
    for dtype, opset in BEFORE:
        family.one(
            f"tile_of_{words(dtype)}_of_ios{opset}", "tile", {"x": values(family, dtype, 2, 3)},
            lambda x: np.tile(x, (2, 2)), opset, {"reps": [2, 2]},
        )
    for reps in ([3], [1, 2, 1], [1, 1, 2, 2], [2, 1, 1, 1, 2]):
        family.one(
            f"tile_of_rank_{len(reps)}", "tile", {"x": family.normal(*(2, 1, 2, 1, 1)[: len(reps)])},
            lambda x, r=reps: np.tile(x, r), 15, {"reps": reps},
        )
    family.one(
        "tile_by_counts_that_are_inputs", "tile",
        {"x": family.normal(2, 1), "reps": np.array([1, 3], i32)}, lambda x, reps: np.tile(x, reps),
    )
    for opset, dtype in ((15, f32), (16, f16)):
        for height, width in (([1, 1], [0, 2]), ([0, 0], [1, 0])):
            family.one(
                f"crop_by_{height[0]}{height[1]}_and_{width[0]}{width[1]}_in_{words(dtype)}", "crop",
                {"x": family.normal(1, 2, 3, 4, dtype=dtype)},
                lambda x, h=height, w=width: x[..., h[0] : 3 - h[1], w[0] : 4 - w[1]], opset,
                {"crop_height": height, "crop_width": width},
            )


def slicing() -> Family:
    """Operators that cut and join."""
    family = Family("slicing")
    for part in (slices, slices_of_inputs, updates, joins, pads):
        part(family)
    return family
