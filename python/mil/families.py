"""The families of cases, a file each."""

from __future__ import annotations

from collections.abc import Callable

from .activation import activation
from .case import Family
from .compression import compression, quantization
from .control import control
from .conv import conv
from .creation import creation
from .elementwise import elementwise
from .image import image
from .indexing import indexing
from .linear import linear
from .normalization import normalization
from .pool import pool
from .programs import programs
from .recurrent import recurrent
from .reduction import reduction
from .shape import shape
from .slicing import slicing
from .sorting import sorting

FAMILIES: list[Callable[[], Family]] = [
    elementwise,
    activation,
    linear,
    conv,
    pool,
    normalization,
    reduction,
    shape,
    slicing,
    indexing,
    creation,
    sorting,
    image,
    recurrent,
    control,
    compression,
    quantization,
    programs,
]
