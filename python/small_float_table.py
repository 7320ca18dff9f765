"""Writes what ml_dtypes makes of single-precision numbers in the floats of 8 and fewer bits.

    python small_float_table.py ../crates/tensor/tests/data/small_floats.txt

The file has for each type a line `decode NAME` with the single-precision bits of every code, and a
line `encode NAME` with the runs of the conversion from single precision: over all 2^32 bit patterns
in ascending order, the first pattern of each run that has one code, and the code. Every pattern is
converted, so the table is exhaustive. Values that are too large become infinite or NaN in it, which
is ONNX's `saturate=0`. Of FLOAT8E8M0 only the codes' values are given: ONNX rounds it otherwise.
"""

import sys

import ml_dtypes
import numpy as np

TYPES = {
    "FLOAT8E4M3FN": ml_dtypes.float8_e4m3fn,
    "FLOAT8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "FLOAT8E5M2": ml_dtypes.float8_e5m2,
    "FLOAT8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "FLOAT8E8M0": ml_dtypes.float8_e8m0fnu,
    "FLOAT4E2M1": ml_dtypes.float4_e2m1fn,
}
CHUNK = 1 << 26


def runs(dtype):
    """(first pattern, code) of each run."""
    found, last = [], None
    for start in range(0, 1 << 32, CHUNK):
        patterns = np.arange(start, start + CHUNK, dtype=np.uint64).astype(np.uint32)
        with np.errstate(all="ignore"):
            codes = patterns.view(np.float32).astype(dtype).view(np.uint8)
        for at in np.flatnonzero(np.diff(codes, prepend=np.uint8(last or 0))).tolist():
            found.append((start + at, int(codes[at])))
        if last is None and (not found or found[0][0] != 0):
            found.insert(0, (0, int(codes[0])))
        last = int(codes[-1])
    return found


def main(path):
    with open(path, "w", encoding="ascii") as out:
        out.write(f"# By python/small_float_table.py with ml_dtypes {ml_dtypes.__version__}.\n")
        for name, dtype in TYPES.items():
            count = 16 if name == "FLOAT4E2M1" else 256
            codes = np.arange(count, dtype=np.uint8)
            bits = codes.view(dtype).astype(np.float32).view(np.uint32)
            out.write(f"decode {name} " + " ".join(f"{b:x}" for b in bits.tolist()) + "\n")
            if name == "FLOAT8E8M0":
                continue
            pairs = " ".join(f"{first:x}:{code:x}" for first, code in runs(dtype))
            out.write(f"encode {name} {pairs}\n")
            out.flush()


main(sys.argv[1])
