"""Cases of recurrent layers, of networks inside layers, and of whole models."""

import numpy as np
import torch.nn.functional as F
from coremltools.models import datatypes
from coremltools.models.neural_network import NeuralNetworkBuilder

from neural_network_archive import RNG, case, finish, network, rand, t, weights


def sigmoid(v):
    return 1 / (1 + np.exp(-v))


def recurrent():
    x = rand(3, 2, 4, 1, 1)
    h, c = rand(1, 2, 3, 1, 1), rand(1, 2, 3, 1, 1)
    flat, h0, c0 = x.reshape(3, 2, 4), h.reshape(2, 3), c.reshape(2, 3)
    inputs = {"x": x, "h": h, "c": c}
    five = lambda v: v.reshape(v.shape + (1, 1)) if v.ndim == 3 else v.reshape((1,) + v.shape + (1, 1))

    def lstm(wh, wx, b, hidden, cell, peep=None, reverse=False, forget=False, coupled=False):
        results = []
        for step in flat[::-1] if reverse else flat:
            gates = [step @ w.T + hidden @ r.T + (0 if b is None else bias) for w, r, bias in zip(wx, wh, b or [0] * 4)]
            i, f, o, z = gates
            if forget:
                f = f + 1
            if peep is not None:
                i, f = i + peep[0] * cell, f + peep[1] * cell
            i, f, z = sigmoid(i), sigmoid(f), np.tanh(z)
            if coupled:
                f = 1 - i
            cell = f * cell + i * z
            o = sigmoid(o + (0 if peep is None else peep[2] * cell))
            hidden = np.tanh(cell) * o
            results.append(hidden)
        return np.stack(results[::-1] if reverse else results), hidden, cell

    net = network(inputs, [])
    outputs = {}
    zero = np.zeros((2, 3), np.float32)
    for name, options in {
        "plain": {}, "whole": {"output_all": True, "reverse_input": True}, "peep": {"peep": True, "forget_bias": True, "output_all": True},
        "coupled": {"coupled_input_forget_gate": True}, "bare": {"bare": True},
    }.items():
        wh, wx = [weights(3, 3) for _ in range(4)], [weights(3, 4) for _ in range(4)]
        b = None if options.pop("bare", False) else [weights(3) for _ in range(4)]
        peep = [weights(3) for _ in range(3)] if options.pop("peep", None) else None
        states = name != "coupled"
        net.add_unilstm(name, wh, wx, b, 3, 4, ["x", "h", "c"] if states else ["x"], [name, f"{name}_h", f"{name}_c"], peep=peep, **options)
        start = (h0, c0) if states else (zero, zero)
        y, last, cell = lstm(wh, wx, b, *start, peep, options.get("reverse_input"), options.get("forget_bias"), options.get("coupled_input_forget_gate"))
        outputs[name] = five(y if options.get("output_all") else last)
        outputs[f"{name}_h"], outputs[f"{name}_c"] = five(last), five(cell)
    for whole in [False, True]:
        sets = [([weights(3, 3) for _ in range(4)], [weights(3, 4) for _ in range(4)], [weights(3) for _ in range(4)]) for _ in range(2)]
        name = f"both_{whole}"
        net.add_bidirlstm(name, *sets[0], *sets[1], 3, 4, ["x", "h", "c", "h", "c"], [name] + [f"{name}_{at}" for at in range(4)], output_all=whole)
        (y, last, cell), (back, back_last, back_cell) = lstm(*sets[0], h0, c0), lstm(*sets[1], h0, c0, reverse=True)
        outputs[name] = five(np.concatenate([y, back] if whole else [last, back_last], -1))
        for at, value in enumerate([last, cell, back_last, back_cell]):
            outputs[f"{name}_{at}"] = five(value)
    finish(net, outputs)
    case("recurrent", "lstm", net, inputs, outputs)

    net = network(inputs, [])
    outputs = {}
    for name, reverse in [("gru", False), ("gru_back", True)]:
        wh, wx, b = [weights(3, 3) for _ in range(3)], [weights(3, 4) for _ in range(3)], [weights(3) for _ in range(3)]
        net.add_gru(name, wh, wx, b, 3, 4, ["x", "h"], [name, f"{name}_h"], "TANH", "SIGMOID_HARD", True, reverse)
        hidden, results = h0, []
        hard = lambda v: np.clip(0.2 * v + 0.5, 0, 1)
        for step in flat[::-1] if reverse else flat:
            z = hard(step @ wx[0].T + hidden @ wh[0].T + b[0])
            r = hard(step @ wx[1].T + hidden @ wh[1].T + b[1])
            o = np.tanh(step @ wx[2].T + (r * hidden) @ wh[2].T + b[2])
            hidden = (1 - z) * o + z * hidden
            results.append(hidden)
        outputs[name] = five(np.stack(results[::-1] if reverse else results))
        outputs[f"{name}_h"] = five(hidden)
    wh, wx, b = weights(3, 3), weights(3, 4) * 100, weights(3)
    net.add_simple_rnn("rnn", wh, wx, b, 3, 4, "RELU", ["x", "h"], ["rnn", "rnn_h"], True)
    hidden, results = h0, []
    for step in flat:
        hidden = np.maximum(np.clip(step @ wx.T + hidden @ wh.T + b, -50, 50), 0)
        results.append(hidden)
    outputs["rnn"], outputs["rnn_h"] = five(np.stack(results)), five(hidden)
    finish(net, outputs)
    case("recurrent", "gru_and_rnn", net, inputs, outputs, 1e-4, "values up to 50")

    # The form of old speech models: one step of a sequence, states as features.
    inputs = {"x": rand(4), "h": rand(3), "c": rand(3)}
    flat, h0, c0 = inputs["x"].reshape(1, 1, 4), inputs["h"][None], inputs["c"][None]
    net = network(inputs, [], rank5=True)
    wh, wx, b = [weights(3, 3) for _ in range(4)], [weights(3, 4) for _ in range(4)], [weights(3) for _ in range(4)]
    net.add_unilstm("lstm", wh, wx, b, 3, 4, ["x", "h", "c"], ["y", "h_out", "c_out"])
    w, bias = weights(2, 3), weights(2)
    net.add_inner_product("dense", w, bias, 3, 2, True, "y", "dense")
    y = []
    hidden, cell = h0, c0
    gates = [flat[0] @ m.T + hidden @ r.T + v for m, r, v in zip(wx, wh, b)]
    i, f, o, z = gates
    cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(z)
    hidden = np.tanh(cell) * sigmoid(o)
    outputs = {"dense": (hidden @ w.T + bias)[0], "h_out": hidden[0], "c_out": cell[0]}
    finish(net, outputs)
    case("recurrent", "one_step", net, inputs, outputs)


def control():
    x = rand(4)
    inputs = {"x": x, "flag": np.array([1], np.float32)}
    for flag in [1, 0]:
        inputs = {"x": x, "flag": np.array([flag], np.float32)}
        net = network(inputs, [])
        net.add_copy("start", "x", "kept")
        branch = net.add_branch("branch", "flag")
        then = NeuralNetworkBuilder(input_features=None, output_features=None, nn_spec=branch.branch.ifBranch)
        then.add_elementwise("double", ["x"], "twice", "MULTIPLY", 2.0)
        then.add_copy("write", "twice", "y")
        other = NeuralNetworkBuilder(input_features=None, output_features=None, nn_spec=branch.branch.elseBranch)
        other.add_elementwise("half", ["x"], "halved", "MULTIPLY", 0.5)
        other.add_copy("write", "halved", "y")
        other.add_copy("overwrite", "halved", "kept")
        net.add_elementwise("sum", ["y", "kept"], "sum", "ADD")
        outputs = {"sum": x * 3 if flag else x}
        finish(net, outputs)
        case("control", f"branch_{flag}", net, inputs, outputs)

    # for: a power series; the number of iterations is a field, or an input.
    for name in ["field", "input"]:
        inputs = {"x": x} | ({"times": np.array([3], np.float32)} if name == "input" else {})
        net = network(inputs, [])
        net.add_copy("start", "x", "value")
        loop = net.add_loop("loop", max_iterations=3) if name == "field" else net.add_loop("loop", input_name="times")
        body = NeuralNetworkBuilder(input_features=None, output_features=None, nn_spec=loop.loop.bodyNetwork)
        body.add_multiply_broadcastable("square", ["value", "x"], "next")
        body.add_elementwise("shift", ["next"], "shifted", "ADD", 0.5)
        body.add_copy("write", "shifted", "value")
        net.add_elementwise("both", ["value", "shifted"], "y", "ADD")
        value = x
        for _ in range(3):
            value = value * x + 0.5
        outputs = {"y": 2 * value}
        finish(net, outputs)
        case("control", f"loop_{name}", net, inputs, outputs)

    # while: doubles until the sum passes a limit, and grows a list meanwhile.
    inputs = {"x": np.abs(x)}
    net = network(inputs, [])
    net.add_copy("start", "x", "value")
    net.add_reduce_sum("total", "x", "list", None, False, True)
    loop = net.add_loop("loop", condition="small")
    condition = NeuralNetworkBuilder(input_features=None, output_features=None, nn_spec=loop.loop.conditionNetwork)
    condition.add_reduce_sum("sum", "value", "sum", None, False, True)
    condition.add_less_than("less", ["sum"], "small", alpha=10.0)
    body = NeuralNetworkBuilder(input_features=None, output_features=None, nn_spec=loop.loop.bodyNetwork)
    body.add_elementwise("double", ["value"], "doubled", "MULTIPLY", 2.0)
    body.add_copy("write", "doubled", "value")
    body.add_reduce_sum("new", "value", "new", None, False, True)
    body.add_concat_nd("grow", ["list", "new"], "grown", 0)
    body.add_copy("keep", "grown", "list")
    net.add_reduce_sum("count", "list", "list_sum", None, False, True)
    value, total = np.abs(x), [np.abs(x).sum()]
    while value.sum() < 10:
        value = value * 2
        total.append(value.sum())
    outputs = {"value": value, "list_sum": np.array([sum(total)])}
    finish(net, outputs)
    case("control", "while", net, inputs, outputs, 1e-4, "sums up to 40")

    # Leaves the loop in the fourth iteration, and skips the second.
    inputs = {"x": x}
    net = network(inputs, [])
    net.add_copy("start", "x", "value")
    net.add_load_constant_nd("zero", "zero", np.zeros(1), [1])
    net.add_copy("count", "zero", "i")
    loop = net.add_loop("loop", max_iterations=10)
    body = NeuralNetworkBuilder(input_features=None, output_features=None, nn_spec=loop.loop.bodyNetwork)
    body.add_elementwise("next", ["i"], "next_i", "ADD", 1.0)
    body.add_copy("write_i", "next_i", "i")
    body.add_equal("fourth", ["i"], "is_fourth", 4.0)
    leave = body.add_branch("leave", "is_fourth")
    NeuralNetworkBuilder(input_features=None, output_features=None, nn_spec=leave.branch.ifBranch).add_loop_break("break")
    body.add_equal("second", ["i"], "is_second", 2.0)
    skip = body.add_branch("skip", "is_second")
    NeuralNetworkBuilder(input_features=None, output_features=None, nn_spec=skip.branch.ifBranch).add_loop_continue("continue")
    body.add_add_broadcastable("add", ["value", "i"], "more")
    body.add_copy("write", "more", "value")
    outputs = {"value": x + 1 + 3, "i": np.array([4])}
    finish(net, outputs)
    case("control", "jumps", net, inputs, outputs)


def models():
    """Whole models: images with preprocessing, classifiers, regressors, types of features."""
    image = RNG.integers(0, 256, (1, 3, 6, 5)).astype(np.float32)
    for name, bgr in [("rgb", False), ("bgr", True)]:
        net = NeuralNetworkBuilder([("image", datatypes.Array(3, 6, 5))], [("later", None)], mode="classifier")
        net.set_pre_processing_parameters(["image"], bgr, red_bias=-1.0, green_bias=-2.0, blue_bias=-3.0, image_scale=1 / 64)
        w, b = weights(3, 3, 3, 4), weights(4)
        net.add_convolution("conv", 3, 4, 3, 3, 2, 2, "same", 1, w, b, True, input_name="image", output_name="conv")
        net.add_activation("relu", "RELU", "conv", "relu")
        net.add_pooling("pool", 0, 0, 1, 1, "AVERAGE", "VALID", "relu", "pool", is_global=True)
        dense = weights(3, 4)
        net.add_inner_product("dense", dense, None, 4, 3, False, "pool", "scores")
        net.add_softmax("softmax", "scores", "probabilities")
        net.set_class_labels(["cat", "dog", "emu"] if bgr else [5, 7, 9], prediction_blob="probabilities")
        net.spec.description.output[0].name = net.spec.description.predictedProbabilitiesName = "probabilities"
        biases = [-3, -2, -1] if bgr else [-1, -2, -3]
        value = t(image / 64 + np.array(biases, np.float32)[None, :, None, None])
        value = F.pad(value, (1, 1, 0, 1))
        value = F.relu(F.conv2d(value, t(np.transpose(w, (3, 2, 0, 1))), t(b), 2)).mean((2, 3)).numpy() @ dense.T
        shares = np.exp(value[0]) / np.exp(value[0]).sum()
        label = ["cat", "dog", "emu"][shares.argmax()] if bgr else [5, 7, 9][shares.argmax()]
        outputs = {"probabilities": shares.astype(np.float32), "classLabel": np.array(label)}
        case("model", f"classifier_{name}", net, {"image": image}, outputs, 1e-4, "pixels up to 255")

    net = NeuralNetworkBuilder([("image", datatypes.Array(1, 4, 4))], [("later", None)], disable_rank5_shape_mapping=True)
    picture = net.spec.description.input[0].type.imageType
    picture.width, picture.height, picture.colorSpace = 4, 4, 10
    mean = net.spec.neuralNetwork.preprocessing.add()
    mean.featureName = "image"
    values = weights(16)
    mean.meanImage.meanImage.extend(values)
    net.spec.neuralNetwork.imageInputShapeMapping = 1
    net.add_reduce_sum("sum", "image", "sum", [-1], False)
    gray = RNG.integers(0, 256, (1, 1, 4, 4)).astype(np.float32)
    outputs = {"sum": (gray - values.reshape(4, 4)).sum(-1)}
    finish(net, outputs)
    case("model", "mean_image", net, {"image": gray}, outputs, 1e-4, "pixels up to 255")

    net = NeuralNetworkBuilder([("x", datatypes.Array(4))], [("y", datatypes.Array(1))], mode="regressor")
    w = weights(1, 4)
    net.add_inner_product("dense", w, None, 4, 1, False, "x", "y")
    net.spec.description.predictedFeatureName = "y"
    net.spec.description.output[0].type.doubleType.MergeFromString(b"")
    x = rand(4).astype(np.float64)
    outputs = {"y": (x.astype(np.float32) @ w.T).astype(np.float64)}
    case("model", "regressor", net, {"x": x}, outputs)

    net = network({"x": rand(2, 3)}, ["y", "z"])
    for feature, dtype in zip([*net.spec.description.input, *net.spec.description.output], [131104, 131104, 65552]):
        feature.type.multiArrayType.dataType = dtype
    net.add_elementwise("scale", ["x"], "y", "MULTIPLY", 1.5)
    net.add_elementwise("half", ["x"], "z", "MULTIPLY", 0.25)
    x = RNG.integers(-9, 9, (2, 3)).astype(np.int32)
    case("model", "types", net, {"x": x}, {"y": np.trunc(x * 1.5).astype(np.int32), "z": (x * 0.25).astype(np.float16)})

    # Any height and width: the shapes are computed in a run.
    net = network({"x": rand(3, 8, 8)}, ["y", "z"], rank5=True)
    del net.spec.description.output[:]
    for name in ["y", "z"]:
        output = net.spec.description.output.add()
        output.name = name
        output.type.multiArrayType.dataType = 65568
    sizes = net.spec.description.input[0].type.multiArrayType.shapeRange
    for low, high in [(3, 3), (4, 64), (4, -1)]:
        bounds = sizes.sizeRanges.add()
        bounds.lowerBound, bounds.upperBound = low, high
    net.add_padding("pad", 1, 1, 1, 1, 0, "x", "padded")
    net.add_crop("crop", 0, 0, 0, 0, [1, 1], ["padded", "x"], "cropped")
    net.add_upsample("up", 2, 2, "cropped", "y")
    net.add_flatten("flat", 0, "cropped", "z")
    x = rand(3, 5, 6)
    outputs = {"y": x.repeat(2, 1).repeat(2, 2)[None, None], "z": x.reshape(1, 1, -1, 1, 1)}
    case("model", "flexible", net, {"x": x}, outputs)
