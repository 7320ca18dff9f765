"""Cases of convolutions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from .case import Family, f16, f32, words

CONV = {1: torch.conv1d, 2: torch.conv2d, 3: torch.conv3d}
SAME = (
    "the operator's text gives padding that does not depend on strides; declared shapes, and what "
    "TensorFlow's models are converted to, need padding such that ceil(length / stride) results"
)


def tensor(value: np.ndarray) -> torch.Tensor:
    """As torch's FP64."""
    return torch.from_numpy(np.asarray(value, np.float64))


def padding(
    pad_type: str,
    lengths: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pad: Sequence[int] | None,
) -> list[int]:
    """Elements before and after each spatial axis, [begin, end, begin, end, ...]."""
    if pad_type == "custom":
        return list(pad or [])
    result = []
    for length, k, stride, dilation in zip(lengths, kernel, strides, dilations):
        total = 0
        if pad_type != "valid":
            total = max(0, (-(-length // stride) - 1) * stride + (k - 1) * dilation + 1 - length)
        less, more = total // 2, total - total // 2
        result += [more, less] if pad_type == "same_lower" else [less, more]
    return result


def padded(x: torch.Tensor, pad: Sequence[int], value: float = 0.0) -> torch.Tensor:
    """`x` with its spatial axes padded; torch wants the last axis first."""
    pairs = [pad[at : at + 2] for at in range(0, len(pad), 2)]
    return torch.nn.functional.pad(x, [n for pair in reversed(pairs) for n in pair], value=value)


def convolved(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None, *,
    strides: Sequence[int] | None = None, pad_type: str = "valid",
    pad: Sequence[int] | None = None, dilations: Sequence[int] | None = None, groups: int = 1,
) -> np.ndarray:
    """torch's convolution with MIL's parameters."""
    n = x.ndim - 2
    strides, dilations = strides or [1] * n, dilations or [1] * n
    around = padding(pad_type, x.shape[2:], weight.shape[2:], strides, dilations, pad)
    return CONV[n](
        padded(tensor(x), around), tensor(weight), None if bias is None else tensor(bias),
        list(strides), 0, list(dilations), groups,
    ).numpy()


def transposed(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None, *,
    strides: Sequence[int] | None = None, pad_type: str = "valid",
    pad: Sequence[int] | None = None, dilations: Sequence[int] | None = None, groups: int = 1,
    output_shape: Sequence[int] | None = None,
) -> np.ndarray:
    """torch's transposed convolution without padding, of whose result the padding is cut off."""
    n = x.ndim - 2
    strides, dilations = strides or [1] * n, dilations or [1] * n
    function = getattr(torch, f"conv_transpose{n}d")
    whole = function(
        tensor(x), tensor(weight), None if bias is None else tensor(bias), list(strides), 0, 0,
        groups, list(dilations),
    ).numpy()
    for axis in range(n):
        length, begin = whole.shape[2 + axis], 0
        end = length
        if pad_type == "custom":
            begin, end = pad[2 * axis], length - pad[2 * axis + 1]
        elif pad_type == "same":
            wanted = x.shape[2 + axis] * strides[axis]
            wanted = wanted if output_shape is None else output_shape[2 + axis]
            begin = max(0, length - wanted) // 2
            end = begin + wanted
        elif output_shape is not None:
            end = output_shape[2 + axis]
        whole = lengthened(whole, 2 + axis, end - length, bias)
        whole = np.take(whole, range(begin, end), 2 + axis)
    return whole


def lengthened(x: np.ndarray, axis: int, more: int, bias: np.ndarray | None) -> np.ndarray:
    """`x` with places behind which no product reaches."""
    if more <= 0:
        return x
    around = [(0, 0)] * x.ndim
    around[axis] = (0, more)
    fill = 0.0 if bias is None else bias.astype(float).reshape(1, -1, *[1] * (x.ndim - 2))
    return np.pad(x - fill, around) + fill


# name -> shapes of value and weight, parameters.
FORMS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict]] = {
    "conv_1d": ((1, 2, 6), (3, 2, 3), {}),
    "conv_2d": ((2, 2, 4, 5), (3, 2, 3, 2), {}),
    "conv_3d": ((1, 2, 3, 4, 3), (2, 2, 2, 3, 2), {}),
    "conv_1d_with_stride_dilation_and_padding":
        ((1, 2, 9), (2, 2, 3), {"strides": [2], "dilations": [2], "pad_type": "custom", "pad": [2, 1]}),
    "conv_2d_with_padding_on_one_side":
        ((1, 1, 4, 4), (2, 1, 3, 3), {"pad_type": "custom", "pad": [1, 0, 0, 2]}),
    "conv_2d_with_different_strides": ((1, 2, 6, 6), (2, 2, 2, 3), {"strides": [2, 3]}),
    "conv_2d_with_different_dilations": ((1, 1, 6, 7), (2, 1, 3, 2), {"dilations": [2, 3]}),
    "conv_2d_in_two_groups": ((1, 4, 3, 3), (4, 2, 2, 2), {"groups": 2}),
    "conv_2d_for_each_channel": ((1, 3, 4, 4), (3, 1, 3, 3), {"groups": 3}),
    "conv_2d_for_each_channel_with_two_results": ((1, 2, 4, 3), (4, 1, 2, 2), {"groups": 2}),
    "conv_2d_with_kernels_of_one": ((1, 4, 2, 2), (3, 4, 1, 1), {}),
    "conv_3d_with_stride_and_padding":
        ((1, 1, 4, 4, 4), (1, 1, 2, 2, 2),
         {"strides": [2, 1, 2], "pad_type": "custom", "pad": [1, 0, 0, 1, 1, 1]}),
    "conv_1d_in_groups": ((2, 4, 4), (2, 2, 2), {"groups": 2}),
    "conv_3d_in_groups": ((1, 2, 2, 2, 3), (2, 1, 2, 1, 2), {"groups": 2}),
    "conv_2d_same_padding": ((1, 2, 4, 5), (2, 2, 3, 3), {"pad_type": "same"}),
    "conv_2d_same_padding_with_even_kernels": ((1, 1, 4, 5), (1, 1, 2, 4), {"pad_type": "same"}),
    "conv_2d_same_padding_with_stride_two":
        ((1, 1, 5, 6), (1, 1, 3, 3), {"pad_type": "same", "strides": [2, 2]}),
    "conv_2d_same_padding_with_dilation":
        ((1, 1, 5, 6), (1, 1, 2, 3), {"pad_type": "same", "dilations": [2, 2]}),
    "conv_1d_same_padding_with_stride_three":
        ((1, 1, 7), (2, 1, 4), {"pad_type": "same", "strides": [3]}),
}


def forms(family: Family) -> None:
    """`conv` with constant weights in all its forms, with and without bias."""
    for index, (name, (x, w, params)) in enumerate(FORMS.items()):
        weight, bias = family.normal(*w), family.normal(w[0])
        given = {"weight": weight} | ({"bias": bias} if index % 2 == 0 else {})
        why = {"why": SAME} if "same" in params.get("pad_type", "") and "strides" in params else {}
        family.one(
            name, "conv", {"x": family.normal(*x)},
            lambda x, g=given, p=params: convolved(x, **g, **p), 15, given | params,
            oracle="torch", **why,
        )
        if index % 3 == 0 and len(x) < 5:
            halves = {key: value.astype(f16) for key, value in given.items()}
            family.one(
                f"{name}_in_fp16", "conv", {"x": family.normal(*x, dtype=f16)},
                lambda x, g=halves, p=params: convolved(x, **g, **p), 16, halves | params,
                oracle="torch", **why,
            )
    for name, x, w, strides in (
        ("conv_2d_same_lower_padding_with_even_kernels", (1, 1, 4, 5), (1, 1, 2, 4), [1, 1]),
        ("conv_2d_same_lower_padding_with_stride_two", (1, 2, 6, 5), (1, 2, 3, 4), [2, 2]),
        ("conv_1d_same_lower_padding", (1, 1, 5), (1, 1, 4), [1]),
    ):
        params = {"weight": family.normal(*w), "pad_type": "same_lower", "strides": strides}
        family.one(
            name, "conv", {"x": family.normal(*x)}, lambda x, p=params: convolved(x, **p),
            16, params, oracle="torch", why=SAME,
        )


def later_forms(family: Family) -> None:
    """`conv` with weights that are inputs, of another type, or over unknown axes."""
    family.one(
        "conv_2d_with_weights_as_input", "conv",
        {"x": family.normal(1, 2, 4, 4), "weight": family.normal(3, 2, 2, 2)},
        lambda x, weight: convolved(x, weight), oracle="torch",
    )
    family.one(
        "conv_2d_with_weights_and_bias_as_inputs_of_ios17", "conv",
        {"x": family.normal(1, 2, 4, 4), "weight": family.normal(2, 2, 3, 3),
         "bias": family.normal(2)},
        lambda x, weight, bias: convolved(x, weight, bias), 17, oracle="torch",
    )
    for dtype, of in ((f32, f16), (f16, f32), (f16, f16)):
        params = {"weight": family.normal(2, 2, 2, 2, dtype=of), "bias": family.normal(2, dtype=of)}
        family.one(
            f"conv_2d_of_{words(dtype)}_with_weights_in_{words(of)}_of_ios17", "conv",
            {"x": family.normal(1, 2, 3, 4, dtype=dtype)},
            lambda x, p=params: convolved(x, **p), 17, params, oracle="torch",
        )
    for name, pad in (("", {}), ("_with_same_padding", {"pad_type": "same", "strides": [2, 2]})):
        params = {"weight": family.normal(2, 1, 3, 3)} | pad
        family.one(
            f"conv_2d_over_unknown_axes{name}", "conv", {"x": family.normal(2, 1, 5, 6)},
            lambda x, p=params: convolved(x, **p), 16, params, oracle="torch",
            flexible={"x": {0: "b", 2: "h", 3: "w"}},
        )


def backwards(family: Family) -> None:
    """`conv_transpose` in all its forms."""
    forms: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict]] = {
        "1d": ((1, 2, 4), (2, 3, 3), {}),
        "2d": ((1, 2, 3, 3), (2, 3, 2, 3), {}),
        "3d": ((1, 2, 2, 2, 3), (2, 1, 2, 2, 2), {}),
        "1d_with_stride": ((1, 1, 4), (1, 2, 3), {"strides": [2]}),
        "2d_with_strides": ((1, 2, 3, 2), (2, 2, 3, 2), {"strides": [2, 3]}),
        "2d_with_dilations": ((1, 1, 3, 3), (1, 2, 2, 2), {"dilations": [2, 3]}),
        "2d_in_groups": ((1, 4, 2, 2), (4, 2, 2, 2), {"groups": 2, "strides": [2, 2]}),
        "2d_for_each_channel": ((1, 3, 2, 3), (3, 1, 2, 2), {"groups": 3}),
        "2d_with_padding":
            ((1, 1, 3, 3), (1, 1, 3, 3), {"pad_type": "custom", "pad": [1, 0, 1, 1], "strides": [2, 2]}),
        "1d_with_padding_and_an_output_shape":
            ((1, 2, 4), (2, 1, 3),
             {"pad_type": "custom", "pad": [1, 1], "strides": [2], "output_shape": [1, 1, 7]}),
        "2d_with_padding_and_an_output_shape":
            ((1, 1, 3, 3), (1, 1, 3, 3),
             {"pad_type": "custom", "pad": [1, 1, 1, 1], "strides": [2, 2],
              "output_shape": [1, 1, 5, 5]}),
        "2d_with_same_padding_and_an_output_shape":
            ((1, 1, 3, 3), (1, 2, 3, 3),
             {"pad_type": "same", "strides": [2, 2], "output_shape": [1, 2, 5, 6]}),
        "2d_without_padding_and_with_an_output_shape":
            ((1, 1, 2, 3), (1, 2, 3, 2),
             {"pad_type": "valid", "strides": [2, 2], "output_shape": [1, 2, 5, 6]}),
        "2d_whose_strides_are_longer_than_kernels":
            ((1, 1, 3, 2), (1, 2, 2, 1), {"pad_type": "same", "strides": [3, 2]}),
        "2d_with_same_padding": ((1, 1, 3, 4), (1, 2, 3, 3), {"pad_type": "same", "strides": [2, 2]}),
        "2d_with_same_padding_and_even_kernels":
            ((1, 1, 3, 3), (1, 1, 4, 2), {"pad_type": "same", "strides": [2, 1]}),
        "3d_with_strides": ((1, 1, 2, 2, 2), (1, 1, 2, 3, 2), {"strides": [2, 1, 2]}),
    }
    for index, (name, (x, w, params)) in enumerate(forms.items()):
        channels = w[1] * params.get("groups", 1)
        given = {"weight": family.normal(*w)}
        if index % 2 == 0:
            given["bias"] = family.normal(channels)
        family.one(
            f"conv_transpose_{name}", "conv_transpose", {"x": family.normal(*x)},
            lambda x, g=given, p=params: transposed(x, **g, **p), 15, given | params,
            oracle="torch",
        )
    params = {"weight": family.normal(2, 2, 2, 2, dtype=f16)}
    family.one(
        "conv_transpose_2d_in_fp16", "conv_transpose", {"x": family.normal(1, 2, 3, 2, dtype=f16)},
        lambda x, p=params: transposed(x, **p), 16, params, oracle="torch",
    )
    family.one(
        "conv_transpose_2d_of_fp32_with_weights_in_fp16_of_ios17", "conv_transpose",
        {"x": family.normal(1, 2, 3, 2)},
        lambda x, p=params: transposed(x, **p), 17, params, oracle="torch",
    )
    family.one(
        "conv_transpose_2d_with_weights_as_input_of_ios17", "conv_transpose",
        {"x": family.normal(1, 1, 3, 2), "weight": family.normal(1, 2, 2, 2)},
        lambda x, weight: transposed(x, weight, strides=[2, 2]), 17, {"strides": [2, 2]},
        oracle="torch",
    )
    params = {"weight": family.normal(1, 2, 2, 2), "strides": [2, 2]}
    family.one(
        "conv_transpose_2d_over_unknown_axes", "conv_transpose", {"x": family.normal(1, 1, 3, 2)},
        lambda x, p=params: transposed(x, **p), 15, params, oracle="torch",
        flexible={"x": {2: "h", 3: "w"}},
    )


def quantized(family: Family) -> None:
    """`conv_quantized`, whose weights are uint8 with a scale and a bias."""
    weight = family.ints(0, 256, 2, 2, 2, 2, dtype=np.uint8)
    for name, scale, bias in (
        ("with_one_scale", np.array([0.015625], f32), np.array([-2.0], f32)),
        ("with_a_scale_for_each_channel", np.array([0.015625, 0.03125], f32),
         np.array([-2.0, -3.5], f32)),
    ):
        real = weight * np.resize(scale, 2).reshape(2, 1, 1, 1) + np.resize(bias, 2).reshape(2, 1, 1, 1)
        params = {"weight": weight, "quantization_type": "linear", "nbits": 8,
                  "quant_scale": scale, "quant_bias": bias}
        family.one(
            f"conv_quantized_{name}", "conv_quantized", {"x": family.normal(1, 2, 3, 4)},
            lambda x, w=real: convolved(x, w), 15, params, oracle="torch",
            why="the operator's text says no more than value = code * scale + bias",
        )


def conv() -> Family:
    """Convolutions."""
    family = Family("conv")
    for part in (forms, later_forms, backwards, quantized):
        part(family)
    return family
