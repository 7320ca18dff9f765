"""Cases of matrix products."""

from __future__ import annotations

import numpy as np
from coremltools.converters.mil import Builder as mb

from .case import Family, f16, f32, words


def layers(family: Family) -> None:
    """`linear`, a product with constant weights."""
    for shape in ((3,), (2, 3), (2, 2, 3)):
        weight, bias = family.normal(4, 3), family.normal(4)
        family.one(
            f"linear_of_rank_{len(shape)}", "linear", {"x": family.normal(*shape)},
            lambda x, w=weight, b=bias: x @ w.T + b, params={"weight": weight, "bias": bias},
        )
    weight = family.normal(2, 5)
    family.one(
        "linear_without_bias", "linear", {"x": family.normal(3, 5)},
        lambda x, w=weight: x @ w.T, params={"weight": weight},
    )
    for opset, dtype, of in ((16, f16, f16), (17, f32, f32), (17, f32, f16), (17, f16, f32)):
        weight, bias = family.normal(4, 6, dtype=of), family.normal(4, dtype=of)
        family.one(
            f"linear_of_{words(dtype)}_with_weights_in_{words(of)}_of_ios{opset}", "linear",
            {"x": family.normal(2, 6, dtype=dtype)},
            lambda x, w=weight, b=bias: x @ w.T.astype(float) + b, opset,
            {"weight": weight, "bias": bias},
        )
    weight, bias = family.ints(-5, 6, 3, 4), family.ints(-5, 6, 3)
    family.one(
        "linear_of_int32", "linear", {"x": family.ints(-5, 6, 2, 4)},
        lambda x, w=weight, b=bias: x @ w.T + b, params={"weight": weight, "bias": bias},
    )
    weight = family.normal(3, 4)
    family.one(
        "linear_over_an_unknown_axis", "linear", {"x": family.normal(2, 5, 4)},
        lambda x, w=weight: x @ w.T, 17, {"weight": weight}, flexible={"x": {1: "n"}},
    )


def products(family: Family) -> None:
    """`matmul` of two tensors and of a tensor and a constant."""
    shapes = {
        "of_two_matrices": ((2, 3), (3, 4)),
        "of_two_stacks": ((2, 2, 3), (2, 3, 2)),
        "repeats_a_matrix": ((2, 2, 3), (3, 2)),
        "repeats_both_stacks": ((2, 1, 2, 3), (3, 3, 2)),
        "of_rank_5": ((1, 2, 1, 2, 2), (1, 2, 2, 2, 1)),
        "of_a_vector_and_a_matrix": ((3,), (3, 4)),
    }
    for name, (x, y) in shapes.items():
        family.one(
            f"matmul_{name}", "matmul", {"x": family.normal(*x), "y": family.normal(*y)},
            lambda x, y: x @ y,
        )
    for tx in (False, True):
        for ty in (False, True):
            x, y = family.normal(2, *((4, 3) if tx else (3, 4))), family.normal(
                2, *((2, 4) if ty else (4, 2))
            )
            which = {(0, 0): "nothing", (1, 0): "x", (0, 1): "y", (1, 1): "both"}[(tx, ty)]
            for opset, dtype in ((15, f32), (17, f16)):
                family.one(
                    f"matmul_that_transposes_{which}_in_{words(dtype)}", "matmul",
                    {"x": x.astype(dtype), "y": y.astype(dtype)},
                    lambda x, y, a=tx, b=ty: (np.swapaxes(x, -1, -2) if a else x)
                    @ (np.swapaxes(y, -1, -2) if b else y),
                    opset, {"transpose_x": tx, "transpose_y": ty},
                )
    family.one(
        "matmul_of_int32", "matmul", {"x": family.ints(-9, 9, 2, 3), "y": family.ints(-9, 9, 3, 2)},
        lambda x, y: x @ y,
    )
    weight = family.normal(3, 4)
    family.one(
        "matmul_with_a_constant", "matmul", {"x": family.normal(2, 3)},
        lambda x, w=weight: x @ w, params={"y": weight},
    )
    half = weight.astype(f16)
    family.one(
        "matmul_with_a_constant_in_fp16_of_ios17", "matmul", {"x": family.normal(2, 3)},
        lambda x, w=half: x @ w.astype(float), 17, {"y": half},
        fold=False,
    )
    family.add(
        "matmul_of_a_constant_and_a_value_of_ios17", "matmul", {"y": family.normal(4, 2, dtype=f16)},
        lambda y, w=weight: mb.matmul(x=w, y=y), lambda y, w=weight: w @ y, opset=17,
        fold=False,
    )
    family.one(
        "matmul_over_unknown_axes", "matmul",
        {"x": family.normal(1, 3, 2), "y": family.normal(1, 4, 2)},
        lambda x, y: x @ np.swapaxes(y, -1, -2), params={"transpose_y": True},
        flexible={"x": {1: "m"}, "y": {1: "n"}},
    )


def sums_of_products(family: Family) -> None:
    """`einsum` in the two equations that it has."""
    shapes = {
        "nchw,nwhu->nchu": ((2, 3, 2, 4), (2, 4, 2, 3)),
        "chw,whr->chr": ((3, 2, 4), (4, 2, 3)),
        "bchk,bkhq->bchq": ((1, 2, 3, 2), (1, 2, 3, 5)),
    }
    for equation, (x, y) in shapes.items():
        for opset, dtype in ((15, f32), (16, f16)):
            name = equation.replace(",", "_and_").replace("->", "_to_")
            family.add(
                f"einsum_{name}_in_{words(dtype)}", "einsum",
                {"x": family.normal(*x, dtype=dtype), "y": family.normal(*y, dtype=dtype)},
                lambda x, y, e=equation: mb.einsum(values=(x, y), equation=e),
                lambda x, y, e=equation: np.einsum(e, x, y), opset=opset,
            )
    family.add(
        "einsum_repeats_axes_of_length_one", "einsum",
        {"x": family.normal(1, 2, 3, 4), "y": family.normal(2, 4, 1, 2)},
        lambda x, y: mb.einsum(values=(x, y), equation="nchw,nwhu->nchu"),
        lambda x, y: np.einsum("nchw,nwhu->nchu", np.repeat(x, 2, 0), np.repeat(y, 3, 2)),
        fold=False,
    )


def attention(family: Family) -> None:
    """`scaled_dot_product_attention`, without a mask, with truth values and with numbers."""

    def oracle(query, key, value, mask=None):
        scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
        if mask is not None:
            scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True) @ value

    def given(lead: tuple[int, ...], dtype=f32):
        return {
            "query": family.normal(*lead, 3, 4, dtype=dtype),
            "key": family.normal(*lead, 5, 4, dtype=dtype),
            "value": family.normal(*lead, 5, 2, dtype=dtype),
        }

    operator = "scaled_dot_product_attention"
    for lead in ((2,), (1, 2), (1, 2, 1)):
        family.one(f"attention_of_rank_{len(lead) + 2}", operator, given(lead), oracle, 18)
    family.one("attention_in_fp16", operator, given((1, 2), f16), oracle, 18)
    truths = np.tril(np.ones((3, 5), bool), 1)
    for name, shape in {"": (3, 5), "_for_each_head": (1, 2, 3, 5), "_of_one_row": (1, 5)}.items():
        mask = np.broadcast_to(truths[-shape[-2]:], shape).copy()
        family.one(
            f"attention_with_a_mask_of_truth_values{name}", operator,
            given((1, 2)) | {"attn_mask": mask},
            lambda query, key, value, attn_mask: oracle(query, key, value, attn_mask), 18,
        )
    for dtype in (f32, f16):
        family.one(
            f"attention_with_a_mask_of_numbers_in_{words(dtype)}", operator,
            given((1, 2), dtype) | {"attn_mask": family.normal(1, 1, 3, 5, dtype=dtype)},
            lambda query, key, value, attn_mask: oracle(query, key, value, attn_mask), 18,
        )
    family.one(
        "attention_over_an_unknown_length", operator, given((1, 2)), oracle, 18,
        flexible={"key": {2: "n"}, "value": {2: "n"}},
    )


def linear() -> Family:
    """Matrix products."""
    family = Family("linear")
    for part in (layers, products, sums_of_products, attention):
        part(family)
    return family
