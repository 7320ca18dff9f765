"""Cases of reductions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .case import Family, f16, f32, i32, words


def log_sum_exp(x: np.ndarray, axis, keepdims: bool) -> np.ndarray:
    """log of the sum of exponentials, without overflow."""
    largest = x.max(axis, keepdims=True)
    result = np.log(np.exp(x - largest).sum(axis, keepdims=True)) + largest
    return result if keepdims else np.squeeze(result, axis)


# operator -> oracle of (x, axis, keepdims), whether values must be positive, whether whole numbers
# give a whole number.
REDUCTIONS: dict[str, tuple[Callable, bool, bool]] = {
    "reduce_l1_norm": (lambda x, axis, keepdims: np.abs(x).sum(axis, keepdims=keepdims), False, True),
    "reduce_l2_norm":
        (lambda x, axis, keepdims: np.sqrt((x * x).sum(axis, keepdims=keepdims)), False, False),
    "reduce_log_sum":
        (lambda x, axis, keepdims: np.log(x.sum(axis, keepdims=keepdims)), True, False),
    "reduce_log_sum_exp": (log_sum_exp, False, False),
    "reduce_max": (lambda x, axis, keepdims: x.max(axis, keepdims=keepdims), False, True),
    "reduce_mean": (lambda x, axis, keepdims: x.mean(axis, keepdims=keepdims), False, False),
    "reduce_min": (lambda x, axis, keepdims: x.min(axis, keepdims=keepdims), False, True),
    "reduce_prod": (lambda x, axis, keepdims: x.prod(axis, keepdims=keepdims), False, True),
    "reduce_sum": (lambda x, axis, keepdims: x.sum(axis, keepdims=keepdims), False, True),
    "reduce_sum_square":
        (lambda x, axis, keepdims: (x * x).sum(axis, keepdims=keepdims), False, True),
}

FORMS: dict[str, tuple[tuple[int, ...], dict]] = {
    "along_the_last_axis": ((2, 3), {"axes": [-1]}),
    "along_two_axes_that_stay": ((2, 3, 2), {"axes": [0, 2], "keep_dims": True}),
    "along_axes_of_rank_5": ((1, 2, 2, 1, 3), {"axes": [1, -1]}),
    "of_everything": ((2, 2), {}),
    "of_everything_with_axes_that_stay": ((2, 2), {"keep_dims": True}),
}


def numbers(family: Family) -> None:
    """Reductions to numbers."""
    for operator, (oracle, positive, whole) in REDUCTIONS.items():

        def values(*shape: int, dtype=f32, positive=positive) -> np.ndarray:
            return family.uniform(0.25 if positive else -2, 2, *shape, dtype=dtype)

        def expect(params: dict, f: Callable = oracle) -> Callable:
            axes, kept = params.get("axes"), params.get("keep_dims", False)
            return lambda x: f(x, None if axes is None else tuple(axes), kept)

        for name, (shape, params) in FORMS.items():
            family.one(
                f"{operator}_{name}", operator, {"x": values(*shape)}, expect(params), 15, params
            )
        params = {"axes": [0]}
        family.one(
            f"{operator}_in_fp16", operator, {"x": values(3, 2, dtype=f16)}, expect(params), 16, params
        )
        if whole:
            family.one(
                f"{operator}_of_int32", operator, {"x": family.ints(-4, 5, 2, 3)},
                expect({"axes": [1]}), 15, {"axes": [1]},
            )
    family.one(
        "reduce_mean_of_int32_without_remainder", "reduce_mean",
        {"x": np.array([[1, 2, 3], [-4, 0, 10]], i32)}, lambda x: x.mean(1), 15, {"axes": [1]},
        why="what a remainder becomes is not documented, so there is none",
    )
    family.one(
        "reduce_l2_norm_of_int32_that_is_whole", "reduce_l2_norm",
        {"x": np.array([[3, 4], [0, -5]], i32)}, lambda x: np.sqrt((x * x).sum(1)), 15,
        {"axes": [1]}, why="how a root is rounded is not documented, so it is whole",
    )
    family.one(
        "reduce_sum_along_an_unknown_axis", "reduce_sum", {"x": family.normal(3, 4)},
        lambda x: x.sum(0), 15, {"axes": [0]}, flexible={"x": {0: "n"}},
    )
    family.one(
        "reduce_log_sum_exp_of_large_values", "reduce_log_sum_exp",
        {"x": np.array([[1000, 1001], [-1000, -1003]], f32)},
        lambda x: log_sum_exp(x, 1, False), 15, {"axes": [1]},
    )


def places(family: Family) -> None:
    """`reduce_argmax` and `reduce_argmin`, of values without ties."""
    for operator, oracle in {"reduce_argmax": np.argmax, "reduce_argmin": np.argmin}.items():
        f = lambda x, axis=-1, kept=False, f=oracle: f(x, axis=axis, keepdims=kept)  # noqa: E731
        for dtype, opset in ((f32, 15), (f16, 16), (i32, 15)):
            x = (family.distinct(3, 4) * 4).astype(dtype)
            family.one(
                f"{operator}_of_{words(dtype)}_along_the_last_axis_unless_told", operator,
                {"x": x}, lambda x, f=f: f(x), opset,
            )
        family.one(
            f"{operator}_along_the_first_axis", operator, {"x": family.distinct(3, 2, 2)},
            lambda x, f=f: f(x, 0), 15, {"axis": 0},
        )
        family.one(
            f"{operator}_along_an_axis_that_stays", operator, {"x": family.distinct(2, 3, 1, 2)},
            lambda x, f=f: f(x, -3, True), 15, {"axis": -3, "keep_dims": True},
        )
        family.one(f"{operator}_of_a_vector", operator, {"x": family.distinct(5)},
                   lambda x, f=f: f(x, 0, True), 15, {"axis": 0, "keep_dims": True})
        for kind in ("int32", "uint16"):
            family.one(
                f"{operator}_as_{kind}_of_ios17", operator, {"x": family.distinct(2, 5)},
                lambda x, f=f: f(x, 1), 17, {"axis": 1, "output_dtype": kind},
            )


def reduction() -> Family:
    """Reductions."""
    family = Family("reduction")
    for part in (numbers, places):
        part(family)
    return family
