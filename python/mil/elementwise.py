"""Cases of operators on single elements: arithmetic, comparison, logic, functions, `cast`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from coremltools.converters.mil import Builder as mb

from .case import Family, f16, f32, i32, words

# operator -> oracle, bounds of values on which it is well conditioned.
UNARY: dict[str, tuple[Callable, float, float]] = {
    "abs": (np.abs, -4, 4),
    "acos": (np.arccos, -0.875, 0.875),
    "asin": (np.arcsin, -0.875, 0.875),
    "atan": (np.arctan, -4, 4),
    "atanh": (np.arctanh, -0.875, 0.875),
    "ceil": (np.ceil, -4, 4),
    "cos": (np.cos, -4, 4),
    "cosh": (np.cosh, -3, 3),
    "exp": (np.exp, -3, 3),
    "exp2": (np.exp2, -3, 3),
    "floor": (np.floor, -4, 4),
    "sign": (np.sign, -2, 2),
    "sin": (np.sin, -4, 4),
    "sinh": (np.sinh, -3, 3),
    "sqrt": (np.sqrt, 0.25, 9),
    "square": (np.square, -4, 4),
    "tan": (np.tan, -1.25, 1.25),
    "tanh": (np.tanh, -3, 3),
}


def erf(x: np.ndarray) -> np.ndarray:
    """The error function."""
    return torch.erf(torch.from_numpy(np.asarray(x, np.float64))).numpy()


def functions(family: Family) -> None:
    """Functions of one value."""
    for operator, (oracle, low, high) in (UNARY | {"erf": (erf, -3, 3)}).items():
        x = family.uniform(low, high, 2, 3)
        family.one(operator, operator, {"x": x}, lambda x, f=oracle: f(x))
        half = family.uniform(low, high, 1, 2, 1, 3, dtype=f16)
        family.one(f"{operator}_in_fp16", operator, {"x": half}, lambda x, f=oracle: f(x), 16)
    for operator in ("abs", "sign", "square"):
        x = np.array([-3, 0, 7, -12], i32)
        oracle = UNARY[operator][0]
        family.one(f"{operator}_of_int32", operator, {"x": x}, lambda x, f=oracle: f(x))
    small = np.array([[0, 1], [5, 10]], i32)
    family.one("exp2_of_int32", "exp2", {"x": small}, lambda x: 2**x)
    for rank in (1, 5):
        x = family.uniform(-2, 2, *([1, 2, 1, 2, 2][:rank] if rank > 1 else [4]))
        family.one(f"tanh_of_rank_{rank}", "tanh", {"x": x}, lambda x: np.tanh(x))
    ties = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.4375, -1.75], f32)
    family.one("round_takes_ties_to_even_numbers", "round", {"x": ties}, lambda x: np.round(x))
    family.one("round_in_fp16", "round", {"x": ties.astype(f16)}, lambda x: np.round(x), 17)
    x = family.uniform(-1, 1, 3, 2)
    family.one(
        "exp_over_an_unknown_axis", "exp", {"x": x}, lambda x: np.exp(x), flexible={"x": {0: "n"}}
    )
    signs = np.array([-2.5, -0.0, 0.0, 3.0], f32)
    family.one("sign_of_zeros_is_zero", "sign", {"x": signs}, lambda x: np.sign(x))


def with_epsilon(family: Family) -> None:
    """Functions to whose argument a small number is added."""
    oracles = {
        "inverse": (lambda x, e: 1 / (x + e), 1e-4, 0.25),
        "log": (lambda x, e: np.log(x + e), 1e-45, 0.5),
        "rsqrt": (lambda x, e: 1 / np.sqrt(x + e), 1e-12, 0.125),
    }
    for operator, (oracle, usual, other) in oracles.items():
        x = family.uniform(0.25, 4, 2, 3)
        for opset in (15, 17):
            family.one(
                f"{operator}_with_the_usual_epsilon_of_ios{opset}", operator, {"x": x},
                lambda x, f=oracle, e=usual: f(x, e), opset,
            )
            family.one(
                f"{operator}_with_epsilon_of_ios{opset}", operator, {"x": x},
                lambda x, f=oracle, e=other: f(x, e), opset, {"epsilon": f32(other)},
            )
        half = x.astype(f16)
        family.one(
            f"{operator}_in_fp16_with_epsilon", operator, {"x": half},
            lambda x, f=oracle, e=other: f(x, e), 16, {"epsilon": f16(other)},
        )
        family.one(
            f"{operator}_in_fp16_with_epsilon_in_fp32", operator, {"x": half},
            lambda x, f=oracle, e=other: f(x, e), 17, {"epsilon": f32(other)},
        )
    x = np.array([0.0, 1.0, 2.0], f32)
    family.one(
        "log_of_zero_is_that_of_epsilon", "log", {"x": x},
        lambda x: np.log(x + 0.0009765625), 15, {"epsilon": f32(0.0009765625)},
    )


def limits(family: Family) -> None:
    """`clip` and `threshold`."""
    for opset, dtype in ((15, f32), (16, f16), (17, f32), (17, f16)):
        family.one(
            f"clip_of_{words(dtype)}_of_ios{opset}", "clip",
            {"x": family.uniform(-4, 4, 3, 4, dtype=dtype)},
            lambda x: np.clip(x, -1.5, 2), opset, {"alpha": dtype(-1.5), "beta": dtype(2)},
        )
    for dtype in (f32, f16, i32):
        family.one(
            f"threshold_of_{words(dtype)}", "threshold",
            {"x": family.uniform(-4, 4, 2, 5, dtype=dtype)},
            lambda x: np.maximum(x, -1), 16, {"alpha": dtype(-1)},
        )


BINARY: dict[str, Callable] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply,
    "maximum": np.maximum, "minimum": np.minimum,
}
COMPARISON: dict[str, Callable] = {
    "equal": np.equal, "not_equal": np.not_equal, "greater": np.greater,
    "greater_equal": np.greater_equal, "less": np.less, "less_equal": np.less_equal,
}


def arithmetic(family: Family) -> None:
    """Arithmetic of two tensors."""
    for operator, oracle in BINARY.items():
        f = lambda x, y, f=oracle: f(x, y)  # noqa: E731
        x, y = family.normal(2, 3), family.normal(2, 3)
        family.one(operator, operator, {"x": x, "y": y}, f)
        family.one(
            f"{operator}_in_fp16_repeats_a_row", operator,
            {"x": x.astype(f16), "y": family.normal(3, dtype=f16)}, f, 16,
        )
        family.one(
            f"{operator}_of_int32_repeats_both", operator,
            {"x": family.ints(-9, 9, 2, 1, 3), "y": family.ints(-9, 9, 4, 1)}, f,
        )
        family.one(
            f"{operator}_with_a_constant", operator, {"x": family.normal(1, 2, 2, 1, 2)},
            lambda x, f=oracle: f(x, 0.75), params={"y": f32(0.75)},
        )
    for ranks, shapes in {
        "5_and_1": ((1, 2, 1, 2, 3), (3,)), "2_and_4": ((3, 1), (2, 1, 1, 2)),
        "3_and_3_of_one_element": ((2, 2, 2), (1, 1, 1)),
    }.items():
        family.one(
            f"sub_of_ranks_{ranks}", "sub",
            {"x": family.normal(*shapes[0]), "y": family.normal(*shapes[1])}, lambda x, y: x - y,
        )
    family.add(
        "sub_from_a_constant", "sub", {"y": family.normal(2, 3)},
        lambda y: mb.sub(x=np.array([1, 2, 3], f32), y=y), lambda y: np.array([1, 2, 3]) - y,
    )
    family.add(
        "mul_of_a_value_with_itself", "mul", {"x": family.normal(2, 3)},
        lambda x: mb.mul(x=x, y=x), lambda x: x * x,
    )
    x, y = family.normal(3, 2), family.normal(1, 2)
    family.one(
        "add_over_unknown_axes", "add", {"x": x, "y": y}, lambda x, y: x + y,
        flexible={"x": {0: "n"}},
    )
    family.one(
        "mul_over_axes_of_one_unknown_length", "mul", {"x": x, "y": family.normal(3, 1)},
        lambda x, y: x * y, flexible={"x": {0: "n"}, "y": {0: "n"}},
    )
    family.add(
        "add_of_a_value_without_axes", ["add", "squeeze"], {"x": x, "y": family.normal(1)},
        lambda x, y: mb.add(x=x, y=mb.squeeze(x=y)), lambda x, y: x + y[0],
    )


def division(family: Family) -> None:
    """Division, remainder and power, with signs in all combinations."""
    x = np.array([[7.5, -7.5, 7.5], [-7.5, 1.25, -0.5]], f32)
    y = np.array([[2, 2, -2], [-2, 0.5, 3]], f32)
    whole_x, whole_y = np.array([7, -7, 7, -7, 6], i32), np.array([2, 2, -2, -2, 3], i32)
    for operator, oracle in {"floor_div": np.floor_divide, "mod": np.mod}.items():
        f = lambda x, y, f=oracle: f(x, y)  # noqa: E731
        family.one(f"{operator}_with_all_signs", operator, {"x": x, "y": y}, f)
        family.one(f"{operator}_in_fp16", operator, {"x": x.astype(f16), "y": y.astype(f16)}, f, 16)
        family.one(f"{operator}_of_int32_with_all_signs", operator, {"x": whole_x, "y": whole_y}, f)
        family.one(
            f"{operator}_repeats_a_column", operator, {"x": x, "y": np.array([[2], [-3]], f32)}, f
        )
    divide = lambda x, y: x / y  # noqa: E731
    family.one("real_div", "real_div", {"x": x, "y": y}, divide)
    family.one("real_div_in_fp16", "real_div", {"x": x.astype(f16), "y": y.astype(f16)}, divide, 16)
    family.one("real_div_repeats_a_row", "real_div", {"x": x, "y": y[:1]}, divide)
    family.one(
        "real_div_of_int32_without_remainders", "real_div",
        {"x": np.array([8, -9, 12], i32), "y": np.array([2, 3, -4], i32)}, divide,
        why="what a remainder becomes is not documented, so there is none",
    )
    base, power = family.uniform(0.25, 3, 2, 3), family.uniform(-2, 3, 2, 3)
    raised = lambda x, y: np.power(x, y)  # noqa: E731
    family.one("pow", "pow", {"x": base, "y": power}, raised)
    family.one("pow_in_fp16", "pow", {"x": base.astype(f16), "y": power.astype(f16)}, raised, 16)
    family.one(
        "pow_of_int32", "pow",
        {"x": np.array([2, -3, 5, 7], i32), "y": np.array([10, 3, 0, 1], i32)}, raised,
    )
    family.one(
        "pow_of_negative_values_with_a_whole_exponent", "pow", {"x": x},
        lambda x: x**3, params={"y": f32(3)},
    )
    family.one("pow_with_one_half", "pow", {"x": base}, lambda x: np.sqrt(x), params={"y": f32(0.5)})


def comparison(family: Family) -> None:
    """Comparison and logic, whose results are truth values."""
    x, y = np.array([[1, 2, 3], [4, 5, -6]], f32), np.array([[1, 3, 2], [4, 5, 6]], f32)
    for operator, oracle in COMPARISON.items():
        f = lambda x, y, f=oracle: f(x, y)  # noqa: E731
        family.one(operator, operator, {"x": x, "y": y}, f)
        family.one(f"{operator}_in_fp16", operator, {"x": x.astype(f16), "y": y.astype(f16)}, f, 16)
        family.one(
            f"{operator}_of_int32_repeats_both", operator,
            {"x": x[:, :1].astype(i32), "y": y[0].astype(i32)}, f,
        )
    for operator, oracle in {
        "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor
    }.items():
        f = lambda x, y, f=oracle: f(x, y)  # noqa: E731
        a, b = np.array([[False, True], [False, True]]), np.array([[False, False], [True, True]])
        family.one(operator, operator, {"x": a, "y": b}, f)
        family.one(
            f"{operator}_repeats_a_row", operator, {"x": family.bits(2, 1, 3), "y": b[:, :1]}, f
        )
    family.one("logical_not", "logical_not", {"x": family.bits(2, 3)}, lambda x: ~x)


def casts(family: Family) -> None:
    """`cast` between all types of an opset. Floats become integers towards zero."""
    values = np.array([-3.75, -1.0, -0.5, 0.0, 0.5, 2.5, 100.25], f32)
    kinds = {15: ["fp16", "fp32", "int32", "bool"]}
    kinds[17] = [*kinds[15], "int8", "int16", "uint8", "uint16"]
    for opset, names in kinds.items():
        for source in names:
            signed = source not in ("uint8", "uint16")
            given = (values if signed else np.abs(values)).astype(numpy_of(source))
            for target in names:
                if source == target or (opset == 17 and source in kinds[15] and target in kinds[15]):
                    continue
                x = np.abs(given) if target.startswith("u") and given.dtype.kind != "b" else given
                family.one(
                    f"cast_{source}_to_{target}_of_ios{opset}", "cast", {"x": x},
                    lambda x, t=target: x.astype(numpy_of(t)), opset, {"dtype": target},
                )


def numpy_of(name: str) -> type:
    """The NumPy type of a type's name in MIL."""
    return {"fp16": f16, "fp32": f32, "bool": np.bool_}.get(name) or getattr(np, name)


def elementwise() -> Family:
    """Operators on single elements."""
    family = Family("elementwise")
    for part in (functions, with_epsilon, limits, arithmetic, division, comparison, casts):
        part(family)
    return family
