"""Cases of operators that gather, scatter and choose values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from coremltools.converters.mil import Builder as mb

from .case import Family, f16, f32, i32, words
from .shape import BEFORE, values

# Types of values and of indices, with the opset that allows them.
TYPES = [
    (f32, i32, 15), (i32, i32, 15), (f16, i32, 16), (f32, np.int16, 16), (f16, np.uint16, 16),
    (np.int8, np.uint8, 17), (np.uint8, np.int8, 17), (np.int16, np.uint16, 17),
    (np.uint16, np.int16, 17), (f32, i32, 17),
]


def gathered(x: np.ndarray, indices: np.ndarray, axis: int = 0, batch_dims: int = 0) -> np.ndarray:
    """`gather` with axes that indices and values share."""
    axis %= x.ndim
    if batch_dims == 0:
        return np.take(x, indices.astype(np.int64), axis)
    return np.stack(
        [gathered(a, b, axis - 1, batch_dims - 1) for a, b in zip(x, indices, strict=True)]
    )


def of_types(family: Family, operator: str, at: list, expect: Callable) -> None:
    """A case for each type of values and indices. Indices of 16 bits are constants before iOS17,
    as nothing else can make them."""
    for dtype, of, opset in TYPES:
        name = f"{operator}_of_{words(dtype)}_with_indices_in_{words(of)}_of_ios{opset}"
        x, indices = values(family, dtype, 3, 2), np.array(at, of)
        if opset == 16 and of != i32:
            family.one(
                name, operator, {"x": x}, lambda x, i=indices: expect(x, i.astype(np.int64)), opset,
                {"indices": indices},
            )
        else:
            family.one(
                name, operator, {"x": x, "indices": indices},
                lambda x, indices: expect(x, indices.astype(np.int64)), opset,
            )


def gathers(family: Family) -> None:
    """`gather`."""
    forms: dict[str, tuple[tuple[int, ...], np.ndarray, int]] = {
        "of_rows": ((4, 3), np.array([2, 0, 3, 2]), 0),
        "with_a_matrix_of_indices": ((5, 2), np.array([[1, 4], [0, 0]]), 0),
        "along_the_last_axis": ((2, 3, 4), np.array([3, 1]), -1),
        "along_an_axis_in_the_middle": ((2, 4, 3), np.array([[3], [1]]), 1),
        "with_negative_indices": ((4, 2), np.array([-1, 0, -4]), 0),
        "of_a_vector": ((6,), np.array([5, 2, 2]), 0),
        "of_rank_4": ((1, 2, 3, 2), np.array([2, 0]), 2),
        "to_rank_5": ((2, 3, 2), np.array([[[2, 0]], [[1, 1]]]), 1),
    }
    for name, (shape, indices, axis) in forms.items():
        family.one(
            f"gather_{name}", "gather",
            {"x": family.normal(*shape), "indices": indices.astype(i32)},
            lambda x, indices, a=axis: gathered(x, indices, a), 15, {"axis": axis},
        )
    of_types(family, "gather", [2, 0, 1], lambda x, indices: x[indices])
    family.add(
        "gather_with_one_index_takes_an_axis_away", ["gather", "squeeze"],
        {"x": family.normal(3, 4), "at": np.array([2], i32)},
        lambda x, at: mb.gather(x=x, indices=mb.squeeze(x=at), axis=1), lambda x, at: x[:, at[0]],
    )
    for opset, batch_dims, shape, indices in (
        (16, 1, (2, 3, 2), np.array([[2, 0], [1, 1]])),
        (16, 1, (2, 4), np.array([[3], [0]])),
        (17, 2, (2, 2, 3), np.array([[[2], [0]], [[1], [1]]])),
    ):
        family.one(
            f"gather_with_{batch_dims}_batch_axes_of_rank_{len(shape)}_of_ios{opset}", "gather",
            {"x": family.normal(*shape), "indices": indices.astype(i32)},
            lambda x, indices, b=batch_dims: gathered(x, indices, b, b), opset,
            {"axis": batch_dims, "batch_dims": batch_dims},
        )
    family.one(
        "gather_of_another_axis_than_the_batch_axes", "gather",
        {"x": family.normal(2, 2, 4), "indices": np.array([[3, 0, 1], [1, 2, 2]], i32)},
        lambda x, indices: gathered(x, indices, 2, 1), 16, {"axis": 2, "batch_dims": 1},
    )
    family.one(
        "gather_that_validates_indices", "gather",
        {"x": family.normal(4, 2), "indices": np.array([3, 1], i32)},
        lambda x, indices: gathered(x, indices), 17, {"validate_indices": True},
    )
    family.one(
        "gather_with_an_unknown_number_of_indices", "gather",
        {"x": family.normal(5, 3), "indices": np.array([[4, 0, 2]], i32)},
        lambda x, indices: gathered(x, indices), 15, flexible={"indices": {1: "n"}},
    )
    table = family.normal(6, 2)
    family.add(
        "gather_of_a_constant_table", "gather", {"indices": np.array([[5, 1], [0, 3]], i32)},
        lambda indices: mb.gather(x=table, indices=indices, axis=0),
        lambda indices: table[indices].astype(float),
    )


def gathers_of_points(family: Family) -> None:
    """`gather_along_axis` and `gather_nd`."""
    for axis, shape, lengths in ((0, (3, 2), (2, 2)), (1, (2, 3), (2, 4)), (-1, (2, 2, 3), (2, 2, 1)),
                                 (0, (5,), (3,)), (2, (1, 2, 3, 2), (1, 2, 2, 2))):
        family.one(
            f"gather_along_axis_{axis}_of_rank_{len(shape)}".replace("-", "minus_"),
            "gather_along_axis",
            {"x": family.normal(*shape), "indices": family.ints(0, shape[axis], *lengths)},
            lambda x, indices, a=axis: np.take_along_axis(x, indices.astype(np.int64), a), 15,
            {"axis": axis},
        )
    of_types(family, "gather_along_axis", [[2, 0], [1, 1]],
             lambda x, indices: np.take_along_axis(x, indices, 0))
    of_types(family, "gather_nd", [[2, 0], [1, 1], [0, 1]], lambda x, indices: x[tuple(indices.T)])
    for name, shape, indices in (
        ("of_rows", (3, 2, 2), np.array([[2], [0]])),
        ("of_points_in_rank_3", (2, 3, 2), np.array([[[1, 2, 0], [0, 0, 1]]])),
        ("of_rows_in_rank_3", (2, 3, 2), np.array([[1, 2], [0, 0], [1, 0]])),
        ("of_a_vector", (5,), np.array([[4], [1]])),
    ):
        family.one(
            f"gather_nd_{name}", "gather_nd",
            {"x": family.normal(*shape), "indices": indices.astype(i32)},
            lambda x, indices: x[tuple(np.moveaxis(indices, -1, 0))],
        )
    for opset, batch_dims, shape, indices in (
        (16, 1, (2, 3, 2), np.array([[[2, 0]], [[1, 1]]])),
        (17, 1, (2, 3, 2), np.array([[[2], [1]], [[0], [0]]])),
        (17, 2, (2, 2, 3), np.array([[[[2]], [[0]]], [[[1]], [[1]]]])),
    ):
        family.one(
            f"gather_nd_with_{batch_dims}_batch_axes_and_{indices.shape[-1]}_indices_of_ios{opset}",
            "gather_nd", {"x": family.normal(*shape), "indices": indices.astype(i32)},
            lambda x, indices, b=batch_dims: points_of_batches(x, indices, b), opset,
            {"batch_dims": batch_dims},
        )
    for operator, indices in (("gather_along_axis", [[2, 0]]), ("gather_nd", [[2, 0]])):
        family.one(
            f"{operator}_that_validates_indices", operator,
            {"x": family.normal(3, 2), "indices": np.array(indices, i32)},
            (lambda x, indices: np.take_along_axis(x, indices, 0)) if "axis" in operator
            else (lambda x, indices: x[tuple(indices.T)]),
            17, {"validate_indices": True},
        )


def points_of_batches(x: np.ndarray, indices: np.ndarray, batch_dims: int) -> np.ndarray:
    """`gather_nd` with axes that indices and values share."""
    if batch_dims == 0:
        return x[tuple(np.moveaxis(indices, -1, 0))]
    return np.stack([points_of_batches(a, b, batch_dims - 1) for a, b in zip(x, indices, strict=True)])


MODES: dict[str, Callable] = {
    "update": lambda old, new: new,
    "add": lambda old, new: old + new,
    "sub": lambda old, new: old - new,
    "mul": lambda old, new: old * new,
    "div": lambda old, new: old / new,
    "max": max,
    "min": min,
}


def put(data: np.ndarray, places: list[tuple[int, ...]], updates: list, mode: str) -> np.ndarray:
    """Writes values one after the other."""
    result = data.copy()
    for place, value in zip(places, updates, strict=True):
        result[place] = MODES[mode](result[place], value)
    return result


def scattered(data, indices, updates, axis=0, mode="add"):
    """`scatter` as plain loops."""
    axis %= data.ndim
    places, new = [], []
    for at in np.ndindex(updates.shape):
        places.append((*at[:axis], int(indices[at[axis]]), *at[axis + 1 :]))
        new.append(updates[at])
    return put(data, places, new, mode)


def scattered_along(data, indices, updates, axis=0, mode="add"):
    """`scatter_along_axis` as plain loops."""
    axis %= data.ndim
    places, new = [], []
    for at in np.ndindex(updates.shape):
        places.append((*at[:axis], int(indices[at]), *at[axis + 1 :]))
        new.append(updates[at])
    return put(data, places, new, mode)


def scattered_points(data, indices, updates, mode="add"):
    """`scatter_nd` as plain loops."""
    places, new = [], []
    for at in np.ndindex(updates.shape):
        lead = at[: indices.ndim - 1]
        places.append((*map(int, indices[lead]), *at[indices.ndim - 1 :]))
        new.append(updates[at])
    return put(data, places, new, mode)


def scatters(family: Family) -> None:
    """`scatter`, `scatter_along_axis` and `scatter_nd` in all modes."""
    why = {"why": "values are written in order; where an index occurs twice the mode commutes"}
    for mode in MODES:
        once = mode == "update"
        row = np.array([2, 0] if once else [2, 0, 2], i32)
        points = np.array([[2, 0], [1, 1]] if once else [[2, 0], [1, 1], [2, 0]], i32)
        along = np.array([[2, 0, 1, 3]] if once else [[1, 1, 0, 1]], i32)
        for opset in (15, 17):
            family.one(
                f"scatter_{mode}_of_ios{opset}", "scatter",
                {"data": family.normal(3, 2), "indices": row,
                 "updates": family.uniform(0.5, 2, len(row), 2)},
                lambda data, indices, updates, m=mode: scattered(data, indices, updates, 0, m),
                opset, {"mode": mode}, **why,
            )
            family.one(
                f"scatter_nd_{mode}_of_ios{opset}", "scatter_nd",
                {"data": family.normal(3, 2), "indices": points,
                 "updates": family.uniform(0.5, 2, len(points))},
                lambda data, indices, updates, m=mode: scattered_points(data, indices, updates, m),
                opset, {"mode": mode}, **why,
            )
            family.one(
                f"scatter_along_axis_{mode}_of_ios{opset}", "scatter_along_axis",
                {"data": family.normal(1, 4), "indices": along,
                 "updates": family.uniform(0.5, 2, 1, 4)},
                lambda data, indices, updates, m=mode: scattered_along(data, indices, updates, 1, m),
                opset, {"mode": mode, "axis": 1}, fold=False, **why,
            )


def scatters_of_forms(family: Family) -> None:
    """The same of other types and ranks, in the mode that nothing tells."""
    forms = {
        "of_int32": (values(family, i32, 3, 2), values(family, i32, 2, 2), 15, 0),
        "in_fp16": (values(family, f16, 3, 2), values(family, f16, 2, 2), 16, 0),
        "in_fp16_of_ios17": (values(family, f16, 3, 2), values(family, f16, 2, 2), 17, 0),
        "of_rank_1": (family.normal(4), family.normal(2), 15, 0),
        "along_a_negative_axis": (family.normal(2, 2, 3), family.normal(2, 2, 2), 15, -1),
        "of_rank_5": (family.normal(1, 3, 1, 2, 1), family.normal(1, 2, 1, 2, 1), 15, 1),
    }
    for name, (data, updates, opset, axis) in forms.items():
        family.one(
            f"scatter_adds_unless_told_{name}", "scatter",
            {"data": data, "indices": np.array([2, 0], i32), "updates": updates},
            lambda data, indices, updates, a=axis: scattered(data, indices, updates, a), opset,
            {"axis": axis},
        )
        places = family.rng.permuted(
            np.broadcast_to(np.arange(data.shape[axis]).reshape(
                [-1 if at == axis % data.ndim else 1 for at in range(data.ndim)]), data.shape),
            axis=axis,
        )
        places = np.take(places, range(updates.shape[axis]), axis).astype(i32)
        family.one(
            f"scatter_along_axis_adds_unless_told_{name}", "scatter_along_axis",
            {"data": data, "indices": places, "updates": updates},
            lambda data, indices, updates, a=axis: scattered_along(data, indices, updates, a), opset,
            {"axis": axis}, fold=False,
        )


def scatters_of_points(family: Family) -> None:
    """`scatter_nd` of other types and ranks, and indices that are validated."""
    for name, shape, indices, opset, dtype in (
        ("of_rows", (3, 2), [[2], [0]], 15, f32),
        ("of_points_in_rank_3", (2, 2, 2), [[1, 0, 1], [0, 1, 1]], 15, f32),
        ("of_int32", (3, 2), [[2], [1]], 15, i32),
        ("in_fp16", (3, 2), [[0, 1], [2, 0]], 16, f16),
        ("of_a_matrix_of_points", (2, 3), [[[0, 1], [1, 2]], [[0, 0], [1, 1]]], 17, f32),
    ):
        indices = np.array(indices, i32)
        updates = (*indices.shape[:-1], *shape[indices.shape[-1] :])
        family.one(
            f"scatter_nd_adds_unless_told_{name}", "scatter_nd",
            {"data": values(family, dtype, *shape), "indices": indices,
             "updates": values(family, dtype, *updates)},
            lambda data, indices, updates: scattered_points(data, indices, updates), opset,
        )
    for operator, indices, updates, function in (
        ("scatter", [1], (1, 2), scattered), ("scatter_nd", [[1]], (1, 2), scattered_points),
        ("scatter_along_axis", [[1, 0]], (1, 2), scattered_along),
    ):
        family.one(
            f"{operator}_that_validates_indices", operator,
            {"data": family.normal(2, 2), "indices": np.array(indices, i32),
             "updates": family.normal(*updates)},
            lambda data, indices, updates, f=function: f(data, indices, updates), 17,
            {"validate_indices": True}, fold=False,
        )


def choices(family: Family) -> None:
    """`select`, `one_hot`, `non_zero`."""
    for dtype, opset in BEFORE:
        family.one(
            f"select_of_{words(dtype)}_of_ios{opset}", "select",
            {"cond": family.bits(2, 3), "a": values(family, dtype, 2, 3),
             "b": values(family, dtype, 2, 3)},
            lambda cond, a, b: np.where(cond, a, b), opset,
        )
    family.one(
        "select_that_repeats_the_condition", "select",
        {"cond": np.array([[True], [False]]), "a": family.normal(2, 3), "b": family.normal(2, 3)},
        lambda cond, a, b: np.where(cond, a, b),
    )
    family.one(
        "select_that_repeats_values", "select",
        {"cond": family.bits(2, 3), "a": family.normal(2, 3), "b": family.normal(1, 3)},
        lambda cond, a, b: np.where(cond, a, b),
    )
    first = np.array([[1.5, 2], [3, 4]], f32)
    family.one(
        "select_of_constants", "select", {"cond": family.bits(2, 2)},
        lambda cond: np.where(cond, first, -1.0), 15,
        {"a": first, "b": np.full((2, 2), -1, f32)},
    )
    for axis, rank in ((-1, 1), (0, 1), (1, 2), (-2, 2)):
        indices = family.ints(0, 4, *(3, 2)[:rank])
        family.one(
            f"one_hot_along_axis_{axis}_of_rank_{rank}".replace("-", "minus_"), "one_hot",
            {"indices": indices},
            lambda indices, a=axis: np.moveaxis(np.eye(4)[indices], -1, a), 15,
            {"one_hot_vector_size": 4, "axis": axis},
        )
    for on, off in ((f32(2.5), f32(-1)), (i32(7), i32(3)), (np.bool_(True), np.bool_(False)),
                    (f16(0.5), f16(0.25))):
        family.one(
            f"one_hot_with_values_of_{words(on.dtype)}", "one_hot",
            {"indices": np.array([2, 0, 1], i32)},
            lambda indices, on=on, off=off: np.where(np.eye(3, dtype=bool)[indices], on, off), 16,
            {"one_hot_vector_size": 3, "on_value": on, "off_value": off},
        )
    family.add(
        "one_hot_with_a_size_that_is_an_input", ["one_hot", "squeeze"],
        {"indices": np.array([2, 0], i32), "size": np.array([4], i32)},
        lambda indices, size: mb.one_hot(indices=indices, one_hot_vector_size=mb.squeeze(x=size)),
        lambda indices, size: np.eye(size[0])[indices],
    )
    sparse = np.array([[0, 1.5, 0], [-2, 0, 3]])
    for dtype, opset in BEFORE:
        family.one(
            f"non_zero_of_{words(dtype)}_of_ios{opset}", "non_zero", {"x": sparse.astype(dtype)},
            lambda x: np.argwhere(x), opset,
        )
    family.one(
        "non_zero_of_nothing", "non_zero", {"x": np.zeros((2, 2), f32)}, lambda x: np.argwhere(x),
        why="Core ML may refuse tensors without elements",
    )
    for shape in ((5,), (2, 1, 3), (1, 2, 1, 2, 2)):
        x = family.bits(*shape)
        x.flat[-1] = True
        family.one(f"non_zero_of_rank_{len(shape)}", "non_zero", {"x": x}, lambda x: np.argwhere(x))


def indexing() -> Family:
    """Operators that gather, scatter and choose."""
    family = Family("indexing")
    for part in (gathers, gathers_of_points, scatters, scatters_of_forms, scatters_of_points, choices):
        part(family)
    return family
