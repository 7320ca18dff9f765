"""What models of Triton's Python backend import: the same names, for Galatea's workers."""

import sys

from galatea_control import is_model_ready, load_model, unload_model
from galatea_metrics import Metric, MetricFamily
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
    Tensor,
    TritonModelException,
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
    "ModelConfig",
    "PreferredMemory",
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

_model_dir = ""


def get_model_dir():
    """The folder of the model's version, in which `model.py` lies."""
    return _model_dir


def get_input_tensor_by_name(inference_request, name):
    """The input of a request that has this name; None if there is none."""
    for tensor in inference_request._inputs:
        if tensor._name == name:
            return tensor
    return None


def get_output_tensor_by_name(inference_response, name):
    """The output of a response that has this name; None if there is none."""
    if inference_response.has_error():
        raise TritonModelException(
            "This function is called on a response that has an error: " + str(inference_response.error().message())
        )
    for tensor in inference_response._output_tensors:
        if tensor._name == name:
            return tensor
    return None


class Logger:
    """Writes to the server's log, with the model's name."""

    INFO, WARNING, ERROR, VERBOSE = "I", "W", "E", "V"

    @staticmethod
    def log(message, level=INFO):
        """Writes a message of that level."""
        # One line on the way that other output takes as well; the mark before it tells them apart.
        text = str(message).replace("\\", "\\\\").replace("\n", "\\n")
        sys.stderr.write(f"\x1e{level}{text}\n")
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


def __getattr__(name):
    if name == "TRITON_STRING_TO_NUMPY":
        names = ("BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64")
        names += ("FP16", "FP32", "FP64", "STRING")
        return {f"TYPE_{name}": triton_string_to_numpy(f"TYPE_{name}") for name in names}
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
