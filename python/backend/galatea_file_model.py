"""What models have in common that are part of the program and run a file of the user's own framework.

Errors, parameters, and how requests of a batch run together: see `FileModel`.
"""

import sys

import numpy as np

import triton_python_backend_utils as pb_utils


class ModelFileError(pb_utils.TritonModelException):
    """What is wrong with a model, its configuration or what it gives."""


class Parameters:
    """The parameters of a model as flags, numbers and texts."""

    def __init__(self, config):
        self._name = config.get("name", "")
        self._values = {key: value.get("string_value", "") for key, value in config.get("parameters", {}).items()}

    def text(self, key):
        """A text; None where there is no such parameter, or an empty one."""
        return self._values.get(key) or None

    def flag(self, key, default=None):
        """`true` or `false`; the default where there is no such parameter."""
        text = self._values.get(key)
        if text is None:
            return default
        known = {"true": True, "1": True, "false": False, "0": False}.get(text.strip().lower())
        if known is None:
            raise ModelFileError(f"parameter '{key}' of model '{self._name}' must be true or false, found '{text}'")
        return known

    def count(self, key):
        """A number of threads; None where the framework is to choose, which numbers below 1 say as well."""
        text = self._values.get(key, "0")
        try:
            number = int(text)
        except ValueError:
            raise ModelFileError(
                f"parameter '{key}' of model '{self._name}' must be a whole number, found '{text}'"
            ) from None
        return number if number > 0 else None


def not_importable(model, framework, backend, error):
    """The error of a model whose interpreter has no such framework."""
    return ModelFileError(
        f"model '{model}' needs {framework}, which '{sys.executable}' cannot import ({error}): install it there, or "
        "choose another interpreter with the parameter EXECUTION_ENV_PATH or PYTHON_EXECUTABLE, or with "
        f"--backend-config={backend},python-executable=PATH"
    )


class FileModel:
    """Runs a file: each request alone, or those of a batch together where their shapes allow it.

    Subclasses set `_name` (of the model), `_framework` (as errors call it) and `_joins` (whether requests may run
    together). They define `_taken`, `_run`, `_joined` and `_outputs_of`.
    """

    # Whether another process is to execute what comes next.
    must_end = False

    def execute(self, requests):
        """Runs requests together where their shapes allow it."""
        given = [self._tried(self._received, request) for request in requests]
        usable = [one for one in given if isinstance(one, dict)]
        results = self._together(usable)
        if results is None:
            results = [self._tried(self._run, one) for one in usable]
        results = iter(results)
        return [self._response(next(results) if isinstance(one, dict) else one) for one in given]

    def _tried(self, function, *given):
        """What the function returns, or what the client reads of its failure."""
        try:
            return function(*given)
        except ModelFileError as error:
            return pb_utils.TritonError(f"model '{self._name}': {error}", pb_utils.TritonError.INVALID_ARG)
        except Exception as error:
            text = f"{self._framework} execute failure of model '{self._name}': {type(error).__name__}: {error}"
            self.must_end = self.must_end or self._is_device_lost()
            return pb_utils.TritonError(text, pb_utils.TritonError.INTERNAL)

    def _is_device_lost(self):
        """Whether an error has happened after which the framework does nothing more in this process."""
        return False

    def _received(self, request):
        """The inputs by name."""
        return {tensor.name(): self._taken(tensor) for tensor in request.inputs()}

    def _together(self, given):
        """Results of requests that run as one, for each; None where they do not."""
        if len(given) < 2 or not self._joins or not _alike(given):
            return None
        counts = [len(next(iter(one.values()))) for one in given]
        try:
            results = self._run({name: self._joined([one[name] for one in given]) for name in given[0]})
        except Exception:
            # Alone, each finds out whether it was the one, and may have the memory that all together have not.
            return None
        parts = [_split(result, counts) for result in results]
        if None in parts:
            self._joins = False
            pb_utils.Logger.log_warn(
                f"outputs of model '{self._name}' have not as many rows as its inputs: its requests run one by one"
            )
            return None
        return list(zip(*parts))

    def _response(self, results):
        if not isinstance(results, pb_utils.TritonError):
            results = self._tried(self._outputs_of, results)
        if isinstance(results, pb_utils.TritonError):
            return pb_utils.InferenceResponse(error=results)
        return pb_utils.InferenceResponse(results)


def _rank(value):
    """Number of dimensions; a list of strings has one."""
    return 1 if isinstance(value, list) else len(getattr(value, "shape", ()))


def _alike(given):
    """Whether requests have the same inputs, with as many rows in each, of the same shapes."""
    first = given[0]
    for one in given:
        rows = {len(value) if _rank(value) else -1 for value in one.values()}
        if one.keys() != first.keys() or len(rows) != 1 or -1 in rows:
            return False
        for name, value in one.items():
            if not isinstance(value, list) and value.shape[1:] != first[name].shape[1:]:
                return False
    return True


def _split(result, counts):
    """The rows of each request; None where there are not as many."""
    if not _rank(result) or len(result) != sum(counts):
        return None
    ends = np.cumsum(counts).tolist()
    return [result[end - count : end] for end, count in zip(ends, counts)]
