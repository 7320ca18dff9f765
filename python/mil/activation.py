"""Cases of activations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from .case import Family, f16, f32, words


def sigmoid(x: np.ndarray) -> np.ndarray:
    """The logistic function."""
    return 1 / (1 + np.exp(-x))


def softplus(x: np.ndarray) -> np.ndarray:
    """log(1 + e^x)."""
    return np.logaddexp(x, 0)


def gelu(x: np.ndarray, approximate: str = "none") -> np.ndarray:
    """torch's GELU."""
    return torch.nn.functional.gelu(torch.from_numpy(x), approximate=approximate).numpy()


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    """torch's softmax."""
    return torch.softmax(torch.from_numpy(x), axis).numpy()


PLAIN: dict[str, Callable] = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x),
    "softplus": softplus,
    "softsign": lambda x: x / (1 + np.abs(x)),
}

# operator -> oracle of value and parameters, the parameters.
WITH_PARAMETERS: dict[str, tuple[Callable, dict[str, float]]] = {
    "clamped_relu": (lambda x, alpha, beta: np.minimum(np.where(x >= 0, x, alpha * x), beta),
                     {"alpha": 0.25, "beta": 1.5}),
    "elu": (lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x)), {"alpha": 1.25}),
    "leaky_relu": (lambda x, alpha: np.where(x >= 0, x, alpha * x), {"alpha": 0.125}),
    "linear_activation": (lambda x, alpha, beta: alpha * x + beta, {"alpha": -2.5, "beta": 0.75}),
    "scaled_tanh": (lambda x, alpha, beta: alpha * np.tanh(beta * x), {"alpha": 1.75, "beta": 0.5}),
    "sigmoid_hard": (lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
                     {"alpha": 0.25, "beta": 0.375}),
    "thresholded_relu": (lambda x, alpha: np.where(x >= alpha, x, 0), {"alpha": 0.75}),
}


def plain(family: Family) -> None:
    """Activations without parameters."""
    for operator, oracle in PLAIN.items():
        f = lambda x, f=oracle: f(x)  # noqa: E731
        family.one(operator, operator, {"x": family.normal(2, 3, scale=3)}, f)
        family.one(f"{operator}_in_fp16", operator, {"x": family.normal(5, dtype=f16)}, f, 16)
    wide = family.normal(1, 2, 1, 2, 2, scale=8)
    family.one("softplus_of_large_values_of_rank_5", "softplus", {"x": wide}, softplus_of)
    family.one(
        "relu_over_an_unknown_axis", "relu", {"x": family.normal(2, 4)},
        lambda x: np.maximum(x, 0), 17, flexible={"x": {1: "n"}},
    )


def softplus_of(x: np.ndarray) -> np.ndarray:
    """`softplus`, with its argument's name."""
    return softplus(x)


def with_parameters(family: Family) -> None:
    """Activations with numbers as parameters, whose type may differ from the value's since iOS17."""
    for operator, (oracle, numbers) in WITH_PARAMETERS.items():
        f = lambda x, f=oracle, n=numbers: f(x, **n)  # noqa: E731
        for opset, dtype, of in ((15, f32, f32), (16, f16, f16), (17, f32, f32), (17, f16, f32)):
            params = {name: of(value) for name, value in numbers.items()}
            family.one(
                f"{operator}_of_{words(dtype)}_with_parameters_in_{words(of)}_of_ios{opset}",
                operator, {"x": family.normal(3, 4, dtype=dtype, scale=2)}, f, opset, params,
            )


def per_channel(family: Family) -> None:
    """Activations with a parameter for each channel."""
    for opset, dtype, of in ((15, f32, f32), (16, f16, f16), (17, f16, f32)):
        slopes = np.array([0.25, -0.5, 1.5], of)
        family.one(
            f"prelu_of_{words(dtype)}_with_parameters_in_{words(of)}_of_ios{opset}", "prelu",
            {"x": family.normal(2, 3, 2, 2, dtype=dtype)},
            lambda x, a=slopes: np.where(x > 0, x, a.astype(float)[:, None, None] * x),
            opset, {"alpha": slopes},
        )
        scale, inner = np.array([0.5, 1.25, 2], of), np.array([1, 0.5, -1.5], of)
        family.one(
            f"softplus_parametric_of_{words(dtype)}_with_parameters_in_{words(of)}_of_ios{opset}",
            "softplus_parametric", {"x": family.normal(1, 3, 2, 2, dtype=dtype)},
            lambda x, a=scale, b=inner: a.astype(float)[:, None, None]
            * softplus(b.astype(float)[:, None, None] * x),
            opset, {"alpha": scale, "beta": inner},
        )
    for shape in ((2, 2, 3), (1, 2, 2, 1, 2)):
        family.one(
            f"prelu_of_rank_{len(shape)}_with_equal_slopes", "prelu", {"x": family.normal(*shape)},
            lambda x: np.where(x > 0, x, 0.25 * x), params={"alpha": np.full(2, 0.25, f32)},
        )


def gelus(family: Family) -> None:
    """`gelu` in its three modes."""
    oracles: dict[str, Callable] = {
        "EXACT": gelu,
        "TANH_APPROXIMATION": lambda x: gelu(x, "tanh"),
        "SIGMOID_APPROXIMATION": lambda x: x * sigmoid(1.702 * x),
    }
    for mode, oracle in oracles.items():
        for dtype in (f32, f16):
            family.one(
                f"gelu_{mode.lower()}_in_{words(dtype)}", "gelu",
                {"x": family.normal(2, 4, dtype=dtype, scale=2)},
                lambda x, f=oracle: f(x), 16, {"mode": mode}, oracle="torch",
            )
    family.one(
        "gelu_is_exact_unless_told", "gelu", {"x": family.normal(4, scale=2)},
        lambda x: gelu(x), oracle="torch",
    )


def softmaxes(family: Family) -> None:
    """`softmax` along different axes."""
    shapes = {1: (5,), 2: (2, 3), 3: (2, 1, 4), 4: (1, 3, 2, 2), 5: (1, 2, 2, 1, 3)}
    for rank, shape in shapes.items():
        family.one(
            f"softmax_of_rank_{rank}_along_the_last_axis", "softmax",
            {"x": family.normal(*shape)}, lambda x: softmax(x, -1), oracle="torch",
        )
    for axis in (0, 1, -3):
        family.one(
            f"softmax_along_axis_{axis}".replace("-", "minus_"), "softmax",
            {"x": family.normal(2, 3, 2, dtype=f16)}, lambda x, a=axis: softmax(x, a),
            16, {"axis": axis}, oracle="torch",
        )
    family.one(
        "softmax_of_large_values_does_not_overflow", "softmax",
        {"x": np.array([[1000, 1001, 999], [-1000, -1002, -1000]], f32)},
        lambda x: softmax(x, -1), oracle="torch",
    )
    family.one(
        "softmax_along_an_unknown_axis", "softmax", {"x": family.normal(3, 4)},
        lambda x: softmax(x, -1), flexible={"x": {1: "n"}}, oracle="torch",
    )


def activation() -> Family:
    """Activations."""
    family = Family("activation")
    for part in (plain, with_parameters, per_channel, gelus, softmaxes):
        part(family)
    return family
