"""Cases of pooling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn import functional

from .case import Family, f16
from .conv import padded, padding, tensor

SUM = "the root of the sum of squares, not of their mean, as in the tests of coremltools"


def extended(x: np.ndarray, kernel: Sequence[int], strides: Sequence[int], pad: list[int],
             ceil_mode: bool) -> tuple[list[int], list[int]]:
    """Result's lengths, and how far windows reach beyond the padding at each end."""
    lengths, beyond = [], []
    for axis, (k, stride) in enumerate(zip(kernel, strides)):
        room = x.shape[2 + axis] + pad[2 * axis] + pad[2 * axis + 1] - k
        count = (-(-room // stride) if ceil_mode else room // stride) + 1
        if ceil_mode and (count - 1) * stride >= x.shape[2 + axis] + pad[2 * axis]:
            count -= 1
        lengths.append(count)
        beyond.append(max(0, (count - 1) * stride - room))
    return lengths, beyond


def pooled(
    kind: str, x: np.ndarray, *, kernel_sizes: Sequence[int], pad_type: str,
    strides: Sequence[int] | None = None, pad: Sequence[int] | None = None,
    ceil_mode: bool = False, exclude_padding_from_average: bool = False,
) -> np.ndarray:
    """Pooling as sums over windows: of values and, for means, of the places that count."""
    n = x.ndim - 2
    strides = strides or [1] * n
    around = padding(pad_type, x.shape[2:], kernel_sizes, strides, [1] * n, pad)
    lengths, beyond = extended(x, kernel_sizes, strides, around, ceil_mode)
    further = [count for extra in beyond for count in (0, extra)]
    fill = -np.inf if kind == "max" else 0.0
    values = padded(padded(tensor(x), around, fill), further, fill)
    inside = 0.0 if exclude_padding_from_average else 1.0
    counted = padded(padded(torch.ones_like(tensor(x)), around, inside), further, 0.0)
    windows, places = values, counted
    for axis in range(n):
        windows = windows.unfold(2 + axis, kernel_sizes[axis], strides[axis])
        places = places.unfold(2 + axis, kernel_sizes[axis], strides[axis])
    over = list(range(-n, 0))
    if kind == "max":
        result = windows.amax(over)
    elif kind == "l2":
        result = (windows**2).sum(over).sqrt()
    else:
        result = windows.sum(over) / places.sum(over)
    assert list(result.shape[2:]) == lengths
    return result.numpy()


def check_against_torch() -> None:
    """The windows above give what torch's pooling gives, where torch has the form."""
    x = np.random.default_rng(1).normal(size=(1, 2, 5, 6))
    for ceil in (False, True):
        params = {"kernel_sizes": [3, 2], "strides": [2, 2], "pad_type": "custom",
                  "pad": [1, 1, 1, 1], "ceil_mode": ceil}
        theirs = functional.max_pool2d(tensor(x), (3, 2), (2, 2), (1, 1), ceil_mode=ceil)
        assert np.allclose(pooled("max", x, **params), theirs.numpy())
        for counted in (False, True):
            theirs = functional.avg_pool2d(
                tensor(x), (3, 2), (2, 2), (1, 1), ceil, count_include_pad=counted
            )
            ours = pooled("avg", x, **params, exclude_padding_from_average=not counted)
            assert np.allclose(ours, theirs.numpy()), (ceil, counted)


FORMS: dict[str, tuple[tuple[int, ...], dict]] = {
    "1d": ((1, 2, 6), {"kernel_sizes": [3], "pad_type": "valid"}),
    "2d": ((2, 2, 4, 5), {"kernel_sizes": [2, 3], "pad_type": "valid"}),
    "3d": ((1, 2, 3, 4, 3), {"kernel_sizes": [2, 2, 2], "pad_type": "valid"}),
    "1d_with_stride": ((1, 1, 7), {"kernel_sizes": [2], "strides": [2], "pad_type": "valid"}),
    "2d_with_strides":
        ((1, 2, 5, 6), {"kernel_sizes": [2, 3], "strides": [2, 3], "pad_type": "valid"}),
    "2d_with_padding":
        ((1, 1, 4, 4),
         {"kernel_sizes": [3, 3], "strides": [2, 2], "pad_type": "custom", "pad": [1, 1, 1, 1]}),
    "2d_with_padding_on_one_side":
        ((1, 1, 4, 4), {"kernel_sizes": [3, 2], "pad_type": "custom", "pad": [2, 0, 0, 1]}),
    "3d_with_padding_and_strides":
        ((1, 1, 3, 4, 3),
         {"kernel_sizes": [2, 2, 2], "strides": [2, 1, 2], "pad_type": "custom",
          "pad": [1, 0, 1, 1, 0, 1]}),
    "2d_with_same_padding": ((1, 1, 4, 5), {"kernel_sizes": [2, 3], "pad_type": "same"}),
    "2d_with_same_padding_and_strides":
        ((1, 1, 5, 6), {"kernel_sizes": [3, 3], "strides": [2, 2], "pad_type": "same"}),
    "2d_that_rounds_up":
        ((1, 1, 5, 6),
         {"kernel_sizes": [2, 3], "strides": [2, 2], "pad_type": "valid", "ceil_mode": True}),
    "2d_that_rounds_up_with_padding":
        ((1, 1, 6, 5),
         {"kernel_sizes": [3, 2], "strides": [2, 2], "pad_type": "custom", "pad": [1, 1, 1, 1],
          "ceil_mode": True}),
    "1d_that_rounds_up":
        ((1, 2, 6), {"kernel_sizes": [3], "strides": [2], "pad_type": "valid", "ceil_mode": True}),
    "2d_of_everything": ((1, 3, 3, 4), {"kernel_sizes": [3, 4], "pad_type": "valid"}),
}


def forms(family: Family, kind: str) -> None:
    """All forms of one kind of pooling."""
    operator = f"{kind}_pool"
    about = {"why": SUM} if kind == "l2" else {}
    for name, (shape, params) in FORMS.items():
        if kind == "l2" and (len(shape) == 5):
            continue
        family.one(
            f"{operator}_{name}", operator, {"x": family.normal(*shape)},
            lambda x, p=params: pooled(kind, x, **p), 15, params, oracle="torch", **about,
        )
    params = {"kernel_sizes": [2, 4], "pad_type": "same_lower", "strides": [1, 2]}
    family.one(
        f"{operator}_2d_with_same_lower_padding", operator, {"x": family.normal(1, 1, 4, 5)},
        lambda x, p=params: pooled(kind, x, **p), 16, params, oracle="torch", **about,
    )
    params = {"kernel_sizes": [2, 2], "pad_type": "valid", "strides": [2, 2]}
    family.one(
        f"{operator}_2d_in_fp16", operator, {"x": family.normal(1, 2, 4, 4, dtype=f16)},
        lambda x, p=params: pooled(kind, x, **p), 16, params, oracle="torch", **about,
    )
    family.one(
        f"{operator}_2d_over_unknown_axes", operator, {"x": family.normal(1, 1, 5, 4)},
        lambda x, p=params: pooled(kind, x, **p), 16, params, oracle="torch",
        flexible={"x": {2: "h", 3: "w"}}, **about,
    )


def means(family: Family) -> None:
    """`avg_pool` whose padding does not count."""
    for name in ("2d_with_padding", "2d_with_padding_on_one_side", "2d_with_same_padding",
                 "2d_with_same_padding_and_strides", "2d_that_rounds_up_with_padding",
                 "3d_with_padding_and_strides"):
        shape, params = FORMS[name]
        params = params | {"exclude_padding_from_average": True}
        family.one(
            f"avg_pool_{name}_that_does_not_count", "avg_pool", {"x": family.normal(*shape)},
            lambda x, p=params: pooled("avg", x, **p), 15, params, oracle="torch",
        )


def pool() -> Family:
    """Pooling."""
    check_against_torch()
    family = Family("pool")
    for kind in ("avg", "max", "l2"):
        forms(family, kind)
    means(family)
    return family
