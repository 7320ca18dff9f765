"""What a model asks of configurations, and how it completes its own."""

import copy
import json

_PROPERTIES = {"input": ("name", "data_type", "dims", "optional"), "output": ("name", "data_type", "dims")}
_SCHEDULERS = ("dynamic_batching", "sequence_batching", "ensemble_scheduling")


def get_input_config_by_name(model_config, name):
    """The input of a configuration that has this name; None if there is none."""
    return _by_name(model_config.get("input"), name)


def get_output_config_by_name(model_config, name):
    """The output of a configuration that has this name; None if there is none."""
    return _by_name(model_config.get("output"), name)


def _by_name(properties, name):
    for one in properties or ():
        if one["name"] == name:
            return one
    return None


def using_decoupled_model_transaction_policy(model_config):
    """Whether the configuration lets requests have any number of responses."""
    return bool(model_config.get("model_transaction_policy", {}).get("decoupled", False))


class ModelConfig:
    """A configuration that `auto_complete_config` completes. What the model's owner has written stays; what
    contradicts it is an error. It is made of JSON, or of what that says."""

    def __init__(self, model_config):
        given = isinstance(model_config, (str, bytes))
        self._model_config = json.loads(model_config) if given else copy.deepcopy(model_config)

    def as_dict(self):
        """The configuration, with the names of the protobuf file."""
        return self._model_config

    def set_max_batch_size(self, max_batch_size):
        """Sets the largest batch, which must not be smaller than what the configuration says."""
        given = self._model_config.get("max_batch_size", 0)
        if given > max_batch_size:
            raise ValueError(
                f"configuration specified max_batch_size {given}, but in auto-complete-config function for model "
                f"'{self._name()}' specified max_batch_size {max_batch_size}"
            )
        self._model_config["max_batch_size"] = max_batch_size

    def set_dynamic_batching(self):
        """Lets requests be put together, where no scheduler is chosen."""
        for scheduler in _SCHEDULERS[1:]:
            if scheduler in self._model_config:
                raise ValueError(
                    f"Configuration specified scheduling_choice as '{scheduler}', but auto-complete-config "
                    f"function for model '{self._name()}' tries to set scheduling_choice as 'dynamic_batching'"
                )
        self._model_config.setdefault("dynamic_batching", {})

    def set_model_transaction_policy(self, transaction_policy_dict):
        """Says whether a request has any number of responses: `{"decoupled": True}`."""
        for key in transaction_policy_dict:
            if key != "decoupled":
                raise ValueError(
                    f"model transaction property in auto-complete-config function for model '{self._name()}' "
                    f"contains property other than 'decoupled'."
                )
        given = self._model_config.setdefault("model_transaction_policy", {})
        if "decoupled" not in transaction_policy_dict:
            return
        wanted = transaction_policy_dict["decoupled"]
        if given.get("decoupled", wanted) != wanted:
            raise ValueError(
                f"trying to change decoupled property in auto-complete-config for model '{self._name()}', which is "
                f"already set to '{given['decoupled']}'."
            )
        given["decoupled"] = wanted

    def add_input(self, input):
        """Adds an input (`name`, `data_type`, `dims`, `optional`), or completes the one of this name."""
        self._add("input", input)

    def add_output(self, output):
        """Adds an output (`name`, `data_type`, `dims`), or completes the one of this name."""
        self._add("output", output)

    def _name(self):
        return self._model_config.get("name", "")

    def _add(self, kind, wanted):
        where = f"in auto-complete-config function for model '{self._name()}'"
        properties = _PROPERTIES[kind]
        for key in wanted:
            if key not in properties:
                known = ", ".join(f"'{one}'" for one in properties[:-1])
                raise ValueError(
                    f"{kind} '{wanted.get('name', '')}' {where} contains property other than {known} and "
                    f"'{properties[-1]}'."
                )
        if "name" not in wanted:
            raise ValueError(f"{kind} {where} is missing 'name' property.")
        name = wanted["name"]
        for key in ("data_type", "dims"):
            if key not in wanted:
                raise ValueError(f"{kind} '{name}' {where} is missing '{key}' property.")
        tensors = self._model_config.setdefault(kind, [])
        given = _by_name(tensors, name)
        if given is None:
            tensors.append(dict(wanted))
            return
        given_type = given.get("data_type", "TYPE_INVALID")
        if given_type not in ("TYPE_INVALID", wanted["data_type"]):
            raise ValueError(
                f"unable to load model '{self._name()}', configuration expects datatype {given_type} for {kind} "
                f"'{name}', model provides {wanted['data_type']}"
            )
        if given.get("dims") and list(given["dims"]) != list(wanted["dims"]):
            raise ValueError(
                f"model '{self._name()}', tensor '{name}': the model expects dims {list(wanted['dims'])} but the "
                f"model configuration specifies dims {list(given['dims'])}"
            )
        if "optional" in given and given["optional"] != wanted.get("optional", given["optional"]):
            raise ValueError(
                f"model '{self._name()}', tensor '{name}': the model expects optional {wanted['optional']} but the "
                f"model configuration specifies optional {given['optional']}"
            )
        given.update(wanted)
