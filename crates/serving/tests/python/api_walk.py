"""A model that calls everything in triton_python_backend_utils, rightly and wrongly, and answers with what is not as it
should be.

`echo` gives its input IN back as OUT, `many` is decoupled and gives as many responses as IN has elements, `later` is not
loaded at the start.
"""

import asyncio
import json

import numpy as np
import triton_python_backend_utils as pb_utils

FOUR = np.arange(4, dtype=np.int32)
TYPES = [None, np.bool_, np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int16, np.int32, np.int64]
TYPES += [np.float16, np.float32, np.float64, np.object_]
CODES = "UNKNOWN INTERNAL NOT_FOUND INVALID_ARG UNAVAILABLE UNSUPPORTED ALREADY_EXISTS CANCELLED".split()


class Walk:
    """What was called and what was found wrong."""

    def __init__(self):
        self.calls = 0
        self.wrong = []

    def gives(self, what, call, expected):
        """A call that gives a value."""
        self.calls += 1
        try:
            found = call()
        except Exception as error:
            found = error
        if isinstance(found, Exception) or found != expected:
            self.wrong.append(f"{what}: {found!r}, expected {expected!r}")

    def raises(self, what, call, kind, text):
        """A call that raises such an exception with this in its text."""
        self.calls += 1
        try:
            found = call()
        except Exception as error:
            if isinstance(error, kind) and type(error).__name__ == kind.__name__ and text in str(error):
                return
            found = error
        self.wrong.append(f"{what}: {found!r}, expected {kind.__name__} with '{text}'")


def tensor(name, array=FOUR):
    return pb_utils.Tensor(name, array)


def echo(**changed):
    given = {"model_name": "echo", "requested_output_names": ["OUT"], "inputs": [tensor("IN")]}
    return pb_utils.InferenceRequest(**{**given, **changed})


def many(delay=0):
    inputs = [tensor("IN"), tensor("DELAY", np.full(4, delay, np.uint32)), tensor("WAIT", np.zeros(1, np.uint32))]
    return echo(model_name="many", inputs=inputs)


def values(response):
    return [output.as_numpy().tolist() for output in response.output_tensors()]


class TritonPythonModel:
    def initialize(self, args):
        self.walk = walk = Walk()
        names = "model_config model_instance_device_id model_instance_kind model_instance_name model_name "
        names += "model_repository model_version"
        walk.gives("args", lambda: sorted(args), names.split())
        walk.gives("values of args", lambda: {type(value) for value in args.values()}, {str})
        configuration(walk, json.loads(args["model_config"]))
        completion(walk)
        metrics(walk)
        log(walk)

    def execute(self, requests):
        walk = self.walk
        errors(walk)
        tensors(walk)
        received(walk, requests[0])
        made(walk)
        called(walk)
        responses(walk)
        sender(walk, requests[0])
        models(walk)
        found = np.array([json.dumps([walk.calls, walk.wrong])], object)
        response = pb_utils.InferenceResponse([tensor("OUT", found)])
        requests[0].get_response_sender().send(response, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return None


def configuration(walk, config):
    walk.gives("input", lambda: pb_utils.get_input_config_by_name(config, "IN")["data_type"], "TYPE_INT32")
    walk.gives("no input", lambda: pb_utils.get_input_config_by_name(config, "X"), None)
    walk.gives("output", lambda: pb_utils.get_output_config_by_name(config, "OUT")["data_type"], "TYPE_STRING")
    walk.gives("no output", lambda: pb_utils.get_output_config_by_name(config, "X"), None)
    walk.gives("decoupled", lambda: pb_utils.using_decoupled_model_transaction_policy(config), False)
    policy = {"model_transaction_policy": {"decoupled": True}}
    walk.gives("decoupled too", lambda: pb_utils.using_decoupled_model_transaction_policy(policy), True)
    walk.gives("folder", lambda: pb_utils.get_model_dir().endswith("/1"), True)
    for number, kind in enumerate(TYPES):
        walk.gives(f"type {number}", lambda: pb_utils.triton_to_numpy_type(number), kind)
        if kind is not None:
            walk.gives(f"number of {kind}", lambda: pb_utils.numpy_to_triton_type(kind), number)
    walk.gives("name of a type", lambda: pb_utils.triton_string_to_numpy("TYPE_FP32"), np.float32)
    walk.raises("no name of a type", lambda: pb_utils.triton_string_to_numpy("FP32"), KeyError, "FP32")


def completion(walk):
    one = {"name": "A", "data_type": "TYPE_FP32", "dims": [4]}

    def after(given, *steps):
        config = pb_utils.ModelConfig(json.dumps({"name": "m", "max_batch_size": 0, **given}))
        for name, *arguments in steps:
            getattr(config, name)(*arguments)
        return config.as_dict()

    where = "in auto-complete-config function for model 'm'"
    for kind in ("input", "output"):
        add = f"add_{kind}"
        walk.gives(add, lambda: after({}, (add, one))[kind], [one])
        walk.gives(f"{add} again", lambda: after({kind: [one]}, (add, one))[kind], [one])
        part = {"name": "A", "data_type": "TYPE_INVALID", "dims": []}
        walk.gives(f"{add} completes", lambda: after({kind: [part]}, (add, one))[kind], [one])
        for key in one:
            rest = {name: value for name, value in one.items() if name != key}
            named = f"{kind} " if key == "name" else f"{kind} 'A' "
            text = f"{named}{where} is missing '{key}' property."
            walk.raises(f"{add} without {key}", lambda: after({}, (add, rest)), ValueError, text)
        known = "'data_type', 'dims' and 'optional'." if kind == "input" else "'data_type' and 'dims'."
        text = f"{kind} 'A' {where} contains property other than 'name', {known}"
        walk.raises(f"{add} of more", lambda: after({}, (add, {**one, "is_shape_tensor": False})), ValueError, text)
        other = {**one, "data_type": "TYPE_INT32"}
        text = f"configuration expects datatype TYPE_INT32 for {kind} 'A', model provides TYPE_FP32"
        walk.raises(f"{add} of another type", lambda: after({kind: [other]}, (add, one)), ValueError, text)
        other = {**one, "dims": [16]}
        text = "tensor 'A': the model expects dims [4] but the model configuration specifies dims [16]"
        walk.raises(f"{add} of other dims", lambda: after({kind: [other]}, (add, one)), ValueError, text)
    optional = {**one, "optional": True}
    walk.gives("optional", lambda: after({}, ("add_input", optional))["input"], [optional])
    walk.gives("batch", lambda: after({}, ("set_max_batch_size", 4))["max_batch_size"], 4)
    text = f"configuration specified max_batch_size 6, but {where} specified max_batch_size 4"
    walk.raises("batch below", lambda: after({"max_batch_size": 6}, ("set_max_batch_size", 4)), ValueError, text)
    walk.gives("batching", lambda: after({}, ("set_dynamic_batching",))["dynamic_batching"], {})
    sizes = {"dynamic_batching": {"preferred_batch_size": [4]}}
    walk.gives("batching kept", lambda: after(sizes, ("set_dynamic_batching",))["dynamic_batching"]["preferred_batch_size"], [4])
    for other in ("sequence_batching", "ensemble_scheduling"):
        text = f"Configuration specified scheduling_choice as '{other}', but auto-complete-config"
        walk.raises(other, lambda: after({other: {}}, ("set_dynamic_batching",)), ValueError, text)
    policy = ("set_model_transaction_policy", {"decoupled": True})
    walk.gives("policy", lambda: after({}, policy)["model_transaction_policy"], {"decoupled": True})
    text = "contains property other than 'decoupled'"
    walk.raises("policy of more", lambda: after({}, (policy[0], {"other": True})), ValueError, text)
    given = {"model_transaction_policy": {"decoupled": False}}
    walk.raises("policy changed", lambda: after(given, policy), ValueError, "which is already set to 'False'")


def metrics(walk):
    failure = pb_utils.TritonModelException
    family = pb_utils.MetricFamily
    counts = family(name="walk_counts", description="d", kind=family.COUNTER)
    level = family("walk_level", "d", family.GAUGE)
    spread = family(name="walk_spread", description="d", kind=family.HISTOGRAM)
    counter, gauge = counts.Metric(labels={"a": "b"}), level.Metric()
    histogram = spread.Metric(labels={}, buckets=[1, 2.5, 10])
    walk.gives("increment", lambda: (counter.increment(2), counter.value()), (None, 2.0))
    walk.gives("decrement", lambda: (gauge.increment(-1.5), gauge.value()), (None, -1.5))
    walk.gives("set", lambda: (gauge.set(3), gauge.value()), (None, 3.0))
    walk.gives("observe", lambda: histogram.observe(2), None)
    walk.raises("counter goes back", lambda: counter.increment(-1), failure, "cannot be incremented by -1")
    for metric, name in [(counter, "set"), (counter, "observe"), (gauge, "observe"), (histogram, "increment"), (histogram, "set")]:
        walk.raises(name, lambda: getattr(metric, name)(1), failure, f"does not support '{name}'")
    walk.raises("value of a histogram", histogram.value, failure, "does not support 'value'")
    walk.raises("no buckets", lambda: spread.Metric(labels={}), failure, "needs buckets")
    walk.raises("buckets in disorder", lambda: spread.Metric(labels={}, buckets=[3, 1]), failure, "increase strictly")
    walk.raises("kind", lambda: family(name="walk_x", description="d", kind=7), failure, "7 is no kind")
    walk.raises("kind left out", lambda: family(name="walk_x", description="d"), TypeError, "kind")


def log(walk):
    logger = pb_utils.Logger
    for name in ("log_info", "log_warn", "log_error", "log_verbose"):
        walk.gives(name, lambda: getattr(logger, name)("from the walk"), None)
    walk.gives("log", lambda: logger.log(message="from the walk", level=logger.VERBOSE), None)
    walk.gives("log of a level", lambda: logger.log("from the walk", logger.INFO), None)
    walk.raises("log of no level", lambda: logger.log("from the walk", 99), ValueError, "99")


def errors(walk):
    kind = pb_utils.TritonError
    walk.gives("code left out", lambda: kind("m").code(), kind.INTERNAL)
    walk.gives("message", lambda: kind(message="m", code=kind.NOT_FOUND).message(), "m")
    for number, name in enumerate(CODES):
        walk.gives(name, lambda: (getattr(kind, name), kind("m", number).code()), (number, number))
    walk.raises("code", lambda: kind("m", 99), pb_utils.TritonModelException, "99 is no code")
    walk.raises("message left out", kind, TypeError, "message")


def tensors(walk):
    failure = pb_utils.TritonModelException
    given = tensor("N")
    walk.gives("parts", lambda: (given.name(), given.shape(), given.triton_dtype(), given.is_cpu()), ("N", [4], 8, True))
    walk.gives("array", lambda: given.as_numpy().tolist(), [0, 1, 2, 3])
    walk.gives("by name", lambda: pb_utils.Tensor(name="N", numpy_array=FOUR).name(), "N")
    for array in (np.array(5), np.zeros((0, 3), np.float32), np.asfortranarray(FOUR.reshape(2, 2)), FOUR[::2]):
        walk.gives("layout", lambda: tensor("N", array).as_numpy().tolist(), array.tolist())
    walk.raises("list", lambda: tensor("N", [1]), TypeError, "list")
    walk.raises("no name", lambda: tensor(""), failure, "Tensor name cannot be an empty string.")
    walk.raises("None", lambda: tensor(None), TypeError, "NoneType")
    walk.raises("type", lambda: tensor("N", np.zeros(2, np.complex64)), failure, "complex64")
    back = lambda: pb_utils.Tensor.from_dlpack("D", given.to_dlpack())
    walk.gives("DLPack", lambda: (back().name(), back().as_numpy().tolist()), ("D", [0, 1, 2, 3]))
    walk.gives("device", lambda: tuple(given.__dlpack_device__()), (1, 0))
    text = "DLPack does not have support for string tensors"
    walk.raises("strings", lambda: tensor("N", np.array(["a"], object)).to_dlpack(), failure, text)
    walk.raises("no capsule", lambda: pb_utils.Tensor.from_dlpack("D", 5), failure, "capsule")
    walk.gives("strings in", lambda: pb_utils.deserialize_bytes_tensor(b"\1\0\0\0a").tolist(), [b"a"])
    walk.gives("strings out", lambda: pb_utils.serialize_byte_tensor(np.array([b"a"], object)), b"\1\0\0\0a")
    walk.gives("numbers out", lambda: pb_utils.serialize_byte_tensor(FOUR), None)


def received(walk, request):
    found = [request.request_id(), request.correlation_id(), request.flags(), request.timeout(), request.priority()]
    walk.gives("request", lambda: found, ["walk", 77, 3, 5000, 0])
    walk.gives("parameters", lambda: json.loads(request.parameters()), {"p": 1, "s": "x", "b": True, "d": 1.5})
    walk.gives("outputs", lambda: set(request.requested_output_names()), {"OUT"})
    walk.gives("inputs", lambda: [one.name() for one in request.inputs()], ["IN"])
    walk.gives("input", lambda: pb_utils.get_input_tensor_by_name(request, "IN").as_numpy().tolist(), [1])
    walk.gives("no input", lambda: pb_utils.get_input_tensor_by_name(request, "X"), None)
    walk.gives("cancelled", request.is_cancelled, False)
    walk.gives("trace", lambda: type(request.trace()), pb_utils.InferenceTrace)
    failure = pb_utils.TritonModelException
    walk.raises("release", lambda: request.set_release_flags(9), failure, "expected RELEASE_ALL or RESCHEDULE")
    walk.gives("release all", lambda: request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_ALL), None)


def made(walk):
    failure = pb_utils.TritonModelException
    plain = echo()
    found = [plain.request_id(), plain.correlation_id(), plain.model_version(), plain.flags(), plain.timeout()]
    walk.gives("made", lambda: found + [plain.model_name(), plain.parameters()], ["", 0, -1, 0, 0, "echo", "{}"])
    walk.gives("flags", lambda: (plain.set_flags(3), plain.flags()), (None, 3))
    start, end = pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START, pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END
    memory = pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_CPU, 0)
    full = {"request_id": "1", "correlation_id": "s", "model_version": 1, "flags": start | end, "timeout": 5}
    full = echo(preferred_memory=memory, trace=None, parameters={"a": 1, "b": "c", "d": True}, **full)
    found = [full.request_id(), full.correlation_id(), full.model_version(), full.flags(), full.timeout()]
    walk.gives("made in full", lambda: found + [json.loads(full.parameters())["d"]], ["1", "s", 1, 3, 5, True])
    for left_out in ("model_name", "inputs", "requested_output_names"):
        walk.raises(f"{left_out} left out", lambda: echo(**{left_out: None}), TypeError, left_out)
    walk.raises("array as input", lambda: echo(inputs=[FOUR]), TypeError, "ndarray")
    where = "for request with id '' and model name 'echo' should not be empty."
    walk.raises("None as input", lambda: echo(inputs=[None]), failure, f"Input tensor {where}")
    walk.raises("output", lambda: echo(requested_output_names=[""]), failure, f"Requested output name {where}")
    walk.raises("sequence", lambda: echo(correlation_id=1.5), failure, "Correlation ID must be integer or string")
    for value in (1.5, None, [1]):
        text = f"Expect parameters values to have type bool/int/str, found type {type(value)}"
        walk.raises(f"parameter {value}", lambda: echo(parameters={"x": value}), failure, text)
    text = "Expect parameters keys to have type str, found type <class 'int'>"
    walk.raises("key", lambda: echo(parameters={1: 1}), failure, text)
    walk.raises("memory", lambda: pb_utils.PreferredMemory(7), TypeError, "preferred_memory_type")


def called(walk):
    answer = echo().exec()
    walk.gives("exec", lambda: (answer.has_error(), answer.error(), values(answer)), (False, None, [[0, 1, 2, 3]]))
    walk.gives("output", lambda: pb_utils.get_output_tensor_by_name(answer, "OUT").name(), "OUT")
    walk.gives("no output", lambda: pb_utils.get_output_tensor_by_name(answer, "X"), None)
    failed = lambda **changed: echo(**changed).exec().error().message()
    for what, changed, text in [
        ("unknown model", {"model_name": "none"}, "Model 'none' is not ready."),
        ("unknown version", {"model_version": 9}, "Model 'echo' is not ready."),
        ("unknown input", {"inputs": [tensor("X")]}, "unexpected inference input 'X' for model 'echo'"),
        ("unknown output", {"requested_output_names": ["X"]}, "unexpected inference output 'X' for model 'echo'"),
    ]:
        walk.gives(what, lambda: text in failed(**changed), True)
    text = "The current BLS request call doesn't support models using the decoupled transaction policy."
    walk.gives("decoupled model", lambda: text in many().exec().error().message(), True)
    all_of = [[[0]], [[1]], [[2]], [[3]], []]
    several = lambda: [values(one) for one in many().exec(decoupled=True)]
    walk.gives("decoupled", several, all_of)
    walk.gives("one of one", lambda: [values(one) for one in echo().exec(decoupled=True)], [[[0, 1, 2, 3]]])

    async def both():
        plain = await asyncio.gather(*[echo().async_exec() for _ in range(3)])
        found = [values(one) async for one in await many().async_exec(decoupled=True)]
        return [values(one) for one in plain], found

    walk.gives("async", lambda: asyncio.run(both()), ([[[0, 1, 2, 3]]] * 3, all_of))

    def given_up():
        responses = many(delay=20_000).exec(decoupled=True)
        responses.cancel()
        return len(list(responses)) < 5

    walk.gives("cancel", given_up, True)


def responses(walk):
    failure, response = pb_utils.TritonModelException, pb_utils.InferenceResponse
    error = pb_utils.TritonError("e")
    found = lambda one: (one.output_tensors(), one.has_error(), one.error() and one.error().message())
    walk.gives("empty", lambda: found(response()), ([], False, None))
    walk.gives("error", lambda: found(response(output_tensors=[], error=error)), ([], True, "e"))
    given = {"a": 1, "b": "c", "d": True}
    walk.gives("parameters", lambda: json.loads(response(parameters=given).parameters()), given)
    text = "Output tensor for inference response should not be empty."
    walk.raises("None", lambda: response([None]), failure, text)
    walk.raises("array", lambda: response([FOUR]), failure, "ndarray")
    text = "Expect parameters values to have type bool/int/str, found type <class 'float'>"
    walk.raises("parameter", lambda: response(parameters={"a": 0.5}), failure, text)


def sender(walk, request):
    failure, send = pb_utils.TritonModelException, request.get_response_sender().send
    final = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
    empty = pb_utils.InferenceResponse()
    for what, call, text in [
        ("flag", lambda: send(empty, flags=5), "Unable to send response. Unsupported flag provided: 5"),
        ("nothing", send, "Inference Response object must be provided when the response flags is set to zero."),
        ("text", lambda: send("x"), "expected InferenceResponse"),
        ("end", lambda: send(flags=final), "Non-decoupled model cannot send complete final before sending a response."),
        ("sender", lambda: echo().get_response_sender(), "response sender"),
    ]:
        walk.raises(what, call, failure, text)
    walk.gives("cancelled", request.get_response_sender().is_cancelled, False)


def models(walk):
    failure = pb_utils.TritonModelException
    ready = pb_utils.is_model_ready
    walk.gives("ready", lambda: [ready("echo"), ready(model_name="echo", model_version="1")], [True, True])
    walk.gives("not ready", lambda: [ready("none"), ready("echo", "9"), ready("later")], [False, False, False])
    walk.raises("version", lambda: ready("echo", "x"), failure, "specified version string 'x'")
    walk.gives("load", lambda: (pb_utils.load_model(model_name="later"), ready("later")), (None, True))
    unload = lambda: pb_utils.unload_model(model_name="later", unload_dependents=False)
    walk.gives("unload", lambda: (unload(), ready("later")), (None, False))
    walk.gives("unload nothing", lambda: pb_utils.unload_model("none"), None)
    config = {"backend": "identity", "input": [{"name": "A", "data_type": "TYPE_INT32", "dims": [1]}]}
    config["output"] = config["input"]
    walk.gives("load with", lambda: pb_utils.load_model(model_name="later", config=json.dumps(config)), None)
    walk.raises("load nothing", lambda: pb_utils.load_model("none"), failure, "Failed to load model")
    files = {"file:1/model.py": b"x"}
    walk.raises("files alone", lambda: pb_utils.load_model("new", files=files), failure, "Failed to load model")
