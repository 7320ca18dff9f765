"""What the cases of classic Core ML networks are made with, and how they are written."""

import io
import json
import zipfile

import numpy as np
import torch
from coremltools.models import datatypes
from coremltools.models.neural_network import NeuralNetworkBuilder

CASES = {}
RNG = np.random.default_rng(7)


def rand(*shape, low=-1.0, high=1.0):
    return RNG.uniform(low, high, shape).astype(np.float32)


def weights(*shape):
    """Weights with few digits, which compress."""
    return (RNG.integers(-8, 9, shape) / 8).astype(np.float32)


def network(inputs, outputs, rank5=False, shapes=None, **options):
    """A builder of a network with these inputs (arrays by name) and names of outputs."""
    shapes = shapes or {}
    given = [(name, datatypes.Array(*shapes.get(name, value.shape))) for name, value in inputs.items()]
    # Those of cases that are declared when all values are known have a name in between.
    wanted = [(name, shapes.get(name) and datatypes.Array(*shapes[name])) for name in outputs] or [("later", None)]
    return NeuralNetworkBuilder(
        given, wanted, disable_rank5_shape_mapping=not rank5, use_float_arraytype=True, **options
    )


def case(family, name, builder, inputs, outputs, tolerance=1e-5, why="single precision"):
    spec = builder.spec if hasattr(builder, "spec") else builder
    spec.description.metadata.Clear()
    kind = spec.WhichOneof("Type")
    layers = sorted({layer.WhichOneof("layer") for layer in getattr(getattr(spec, kind), "layers", [])}) or [kind]
    CASES.setdefault(family, []).append((name, spec, inputs, outputs, layers, tolerance, why))


def t(array):
    return torch.from_numpy(np.ascontiguousarray(array))


def finish(net, outputs, rank5_shape=False):
    """Declares the outputs of a builder that was made without."""
    del net.spec.description.output[:]
    for name, value in outputs.items():
        outputs[name] = np.asarray(value, np.float32)
        output = net.spec.description.output.add()
        output.name = name
        output.type.multiArrayType.dataType = 65568
        output.type.multiArrayType.shape.extend(outputs[name].shape)


def write(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for family, cases in CASES.items():
        path = folder / f"{family}.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name, spec, inputs, outputs, layers, tolerance, why in cases:
                said = {"layers": layers, "tolerance_abs": tolerance, "tolerance_rel": tolerance, "why": why}
                files = {"model.mlmodel": spec.SerializeToString(deterministic=True)}
                for kind, arrays in [("inputs", inputs), ("outputs", outputs)]:
                    for key, value in arrays.items():
                        file = io.BytesIO()
                        np.save(file, np.asarray(value, order="C"))
                        files[f"{kind}/{key}.npy"] = file.getvalue()
                files["case.json"] = json.dumps(said).encode()
                for file, data in files.items():
                    # The oldest time that the format has: archives of one script are equal.
                    archive.writestr(zipfile.ZipInfo(f"{name}/{file}", (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED, 9)
        print(f"{path}: {len(cases)} cases, {path.stat().st_size} bytes")
