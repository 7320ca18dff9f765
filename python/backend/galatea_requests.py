"""Requests and responses as a Python model sees them."""

import enum
import json
import threading

import galatea_bls
from galatea_tensors import Tensor, TritonModelException, as_integer, as_text

RESPONSE_COMPLETE_FINAL = 1
REQUEST_RELEASE_ALL = 1
REQUEST_RELEASE_RESCHEDULE = 2


class ErrorCode(enum.IntEnum):
    """Kinds of errors."""

    UNKNOWN, INTERNAL, NOT_FOUND, INVALID_ARG, UNAVAILABLE, UNSUPPORTED, ALREADY_EXISTS, CANCELLED = range(8)


class TritonError:
    """An error as the answer to a request."""

    UNKNOWN, INTERNAL, NOT_FOUND, INVALID_ARG, UNAVAILABLE, UNSUPPORTED, ALREADY_EXISTS, CANCELLED = ErrorCode

    __slots__ = ("_message", "_code")

    def __init__(self, message, code=INTERNAL):
        text = as_text(message)
        self._message = message if text is None else text
        self._code = int(code)
        if not 0 <= self._code <= TritonError.CANCELLED:
            raise TritonModelException(f"{code} is no code of TritonError, expected 0 to {TritonError.CANCELLED}")

    def message(self):
        """What the client reads."""
        return self._message

    def code(self):
        """Kind of the error, one of the constants of the class."""
        return ErrorCode(self._code)


class InferenceTrace:
    """The trace of a request: a request to another model that is given it becomes a part of it. The server hands out no
    context, so that is None."""

    __slots__ = ("_context", "_number")

    def __init__(self, context=None):
        self._context = context
        # The request's, for the server.
        self._number = None

    def get_context(self):
        """The context of the trace as text of JSON, or None."""
        return self._context


class MemoryType(enum.IntEnum):
    """Kinds of memory."""

    TRITONSERVER_MEMORY_GPU = 0
    TRITONSERVER_MEMORY_CPU = 1


class PreferredMemory:
    """Where a model would like the outputs of another one; all tensors lie in memory of the processor."""

    __slots__ = ("_memory_type", "_device_id")

    def __init__(self, preferred_memory_type, preferred_device_id=0):
        if not isinstance(preferred_memory_type, MemoryType):
            raise TypeError(
                f"preferred_memory_type of PreferredMemory is {type(preferred_memory_type).__name__}, expected "
                "TRITONSERVER_MEMORY_GPU or TRITONSERVER_MEMORY_CPU"
            )
        self._memory_type = preferred_memory_type
        self._device_id = preferred_device_id


class InferenceResponse:
    """The answer to a request: tensors or an error."""

    __slots__ = ("_output_tensors", "_error", "_parameters")

    def __init__(self, output_tensors=(), error=None, parameters=None):
        tensors = list(output_tensors) if output_tensors is not None else []
        for tensor in tensors:
            if type(tensor) is not Tensor and not isinstance(tensor, Tensor):
                if tensor is None:
                    raise TritonModelException("Output tensor for inference response should not be empty.")
                raise TritonModelException(
                    f"an output of InferenceResponse is {type(tensor).__name__}, expected Tensor"
                )
        if error is not None and not isinstance(error, TritonError):
            # A model may give its exception in the place of an error.
            error = TritonError(str(error))
        self._output_tensors = tensors
        self._error = error
        self._parameters = _parameters_text(parameters)

    def output_tensors(self):
        """Outputs."""
        return self._output_tensors

    def has_error(self):
        """Whether it is an error."""
        return self._error is not None

    def error(self):
        """The error, or None."""
        return self._error

    def parameters(self):
        """Parameters as text of JSON."""
        return self._parameters or "{}"


def _parameters_text(parameters):
    """Parameters as text of JSON; empty if there are none."""
    if not parameters:
        return ""
    if not isinstance(parameters, dict):
        raise TritonModelException(f"parameters are {type(parameters).__name__}, expected dict")
    # NumPy's numbers come out of tensors, and JSON knows only Python's.
    numbers = {name: as_integer(value) for name, value in parameters.items() if not isinstance(value, (bool, str))}
    parameters = {name: value if numbers.get(name) is None else numbers[name] for name, value in parameters.items()}
    for name, value in parameters.items():
        if not isinstance(name, str):
            raise TritonModelException(f"Expect parameters keys to have type str, found type {type(name)}")
        if not isinstance(value, (bool, int, str)):
            raise TritonModelException(
                f"Expect parameters values to have type bool/int/str, found type {type(value)} at '{name}'"
            )
    return json.dumps(parameters)


class InferenceRequest:
    """A request: one that the server hands to `execute`, or one that a model makes."""

    # What one that comes from the server has until somebody sets it.
    _model_name = ""
    _model_version = -1
    _preferred_memory = None
    _trace = None
    _release_flags = REQUEST_RELEASE_ALL
    _sender = None
    _running = None

    def __init__(
        self,
        request_id="",
        correlation_id=0,
        inputs=None,
        requested_output_names=None,
        model_name=None,
        model_version=-1,
        flags=0,
        timeout=0,
        preferred_memory=None,
        trace=None,
        parameters=None,
    ):
        request_id = _text("request_id", request_id)
        model_name = _text("model_name", model_name)
        # Triton's bindings take names of bytes, and whatever is an integer.
        names = requested_output_names
        if names is not None and hasattr(names, "__iter__") and not isinstance(names, (str, bytes)):
            requested_output_names = [_text("an element of requested_output_names", name) for name in names]
        if not isinstance(correlation_id, str):
            number = as_integer(correlation_id)
            correlation_id = correlation_id if number is None else number
        _check_made(request_id, correlation_id, inputs, requested_output_names, model_name)
        self._request_id = request_id
        self._correlation_id = correlation_id
        self._inputs = list(inputs)
        # A set in Triton: an output that is named twice is wanted once.
        self._requested = list(dict.fromkeys(requested_output_names))
        self._model_name = model_name
        self._model_version = _integer("model_version", model_version)
        self._flags = _integer("flags", flags)
        self._timeout = _integer("timeout", timeout)
        self._priority = 0
        self._preferred_memory = preferred_memory
        self._trace = trace
        self._parameters = _parameters_text(parameters)
        self._release_flags = REQUEST_RELEASE_ALL
        self._sender = None
        # The number that the server knows the request by, and where it says that the client has gone.
        self._number = None
        self._slot = None
        self._channel = None
        # What executes it, once it is sent.
        self._running = None

    def inputs(self):
        """Inputs in the order of arrival."""
        return self._inputs

    def request_id(self):
        """The client's name of the request; may be empty."""
        return self._request_id

    def correlation_id(self):
        """The sequence: a number, 0 for none, or a name."""
        return self._correlation_id

    def requested_output_names(self):
        """The set of outputs that are wanted; all of the model's where the client names none."""
        return set(self._requested)

    def model_name(self):
        """Model, of a request that a model makes."""
        return self._model_name

    def model_version(self):
        """Version, of a request that a model makes; -1 for the latest."""
        return self._model_version

    def flags(self):
        """Sum of TRITONSERVER_REQUEST_FLAG_SEQUENCE_START and _END."""
        return self._flags

    def set_flags(self, flags):
        """Sets `flags`."""
        self._flags = _integer("flags", flags)

    def timeout(self):
        """Time-out in microseconds; 0 for none."""
        return self._timeout

    def priority(self):
        """Priority; 0 for the model's default."""
        return self._priority

    def parameters(self):
        """The client's parameters as text of JSON."""
        return self._parameters or "{}"

    def trace(self):
        """The trace of the request."""
        if self._trace is None:
            self._trace = InferenceTrace()
            self._trace._number = self._number
        return self._trace

    def is_cancelled(self):
        """Whether the client has given the request up."""
        channel = self._channel
        return channel is not None and channel.is_cancelled(self._slot)

    def set_release_flags(self, flags):
        """Says what becomes of the request after `execute`: TRITONSERVER_REQUEST_RELEASE_RESCHEDULE runs it again."""
        flags = _integer("flags", flags)
        if flags not in (REQUEST_RELEASE_ALL, REQUEST_RELEASE_RESCHEDULE):
            raise TritonModelException(
                f"{flags} found as release flags of a request, expected RELEASE_ALL or RESCHEDULE"
            )
        self._release_flags = flags

    def get_response_sender(self):
        """What sends responses to this request, one after another."""
        if self._sender is None:
            if self._number is None:
                raise TritonModelException("only requests that execute() was given have a response sender")
            self._sender = InferenceResponseSender(self)
        return self._sender

    def exec(self, decoupled=False):
        """Has the model answer: its response, or with `decoupled` an iterator of all its responses."""
        return galatea_bls.run(self, decoupled)

    def async_exec(self, decoupled=False):
        """As `exec`, to be awaited."""
        return galatea_bls.begin(self, decoupled)

    def cancel(self):
        """Gives a request up that was sent to another model; it is answered with an error, or as if nothing was."""
        if self._running is not None:
            self._running.cancel()


def _text(name, value):
    """An argument that is a name, as text."""
    text = as_text(value)
    if text is None:
        raise _incompatible(name, value, "a str")
    return text


def _integer(name, value):
    """An argument that is a number, as Python's."""
    number = as_integer(value)
    if number is None:
        raise _incompatible(name, value, "an int")
    return number


def _incompatible(name, value, expected):
    return TypeError(
        "__init__(): incompatible constructor arguments. "
        f"{name} of InferenceRequest is {type(value).__name__}, expected {expected}"
    )


def _check_made(request_id, correlation_id, inputs, requested_output_names, model_name):
    """Refuses what no request to another model can be made of."""
    for name, value in (("inputs", inputs), ("requested_output_names", requested_output_names)):
        if value is None or isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
            raise _incompatible(name, value, "a list")
    if not isinstance(correlation_id, (int, str)):
        raise TritonModelException("Correlation ID must be integer or string")
    if isinstance(correlation_id, int) and not 0 <= correlation_id < 1 << 64:
        raise TritonModelException(f"Correlation ID is {correlation_id}, expected 64 bits without a sign")
    where = f"for request with id '{request_id}' and model name '{model_name}' should not be empty."
    for tensor in inputs:
        if tensor is None:
            raise TritonModelException(f"Input tensor {where}")
        if not isinstance(tensor, Tensor):
            raise _incompatible("an element of inputs", tensor, "a Tensor")
    for name in requested_output_names:
        if not name:
            raise TritonModelException(f"Requested output name {where}")


class InferenceResponseSender:
    """Sends responses to one request, from any thread, until one has the flag that nothing more comes."""

    __slots__ = ("_number", "_slot", "_requested", "_channel", "_lock", "_answered", "closed", "on_final")

    def __init__(self, request):
        self._number = request._number
        self._slot = request._slot
        self._requested = request._requested
        self._channel = request._channel
        self._lock = threading.Lock()
        self._answered = False
        self.closed = False
        # Told that the last response has gone.
        self.on_final = None

    def is_cancelled(self):
        """Whether the client has given the request up."""
        return self._channel.is_cancelled(self._slot)

    def send(self, response=None, flags=0):
        """Sends a response, or with TRITONSERVER_RESPONSE_COMPLETE_FINAL alone that nothing more comes."""
        if flags not in (0, RESPONSE_COMPLETE_FINAL):
            raise TritonModelException(f"Unable to send response. Unsupported flag provided: {flags}")
        if response is None and flags == 0:
            raise TritonModelException(
                "Inference Response object must be provided when the response flags is set to zero."
            )
        if response is not None and not isinstance(response, InferenceResponse):
            raise TritonModelException(
                f"Unable to send response. {type(response).__name__} found, expected InferenceResponse"
            )
        final = flags == RESPONSE_COMPLETE_FINAL
        with self._lock:
            if not self._channel.decoupled:
                self._check_plain(response)
            if self.closed:
                raise TritonModelException("Unable to send response. Response sender has been closed.")
            self._channel.send_response(self._number, self._requested, response, final)
            self._answered = True
            self.closed = final
        if final and self.on_final is not None:
            self.on_final()

    def _check_plain(self, response):
        """Holds a model that is not decoupled to one response."""
        if response is None and not self._answered:
            raise TritonModelException(
                "Unable to send response. Non-decoupled model cannot send complete final before sending a response."
            )
        if response is not None and self._answered:
            raise TritonModelException(
                "Unable to send response. Non-decoupled model cannot send more than one response."
            )
