"""Files of torch: what their forward() takes, and how it is called."""

from galatea_file_model import ModelFileError

# Stands for an argument that a request does not give.
MISSING = object()


class Argument:
    """An argument of forward()."""

    __slots__ = ("name", "type", "strings", "optional", "default")

    def __init__(self, name, type="Tensor", strings=False, optional=False, default=False):
        self.name = name
        self.type = type
        self.strings = strings
        # Whether forward() runs without it, and whether it has a value of its own then.
        self.optional = optional
        self.default = default


class Script:
    """TorchScript, as `torch.jit.save` writes it."""

    def __init__(self, torch, path, device, model):
        self.path = path
        try:
            self._module = torch.jit.load(path, map_location=device).eval()
        except Exception as error:
            raise ModelFileError(
                f"'{path}' of model '{model}' cannot be read as TorchScript, which torch.jit.save writes: {error}"
            ) from None
        arguments = self._module.forward.schema.arguments[1:]
        kinds = [argument.type.kind() for argument in arguments]
        # A dictionary takes inputs of any names.
        self.any_names = kinds == ["DictType"]
        if self.any_names:
            self._check_dict(arguments[0])
        self.arguments = [] if self.any_names else [self._argument(one, model) for one in arguments]

    def _check_dict(self, argument):
        if str(argument.type) not in ("Dict(str, Tensor)", "Dict[str, Tensor]"):
            raise self._foreign(argument)

    def _argument(self, argument, model):
        kind, of = argument.type, argument.type
        optional = argument.has_default_value()
        if kind.kind() == "OptionalType":
            of, optional = kind.getElementType(), True
        strings = of.kind() == "ListType" and of.getElementType().kind() == "StringType"
        # One that stays as it is may be of any type.
        if of.kind() != "TensorType" and not strings and not argument.has_default_value():
            raise self._foreign(argument)
        return Argument(argument.name, str(kind), strings, optional, argument.has_default_value())

    def _foreign(self, argument):
        return ModelFileError(
            f"argument '{argument.name}' of forward() in '{self.path}' is {argument.type}, expected Tensor or "
            "List[str], or a single Dict[str, Tensor]"
        )

    def run(self, given):
        """Calls forward() with one dictionary, or with a value or MISSING for each argument."""
        if self.any_names:
            return self._module(given)
        placed, named = [], {}
        skipped = False
        for argument, value in zip(self.arguments, given):
            if value is MISSING:
                if argument.default:
                    skipped = True
                    continue
                if not argument.optional:
                    raise ModelFileError(f"argument '{argument.name}' of forward() has no input")
                value = None
            if skipped:
                named[argument.name] = value
            else:
                placed.append(value)
        return self._module(*placed, **named)


class Exported:
    """A program of `torch.export`, as `torch.export.save` writes it."""

    any_names = False

    def __init__(self, torch, path, device, model):
        self.path = path
        if not hasattr(getattr(torch, "export", None), "load"):
            raise ModelFileError(
                f"'{path}' of model '{model}' is a program of torch.export, which torch {torch.__version__} cannot "
                "load: 2.1 or later can"
            )
        try:
            program = torch.export.load(path)
            self._module = _moved(torch, program, device)
        except Exception as error:
            raise ModelFileError(
                f"'{path}' of model '{model}' cannot be read as a program of torch.export, which torch.export.save "
                f"writes: {error}"
            ) from None
        self._unflatten = torch.utils._pytree.tree_unflatten
        self._spec = program.call_spec.in_spec
        self._leaves = _leaves(program.graph_signature)
        names = [leaf.name for leaf in self._leaves if isinstance(leaf, Argument)]
        args, kwargs = self._unflatten(list(self._leaves), self._spec)
        if len(args) == 1 and isinstance(args[0], dict) and not kwargs:
            # Inputs are called as its keys are.
            names = [key for key, leaf in args[0].items() if isinstance(leaf, Argument)]
        self.arguments = [Argument(name) for name in names]

    def run(self, given):
        """Calls forward() with a value for each argument."""
        for argument, value in zip(self.arguments, given):
            if value is MISSING:
                raise ModelFileError(f"argument '{argument.name}' of forward() has no input")
        values = iter(given)
        leaves = [next(values) if isinstance(leaf, Argument) else leaf for leaf in self._leaves]
        args, kwargs = self._unflatten(leaves, self._spec)
        return self._module(*args, **kwargs)


def _moved(torch, program, device):
    """What runs a program on a device."""
    if device is None:
        return program.module()
    if device.type != "cpu":
        try:
            from torch.export.passes import move_to_device_pass
        except ImportError:
            # Tensors that forward() makes are where they were when the program was exported.
            return program.module().to(device)
        program = move_to_device_pass(program, device)
    return program.module().to(device)


def _leaves(signature):
    """What forward() takes, flat: an Argument, or the value that was fixed when the program was exported."""
    specs = getattr(signature, "input_specs", None)
    if specs is None:
        return [Argument(name) for name in signature.user_inputs]
    given = [spec.arg for spec in specs if spec.kind.name == "USER_INPUT"]
    return [one.value if type(one).__name__ == "ConstantArgument" else Argument(one.name) for one in given]
