"""Write crates/formats/src/blocks/grids.bin: the grids of ggml's IQ types, a byte for each number,
which is the number's place among those that the type has.

usage: gguf_grids.py FILE      needs numpy and gguf
"""

import sys
from pathlib import Path

import numpy as np
from gguf import quants

ORDER = ("IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S")


def places(name):
    kind = getattr(quants, name)
    kind.init_grid()
    found = np.searchsorted(kind.grid_map, kind.grid.ravel())
    assert np.array_equal(np.asarray(kind.grid_map)[found], kind.grid.ravel())
    return found.astype(np.uint8).tobytes()


def main():
    Path(sys.argv[1]).write_bytes(b"".join(places(name) for name in ORDER))


main()
