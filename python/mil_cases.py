"""Write golden/mil: cases for every operator of Core ML's ML programs, made by coremltools, with
values that other programs compute.

usage: mil_cases.py FOLDER [FAMILY ...]      needs requirements-mil.txt
"""

import logging
import os
import sys
import warnings
from pathlib import Path

logging.disable(logging.CRITICAL)
warnings.filterwarnings("ignore")
# coremltools draws a bar for every pipeline of passes.
os.environ["TQDM_DISABLE"] = "1"

from mil import coverage  # noqa: E402
from mil.families import FAMILIES  # noqa: E402
from mil.write import write_family  # noqa: E402


def main() -> None:
    folder, wanted = Path(sys.argv[1]), sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for make in FAMILIES:
        family = make()
        if not wanted or family.name in wanted:
            failed += write_family(family, folder)
    coverage.report(folder)
    if failed:
        sys.exit(f"{failed} cases failed")


main()
