"""Cases of compressed constants, and of quantised values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from coremltools.converters.mil import Builder as mb
from coremltools.converters.mil.mil import types

from .case import Family, f16, f32, words
from .conv import convolved

UINT = {1: types.np_uint1_dtype, 2: types.np_uint2_dtype, 3: types.np_uint3_dtype,
        4: types.np_uint4_dtype, 6: types.np_uint6_dtype, 8: np.uint8}
INT4 = types.np_int4_dtype
FLAT = (1, 2, 4, 6, 8)


def checked(var: Any, dense: np.ndarray) -> Any:
    """A compressed constant, whose value coremltools computes too where it can."""
    try:
        found = var.op.materialized_val_inference()
    except Exception:
        # It knows nothing of tables that are themselves compressed.
        return var
    found = found[var.op.outputs.index(var)] if isinstance(found, tuple) else found
    if not np.allclose(np.asarray(found, np.float64), dense, 2e-3, 1e-3):
        raise ValueError(f"{var.op.op_type}: coremltools gives {found}, the oracle {dense}")
    return var


def added(family: Family, name: str, operators: Sequence[str], make: Callable[[], Any],
          dense: np.ndarray, opset: int, dtype: type, **more: Any) -> None:
    """A case that adds a compressed constant to its input."""
    integers = dense.dtype.kind in "iu"

    def build(x):
        weight = checked(make(), dense)
        return mb.add(x=x, y=mb.cast(x=weight, dtype="fp32") if integers else weight)

    family.add(
        name, [*operators, "add"], {"x": family.normal(*dense.shape, dtype=dtype)}, build,
        lambda x: x + dense.astype(float), opset=opset, fold=False, **more,
    )


def packed(codes: np.ndarray, bits: int) -> np.ndarray:
    """Codes of few bits one after the other, the lowest bit first."""
    each = (codes.reshape(-1, 1) >> np.arange(bits)) & 1
    return np.packbits(each.astype(np.uint8).ravel(), bitorder="little")


def affine(family: Family) -> None:
    """`constexpr_affine_dequantize`: bytes with a scale and a zero point."""
    operator = "constexpr_affine_dequantize"
    for code, low in ((np.int8, -128), (np.uint8, 0)):
        for dtype in (f32, f16):
            for shape, axis, vector in (((3, 4), 0, False), ((3, 5), 1, True), ((2, 3, 2, 2), 0, True),
                                        ((2, 3, 4), -1, True), ((6,), 0, False)):
                data = family.ints(low, low + 256, *shape, dtype=code)
                count = shape[axis] if vector else 1
                scale = family.uniform(0.0625, 0.5, count, dtype=dtype)
                zero = family.ints(low, low + 256, count, dtype=code)
                along = [-1 if at == axis % len(shape) else 1 for at in range(len(shape))]
                dense = (data.astype(float) - zero.reshape(along)) * scale.reshape(along).astype(float)
                if not vector:
                    scale, zero = scale[0], zero[0]
                name = f"affine_{words(code)}_to_{words(dtype)}_of_rank_{len(shape)}"
                added(
                    family, f"{name}_along_axis_{axis}".replace("-", "minus_"), [operator],
                    lambda d=data, z=zero, s=scale, a=axis: getattr(mb, operator)(
                        quantized_data=d, zero_point=z, scale=s, axis=a
                    ),
                    dense, 16, dtype,
                )
    data = family.ints(0, 256, 2, 6, dtype=np.uint8)
    zero, scale = family.uniform(0, 200, 2), family.uniform(0.125, 0.5, 2)
    added(
        family, "affine_with_zero_points_in_fp32", [operator],
        lambda: getattr(mb, operator)(quantized_data=data, zero_point=zero, scale=scale, axis=0),
        (data - zero[:, None].astype(float)) * scale[:, None].astype(float), 16, f32,
    )


def flat_tables(family: Family) -> None:
    """`constexpr_lut_to_dense` and `constexpr_sparse_to_dense` of iOS16, whose operands are
    attributes, and `constexpr_cast`."""
    for bits in FLAT:
        for dtype, shape in ((f32, (3, 7)), (f16, (2, 3, 1, 5)), (np.int8, (11,)), (np.uint8, (2, 5))):
            codes = family.ints(0, 1 << bits, *shape)
            if dtype in (f32, f16):
                table = family.normal(1 << bits, dtype=dtype)
            else:
                low = -128 if dtype == np.int8 else 0
                table = family.ints(low, low + 256, 1 << bits, dtype=dtype)
            added(
                family, f"table_of_{1 << bits}_{words(dtype)}_of_ios16", ["constexpr_lut_to_dense"],
                lambda c=packed(codes, bits), t=table, s=shape: mb.constexpr_lut_to_dense(
                    indices=c, lut=t, shape=np.array(s, np.uint32)
                ),
                table[codes], 16 if dtype in (f32, f16) else 17, dtype if dtype == f16 else f32,
            )
    for dtype, shape in ((f32, (3, 5)), (f16, (2, 2, 3)), (np.int8, (9,)), (np.uint8, (4, 4))):
        mask = family.bits(*shape)
        mask.flat[0] = True
        count = int(mask.sum())
        kept = (family.normal(count, dtype=dtype) if dtype in (f32, f16)
                else family.ints(1, 100, count, dtype=dtype))
        dense = np.zeros(shape, dtype)
        dense[mask] = kept
        added(
            family, f"sparse_{words(dtype)}_of_ios16", ["constexpr_sparse_to_dense"],
            lambda k=kept, m=packed(mask.astype(int), 1), s=shape: mb.constexpr_sparse_to_dense(
                nonzero_data=k, mask=m, shape=np.array(s, np.uint32)
            ),
            dense, 16 if dtype in (f32, f16) else 17, dtype if dtype == f16 else f32,
        )
    for opset in (16, 18):
        for shape in ((2, 3), (3, 5)):
            value = family.normal(*shape, dtype=f16)
            added(
                family, f"cast_of_{value.size}_halves_of_ios{opset}", ["constexpr_cast"],
                lambda v=value: mb.constexpr_cast(source_val=v, output_dtype="fp32"),
                value.astype(f32), opset, f32,
            )


def spread(small: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Repeats each element over its block."""
    for axis, length in enumerate(shape):
        small = np.repeat(small, length // small.shape[axis], axis)
    return small


# name -> type of codes, least code, number of codes.
CODES = {"int4": (INT4, -8, 16), "uint4": (UINT[4], 0, 16), "int8": (np.int8, -128, 256),
         "uint8": (np.uint8, 0, 256), "fp16": (f16, -8, 16), "fp32": (f32, -8, 16)}


def blocks(family: Family) -> None:
    """`constexpr_blockwise_shift_scale`."""
    operator = "constexpr_blockwise_shift_scale"
    for kind, (code, low, count) in CODES.items():
        for dtype in (f32, f16):
            for index, (shape, scales) in enumerate((
                ((4, 8), (4, 2)), ((6, 6), (2, 1)), ((4, 2, 2, 2), (4, 1, 1, 1)), ((5,), (1,)),
                ((2, 6), (2, 6)),
            )):
                if dtype == f16 and index % 2:
                    continue
                data = family.ints(low, low + count, *shape)
                scale = family.uniform(0.0625, 0.5, *scales, dtype=dtype)
                offset = family.ints(low, low + count, *scales) if index != 2 else None
                dense = data - (0.0 if offset is None else spread(offset, shape))
                dense = dense * spread(scale, shape).astype(float)
                rest = {} if offset is None else {"offset": offset.astype(code)}
                added(
                    family, f"blocks_of_{kind}_to_{words(dtype)}_of_{'_by_'.join(map(str, shape))}",
                    [operator],
                    lambda d=data.astype(code), s=scale, r=rest: getattr(mb, operator)(
                        data=d, scale=s, **r
                    ),
                    dense, 18, dtype,
                )
    data, scale = family.ints(-8, 8, 4, 8), family.uniform(0.0625, 0.5, 4, 2)
    offset = family.uniform(-4, 4, 4, 2)
    added(
        family, "blocks_of_int4_with_offsets_in_fp32", [operator],
        lambda: getattr(mb, operator)(data=data.astype(INT4), scale=scale, offset=offset),
        (data - spread(offset, (4, 8)).astype(float)) * spread(scale, (4, 8)).astype(float), 18, f32,
    )


def looked_up(codes: np.ndarray, table: np.ndarray, axis: int | None = None) -> np.ndarray:
    """Dense values of codes: a table of each group, vectors along an axis."""
    groups, size = table.shape[:-2], table.shape[-1]
    places = [
        spread(np.arange(count).reshape([-1 if at == a else 1 for a in range(codes.ndim)])
               * np.ones([1] * codes.ndim, int), [1 if a != at else codes.shape[at]
                                                  for a in range(codes.ndim)])
        for at, count in enumerate(groups)
    ]
    vectors = table[tuple(np.broadcast_to(place, codes.shape) for place in places) + (codes,)]
    if size == 1:
        return vectors[..., 0]
    axis = axis % codes.ndim
    moved = np.moveaxis(vectors, -1, axis + 1)
    shape = list(codes.shape)
    shape[axis] *= size
    return moved.reshape(shape)


def tables(family: Family) -> None:
    """`constexpr_lut_to_dense` of iOS18: groups of tables, and vectors as their values."""
    for bits, code in UINT.items():
        small = 16 if bits > 4 else 1 << bits
        for dtype in (f32, f16):
            forms = [((4, 6), (1, 1), 1, None), ((4, 6), (2, 1), 1, None), ((2, 4), (1, 2), 2, 0),
                     ((3, 2, 2), (1, 1, 2), 3, -1), ((4, 1, 1, 2), (2, 1, 1, 1), 1, None)]
            for index, (shape, groups, size, axis) in enumerate(forms):
                if bits > 4 and (index not in (0, 2) or dtype == f16):
                    continue
                codes = family.ints(0, 1 << bits, *shape)
                table = family.normal(*groups, small, size, dtype=dtype)
                table = np.resize(table, (*groups, 1 << bits, size))
                rest = {} if axis is None else {"vector_axis": axis}
                name = f"table_of_{bits}_bits_of_{words(dtype)}_of_{'_by_'.join(map(str, shape))}"
                added(
                    family, name + ("" if np.prod(groups) == 1 else "_in_groups")
                    + ("" if size == 1 else f"_of_vectors_of_{size}"), ["constexpr_lut_to_dense"],
                    lambda c=codes.astype(code), t=table, r=rest: mb.constexpr_lut_to_dense(
                        indices=c, lut=t, **r
                    ),
                    looked_up(codes, table, axis), 18, dtype,
                )
    for dtype, low in ((np.int8, -128), (np.uint8, 0)):
        codes, table = family.ints(0, 4, 3, 4), family.ints(low, low + 256, 1, 1, 4, 1, dtype=dtype)
        added(
            family, f"table_of_2_bits_of_{words(dtype)}", ["constexpr_lut_to_dense"],
            lambda c=codes.astype(UINT[2]), t=table: mb.constexpr_lut_to_dense(indices=c, lut=t),
            looked_up(codes, table), 18, f32,
        )


def sparse(family: Family) -> None:
    """`constexpr_sparse_to_dense` of iOS18, alone and behind `constexpr_lut_to_sparse` and
    `constexpr_sparse_blockwise_shift_scale`."""
    for kind, (code, low, count) in CODES.items():
        mask = family.bits(3, 5)
        mask[0, 0] = True
        kept = family.ints(low, low + count, int(mask.sum()))
        dense = np.zeros(mask.shape, int if kind[0] in "iu" else code)
        dense[mask] = kept
        if kind in ("int4", "uint4"):
            scaled(family, kind, code, mask, kept, dense)
        else:
            added(
                family, f"sparse_{kind}_of_ios18", ["constexpr_sparse_to_dense"],
                lambda k=kept.astype(code), m=mask.astype(UINT[1]):
                    mb.constexpr_sparse_to_dense(nonzero_data=k, mask=m),
                dense, 18, f16 if kind == "fp16" else f32,
            )
        for dtype in (f32, f16):
            sparse_blocks(family, kind, code, low, count, dtype)
    for bits, code in UINT.items():
        for size, axis in ((1, None), (2, 0), (2, 1)):
            if bits > 4 and size > 1:
                continue
            sparse_tables(family, bits, code, size, axis)


def scaled(family: Family, kind: str, code: Any, mask: np.ndarray, kept: np.ndarray,
           dense: np.ndarray) -> None:
    """Sparse codes of 4 bits, which nothing but another operator on constants takes."""
    scale = family.uniform(0.125, 0.5, 3, 1)
    added(
        family, f"blocks_of_sparse_{kind}",
        ["constexpr_sparse_to_dense", "constexpr_blockwise_shift_scale"],
        lambda: mb.constexpr_blockwise_shift_scale(
            data=mb.constexpr_sparse_to_dense(
                nonzero_data=kept.astype(code), mask=mask.astype(UINT[1])
            ),
            scale=scale,
        ),
        dense * scale.astype(float), 18, f32,
    )


def sparse_blocks(family: Family, kind: str, code: Any, low: int, count: int, dtype: type) -> None:
    """Sparse data, dequantised and made dense."""
    mask = family.bits(4, 6)
    mask[0, 0] = True
    kept = family.ints(low, low + count, int(mask.sum()))
    scale = family.uniform(0.125, 0.5, 4, 2, dtype=dtype)
    offset = family.ints(low, low + count, 4, 2) if dtype == f32 else None
    dense = np.zeros(mask.shape)
    dense[mask] = kept
    shift = 0.0 if offset is None else spread(offset, mask.shape)
    dense = np.where(mask, (dense - shift) * spread(scale, mask.shape).astype(float), 0.0)
    rest = {} if offset is None else {"offset": offset.astype(code)}

    def make():
        masks, values = mb.constexpr_sparse_blockwise_shift_scale(
            data_mask=mask.astype(UINT[1]), nonzero_data=kept.astype(code), scale=scale, **rest
        )
        return mb.constexpr_sparse_to_dense(nonzero_data=values, mask=masks)

    added(
        family, f"sparse_blocks_of_{kind}_to_{words(dtype)}",
        ["constexpr_sparse_blockwise_shift_scale", "constexpr_sparse_to_dense"], make, dense, 18,
        dtype,
    )


def sparse_tables(family: Family, bits: int, code: Any, size: int, axis: int | None) -> None:
    """Sparse codes of a table, looked up and made dense."""
    mask = family.bits(4, 3)
    mask[0, 0] = True
    kept = family.ints(0, 1 << bits, int(mask.sum()))
    table = np.resize(family.normal(2, 1, min(16, 1 << bits), size), (2, 1, 1 << bits, size))
    codes = np.zeros(mask.shape, int)
    codes[mask] = kept
    wide = mask if axis is None else np.repeat(mask, size, axis)
    dense = np.where(wide, looked_up(codes, table, axis), 0)
    rest = {} if axis is None else {"vector_axis": axis}

    def make():
        masks, values = mb.constexpr_lut_to_sparse(
            indices_mask=mask.astype(UINT[1]), indices_nonzero_data=kept.astype(code), lut=table,
            **rest,
        )
        return mb.constexpr_sparse_to_dense(nonzero_data=values, mask=masks)

    along = "" if axis is None else f"_of_vectors_along_axis_{axis}"
    added(
        family, f"sparse_table_of_{bits}_bits{along}",
        ["constexpr_lut_to_sparse", "constexpr_sparse_to_dense"], make, dense, 18, f32,
    )


def stacks(family: Family) -> None:
    """Compressed constants whose parts are compressed, and layers with such weights."""
    codes, inner = family.ints(0, 16, 4, 8), family.ints(-128, 128, 2, 1, 16, 1, dtype=np.int8)
    scale = family.uniform(0.015625, 0.125, 2, 1, 1, 1)
    table = inner * scale.astype(float)

    def make():
        lut = mb.constexpr_blockwise_shift_scale(data=inner, scale=scale)
        return mb.constexpr_lut_to_dense(indices=codes.astype(UINT[4]), lut=lut)

    operators = ["constexpr_blockwise_shift_scale", "constexpr_lut_to_dense"]
    dense = looked_up(codes, table)
    added(family, "table_that_is_quantised", operators, make, dense, 18, f32)
    whole = family.uniform(0.015625, 0.125, 4, 1)
    plain = family.ints(-128, 128, 1, 1, 16, 1, dtype=np.int8)
    added(
        family, "values_of_a_table_that_are_quantised", operators,
        lambda: mb.constexpr_blockwise_shift_scale(
            data=mb.constexpr_lut_to_dense(indices=codes.astype(UINT[4]), lut=plain), scale=whole
        ),
        looked_up(codes, plain) * whole.astype(float), 18, f32,
    )
    mask = family.bits(4, 8)
    mask[0, 0] = True

    def make_sparse():
        lut = mb.constexpr_blockwise_shift_scale(data=inner, scale=scale)
        masks, values = mb.constexpr_lut_to_sparse(
            indices_mask=mask.astype(UINT[1]), indices_nonzero_data=codes[mask].astype(UINT[4]),
            lut=lut,
        )
        return mb.constexpr_sparse_to_dense(nonzero_data=values, mask=masks)

    added(family, "sparse_table_that_is_quantised",
          [*operators[:1], "constexpr_lut_to_sparse", "constexpr_sparse_to_dense"], make_sparse,
          np.where(mask, dense, 0), 18, f32)
    family.add(
        "linear_with_weights_of_a_table_that_is_quantised", [*operators, "linear"],
        {"x": family.normal(2, 8)}, lambda x: mb.linear(x=x, weight=make()),
        lambda x: x @ dense.T, opset=18, fold=False,
    )
    layers(family)


def layers(family: Family) -> None:
    """Layers with compressed weights."""
    codes, scale = family.ints(-8, 8, 3, 8), family.uniform(0.0625, 0.25, 3, 2, dtype=f16)
    dense = codes * spread(scale, (3, 8)).astype(float)
    family.add(
        "linear_with_weights_in_blocks_of_int4", ["constexpr_blockwise_shift_scale", "linear"],
        {"x": family.normal(2, 8, dtype=f16)},
        lambda x: mb.linear(
            x=x, weight=mb.constexpr_blockwise_shift_scale(data=codes.astype(INT4), scale=scale)
        ),
        lambda x: x @ dense.T, opset=18, fold=False,
    )
    bytes_, scales = family.ints(-128, 128, 2, 2, 3, 3, dtype=np.int8), family.uniform(0.01, 0.05, 2)
    weight = bytes_ * scales.reshape(2, 1, 1, 1).astype(float)
    family.add(
        "conv_with_weights_of_affine_int8", ["constexpr_affine_dequantize", "conv"],
        {"x": family.normal(1, 2, 5, 5)},
        lambda x: mb.conv(x=x, weight=mb.constexpr_affine_dequantize(
            quantized_data=bytes_, zero_point=np.zeros(2, np.int8), scale=scales, axis=0
        )),
        lambda x: convolved(x, weight), opset=16, fold=False, oracle="torch",
    )
    rows, table = family.ints(0, 4, 5, 4), family.normal(4)
    family.add(
        "gather_of_rows_of_a_table_of_values", ["constexpr_lut_to_dense", "gather"],
        {"indices": np.array([4, 0, 2], np.int32)},
        lambda indices: mb.gather(x=mb.constexpr_lut_to_dense(
            indices=packed(rows, 2), lut=table, shape=np.array([5, 4], np.uint32)
        ), indices=indices, axis=0),
        lambda indices: table[rows][indices].astype(float), opset=16, fold=False,
    )


def without_ties(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Moves values that lie in the middle between two codes."""
    while True:
        share = np.abs(np.modf(x.astype(float) / scale.astype(float))[0])
        near = np.abs(share - 0.5) < 0.1
        if not near.any():
            return x
        x = np.where(near, x + x.dtype.type(1 / 64), x)


def quantised(family: Family) -> None:
    """`quantize` and `dequantize` of values."""
    for code, low in ((np.int8, -128), (np.uint8, 0)):
        for dtype in (f32, f16):
            for name, shape, axis in (("one_scale", (3, 4), None), ("a_scale_for_each_row", (2, 5), 0),
                                      ("a_scale_for_each_channel", (1, 3, 2, 2), -3)):
                for has_zero in (True, False):
                    count = 1 if axis is None else shape[axis]
                    scale = family.uniform(0.05, 0.1, count, dtype=dtype)
                    zero = family.ints(low + 60, low + 200, count, dtype=code)
                    along = [-1 if axis is not None and at == axis % len(shape) else 1
                             for at in range(len(shape))]
                    s, z = scale.reshape(along), (zero if has_zero else zero * 0).reshape(along)
                    params: dict[str, Any] = {"scale": scale if axis is not None else scale[0]}
                    if has_zero:
                        params["zero_point"] = zero if axis is not None else zero[0]
                    if axis is not None:
                        params["axis"] = axis
                    of = f"{words(code)}_and_{words(dtype)}_with_{name}"
                    of += "_and_zero_point" if has_zero else ""
                    x = without_ties(family.normal(*shape, dtype=dtype, scale=5), s)
                    family.one(
                        f"quantize_{of}", "quantize", {"input": x},
                        lambda input, s=s, z=z, low=low: np.clip(
                            np.round(input / s.astype(float)) + z, low, low + 255
                        ),
                        17, params | {"output_dtype": words(code)},
                    )
                    family.one(
                        f"dequantize_{of}", "dequantize",
                        {"input": family.ints(low, low + 256, *shape, dtype=code)},
                        lambda input, s=s, z=z: (input.astype(float) - z) * s.astype(float), 17,
                        params,
                    )
    family.add(
        "conv_between_quantize_and_dequantize", ["quantize", "dequantize", "conv"],
        {"x": without_ties(family.normal(1, 2, 4, 4), np.float32([0.09375]))}, sandwich,
        lambda x: convolved(
            np.clip(np.round(x / 0.09375), -128, 127) * 0.09375, np.full((2, 2, 2, 2), 0.5)
        ), opset=17, fold=False, oracle="torch",
    )


def sandwich(x):
    """What conversion makes of a layer with quantised activations."""
    codes = mb.quantize(input=x, scale=f32(0.09375), zero_point=np.int8(0), output_dtype="int8")
    real = mb.dequantize(input=codes, scale=f32(0.09375), zero_point=np.int8(0))
    return mb.conv(x=real, weight=np.full((2, 2, 2, 2), 0.5, f32))


def compression() -> Family:
    """Compressed constants."""
    family = Family("compression")
    for part in (affine, flat_tables, blocks, tables, sparse, stacks):
        part(family)
    return family


def quantization() -> Family:
    """Quantised values."""
    family = Family("quantization")
    quantised(family)
    return family
