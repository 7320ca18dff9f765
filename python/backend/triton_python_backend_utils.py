"""What models of Triton's Python backend import: the same names, for Galatea's workers."""

import enum
import sys
import types

from galatea_bls import ResponseIterator
from galatea_control import is_model_ready, load_model, unload_model
from galatea_metrics import Metric, MetricFamily, MetricKind
from galatea_model_config import (
    ModelConfig,
    get_input_config_by_name,
    get_output_config_by_name,
    using_decoupled_model_transaction_policy,
)
from galatea_requests import (
    REQUEST_RELEASE_ALL as TRITONSERVER_REQUEST_RELEASE_ALL,
    REQUEST_RELEASE_RESCHEDULE as TRITONSERVER_REQUEST_RELEASE_RESCHEDULE,
    RESPONSE_COMPLETE_FINAL as TRITONSERVER_RESPONSE_COMPLETE_FINAL,
    InferenceRequest,
    InferenceResponse,
    InferenceResponseSender,
    InferenceTrace,
    MemoryType,
    PreferredMemory,
    TritonError,
)
from galatea_tensors import (
    TRITON_STRING_TO_NUMPY,
    Tensor,
    TritonModelException,
    as_text,
    deserialize_bytes_tensor,
    numpy_to_triton_type,
    serialize_byte_tensor,
    triton_string_to_numpy,
    triton_to_numpy_type,
)

__all__ = [
    "InferenceRequest",
    "InferenceResponse",
    "InferenceResponseSender",
    "InferenceTrace",
    "Logger",
    "MemoryType",
    "Metric",
    "MetricFamily",
    "MetricKind",
    "ModelConfig",
    "PreferredMemory",
    "ResponseIterator",
    "TRITONSERVER_MEMORY_CPU",
    "TRITONSERVER_MEMORY_GPU",
    "TRITONSERVER_REQUEST_FLAG_SEQUENCE_END",
    "TRITONSERVER_REQUEST_FLAG_SEQUENCE_START",
    "TRITONSERVER_REQUEST_RELEASE_ALL",
    "TRITONSERVER_REQUEST_RELEASE_RESCHEDULE",
    "TRITONSERVER_RESPONSE_COMPLETE_FINAL",
    "TRITON_STRING_TO_NUMPY",
    "Tensor",
    "TritonError",
    "TritonModelException",
    "deserialize_bytes_tensor",
    "get_input_config_by_name",
    "get_input_tensor_by_name",
    "get_model_dir",
    "get_output_config_by_name",
    "get_output_tensor_by_name",
    "is_model_ready",
    "load_model",
    "numpy_to_triton_type",
    "serialize_byte_tensor",
    "triton_string_to_numpy",
    "triton_to_numpy_type",
    "unload_model",
    "using_decoupled_model_transaction_policy",
]

TRITONSERVER_REQUEST_FLAG_SEQUENCE_START = 1
TRITONSERVER_REQUEST_FLAG_SEQUENCE_END = 2
TRITONSERVER_MEMORY_CPU = MemoryType.TRITONSERVER_MEMORY_CPU
TRITONSERVER_MEMORY_GPU = MemoryType.TRITONSERVER_MEMORY_GPU

_model_dir = ""


def get_model_dir():
    """The folder of the model's version, in which `model.py` lies."""
    return _model_dir


def get_input_tensor_by_name(inference_request, name):
    """The input of a request that has this name; None if there is none."""
    name = as_text(name)
    for tensor in inference_request._inputs:
        if tensor._name == name:
            return tensor
    return None


def get_output_tensor_by_name(inference_response, name):
    """The output of a response that has this name; None if there is none."""
    name = as_text(name)
    for tensor in inference_response._output_tensors:
        if tensor._name == name:
            return tensor
    return None


class Logger:
    """Writes to the server's log, with the model's name."""

    class LogLevel(enum.IntEnum):
        """Levels of messages."""

        INFO, WARNING, ERROR, VERBOSE = range(4)

    INFO, WARNING, ERROR, VERBOSE = LogLevel

    @staticmethod
    def log(message, level=INFO):
        """Writes a message of that level."""
        # One line on the way that other output takes as well; the mark before it tells them apart.
        text = as_text(message)
        text = (str(message) if text is None else text).replace("\\", "\\\\").replace("\n", "\\n")
        sys.stderr.write(f"\x1e{Logger.LogLevel(level).name[0]}{text}\n")
        sys.stderr.flush()

    @staticmethod
    def log_info(message):
        """Writes information."""
        Logger.log(message, Logger.INFO)

    @staticmethod
    def log_warn(message):
        """Writes a warning."""
        Logger.log(message, Logger.WARNING)

    @staticmethod
    def log_error(message):
        """Writes an error."""
        Logger.log(message, Logger.ERROR)

    @staticmethod
    def log_verbose(message):
        """Writes what the server logs only where it is asked to tell much."""
        Logger.log(message, Logger.VERBOSE)


def _as_of_the_stub():
    """The module that Triton's own process has of what is not Python there, which models import as well."""
    module = types.ModuleType("c_python_backend_utils", "As `triton_python_backend_utils`.")
    names = ("InferenceRequest", "InferenceResponse", "InferenceResponseSender", "InferenceTrace", "Logger")
    names += ("MemoryType", "Metric", "MetricFamily", "MetricKind", "PreferredMemory", "ResponseIterator", "Tensor")
    names += ("TRITONSERVER_MEMORY_CPU", "TRITONSERVER_MEMORY_GPU", "TritonError", "TritonModelException")
    names += ("is_model_ready", "load_model", "unload_model")
    for name in names:
        setattr(module, name, globals()[name])
    module.COUNTER, module.GAUGE, module.HISTOGRAM = MetricKind
    return module


sys.modules.setdefault("c_python_backend_utils", _as_of_the_stub())
