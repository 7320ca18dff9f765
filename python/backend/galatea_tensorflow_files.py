"""Files of TensorFlow: what they take and give, and how they are called."""

import os

import numpy as np

from galatea_file_model import ModelFileError
from galatea_tensors import TRITON_STRING_TO_NUMPY

_SIGNATURE = "serving_default"
# A signature that only starts a model.
_INTERNAL = "__saved_model_init_op"

# Types as configurations call them, by the names that TensorFlow and NumPy have.
_DATA_TYPES = {np.dtype(kind).name: name for name, kind in TRITON_STRING_TO_NUMPY.items()}
_DATA_TYPES |= {"bfloat16": "TYPE_BF16", "string": "TYPE_STRING", "bytes": "TYPE_STRING"}


class Tensor:
    """An input or output: its name, its type as configurations call it, and its shape.

    The shape has None for lengths that vary, and is None where not even the rank is known.
    """

    __slots__ = ("name", "data_type", "shape")

    def __init__(self, name, data_type, shape):
        self.name = name
        self.data_type = data_type
        self.shape = shape


def _data_type(path, name, kind):
    """The name that configurations have for a type of NumPy or TensorFlow."""
    kind = getattr(kind, "name", None) or np.dtype(kind).name
    found = _DATA_TYPES.get(kind)
    if found is None:
        known = ", ".join(sorted(_DATA_TYPES))
        raise ModelFileError(f"'{name}' in '{path}' has type {kind}, which no request can carry: expected {known}")
    return found


def _described(path, named):
    """The tensors of specifications by name."""
    return [
        Tensor(name, _data_type(path, name, spec.dtype), None if spec.shape.rank is None else spec.shape.as_list())
        for name, spec in named
    ]


class Saved:
    """A folder of `tf.saved_model.save`: one of its signatures."""

    def __init__(self, tf, path, parameters):
        tag = parameters.text("TF_GRAPH_TAG")
        try:
            # A folder with one set of tags needs none.
            self._model = tf.saved_model.load(path, tags=[tag] if tag else None)
        except Exception as error:
            raise ModelFileError(f"'{path}' cannot be read as a SavedModel: {error}") from None
        signatures = {name: one for name, one in self._model.signatures.items() if name != _INTERNAL}
        wanted = parameters.text("TF_SIGNATURE_DEF")
        name = wanted or (_SIGNATURE if _SIGNATURE in signatures or len(signatures) != 1 else next(iter(signatures)))
        if name not in signatures:
            found = ", ".join(sorted(signatures)) or "none"
            raise ModelFileError(
                f"'{path}' has no signature '{name}', found {found}: the parameter TF_SIGNATURE_DEF names one"
            )
        self._run = signatures[name]
        self._tf = tf
        self.inputs = _described(path, self._run.structured_input_signature[1].items())
        self.outputs = _described(path, self._run.structured_outputs.items())

    def run(self, given):
        """The outputs by name, for values by name."""
        return {name: _value(one) for name, one in self._run(**_constants(self._tf, given)).items()}


class Graph:
    """A file of a frozen `GraphDef`, whose tensors have the names of its nodes (`input` or `input:0`)."""

    def __init__(self, tf, path, inputs, outputs):
        self._tf = tf
        graph = tf.compat.v1.GraphDef()
        try:
            with open(path, "rb") as file:
                graph.ParseFromString(file.read())
        except Exception as error:
            raise ModelFileError(f"'{path}' cannot be read as a GraphDef: {error}") from None
        nodes = {node.name for node in graph.node}
        for name in (*inputs, *outputs):
            if name.partition(":")[0] not in nodes:
                raise ModelFileError(f"'{path}' has no node '{name.partition(':')[0]}', which the configuration names")
        try:
            whole = tf.compat.v1.wrap_function(lambda: tf.import_graph_def(graph, name=""), [])
            at = whole.graph.get_tensor_by_name
            feeds = [at(_numbered(name)) for name in inputs]
            self._run = whole.prune(feeds, [at(_numbered(name)) for name in outputs])
        except Exception as error:
            raise ModelFileError(f"'{path}' cannot be prepared: {error}") from None
        self._names = inputs
        self._results = outputs
        self.inputs = _described(path, zip(inputs, feeds))
        self.outputs = _described(path, zip(outputs, self._run.outputs))

    def run(self, given):
        """The outputs by name, for values by name."""
        values = _constants(self._tf, given)
        results = self._run(*(values[name] for name in self._names))
        return {name: _value(one) for name, one in zip(self._results, results)}


def _numbered(name):
    return name if ":" in name else f"{name}:0"


class Lite:
    """A file of LiteRT (TensorFlow Lite): its signature, or its tensors where it has none."""

    def __init__(self, interpreter, path, parameters, threads):
        try:
            self._lite = interpreter(model_path=path, num_threads=threads)
            signatures = self._lite.get_signature_list()
        except Exception as error:
            raise ModelFileError(f"'{path}' cannot be read as a model of LiteRT: {error}") from None
        wanted = parameters.text("TF_SIGNATURE_DEF")
        if wanted and wanted not in signatures:
            found = ", ".join(sorted(signatures)) or "none"
            raise ModelFileError(f"'{path}' has no signature '{wanted}', found {found}")
        name = wanted or next(iter(signatures), None)
        self._signature = None if name is None else self._lite.get_signature_runner(name)
        if self._signature is None:
            inputs = {one["name"]: one for one in self._lite.get_input_details()}
            outputs = {one["name"]: one for one in self._lite.get_output_details()}
        else:
            inputs = self._signature.get_input_details()
            outputs = self._signature.get_output_details()
        self._inputs, self._outputs = inputs, outputs
        self._shapes = None
        self.inputs = [_of_details(path, name, one) for name, one in inputs.items()]
        self.outputs = [_of_details(path, name, one) for name, one in outputs.items()]

    def run(self, given):
        """The outputs by name, for values by name."""
        if self._signature is not None:
            return self._signature(**given)
        lite = self._lite
        shapes = {name: value.shape for name, value in given.items()}
        if shapes != self._shapes:
            self._shapes = None
            for name, shape in shapes.items():
                lite.resize_tensor_input(self._inputs[name]["index"], shape)
            lite.allocate_tensors()
            self._shapes = shapes
        for name, value in given.items():
            lite.set_tensor(self._inputs[name]["index"], value)
        lite.invoke()
        return {name: lite.get_tensor(one["index"]) for name, one in self._outputs.items()}


def _of_details(path, name, details):
    varying = details.get("shape_signature", details["shape"])
    shape = [None if length < 0 else int(length) for length in varying]
    return Tensor(name, _data_type(path, name, details["dtype"]), shape)


def _constants(tf, given):
    return {name: tf.constant(value) for name, value in given.items()}


def _value(result):
    """The array of a result: strings are objects of type `bytes`."""
    if not hasattr(result, "numpy"):
        raise ModelFileError(f"an output is {type(result).__name__}, expected a dense tensor")
    return np.asarray(result.numpy())


def is_lite(path):
    """Whether a path is a file of LiteRT, by its name."""
    return os.path.splitext(path)[1] in (".tflite", ".lite")
