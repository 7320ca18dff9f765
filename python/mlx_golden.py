"""Write golden/mlx: layers of codes of each width, as MLX quantises them, with the floats that MLX
makes of them.

usage: mlx_golden.py FOLDER      needs numpy, mlx (mlx-cpu on Linux) and safetensors
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import mlx.core as mx
import numpy as np
from safetensors.numpy import save_file

ROWS, COLUMNS = 2, 256


def layer(rng, bits, group, dtype):
    numbers = mx.array(rng.normal(size=(ROWS, COLUMNS)).astype(np.float32)).astype(dtype)
    words, scales, biases = mx.quantize(numbers, group_size=group, bits=bits)
    # In FP32, where nothing is rounded but the result.
    whole = [each.astype(mx.float32) for each in (scales, biases)]
    floats = mx.dequantize(words, *whole, group_size=group, bits=bits)
    parts = {"weight": words, "scales": scales, "biases": biases, "floats": floats}
    return {part: np.array(value) for part, value in parts.items()}


def main():
    folder, rng = Path(sys.argv[1]), np.random.default_rng(8)
    tensors, layers = {}, {"group_size": 64, "bits": 4}
    for bits in (2, 3, 4, 5, 6, 8):
        for group, dtype in ((32, mx.float32), (64, mx.float16), (128, mx.float32)):
            name = f"bits{bits}.group{group}"
            for part, value in layer(rng, bits, group, dtype).items():
                tensors[f"{name}.{part}"] = value
            layers[name] = {"group_size": group, "bits": bits}
    save_file(tensors, folder / "model.safetensors", {n: version(n) for n in ("mlx", "numpy")})
    config = {"model_type": "llama", "quantization": layers}
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")


main()
