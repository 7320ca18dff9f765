"""Cases of operators that make values: fills, ranges, bands, sums along an axis, random values."""

from __future__ import annotations

import numpy as np
from coremltools.converters.mil import Builder as mb

from .case import Family, f16, f32, i32, words
from .shape import BEFORE, values

RANDOM = "any generator will do: shapes and bounds are what can be known"


def fills(family: Family) -> None:
    """`fill` and `fill_like`, of values of all types."""
    for value, opset in ((f32(1.5), 15), (f16(-2.5), 16), (i32(7), 15), (np.bool_(True), 15)):
        name = words(value.dtype)
        family.one(
            f"fill_with_{name}_to_a_shape_that_is_an_input", "fill",
            {"shape": np.array([2, 3], i32)}, lambda shape, v=value: np.full(shape, v), opset,
            {"value": value},
        )
        for dtype in (f32, i32, np.bool_):
            family.one(
                f"fill_like_{words(dtype)}_with_{name}", "fill_like",
                {"ref_tensor": values(family, dtype, 2, 2)},
                lambda ref_tensor, v=value: np.full(ref_tensor.shape, v), 16, {"value": value},
            )
    family.one("fill_is_zero_unless_told", "fill", {"shape": np.array([1, 2, 1, 2, 1], i32)},
               lambda shape: np.zeros(shape))
    family.one("fill_like_is_zero_unless_told", "fill_like", {"ref_tensor": family.normal(3)},
               lambda ref_tensor: np.zeros(3), 16)
    family.add(
        "fill_to_the_shape_of_a_value", ["fill", "shape"], {"x": family.normal(3, 2)},
        lambda x: mb.fill(shape=mb.shape(x=x), value=f32(2)), lambda x: np.full(x.shape, 2.0),
        flexible={"x": {0: "n"}}, fold=False,
    )


def constants(family: Family) -> None:
    """`const` of every type: as immediate values, and from ten elements on in the weights' file
    where the opset has that for the type."""
    kinds = [np.bool_, np.int8, np.uint8, np.int16, np.uint16, i32, f16, f32]
    for opset in (17, 18):
        for dtype in kinds:
            for count in (3, 12):
                value = values(family, dtype, 1, count)
                given = family.normal(2, count)

                def build(x, v=value):
                    held = mb.const(val=v)
                    return mb.add(x=x, y=held if v.dtype == f32 else mb.cast(x=held, dtype="fp32"))

                family.add(
                    f"const_of_{count}_{words(dtype)}_of_ios{opset}", ["const"], {"x": given}, build,
                    lambda x, v=value: x + v.astype(float), opset=opset,
                )
    for dtype, opset in ((f32, 15), (f16, 16), (i32, 15)):
        value = values(family, dtype, 3, 4)
        family.add(
            f"const_of_12_{words(dtype)}_of_ios{opset}", ["const"],
            {"x": values(family, dtype, 3, 4)}, lambda x, v=value: mb.add(x=x, y=v),
            lambda x, v=value: x + v, opset=opset,
        )
    family.add(
        "const_that_is_all_of_the_program", ["const", "identity"], {"unused": family.normal(1)},
        lambda unused: mb.identity(x=np.arange(6, dtype=f32).reshape(2, 3)),
        lambda unused: np.arange(6.0).reshape(2, 3), fold=False,
    )


def ranges(family: Family) -> None:
    """`range_1d` with constants and inputs."""

    def build(start, end, step):
        one = [mb.squeeze(x=value) for value in (start, end, step)]
        return mb.range_1d(start=one[0], end=one[1], step=one[2])

    for name, dtype, start, end, step in (
        ("of_int32", i32, 1, 10, 3), ("of_int32_backwards", i32, 5, -4, -2),
        ("of_fp32", f32, 0.5, 3, 0.75), ("of_fp32_backwards", f32, 1, -1, -0.5),
        ("of_fp16", f16, -1, 2, 0.5), ("whose_end_is_no_part_of_it", i32, 0, 6, 2),
    ):
        family.add(
            f"range_1d_{name}", ["range_1d", "squeeze"],
            {"start": np.array([start], dtype), "end": np.array([end], dtype),
             "step": np.array([step], dtype)},
            build, lambda start, end, step: np.arange(start[0], end[0], step[0]), opset=16,
        )
    family.add(
        "range_1d_over_the_length_of_an_axis", ["range_1d", "shape", "gather"],
        {"x": family.normal(4, 2)},
        lambda x: mb.range_1d(start=0, end=mb.gather(x=mb.shape(x=x), indices=0, axis=0), step=1),
        lambda x: np.arange(4), flexible={"x": {0: "n"}}, fold=False,
    )


def bands(family: Family) -> None:
    """`band_part`."""

    def band(x, lower=-1, upper=-1):
        rows, columns = np.indices(x.shape[-2:])
        kept = (lower < 0) | (rows - columns <= lower)
        kept &= (upper < 0) | (columns - rows <= upper)
        return x * kept if x.dtype != bool else x & kept

    for lower, upper in ((0, -1), (-1, 0), (0, 0), (1, 2), (2, -1), (-1, 1)):
        family.one(
            f"band_part_of_{lower}_and_{upper}".replace("-1", "all"), "band_part",
            {"x": family.normal(4, 5)}, lambda x, a=lower, b=upper: band(x, a, b), 15,
            {"lower": lower, "upper": upper},
        )
    family.one("band_part_keeps_everything_unless_told", "band_part", {"x": family.normal(2, 3)},
               lambda x: x)
    for dtype, opset in BEFORE:
        family.one(
            f"band_part_of_{words(dtype)}_of_ios{opset}", "band_part",
            {"x": values(family, dtype, 2, 3, 3)}, lambda x: band(x, 1, 0), opset,
            {"lower": 1, "upper": 0},
        )
    family.one("band_part_of_rank_5", "band_part", {"x": family.normal(1, 2, 1, 3, 2)},
               lambda x: band(x, 0, 1), 15, {"lower": 0, "upper": 1})


def sums(family: Family) -> None:
    """`cumsum`."""

    def summed(x, axis=0, exclusive=False, reverse=False):
        x = np.flip(x, axis) if reverse else x
        result = np.cumsum(x, axis)
        result = result - x if exclusive else result
        return np.flip(result, axis) if reverse else result

    for exclusive in (False, True):
        for reverse in (False, True):
            name = ("_exclusive" if exclusive else "") + ("_reverse" if reverse else "")
            family.one(
                f"cumsum{name}_along_axis_1", "cumsum", {"x": family.normal(2, 4)},
                lambda x, e=exclusive, r=reverse: summed(x, 1, e, r), 15,
                {"axis": 1, "exclusive": exclusive, "reverse": reverse}, fold=not exclusive,
            )
    for shape, axis in (((4,), 0), ((2, 3, 2), -1), ((1, 2, 3, 2), 2), ((1, 2, 2, 1, 3), 4)):
        family.one(
            f"cumsum_of_rank_{len(shape)}", "cumsum", {"x": family.normal(*shape)},
            lambda x, a=axis: summed(x, a), 15, {"axis": axis},
        )
    for dtype, opset in ((f16, 16), (i32, 15)):
        family.one(f"cumsum_of_{words(dtype)}_along_the_first_axis_unless_told", "cumsum",
                   {"x": values(family, dtype, 3, 2)}, lambda x: summed(x), opset)


def random(family: Family) -> None:
    """Random operators, with and without a seed."""
    for opset, dtype in ((15, f32), (16, f16)):
        name = words(dtype)
        for seed in (-1, 3):
            of = f"in_{name}_{'without_a_seed' if seed < 0 else 'with_a_seed'}"
            for operator, params, bounds in (
                ("random_uniform", {"low": dtype(-2), "high": dtype(3)}, (-2, 3)),
                ("random_normal", {"mean": dtype(1), "stddev": dtype(0.5)}, (-5, 7)),
                ("random_bernoulli", {"prob": dtype(0.25)}, (0, 1)),
            ):
                constants = params | ({"seed": seed} if seed >= 0 else {})
                family.add(
                    f"{operator}_{of}", operator, {"unused": family.normal(1, dtype=dtype)},
                    lambda unused, o=operator, c=constants: getattr(mb, o)(shape=[2, 5], **c),
                    None, opset=opset, bounds=bounds, why=RANDOM,
                )
        for mode in ("logits", "probs"):
            given = family.normal(2, 4, dtype=dtype)
            if mode == "probs":
                given = np.array([[0.25, 0.25, 0.5, 0], [0.125, 0.375, 0.25, 0.25]], dtype)
            family.one(
                f"random_categorical_of_{mode}_in_{name}", "random_categorical", {"x": given}, None,
                opset, {"mode": mode, "size": 3, "seed": 1}, bounds=(0, 3), why=RANDOM,
            )
    family.one(
        "random_categorical_of_one_unless_told", "random_categorical", {"x": family.normal(3, 2)},
        None, 15, bounds=(0, 1), why=RANDOM,
    )
    family.one(
        "random_uniform_to_a_shape_that_is_an_input", "random_uniform",
        {"shape": np.array([2, 3], i32)}, None, 15, bounds=(0, 1), shapes=[(2, 3)], why=RANDOM,
    )


def creation() -> Family:
    """Operators that make values."""
    family = Family("creation")
    for part in (fills, constants, ranges, bands, sums, random):
        part(family)
    return family
