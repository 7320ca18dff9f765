"""Makes programs of cases with coremltools: the file's protobuf and weights, and what coremltools
itself computes of constants."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import coremltools as ct
import numpy as np
from coremltools.converters.mil import Builder as mb
from coremltools.converters.mil import converter
from coremltools.converters.mil.mil import Function, Program, get_new_symbol, types
from coremltools.converters.mil.mil.types.type_mapping import numpy_type_to_builtin_type

from .case import Arrays, Case

TARGETS = {15: ct.target.iOS15, 16: ct.target.iOS16, 17: ct.target.iOS17, 18: ct.target.iOS18}
LONGEST = 16

# What a model's inputs and outputs may be; other types are cast inside the program.
OUTSIDE = {15: ("float32", "int32"), 16: ("float16", "float32", "int32")}


def outside(dtype: Any, opset: int) -> str:
    """The type as which values of `dtype` enter and leave a model: booleans and small integers as
    int32, FP16 as FP32 where models take no FP16."""
    name = np.dtype(dtype).name
    if name in OUTSIDE[min(opset, 16)]:
        return name
    return "float32" if name.startswith("float") else "int32"


def mil_name(dtype: Any) -> str:
    """The name of a NumPy type as `cast` wants it."""
    return {"float16": "fp16", "float32": "fp32"}.get(np.dtype(dtype).name, np.dtype(dtype).name)


def enter(case: Case, name: str, var: Any) -> Any:
    """The input as the operator takes it."""
    value = case.runs[0].get(name)
    if value is None or outside(value.dtype, case.opset) == value.dtype.name:
        return var
    return mb.cast(x=var, dtype=mil_name(value.dtype), name=f"{name}_inside")


def leave(case: Case, var: Any) -> Any:
    """The output as the model may give it."""
    if not (types.is_tensor(var.sym_type) or types.is_scalar(var.sym_type)):
        return var
    if types.is_str(var.dtype):
        return var
    dtype = np.dtype(types.nptype_from_builtin(var.dtype))
    if outside(dtype, case.opset) == dtype.name:
        return var
    return mb.cast(x=var, dtype=mil_name(outside(dtype, case.opset)), name=f"{var.name}_outside")


def as_tuple(value: Any) -> tuple[Any, ...]:
    """One output or several as a tuple."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def placeholders(case: Case) -> dict[str, Any]:
    """The program's inputs, states last."""
    symbols: dict[str, Any] = {}
    inputs = {}
    for name, value in case.runs[0].items():
        shape: list[Any] = list(value.shape)
        for axis, symbol in case.flexible.get(name, {}).items():
            shape[axis] = symbols.setdefault(symbol, get_new_symbol())
        dtype = numpy_type_to_builtin_type(np.dtype(outside(value.dtype, case.opset)))
        inputs[name] = mb.placeholder(shape, dtype=dtype)
    for name, value in case.states.items():
        inputs[name] = mb.state_tensor_placeholder(value.shape, types.fp16)
    return inputs


def program(case: Case) -> Program:
    """The program of a case."""
    result = Program()
    with Function(placeholders(case), opset_version=TARGETS[case.opset]) as function:
        given = {name: enter(case, name, var) for name, var in function.inputs.items()}
        outputs = [leave(case, var) for var in as_tuple(case.build(**given))]
        function.set_outputs(outputs)
    result.add_function("main", function)
    return result


def input_types(case: Case) -> list[ct.TensorType] | None:
    """The ranges of flexible inputs."""
    if not case.flexible:
        return None
    described = []
    for name, value in case.runs[0].items():
        shape: list[Any] = list(value.shape)
        for axis in case.flexible.get(name, {}):
            shape[axis] = ct.RangeDim(1, LONGEST, value.shape[axis])
        described.append(ct.TensorType(name=name, shape=shape))
    return described


def converted(case: Case) -> tuple[Any, bytes | None]:
    """The `Model` message, and the weights' file where there is one.

    These are the steps of `ct.convert`, less what it writes to disk, for most cases with an empty
    pipeline of passes: the program stays as it was built."""
    made = program(case)
    with tempfile.TemporaryDirectory() as weights:
        spec, _ = converter.mil_convert_to_proto(
            made,
            "milinternal",
            "mlprogram",
            converter.ConverterRegistry,
            main_pipeline=ct.PassPipeline() if case.default_passes else ct.PassPipeline.EMPTY,
            inputs=input_types(case),
            classifier_config=case.classes and ct.ClassifierConfig(case.classes),
            weights_dir=weights,
            specification_version=TARGETS[case.opset].value,
        )
        blob = Path(weights, "weight.bin")
        data = blob.read_bytes() if blob.exists() else None
    converter._reset_conversion_state()
    return spec, data


def operators_of(block: Any) -> set[str]:
    """The types of all operations of a block and the blocks inside."""
    found = set()
    for operation in block.operations:
        found.add(operation.type)
        for inner in operation.blocks:
            found |= operators_of(inner)
    return found


def check_kept(case: Case, spec: Any) -> set[str]:
    """Fails where a pass removed what the case is about. Returns all operators of the program."""
    found = set()
    for function in spec.mlProgram.functions.values():
        for block in function.block_specializations.values():
            found |= operators_of(block)
    missing = set(case.operators) - found
    if missing:
        raise ValueError(f"{case.name}: {sorted(missing)} not in the file, which has {sorted(found)}")
    return found


def folded(case: Case, inputs: Arrays) -> list[np.ndarray | None]:
    """What coremltools' value inference gives where all inputs are constants; `None` for outputs
    that it does not compute."""
    with Function({"unused": mb.placeholder((1,))}, opset_version=TARGETS[case.opset]):
        given = {name: mb.const(val=value) for name, value in inputs.items()}
        outputs = as_tuple(case.build(**given))
    return [None if var.val is None else np.asarray(var.val) for var in outputs]
