"""The model of `backend: "tensorflow"`: a SavedModel, a frozen graph or a LiteRT file, run by the user's own framework.

Inputs and outputs have the names of the file's signature, from which the configuration is completed.
"""

import json
import os
import sys

import numpy as np

import galatea_tensorflow_files as files
import triton_python_backend_utils as pb_utils
from galatea_file_model import FileModel, ModelFileError, Parameters, not_importable
from galatea_tensors import BF16, CONFIG_NAMES

_THREADS = {"TF_NUM_INTRA_THREADS": "intra", "TF_NUM_INTER_THREADS": "inter"}
# Parameters of Triton's backend that would change answers, which this one does not have.
_REFUSED = ("TF_INIT_OPS_FILE",)
_LITE_MODULES = ("ai_edge_litert.interpreter", "tflite_runtime.interpreter")


def _import_tensorflow(name):
    # Its own lines at the start are no concern of the server's log.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    try:
        import tensorflow
    except ImportError as error:
        raise not_importable(name, "tensorflow", "tensorflow", error) from None
    return tensorflow


def _import_lite(name):
    """The class that runs files of LiteRT: that of a small package, else TensorFlow's."""
    for module in _LITE_MODULES:
        try:
            return __import__(module, fromlist=["Interpreter"]).Interpreter
        except ImportError:
            continue
    return _import_tensorflow(name).lite.Interpreter


def _open(config, path):
    """The framework (None for LiteRT) and the file."""
    name = config.get("name", "")
    parameters = Parameters(config)
    for key in _REFUSED:
        if parameters.text(key):
            raise ModelFileError(f"parameter '{key}' of model '{name}' is not supported: initialise in the SavedModel")
    counts = {option: parameters.count(key) for key, option in _THREADS.items()}
    if files.is_lite(path):
        return None, files.Lite(_import_lite(name), path, parameters, counts["intra"])
    tf = _import_tensorflow(name)
    for option, count in counts.items():
        if count:
            getattr(tf.config.threading, f"set_{option}_op_parallelism_threads")(count)
    if os.path.isdir(path):
        return tf, files.Saved(tf, path, parameters)
    inputs, outputs = ([one["name"] for one in config.get(what, ())] for what in ("input", "output"))
    if not inputs or not outputs:
        raise ModelFileError(f"the configuration of model '{name}' must name its inputs and outputs: '{path}' does not")
    return tf, files.Graph(tf, path, inputs, outputs)


class TritonPythonModel(FileModel):
    """Runs the file."""

    _framework = "TensorFlow"

    @staticmethod
    def describe(config, path):
        """What the file takes and gives, as JSON: `dims` hold the batch too, -1 for lengths that vary, and are null
        where not even the rank is known."""
        file = _open(config, path)[1]

        def described(tensors):
            return [{"name": one.name, "data_type": one.data_type, "dims": _dims(one.shape)} for one in tensors]

        return json.dumps({"inputs": described(file.inputs), "outputs": described(file.outputs)})

    def initialize(self, args):
        """Loads the file."""
        self._name = args["model_name"]
        config = json.loads(args["model_config"])
        self._joins = config.get("max_batch_size", 0) > 0
        self._tf, self._file = _open(config, args["model_file"])
        self._device = self._choose(args)
        self._kinds = {one.name: one.data_type for one in self._file.inputs}
        self._outputs = [(one["name"], one["data_type"]) for one in config.get("output", ())]
        known = {one.name for one in self._file.outputs}
        for name, _ in self._outputs:
            if name not in known:
                raise ModelFileError(
                    f"output '{name}' of model '{self._name}' is none of '{args['model_file']}', which gives "
                    f"{', '.join(sorted(known))}"
                )
        lacking = sorted(set(self._kinds) - {one["name"] for one in config.get("input", ())})
        if lacking:
            raise ModelFileError(f"the configuration of model '{self._name}' lacks the input '{lacking[0]}'")

    def _choose(self, args):
        """The name of the device; None where the framework decides."""
        if self._tf is None or args["model_instance_kind"] == "MODEL":
            return None
        number = int(args["model_instance_device_id"])
        if args["model_instance_kind"] == "CPU":
            return "/CPU:0"
        found = self._tf.config.list_logical_devices("GPU")
        if number < len(found):
            return found[number].name
        pb_utils.Logger.log_warn(
            f"tensorflow {self._tf.__version__} of '{sys.executable}' sees no GPU {number}: the processor runs model "
            f"'{self._name}'"
        )
        return "/CPU:0"

    def _taken(self, tensor):
        name = tensor.name()
        found = CONFIG_NAMES[tensor._number]
        wanted = self._kinds.get(name)
        if wanted is None:
            raise ModelFileError(f"input '{name}' is none of the file's, which takes {', '.join(self._kinds)}")
        if found != wanted:
            raise ModelFileError(f"input '{name}' is {found}, the file takes {wanted}")
        if tensor._number == BF16:
            return tensor._array.view(self._tf.bfloat16.as_numpy_dtype)
        return tensor.as_numpy()

    def _joined(self, values):
        return np.concatenate(values)

    def _run(self, given):
        """What the file gives, in the order of the configured outputs."""
        lacking = [name for name in self._kinds if name not in given]
        if lacking:
            raise ModelFileError(f"the request has no input '{lacking[0]}'")
        if self._device is None:
            results = self._file.run(given)
        else:
            with self._tf.device(self._device):
                results = self._file.run(given)
        return [np.asarray(results[name]) for name, _ in self._outputs]

    def _outputs_of(self, results):
        return [self._output(*row, result) for row, result in zip(self._outputs, results)]

    def _output(self, name, data_type, result):
        result = result.reshape(1) if result.ndim == 0 else result
        if result.dtype.name == "bfloat16":
            made = pb_utils.Tensor(name, result.view(np.uint16))
            made._number = BF16
        else:
            made = pb_utils.Tensor(name, result)
        found = CONFIG_NAMES[made._number]
        if found != data_type:
            raise ModelFileError(
                f"configuration expects datatype {data_type} for output '{name}', model provides {found}"
            )
        return made


def _dims(shape):
    return None if shape is None else [-1 if length is None else length for length in shape]
