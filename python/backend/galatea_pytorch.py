"""The model of `backend: "pytorch"`: a file of TorchScript or of `torch.export`, run by the user's own torch.

Names of inputs and outputs mean what they mean to Triton's backend for PyTorch: see `_places`.
"""

import contextlib
import json
import sys

import numpy as np

import galatea_torch_files as files
import triton_python_backend_utils as pb_utils
from galatea_file_model import FileModel, ModelFileError, Parameters, not_importable
from galatea_tensors import BYTES, CONFIG_NAMES

_MARK = "__"
_BOOL = CONFIG_NAMES.index("TYPE_BOOL")
_STRINGS = "TYPE_STRING"


def _import_torch(name):
    try:
        import torch
    except ImportError as error:
        raise not_importable(name, "torch", "pytorch", error) from None
    return torch


def _numbers(names):
    """The numbers in names such as `INPUT__0`; None where a name has none."""
    found = [name.partition(_MARK)[2] for name in names]
    return [int(number) for number in found] if all(number.isdecimal() for number in found) else None


def _places(names, arguments=()):
    """Where tensors with these names stand, and what says so: in the arguments of their names, where all names are
    such; where the numbers behind their names say, where all have one; else in the order of the configuration."""
    if arguments and set(names) <= set(arguments):
        return [arguments.index(name) for name in names], "by name"
    numbers = _numbers(names)
    if numbers is not None:
        return numbers, f"by the numbers behind '{_MARK}'"
    return list(range(len(names))), "in the order of the configuration"


class TritonPythonModel(FileModel):
    """Runs the file."""

    _framework = "PyTorch"

    def initialize(self, args):
        """Loads the file."""
        self._name = args["model_name"]
        config = json.loads(args["model_config"])
        parameters = Parameters(config)
        self._inputs = [one["name"] for one in config.get("input", ())]
        self._outputs = [(one["name"], one["data_type"]) for one in config.get("output", ())]
        self._check_config(config)
        # What the server tells of a sequence comes as further inputs.
        controls = config.get("sequence_batching", {}).get("control_input", ())
        self._inputs += [one["name"] for one in controls]
        self._batches = config.get("max_batch_size", 0) > 0
        self._joins = self._batches
        self._modes = contextlib.ExitStack()
        self._torch = torch = _import_torch(self._name)
        modes = self._configure(parameters)
        self._device = self._choose(args)
        kind = files.Exported if args["model_file"].endswith(".pt2") else files.Script
        self._file = kind(torch, args["model_file"], self._device, self._name)
        self._plan = None if self._file.any_names else self._planned(config)
        self._places = _places([name for name, _ in self._outputs])[0]
        for mode in modes:
            self._modes.enter_context(mode)

    def _check_config(self, config):
        for what in ("input", "output"):
            if not config.get(what):
                raise ModelFileError(
                    f"the configuration of model '{self._name}' must name its {what}s: the file does not"
                )
            for one in config[what]:
                rank = len(one["reshape"].get("shape", ()) if "reshape" in one else one["dims"])
                rank += config.get("max_batch_size", 0) > 0
                if one["data_type"] == _STRINGS and rank > 1:
                    raise ModelFileError(
                        f"{what} '{one['name']}' of model '{self._name}' is a list of strings to torch: it must have "
                        f"one dimension, that of the batch included, found {rank}"
                    )

    def _configure(self, parameters):
        """Sets torch as the parameters say; what holds while the model runs."""
        torch = self._torch
        inference = parameters.flag("INFERENCE_MODE", True)
        optimized = not parameters.flag("DISABLE_OPTIMIZED_EXECUTION", False)
        self._cleans = parameters.flag("ENABLE_CACHE_CLEANING", False)
        if parameters.flag("DISABLE_CUDNN", False):
            torch.backends.cudnn.enabled = False
        for key, function in (
            ("ENABLE_JIT_PROFILING", "_jit_set_profiling_mode"),
            ("ENABLE_JIT_EXECUTOR", "_jit_set_profiling_executor"),
            ("ENABLE_TENSOR_FUSER", "_jit_set_texpr_fuser_enabled"),
        ):
            flag = parameters.flag(key)
            if flag is not None and hasattr(torch._C, function):
                getattr(torch._C, function)(flag)
        for key, function in (
            ("INTRA_OP_THREAD_COUNT", torch.set_num_threads),
            ("INTER_OP_THREAD_COUNT", torch.set_num_interop_threads),
        ):
            count = parameters.count(key)
            if count:
                function(count)
        return [
            torch.inference_mode() if inference else torch.no_grad(),
            torch.jit.optimized_execution(optimized),
        ]

    def _choose(self, args):
        """The device; None where the file decides."""
        torch, kind, number = self._torch, args["model_instance_kind"], int(args["model_instance_device_id"])
        if kind == "MODEL":
            return None
        if kind == "GPU" and torch.cuda.is_available():
            if number >= torch.cuda.device_count():
                raise ModelFileError(
                    f"'{args['model_instance_name']}' is to run on GPU {number}, torch sees {torch.cuda.device_count()}"
                )
            device = torch.device("cuda", number)
            torch.cuda.set_device(device)
            return device
        if kind == "GPU" and torch.backends.mps.is_available():
            return torch.device("mps")
        if kind == "GPU":
            pb_utils.Logger.log_warn(
                f"torch {torch.__version__} of '{sys.executable}' sees no GPU: the processor runs model '{self._name}'"
            )
        return torch.device("cpu")

    def _planned(self, config):
        """For each argument of forward() the input that it takes, or None."""
        arguments = self._file.arguments
        names = [argument.name for argument in arguments]
        places, how = _places(self._inputs, names)
        plan = [None] * len(arguments)
        for name, place in zip(self._inputs, places):
            if place >= len(plan) or plan[place] is not None:
                raise self._misfit(names, how)
            plan[place] = name
        strings = {one["name"]: one["data_type"] == _STRINGS for one in config["input"]}
        for argument, name in zip(arguments, plan):
            if name is None and not argument.optional:
                raise self._misfit(names, how)
            if name is not None and argument.strings != strings.get(name, False):
                raise ModelFileError(
                    f"argument '{argument.name}' of forward() in '{self._file.path}' is {argument.type}, which input "
                    f"'{name}' of model '{self._name}' cannot be: List[str] takes {_STRINGS}, Tensor the other types"
                )
        return plan

    def _misfit(self, names, how):
        return ModelFileError(
            f"unable to load model '{self._name}': forward() in '{self._file.path}' takes {len(names)} inputs "
            f"({', '.join(names)}), the configuration gives {len(self._inputs)} ({', '.join(self._inputs)}), {how}"
        )

    def execute(self, requests):
        """Runs requests together where their shapes allow it."""
        responses = super().execute(requests)
        if self._cleans and self._torch.cuda.is_initialized() and not self.must_end:
            self._torch.cuda.empty_cache()
        return responses

    def _is_device_lost(self):
        """Whether CUDA has met an error after which it does nothing more in this process."""
        if not self._torch.cuda.is_initialized():
            return False
        try:
            self._torch.cuda.synchronize()
        except RuntimeError:
            return True
        return False

    def _taken(self, tensor):
        if tensor._number == BYTES:
            try:
                return [text.decode("utf-8") for text in tensor.as_numpy().reshape(-1)]
            except UnicodeDecodeError as error:
                raise ModelFileError(f"input '{tensor.name()}' has a string that is no UTF-8: {error}") from None
        torch = self._torch
        if tensor._number == _BOOL:
            # Not every torch has DLPack's booleans.
            bits = pb_utils.Tensor(tensor.name(), tensor.as_numpy().view(np.uint8))
            taken = torch.from_dlpack(bits.to_dlpack()).view(torch.bool)
        else:
            try:
                taken = torch.from_dlpack(tensor.to_dlpack())
            except RuntimeError as error:
                found = CONFIG_NAMES[tensor._number]
                raise ModelFileError(
                    f"input '{tensor.name()}' is {found}, which torch {torch.__version__} does not take: {error}"
                ) from None
        return taken if self._device is None else taken.to(self._device)

    def _joined(self, values):
        if isinstance(values[0], list):
            return [text for value in values for text in value]
        return self._torch.cat(values)

    def _run(self, given):
        """What forward() gives, in the order of the configured outputs."""
        if self._plan is None:
            result = self._file.run(given)
        else:
            result = self._file.run([given.get(name, files.MISSING) for name in self._plan])
        names = [name for name, _ in self._outputs]
        if isinstance(result, dict):
            lacking = [name for name in names if name not in result]
            if lacking:
                raise ModelFileError(f"forward() gives {', '.join(map(str, result))}, expected output '{lacking[0]}'")
            return [result[name] for name in names]
        if isinstance(result, tuple) or isinstance(result, list) and not _is_strings(result):
            results = list(result)
        else:
            results = [result]
        for name, place in zip(names, self._places):
            if place >= len(results):
                raise ModelFileError(f"forward() gives {len(results)} outputs, expected one at {place} for '{name}'")
        return [results[place] for place in self._places]

    def _outputs_of(self, results):
        return [self._output(*row, result) for row, result in zip(self._outputs, results)]

    def _output(self, name, data_type, result):
        torch = self._torch
        if _is_strings(result):
            made = pb_utils.Tensor(name, np.array(result, dtype=np.object_))
        elif not isinstance(result, torch.Tensor):
            raise ModelFileError(f"output '{name}' is {type(result).__name__}, expected Tensor or List[str]")
        elif result.dim() == 0:
            raise ModelFileError(f"output '{name}' is a scalar, expected a tensor of at least one dimension")
        else:
            made = self._on_host(name, data_type, result.detach().cpu().contiguous())
        found = CONFIG_NAMES[made._number]
        if found != data_type:
            raise ModelFileError(
                f"configuration expects datatype {data_type} for output '{name}', model provides {found}"
            )
        return made

    def _on_host(self, name, data_type, result):
        torch = self._torch
        if result.dtype == torch.bool:
            bits = pb_utils.Tensor.from_dlpack(name, result.view(torch.uint8))
            return pb_utils.Tensor(name, bits.as_numpy().view(np.bool_))
        try:
            return pb_utils.Tensor.from_dlpack(name, result)
        except (pb_utils.TritonModelException, BufferError, RuntimeError, TypeError):
            raise ModelFileError(f"output '{name}' is {result.dtype}, expected {data_type}") from None


def _is_strings(value):
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
