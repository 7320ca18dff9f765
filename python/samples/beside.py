"""Parts of models in Python that training shares, and their recorded requests."""

import importlib.util

from .repository import tensor_json, write_json


def module(path):
    """A module of a model's folder."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def record(folder, inputs, outputs):
    """Writes the sample request and its answer; both are lists of `(Io, array)`."""
    write_json(folder / "sample_input.json", {"inputs": [tensor_json(*tensor) for tensor in inputs]})
    write_json(folder / "sample_output.json", {"model_name": folder.name, "model_version": "1",
                                               "outputs": [tensor_json(*tensor) for tensor in outputs]})
