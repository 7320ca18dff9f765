"""Cases of normalisation."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from .case import Family, f16, f32, words
from .conv import tensor

# Types of values and of parameters, with the opset that allows them.
TYPES = ((15, f32, f32), (16, f16, f16), (17, f32, f32), (17, f16, f32))


def per_channel(family: Family) -> None:
    """`batch_norm` and `instance_norm`."""
    shapes = ((2, 3, 4), (2, 3, 2, 2), (1, 3, 2, 1, 2))
    for shape in shapes:
        mean, variance = family.normal(3), family.uniform(0.5, 2, 3)
        params = {"mean": mean, "variance": variance}
        family.one(
            f"batch_norm_of_rank_{len(shape)}", "batch_norm", {"x": family.normal(*shape)},
            lambda x, p=params: batch_norm(x, **p), 15, params, oracle="torch",
        )
    for opset, dtype, of in TYPES:
        scale, shift = family.normal(2, dtype=of), family.normal(2, dtype=of)
        params = {"mean": family.normal(2, dtype=of),
                  "variance": family.uniform(0.5, 2, 2, dtype=of),
                  "gamma": scale, "beta": shift, "epsilon": of(0.0625)}
        types = f"of_{words(dtype)}_with_parameters_in_{words(of)}_of_ios{opset}"
        family.one(
            f"batch_norm_{types}", "batch_norm", {"x": family.normal(1, 2, 2, 3, dtype=dtype)},
            lambda x, p=params: batch_norm(x, **p), opset, params, oracle="torch",
        )
        params = {"gamma": scale, "beta": shift, "epsilon": of(0.0625)}
        family.one(
            f"instance_norm_{types}", "instance_norm", {"x": family.normal(2, 2, 3, 2, dtype=dtype)},
            lambda x, p=params: instance_norm(x, **p), opset, params, oracle="torch",
        )
    for shape in shapes[:2]:
        family.one(
            f"instance_norm_of_rank_{len(shape)}", "instance_norm", {"x": family.normal(*shape)},
            lambda x: instance_norm(x), oracle="torch",
        )


def batch_norm(x, mean, variance, gamma=None, beta=None, epsilon=1e-5):
    """torch's, with given means and variances."""
    optional = [None if value is None else tensor(value) for value in (gamma, beta)]
    return functional.batch_norm(
        tensor(x), tensor(mean), tensor(variance), *optional, eps=float(epsilon)
    ).numpy()


def instance_norm(x, gamma=None, beta=None, epsilon=1e-5):
    """torch's, with means and variances of each channel."""
    optional = [None if value is None else tensor(value) for value in (gamma, beta)]
    return functional.instance_norm(
        tensor(x), weight=optional[0], bias=optional[1], eps=float(epsilon)
    ).numpy()


def layer_norm(x, axes=None, gamma=None, beta=None, epsilon=1e-5):
    """Over any axes."""
    axes = tuple(axis % x.ndim for axis in (range(x.ndim) if axes is None else axes))
    shape = [n if axis in axes else 1 for axis, n in enumerate(x.shape)]
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    result = (x - mean) / np.sqrt(variance + float(epsilon))
    if gamma is not None:
        result = result * gamma.astype(float).reshape(shape)
    return result if beta is None else result + beta.astype(float).reshape(shape)


def layers(family: Family) -> None:
    """`layer_norm` over different axes."""
    forms: dict[str, tuple[tuple[int, ...], list[int]]] = {
        "the_last_axis": ((2, 3, 4), [-1]),
        "two_last_axes": ((2, 3, 4), [1, 2]),
        "an_axis_in_the_middle": ((2, 3, 4), [1]),
        "the_first_of_rank_4": ((2, 2, 3, 1), [0]),
        "axes_of_rank_5": ((1, 2, 2, 2, 3), [-2, -1]),
        "the_only_axis": ((6,), [0]),
    }
    for index, (name, (shape, axes)) in enumerate(forms.items()):
        params: dict = {"axes": axes}
        if index % 2 == 0:
            inner = [shape[axis] for axis in sorted(axis % len(shape) for axis in axes)]
            params |= {"gamma": family.normal(*inner), "beta": family.normal(*inner),
                       "epsilon": f32(0.03125)}
        family.one(
            f"layer_norm_over_{name}", "layer_norm", {"x": family.normal(*shape)},
            lambda x, p=params: layer_norm(x, **p), 15, params,
        )
    for opset, dtype, of in TYPES:
        params = {"axes": [-1], "gamma": family.normal(4, dtype=of),
                  "beta": family.normal(4, dtype=of), "epsilon": of(0.015625)}
        family.one(
            f"layer_norm_of_{words(dtype)}_with_parameters_in_{words(of)}_of_ios{opset}",
            "layer_norm", {"x": family.normal(2, 4, dtype=dtype)},
            lambda x, p=params: layer_norm(x, **p), opset, params,
        )
    params = {"axes": [2], "gamma": family.normal(3), "beta": family.normal(3)}
    family.one(
        "layer_norm_beside_an_unknown_axis", "layer_norm", {"x": family.normal(1, 4, 3)},
        lambda x, p=params: layer_norm(x, **p), 15, params, flexible={"x": {1: "n"}},
    )
    large = family.normal(2, 4) + f32(1000)
    family.one(
        "layer_norm_of_values_far_from_zero", "layer_norm", {"x": large},
        lambda x: layer_norm(x, [-1]), 15, {"axes": [-1]}, tolerance=(2e-3, 1e-3),
        why="a mean of about 1000 leaves 6e-5 of a value's digits in FP32",
    )


def by_length(family: Family) -> None:
    """`l2_norm`, over the last three axes together."""

    def oracle(x, epsilon=1e-6):
        return x / np.sqrt((x**2).sum((-3, -2, -1), keepdims=True) + float(epsilon))

    for shape in ((2, 2, 3), (2, 1, 2, 3), (1, 2, 2, 1, 2)):
        family.one(
            f"l2_norm_of_rank_{len(shape)}", "l2_norm", {"x": family.normal(*shape)},
            lambda x: oracle(x),
        )
    for opset, dtype, of in TYPES:
        family.one(
            f"l2_norm_of_{words(dtype)}_with_epsilon_in_{words(of)}_of_ios{opset}", "l2_norm",
            {"x": family.normal(2, 2, 2, 2, dtype=dtype)},
            lambda x: oracle(x, 0.25), opset, {"epsilon": of(0.25)},
        )


def by_neighbours(family: Family) -> None:
    """`local_response_norm`, over neighbouring channels."""

    def oracle(x, size, alpha=1e-4, beta=0.75, k=1.0):
        given = torch.from_numpy(x)
        return functional.local_response_norm(given, size, float(alpha), float(beta), float(k)).numpy()

    for shape in ((1, 5, 3), (2, 4, 2, 2)):
        family.one(
            f"local_response_norm_of_rank_{len(shape)}", "local_response_norm",
            {"x": family.normal(*shape, scale=4)}, lambda x: oracle(x, 3), 15, {"size": 3},
            oracle="torch",
        )
    for opset, dtype, of in TYPES:
        params = {"alpha": of(0.5), "beta": of(0.5), "k": of(2)}
        family.one(
            f"local_response_norm_of_{words(dtype)}_with_parameters_in_{words(of)}_of_ios{opset}",
            "local_response_norm", {"x": family.normal(1, 6, 2, 2, dtype=dtype)},
            lambda x, p=params: oracle(x, 5, **p), opset, {"size": 5} | params, oracle="torch",
        )


def normalization() -> Family:
    """Normalisation."""
    family = Family("normalization")
    for part in (per_channel, layers, by_length, by_neighbours):
        part(family)
    return family
