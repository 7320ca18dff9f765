"""What a model asks of the repository: `load_model`, `unload_model` and `is_model_ready`."""

import os
import tempfile

import galatea_calls
from galatea_tensors import TritonModelException, as_text


def load_model(model_name, config="", files=None):
    """Loads a model, or anew what has changed of it, and waits for the end. `config` is the configuration as JSON;
    `files` has the bytes of files by `file:` and the path in the model's folder, in whose place they are then."""
    if config is not None and as_text(config) is None:
        raise TypeError(f"the configuration for load_model is {type(config).__name__}, expected a str of JSON")
    config = as_text(config)
    fields = {"model": _name(model_name), "loading": galatea_calls.loading}
    if config:
        fields["config"] = config
    with tempfile.TemporaryDirectory(prefix="galatea-files-") as folder:
        places = {}
        for number, (path, data) in enumerate((files or {}).items()):
            path = _name(path)
            place = os.path.join(folder, str(number))
            with open(place, "wb") as file:
                file.write(data.encode() if isinstance(data, str) else data)
            places[path[5:] if path.startswith("file:") else path] = place
        _call("load_model", "Failed to load model", files=places, **fields)


def unload_model(model_name, unload_dependents=False):
    """Unloads a model, which answers the requests that it has; with `unload_dependents` also the models that it is
    composed of."""
    _call("unload_model", "Failed to unload model", model=_name(model_name), dependents=bool(unload_dependents))


def is_model_ready(model_name, model_version=""):
    """Whether a version of a model, or with an empty text its latest, can be used."""
    fields = {"model": _name(model_name), "version": _name(model_version)}
    return _call("is_model_ready", "Failed to check model readiness", **fields)


def _name(value):
    text = as_text(value)
    if text is None:
        raise TypeError(f"a name is {type(value).__name__}, expected str or bytes")
    return text


def _call(name, failure, **fields):
    try:
        return galatea_calls.call(name, **fields)
    except TritonModelException as error:
        where = f"Failed to process the request for model '{galatea_calls.instance}', message: "
        raise TritonModelException(f"{failure}: {where}{error}") from None
