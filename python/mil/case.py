"""A golden case: a program of one operator or few, values for its inputs, and what it must give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from coremltools.converters.mil import Builder as mb

Arrays = dict[str, np.ndarray]

# The iOS version whose operators a program is built of -> the opset's name in the file.
OPSETS = {15: "CoreML5", 16: "CoreML6", 17: "CoreML7", 18: "CoreML8"}

f16, f32, i32 = np.float16, np.float32, np.int32


@dataclass
class Case:
    """What a family says of one case.

    `build` takes the program's inputs as Vars by name and returns a Var or a tuple of them.
    `expect` takes the inputs' values, floats widened to FP64, and returns an array or a tuple of
    them. `runs` holds the inputs of each run; there is more than one where a state lies between.
    """

    name: str
    operators: list[str]
    opset: int
    runs: list[Arrays]
    build: Callable[..., Any]
    expect: Callable[..., Any] | None
    oracle: str = "numpy"
    tolerance: tuple[float, float] | None = None
    why: str | None = None
    # input -> {axis: symbol}: these axes are unknown in the program, 1 to 16 long at run time.
    flexible: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    # Names of inputs that are states (FP16), with what they hold before the first run.
    states: Arrays = field(default_factory=dict)
    # For random operators: values lie between these, and nothing else is known.
    bounds: tuple[float, float] | None = None
    # Their shapes, where the program does not declare them.
    shapes: list[tuple[int, ...]] | None = None
    # Of a classifier: its classes. The program gives their probabilities.
    classes: list[str] | list[int] | None = None
    # Whether conversion runs its passes, which make computation FP16.
    default_passes: bool = False
    # Whether coremltools' own value inference is asked too.
    fold: bool = True


class Family:
    """Cases that go to one file."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.cases: list[Case] = []
        self.rng = np.random.default_rng(sum(map(ord, name)))

    def add(
        self,
        name: str,
        operators: str | Sequence[str],
        inputs: Arrays | list[Arrays],
        build: Callable[..., Any],
        expect: Callable[..., Any] | None,
        *,
        opset: int = 15,
        **more: Any,
    ) -> None:
        """Add a case; `more` are fields of `Case`."""
        operators = [operators] if isinstance(operators, str) else list(operators)
        runs = inputs if isinstance(inputs, list) else [inputs]
        if any(case.name == name for case in self.cases):
            raise ValueError(f"two cases are named {name}")
        self.cases.append(Case(name, operators, opset, runs, build, expect, **more))

    def one(
        self,
        name: str,
        operator: str,
        inputs: Arrays,
        expect: Callable[..., Any] | None,
        opset: int = 15,
        params: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> None:
        """Add a case of one operator whose inputs have the names of its parameters; `params` are
        its constants, which `expect` need not take."""
        constants = dict(params or {})

        def build(**given: Any) -> Any:
            return getattr(mb, operator)(**given, **constants)

        self.add(name, operator, inputs, build, expect, opset=opset, **more)

    # Values. Shapes are small so that a file of dozens of cases stays below 100 kB.

    def normal(self, *shape: int, dtype: Any = f32, scale: float = 1.0) -> np.ndarray:
        """Normally distributed values of a quarter of FP16's digits, so that texts stay short
        and a value in FP16 is the same value."""
        values = self.rng.normal(size=shape) * scale
        return (np.round(values * 64) / 64).astype(dtype)

    def uniform(self, low: float, high: float, *shape: int, dtype: Any = f32) -> np.ndarray:
        """Values between two bounds in steps of 1/64."""
        return (np.round(self.rng.uniform(low, high, shape) * 64) / 64).astype(dtype)

    def ints(self, low: int, high: int, *shape: int, dtype: Any = i32) -> np.ndarray:
        """Whole numbers from `low` up to but not `high`."""
        return self.rng.integers(low, high, shape).astype(dtype)

    def distinct(self, *shape: int, dtype: Any = f32) -> np.ndarray:
        """Values of which no two are equal, in random order: nothing to sort has a tie."""
        count = int(np.prod(shape))
        return ((self.rng.permutation(count) - count / 2) / 4).astype(dtype).reshape(shape)

    def bits(self, *shape: int) -> np.ndarray:
        """Random truth values."""
        return self.rng.integers(0, 2, shape).astype(bool)


def words(dtype: Any) -> str:
    """The name of a type in a case's name."""
    return {"float16": "fp16", "float32": "fp32"}.get(np.dtype(dtype).name, np.dtype(dtype).name)
