"""Write golden/gguf: blocks of every quantised type of ggml with the floats they stand for, and small
GGUF files, all as the `gguf` package makes them.

usage: gguf_golden.py FOLDER      needs numpy, gguf and safetensors
"""

import sys
from importlib.metadata import version
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf.quants import dequantize
from safetensors.numpy import save_file

# Where the floats of 16 bits lie in a block: random bytes may be no number there.
HALVES = {
    Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2], Type.Q8_0: [0],
    Type.Q2_K: [80, 82], Type.Q3_K: [108], Type.Q4_K: [0, 2], Type.Q5_K: [0, 2],
    Type.Q6_K: [208], Type.IQ4_NL: [0], Type.IQ4_XS: [0], Type.TQ1_0: [52], Type.TQ2_0: [64],
    Type.MXFP4: [], Type.NVFP4: [],
    Type.IQ1_S: [0], Type.IQ1_M: [], Type.IQ2_XXS: [0], Type.IQ2_XS: [0], Type.IQ2_S: [0],
    Type.IQ3_XXS: [0], Type.IQ3_S: [0],
}


def random_blocks(rng, count, size, halves):
    blocks = rng.integers(0, 256, (count, size), dtype=np.uint8)
    for at in halves:
        scales = (rng.normal(size=count) * 10.0 ** rng.integers(-7, 3, count)).astype(np.float16)
        scales[0] = 0
        blocks[:, at : at + 2] = scales.view(np.uint8).reshape(count, 2)
    return blocks


def blocks_with_floats(rng):
    tensors = {}
    for kind, halves in HALVES.items():
        length, size = gguf.GGML_QUANT_SIZES[kind]
        count = 3 * 256 // length
        blocks = random_blocks(rng, count, size, halves)
        if kind == Type.MXFP4:
            blocks[:, 0] = rng.integers(0, 200, count)
            blocks[:3, 0] = [0, 1, 2]
        if kind == Type.IQ1_M:
            # The upper bits of the exponent of its scale, whose 16 bits lie in four places.
            blocks[:, 55] &= 0xBF
        tensors[f"{kind.name}.blocks"] = blocks
        tensors[f"{kind.name}.floats"] = dequantize(blocks, kind).reshape(count, length)
    # The package does not know these two, which occur between operators only: a scale of 16 or 32
    # bits, for Q8_1 the sum of the numbers, then bytes with a sign, for Q8_K sums of 16 each.
    blocks = random_blocks(rng, 24, 36, [0, 2])
    scales = blocks[:, :2].copy().view(np.float16).astype(np.float32)
    tensors["Q8_1.blocks"] = blocks
    tensors["Q8_1.floats"] = scales * blocks[:, 4:].view(np.int8).astype(np.float32)
    blocks = random_blocks(rng, 3, 292, [])
    scales = rng.normal(size=(3, 1)).astype(np.float32)
    blocks[:, :4] = scales.view(np.uint8)
    tensors["Q8_K.blocks"] = blocks
    tensors["Q8_K.floats"] = scales * blocks[:, 4:260].view(np.int8).astype(np.float32)
    return tensors


def write_every_value(path, rng):
    out = gguf.GGUFWriter(path, "llama")
    for bits in (8, 16, 32, 64):
        getattr(out, f"add_uint{bits}")(f"test.uint{bits}", 2**bits - 1)
        getattr(out, f"add_int{bits}")(f"test.int{bits}", -(2 ** (bits - 1)))
    out.add_float32("test.float32", 0.1)
    out.add_float64("test.float64", 0.1)
    out.add_bool("test.bool", True)
    out.add_string("test.string", "Zürich")
    out.add_array("test.strings", ["a", "", "日本"])
    out.add_array("test.ints", [1, -2, 3])
    out.add_array("test.floats", [0.5, -1.5])
    out.add_array("test.bools", [True, False])
    numbers = rng.normal(size=(3, 64)).astype(np.float32)
    out.add_tensor("plain.f32", numbers)
    out.add_tensor("plain.f16", numbers.astype(np.float16))
    out.add_tensor("plain.i64", np.arange(6, dtype=np.int64).reshape(1, 2, 3))
    for kind in (Type.BF16, Type.Q4_0, Type.Q8_0):
        data = gguf.quants.quantize(numbers, kind)
        out.add_tensor(f"coded.{kind.name.lower()}", data, raw_dtype=kind)
    finish(out)


def write_parts(path):
    out = gguf.GGUFWriter(path, "llama", split_max_tensors=2)
    out.add_block_count(5)
    for index in range(5):
        out.add_tensor(f"blk.{index}.weight", np.full((2, 4), index, np.float32))
    finish(out)


def finish(out):
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def main():
    folder, rng = Path(sys.argv[1]), np.random.default_rng(20)
    about = {name: version(name) for name in ("gguf", "numpy")}
    save_file(blocks_with_floats(rng), folder / "blocks.safetensors", about)
    write_every_value(folder / "every_value.gguf", rng)
    write_parts(folder / "parts.gguf")


main()
