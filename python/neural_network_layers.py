"""Cases of layers on arrays."""

import numpy as np
import torch
import torch.nn.functional as F

from neural_network_archive import RNG, case, finish, network, rand, t, weights


def elementwise():
    x = rand(2, 5, low=-2, high=2)
    unit = rand(2, 5, low=-0.9, high=0.9)
    large = rand(2, 5, low=1.1, high=3)
    functions = [
        ("ceil", x, np.ceil), ("floor", x, np.floor), ("sign", x, np.sign), ("round", x, np.round),
        ("exp2", x, np.exp2), ("sin", x, np.sin), ("cos", x, np.cos), ("tan", unit, np.tan),
        ("asin", unit, np.arcsin), ("acos", unit, np.arccos), ("atan", x, np.arctan), ("sinh", x, np.sinh),
        ("cosh", x, np.cosh), ("tanh", x, np.tanh), ("asinh", x, np.arcsinh), ("acosh", large, np.arccosh),
        ("atanh", unit, np.arctanh),
        ("erf", x, lambda v: torch.erf(t(v)).numpy()),
    ]
    inputs = {"x": x, "unit": unit, "large": large}
    outputs = {name: function(value) for name, value, function in functions}
    outputs |= {
        "gelu_exact": F.gelu(t(x)).numpy(),
        "gelu_tanh": F.gelu(t(x), approximate="tanh").numpy(),
        "gelu_sigmoid": x / (1 + np.exp(-1.702 * x)),
        "clip": np.clip(x, -0.5, 0.75),
        "clamped": np.where(x >= 0, np.minimum(0.6, x), np.minimum(0.6, 0.2 * x)),
    }
    net = network(inputs, outputs)
    names = {id(x): "x", id(unit): "unit", id(large): "large"}
    for name, value, _ in functions:
        getattr(net, f"add_{name}")(name, names[id(value)], name)
    net.add_gelu("g1", "x", "gelu_exact", "EXACT")
    net.add_gelu("g2", "x", "gelu_tanh", "TANH_APPROXIMATION")
    net.add_gelu("g3", "x", "gelu_sigmoid", "SIGMOID_APPROXIMATION")
    net.add_clip("c", "x", "clip", -0.5, 0.75)
    net.add_clamped_relu("cr", "x", "clamped", 0.2, 0.6)
    case("elementwise", "functions", net, inputs, outputs)

    a, b = rand(2, 1, 3, low=-3, high=3), rand(4, 1, low=0.5, high=2)
    positive = np.abs(a) + 0.1
    same = np.round(a)
    inputs = {"a": a, "b": b, "positive": positive, "same": same}
    pairs = {
        "add": a + b, "multiply": a * b, "subtract": a - b, "divide": a / b, "floor_div": np.floor(a / b),
        "mod": np.mod(a, b), "min": np.minimum(a, b), "max": np.maximum(a, b),
    }
    outputs = dict(pairs) | {"pow": positive**b}
    net = network(inputs, [])
    for name in pairs:
        getattr(net, f"add_{name}_broadcastable")(name, ["a", "b"], name)
    net.add_pow_broadcastable("pow", ["positive", "b"], "pow")
    compared = {
        "gt": (lambda n, i, o, **k: net.add_greater_than(n, i, o, **k), np.greater),
        "ge": (lambda n, i, o, **k: net.add_greater_than(n, i, o, use_greater_than_equal=True, **k), np.greater_equal),
        "lt": (lambda n, i, o, **k: net.add_less_than(n, i, o, **k), np.less),
        "le": (lambda n, i, o, **k: net.add_less_than(n, i, o, use_less_than_equal=True, **k), np.less_equal),
        "eq": (lambda n, i, o, **k: net.add_equal(n, i, o, **k), np.equal),
        "ne": (lambda n, i, o, **k: net.add_not_equal(n, i, o, **k), np.not_equal),
    }
    for name, (add, function) in compared.items():
        add(f"{name}2", ["a", "b"], f"{name}2")
        add(f"{name}1", ["same"], f"{name}1", alpha=1.0)
        outputs[f"{name}2"] = function(a, b).astype(np.float32)
        outputs[f"{name}1"] = function(same, 1.0).astype(np.float32)
    for name, function in [("AND", np.logical_and), ("OR", np.logical_or), ("XOR", np.logical_xor)]:
        net.add_logical(name, ["gt2", "le1"], f"logical_{name}", name)
        outputs[f"logical_{name}"] = function(a > b, same <= 1).astype(np.float32)
    net.add_logical("not", ["gt2"], "logical_NOT", "NOT")
    outputs["logical_NOT"] = np.logical_not(a > b).astype(np.float32)
    net.add_where_broadcastable("where", ["gt2", "a", "b"], "where")
    outputs["where"] = np.where(a > b, a, b)
    finish(net, outputs)
    case("elementwise", "pairs", net, inputs, outputs)

    x = rand(3, 2, 4)
    modes = {"ADD": x + 0.5 + x * 2, "MULTIPLY": None}
    inputs = {"x": x}
    net = network(inputs, [], rank5=True, shapes={"x": x.shape})
    outputs = {}
    net.add_elementwise("add1", ["x"], "add1", "ADD", 0.5)
    outputs["add1"] = x + 0.5
    net.add_elementwise("mul1", ["x"], "mul1", "MULTIPLY", -2.0)
    outputs["mul1"] = x * -2
    three = ["x", "add1", "mul1"]
    values = [x, x + 0.5, x * -2]
    for mode, function in [
        ("ADD", sum), ("MULTIPLY", np.prod), ("AVE", lambda v: sum(v) / 3),
        ("MAX", lambda v: np.maximum.reduce(v)), ("MIN", lambda v: np.minimum.reduce(v)),
    ]:
        net.add_elementwise(f"all_{mode}", three, f"all_{mode}", mode)
        outputs[f"all_{mode}"] = np.prod(np.stack(values), axis=0) if mode == "MULTIPLY" else function(values)
    unary = {
        "sqrt": lambda v: np.sqrt(v), "rsqrt": lambda v: 1 / np.sqrt(v + 1e-3), "inverse": lambda v: 1 / (v + 1e-3),
        "power": lambda v: v**1.5, "exp": np.exp, "log": np.log, "abs": np.abs, "threshold": lambda v: np.maximum(v, 2.1),
    }
    for mode, function in unary.items():
        alpha = 1.5 if mode == "power" else 2.1
        net.add_unary(mode, "x", mode, mode, alpha=alpha, shift=2.0, scale=0.5, epsilon=1e-3)
        outputs[mode] = function(0.5 * x + 2.0)
    scale, bias = weights(3), weights(3, 2, 4)
    net.add_scale("scale", scale, bias, True, "x", "scale", [3], [3, 2, 4])
    outputs["scale"] = x * scale[:, None, None] + bias
    net.add_bias("bias", np.array([0.25], np.float32), "x", "bias", [1])
    outputs["bias"] = x + 0.25
    net.add_load_constant("constant", "constant", bias.flatten(), [3, 2, 4])
    outputs["constant"] = bias
    finish(net, outputs)
    case("elementwise", "rank_5", net, inputs, outputs)

    activations = {
        "LINEAR": ([0.5, -1.0], lambda v: 0.5 * v - 1), "RELU": (None, lambda v: np.maximum(v, 0)),
        "LEAKYRELU": ([0.1], lambda v: np.where(v >= 0, v, 0.1 * v)),
        "THRESHOLDEDRELU": (0.5, lambda v: np.where(v >= 0.5, v, 0)),
        "TANH": (None, np.tanh), "SCALED_TANH": ([1.7, 0.6], lambda v: 1.7 * np.tanh(0.6 * v)),
        "SIGMOID": (None, lambda v: 1 / (1 + np.exp(-v))),
        "SIGMOID_HARD": ([0.3, 0.4], lambda v: np.clip(0.3 * v + 0.4, 0, 1)),
        "ELU": (0.7, lambda v: np.where(v >= 0, v, 0.7 * (np.exp(v) - 1))),
        "SOFTSIGN": (None, lambda v: v / (1 + np.abs(v))), "SOFTPLUS": (None, lambda v: np.log1p(np.exp(v))),
    }
    x = rand(3, 2, 2, low=-2, high=2)
    x[0, 0, 0] = 0.5
    slope, inner = weights(3), weights(3)
    net = network({"x": x}, [], rank5=True)
    outputs = {}
    for mode, (params, function) in activations.items():
        net.add_activation(mode, mode, "x", f"y_{mode}", params)
        outputs[f"y_{mode}"] = function(x)
    net.add_activation("PRELU", "PRELU", "x", "prelu", slope)
    outputs["prelu"] = np.where(x >= 0, x, slope[:, None, None] * x)
    net.add_activation("PSP", "PARAMETRICSOFTPLUS", "x", "softplus", [slope, inner])
    outputs["softplus"] = slope[:, None, None] * np.log1p(np.exp(inner[:, None, None] * x))
    finish(net, outputs)
    case("elementwise", "activations", net, {"x": x}, outputs)


def matrices():
    x1, x2, x3 = rand(4), rand(3, 4), rand(2, 3, 4)
    x4, x5 = rand(2, 2, 1, 2), rand(2, 3, 4, 1, 1)
    inputs = {"x1": x1, "x2": x2, "x3": x3, "x4": x4, "x5": x5}
    net = network(inputs, [])
    w, b = weights(5, 4), weights(5)
    outputs = {}
    for name, value in inputs.items():
        net.add_inner_product(name + "y", w, b, 4, 5, True, name, name + "y")
        flat = value.reshape(*value.shape[: 1 if value.ndim == 4 else 2], 4) if value.ndim > 3 else value
        result = flat @ w.T + b
        outputs[name + "y"] = result.reshape(result.shape + (1, 1)) if value.ndim > 3 else result
    codes = RNG.integers(-128, 128, (5, 4), np.int8)
    net.add_inner_product("int8", codes.tobytes(), None, 4, 5, False, "x2", "int8", True, True, "linear", 8, np.array([0.02], np.float32))
    outputs["int8"] = x2 @ (codes * 0.02).T
    m, n = weights(4, 3), weights(3)
    net.add_batched_mat_mul("one", ["x3"], "one", weight_matrix_rows=4, weight_matrix_columns=3, W=m, bias=n)
    outputs["one"] = x3 @ m + n
    net.add_batched_mat_mul("two", ["x3", "x2"], "two", transpose_b=True)
    outputs["two"] = x3 @ x2.T
    net.add_batched_mat_mul("turned", ["x3", "x3"], "turned", transpose_a=True)
    outputs["turned"] = x3.transpose(0, 2, 1) @ x3
    net.add_batched_mat_mul("vectors", ["x3", "x1"], "vectors")
    outputs["vectors"] = x3 @ x1[:, None]
    finish(net, outputs)
    case("tensor", "products", net, inputs, outputs, why="int8DynamicQuantize is not rounded")

    i2, i5 = np.array([[0], [2], [5]], np.float32), np.array([[[1]], [[3]]], np.float32).reshape(2, 1, 1, 1, 1)
    inputs = {"i2": i2, "i5": i5, "a": rand(5, 1, 1), "b": rand(5, 1, 1)}
    net = network(inputs, [])
    table, b = weights(3, 6), weights(3)
    net.add_embedding_nd("nd", "i2", "nd", 6, 3, table, b)
    outputs = {"nd": table.T[[0, 2, 5]] + b}
    net.add_embedding("old", table, None, 6, 3, False, "i5", "old")
    outputs["old"] = table.T[[1, 3]].reshape(2, 1, 3, 1, 1)
    net.add_elementwise("dot", ["a", "b"], "dot", "DOT")
    net.add_elementwise("cos", ["a", "b"], "cos", "COS")
    a, c = inputs["a"].ravel(), inputs["b"].ravel()
    outputs["dot"] = (a @ c).reshape(1, 1, 1)
    outputs["cos"] = (a @ c / np.linalg.norm(a) / np.linalg.norm(c)).reshape(1, 1, 1)
    finish(net, outputs)
    case("tensor", "look_up", net, inputs, outputs)

    x = rand(4, 3, 3)
    net = network({"x": x}, [], rank5=True)
    outputs = {}
    for bits in range(1, 9):
        w = RNG.integers(0, 2**bits, (3, 3, 4, 2))
        kind = "lut" if bits % 2 else "linear"
        table = (RNG.integers(-8, 9, 2**bits) / 8).astype(np.float32)
        scale, bias = np.array([0.25, 0.5], np.float32) / bits, np.array([-0.5, 0.25], np.float32)
        order = np.transpose(w, (3, 2, 0, 1))
        # The builder turns them to the order of the file.
        stream = np.unpackbits(w.astype(np.uint8).reshape(-1, 1), axis=1)[:, 8 - bits :]
        data = np.packbits(stream.ravel()).tobytes()
        options = {"quant_lut": table} if kind == "lut" else {"quant_scale": scale, "quant_bias": bias}
        net.add_convolution(
            f"bits{bits}", 4, 2, 3, 3, 1, 1, "valid", 1, data, None, False, input_name="x", output_name=f"bits{bits}",
            is_quantized_weight=True, quantization_type=kind, nbits=bits, **options,
        )
        values = table[order] if kind == "lut" else order * scale[:, None, None, None] + bias[:, None, None, None]
        outputs[f"bits{bits}"] = F.conv2d(t(x)[None], t(values.astype(np.float32))).numpy()[0]
    net.add_bias("half", np.array([0.1, 0.2, 0.3, 0.4], np.float32), "x", "half", [4])
    bias = net.spec.neuralNetwork.layers[-1].bias.bias
    values = np.array(bias.floatValue, np.float16)
    bias.ClearField("floatValue")
    bias.float16Value = values.tobytes()
    outputs["half"] = x + values.astype(np.float32)[:, None, None]
    finish(net, outputs)
    case("tensor", "quantized", net, {"x": x}, outputs)


def reductions():
    x = rand(2, 3, 4, low=0.2, high=1.5)
    net = network({"x": x}, [], rank5=True)
    outputs = {}
    axes = {"CHW": (0, 1, 2), "HW": (1, 2), "C": 0, "H": 1, "W": 2}
    functions = {
        "sum": np.sum, "avg": np.mean, "prod": np.prod, "logsum": lambda v, **k: np.sum(np.log(v + 1e-3), **k),
        "sumsquare": lambda v, **k: np.sum(v**2, **k), "L1": lambda v, **k: np.sum(np.abs(v), **k),
        "L2": lambda v, **k: np.sqrt(np.sum(v**2, **k)), "max": np.max, "min": np.min, "argmax": np.argmax,
    }
    for mode, function in functions.items():
        axis = {"sum": "CHW", "avg": "HW", "prod": "C", "argmax": "H"}.get(mode, "W")
        net.add_reduce(mode, "x", mode, axis, mode, 1e-3)
        outputs[mode] = function(x, axis=axes[axis], keepdims=True)
    finish(net, outputs)
    case("tensor", "reduce", net, {"x": x}, outputs)

    net = network({"x": x}, [])
    outputs = {}
    functions = {
        "sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min,
        "l1": lambda v, **k: np.sum(np.abs(v), **k), "l2": lambda v, **k: np.sqrt(np.sum(v**2, **k)),
        "logsum": lambda v, **k: np.log(np.sum(v, **k)), "sumsquare": lambda v, **k: np.sum(v**2, **k),
        "logsumexp": lambda v, **k: np.log(np.sum(np.exp(v), **k)),
    }
    for at, (mode, function) in enumerate(functions.items()):
        keep = at % 2 == 0
        getattr(net, f"add_reduce_{mode}")(mode, "x", mode, [0, -1], keep)
        outputs[mode] = function(x, axis=(0, 2), keepdims=keep)
    net.add_reduce_sum("all", "x", "all", None, False, True)
    outputs["all"] = np.sum(x).reshape(1)
    net.add_argmax("argmax", "x", "argmax", -2, True)
    outputs["argmax"] = np.argmax(x, 1)[:, None]
    net.add_argmin("argmin", "x", "argmin", 2, False)
    outputs["argmin"] = np.argmin(x, 2)
    net.add_topk("topk", ["x"], ["values", "places"], 2, -1)
    order = np.argsort(-x, 2, kind="stable")[..., :2]
    outputs["values"], outputs["places"] = np.take_along_axis(x, order, 2), order
    net.add_topk("bottom", ["x"], ["low", "low_places"], 2, 1, True)
    order = np.argsort(x, 1, kind="stable")[:, :2]
    outputs["low"], outputs["low_places"] = np.take_along_axis(x, order, 1), order
    net.add_argsort("up", "x", "up", 1)
    net.add_argsort("down", "x", "down", 2, True)
    outputs["up"], outputs["down"] = np.argsort(x, 1, kind="stable"), np.argsort(-x, 2, kind="stable")
    net.add_cumsum("running", ["x"], "running", 1)
    outputs["running"] = np.cumsum(x, 1)
    net.add_cumsum("behind", ["x"], "behind", -1, True, True)
    outputs["behind"] = np.flip(np.cumsum(np.flip(x, 2), 2), 2) - x
    net.add_softmax_nd("softmax", "x", "softmax", 1)
    outputs["softmax"] = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    gamma, beta = weights(3, 4), weights(3, 4)
    net.add_layer_normalization("norm", "x", "norm", [3, 4], gamma, beta, 1e-3)
    mean, variance = x.mean((1, 2), keepdims=True), x.var((1, 2), keepdims=True)
    outputs["norm"] = gamma * (x - mean) / np.sqrt(variance + 1e-3) + beta
    finish(net, outputs)
    case("tensor", "reduce_axes", net, {"x": x}, outputs)


def shapes():
    x = rand(6, 2, 4)
    net = network({"x": x}, [], rank5=True)
    outputs = {}
    net.add_flatten("flat", 0, "x", "flat")
    outputs["flat"] = x.reshape(-1, 1, 1)
    net.add_flatten("flat_last", 1, "x", "flat_last")
    outputs["flat_last"] = x.transpose(1, 2, 0).reshape(-1, 1, 1)
    net.add_reshape("reshape", "x", "reshape", (4, 3, 4), 0)
    outputs["reshape"] = x.reshape(4, 3, 4)
    net.add_reshape("last", "x", "last", (4, 3, 4), 1)
    outputs["last"] = x.transpose(1, 2, 0).reshape(3, 4, 4).transpose(2, 0, 1)
    net.add_reshape("steps", "x", "steps", (3, 2, 2, 4), 0)
    net.add_sequence_repeat("repeat", 2, "steps", "repeat")
    net.add_reduce("steps_sum", "repeat", "steps_sum", "CHW", "sum")
    net.add_permute("steps_back", (3, 1, 2, 0), "steps_sum", "steps_back")
    outputs["steps_back"] = np.tile(x.reshape(3, -1).sum(1), 2).reshape(1, 1, 6)
    net.add_permute("permute", (0, 3, 1, 2), "x", "permute")
    outputs["permute"] = x.transpose(2, 0, 1)
    net.add_split("split", "x", ["part0", "part1", "part2"])
    for at in range(3):
        outputs[f"part{at}"] = x[2 * at : 2 * at + 2]
    net.add_elementwise("concat", ["part2", "part0"], "concat", "CONCAT")
    outputs["concat"] = np.concatenate([x[4:6], x[:2]])
    net.add_slice("slice", "x", "slice", "channel", 1, -1, 2)
    outputs["slice"] = x[1:-1:2]
    finish(net, outputs)
    case("tensor", "rank_5_shapes", net, {"x": x}, outputs)

    y = rand(2, 3, 4)
    inputs = {"x": y, "like": rand(4, 6), "size": np.array([3, 8], np.float32), "row": rand(1, 4), "one": rand(1, 3, 1)}
    net = network(inputs, [])
    outputs = {}
    net.add_transpose("turn", [2, 0, 1], "x", "turn")
    outputs["turn"] = y.transpose(2, 0, 1)
    net.add_reshape_static("static", "x", "static", [6, -1])
    outputs["static"] = y.reshape(6, 4)
    net.add_rank_preserving_reshape("same_rank", "x", "same_rank", [0, 2, -1])
    outputs["same_rank"] = y.reshape(2, 2, 6)
    net.add_reshape_like("like_y", ["x", "like"], "like_y")
    outputs["like_y"] = y.reshape(4, 6)
    net.add_reshape_dynamic("dynamic", ["x", "size"], "dynamic")
    outputs["dynamic"] = y.reshape(3, 8)
    net.add_expand_dims("expand", "x", "expand", [0, -1])
    outputs["expand"] = y.reshape(1, 2, 3, 4, 1)
    net.add_squeeze("squeeze", "one", "squeeze", [0])
    outputs["squeeze"] = inputs["one"].reshape(3, 1)
    net.add_squeeze("squeeze_all", "one", "squeeze_all", squeeze_all=True)
    outputs["squeeze_all"] = inputs["one"].reshape(3)
    net.add_flatten_to_2d("flat", "x", "flat", -1)
    outputs["flat"] = y.reshape(6, 4)
    net.add_broadcast_to_static("to_static", "row", "to_static", [3, 4])
    outputs["to_static"] = np.broadcast_to(inputs["row"], (3, 4))
    net.add_broadcast_to_like("to_like", ["row", "x"], "to_like")
    outputs["to_like"] = np.broadcast_to(inputs["row"], (2, 3, 4))
    net.add_get_shape("shape", "x", "shape")
    outputs["shape"] = np.array([2, 3, 4])
    net.add_broadcast_to_dynamic("to_dynamic", ["row", "shape"], "to_dynamic")
    outputs["to_dynamic"] = np.broadcast_to(inputs["row"], (2, 3, 4))
    net.add_concat_nd("concat", ["x", "x"], "concat", 1)
    outputs["concat"] = np.concatenate([y, y], 1)
    net.add_exp2("twice", "x", "twice")
    net.add_concat_nd("turns", ["x", "twice"], "turns", 1, True)
    outputs["turns"] = np.stack([y, np.exp2(y)], 2).reshape(2, 6, 4)
    net.add_stack("stack", ["x", "twice"], "stack", -1)
    outputs["stack"] = np.stack([y, np.exp2(y)], -1)
    net.add_split_nd("halves", "x", ["h0", "h1"], 2, 2)
    outputs["h0"], outputs["h1"] = np.split(y, 2, 2)
    net.add_split_nd("sizes", "x", ["s0", "s1"], -2, split_sizes=[1, 2])
    outputs["s0"], outputs["s1"] = y[:, :1], y[:, 1:]
    net.add_tile("tile", "x", "tile", [2, 3])
    outputs["tile"] = np.tile(y, (1, 2, 3))
    net.add_reverse("reverse", "x", "reverse", [True, False, True])
    outputs["reverse"] = y[::-1, :, ::-1]
    net.add_fill_like("fill_like", "x", "fill_like", 0.5)
    outputs["fill_like"] = np.full((2, 3, 4), 0.5)
    net.add_fill_static("fill_static", "fill_static", [2, 1], -1.5)
    outputs["fill_static"] = np.full((2, 1), -1.5)
    net.add_fill_dynamic("fill_dynamic", "size", "fill_dynamic", 2.0)
    outputs["fill_dynamic"] = np.full((3, 8), 2)
    net.add_range_static("range", "range", end=7, start=1, step=2)
    outputs["range"] = np.arange(1, 7, 2)
    net.add_load_constant_nd("constant", "constant", np.array([[1, 2], [3, 4]]), [2, 2])
    outputs["constant"] = np.array([[1, 2], [3, 4]])
    net.add_sliding_windows("windows", "x", "windows", 2, 2, 2)
    outputs["windows"] = np.stack([y[..., 0:2], y[..., 2:4]], 2)
    finish(net, outputs)
    case("tensor", "shapes", net, inputs, outputs)

    z = rand(5, 5, 5)
    lengths = np.array([2, 3, 1, 5, 4], np.float32)
    inputs = {"x": z, "begin": np.array([1, -1, 3], np.float32), "end": np.array([4, 0, 5], np.float32), "lengths": lengths, "at": np.array([2], np.float32), "pads": np.array([0, 1, 2, 0, 0, 0], np.float32)}
    net = network(inputs, [])
    outputs = {}
    net.add_slice_static("static", "x", "static", [1, -2, 3], [3, -3, 2], [2, -1, 2], [True, False, True], [False, True, True])
    outputs["static"] = z[:3:2, -2::-1, ::2]
    net.add_slice_static("squeezed", "x", "squeezed", [1, 2, -1], [3, -3, 2], [2, 2, 2], [True, False, True], [False, True, True], [False, True, True])
    outputs["squeezed"] = z[:3:2, 2, -1]
    net.add_slice_dynamic("dynamic", ["x", "begin", "end"], "dynamic", strides=[2, -2, 1], begin_masks=[False] * 3, end_masks=[False, True, False])
    outputs["dynamic"] = z[1:4:2, ::-2, 3:5]
    net.add_slice_dynamic("dynamic_squeezed", ["x", "begin"], "dynamic_squeezed", end_ids=[3, 1, 2], strides=[1, 1, 1], begin_masks=[False, False, True], end_masks=[False] * 3, squeeze_masks=[False, True, False])
    outputs["dynamic_squeezed"] = z[1:3, -1, :2]
    net.add_slice_by_size("by_size", ["x", "at"], "by_size", 1, 3)
    outputs["by_size"] = z[:, 2:5]
    net.add_constant_pad("pad", ["x"], "pad", 0.5, False, [1, 0, 0, 2, 0, 0])
    outputs["pad"] = np.pad(z, ((1, 0), (0, 2), (0, 0)), constant_values=0.5)
    net.add_constant_pad("pad_to", ["x"], "pad_to", 0.0, True, [0, 7, 6, 0, 0, 0])
    outputs["pad_to"] = np.pad(z, ((0, 2), (1, 0), (0, 0)))
    net.add_constant_pad("pad_input", ["x", "pads"], "pad_input", -1.0)
    outputs["pad_input"] = np.pad(z, ((0, 1), (2, 0), (0, 0)), constant_values=-1)
    net.add_reverse_sequence("sequences", ["x", "lengths"], "sequences", 0, 2)
    turned = z.copy()
    for row, length in enumerate(lengths.astype(int)):
        turned[row, :, :length] = z[row, :, :length][:, ::-1]
    outputs["sequences"] = turned
    net.add_range_dynamic("range", ["at"], "range", 0, 0.5)
    outputs["range"] = np.arange(0, 2, 0.5)
    finish(net, outputs)
    case("tensor", "slices", net, inputs, outputs)


def positions():
    x = rand(4, 3, 2)
    i, grid = np.array([2, -1, 0], np.float32), np.array([[0, 3], [1, 2]], np.float32)
    along = np.array([[[0, 1]] * 3, [[2, 3]] * 3], np.float32)
    nd = np.array([[1, 2], [3, 0]], np.float32)
    inputs = {"x": x, "i": i, "grid": grid, "along": along, "nd": nd, "updates": rand(4, 3, 2), "part": rand(2, 3, 2), "rows": rand(2, 2)}
    net = network(inputs, [])
    outputs = {}
    net.add_gather("gather", ["x", "i"], "gather", 1)
    outputs["gather"] = x[:, [2, -1, 0]]
    net.add_gather("grid_y", ["x", "grid"], "grid_y", 0)
    outputs["grid_y"] = x[grid.astype(int)]
    net.add_gather_along_axis("along_y", ["x", "along"], "along_y", 0)
    outputs["along_y"] = np.take_along_axis(x, along.astype(int), 0)
    net.add_gather_nd("nd_y", ["x", "nd"], "nd_y")
    outputs["nd_y"] = x[[1, 3], [2, 0]]
    modes = {
        "UPDATE": lambda old, new: new, "ADD": lambda old, new: old + new, "SUB": lambda old, new: old - new,
        "MUL": lambda old, new: old * new, "DIV": lambda old, new: old / new, "MAX": np.maximum, "MIN": np.minimum,
    }
    for mode, function in modes.items():
        net.add_scatter(f"scatter_{mode}", ["x", "i", "updates"], f"scatter_{mode}", 1, mode)
        value = x.copy()
        for at, row in enumerate([2, 2, 0]):
            value[:, row] = function(value[:, row], inputs["updates"][:, at])
        outputs[f"scatter_{mode}"] = value
    net.add_scatter_along_axis("put", ["x", "along", "part"], "put", 0, "ADD")
    value = x.copy()
    for at in np.ndindex(2, 3, 2):
        value[(int(along[at]),) + at[1:]] += inputs["part"][at]
    outputs["put"] = value
    net.add_scatter_nd("put_nd", ["x", "nd", "rows"], "put_nd", "UPDATE")
    value = x.copy()
    value[[1, 3], [2, 0]] = inputs["rows"]
    outputs["put_nd"] = value
    net.add_one_hot("hot", ["grid"], "hot", 5, -1, 2.0, -1.0)
    outputs["hot"] = np.eye(5)[grid.astype(int)] * 3 - 1
    net.add_greater_than("positive", ["x"], "positive")
    net.add_where_nonzero("where", "positive", "where")
    outputs["where"] = np.argwhere(x > 0)
    net.add_lower_triangular("lower", "x", "lower", 1)
    outputs["lower"] = np.tril(x, 1)
    net.add_upper_triangular("upper", "x", "upper", -1)
    outputs["upper"] = np.triu(x, -1)
    net.add_matrix_band_part("band", "x", "band", 1, -1)
    outputs["band"] = np.triu(x, -1)
    finish(net, outputs)
    case("tensor", "positions", net, inputs, outputs)

    boxes = np.array([[[1, 1, 2, 2], [1.1, 1, 2, 2], [5, 5, 2, 2], [5, 5.2, 2, 2], [9, 1, 1, 1]]], np.float32)
    scores = np.array([[[0.9, 0.1], [0.3, 0.8], [0.6, 0.2], [0.7, 0.1], [0.05, 0.1]]], np.float32)
    low = scores / 100
    inputs = {"boxes": boxes, "scores": scores, "low": low}
    net = network(inputs, [])
    outputs = {}

    def chosen(name, source, count, by_class, places):
        net.add_nms(name, ["boxes", source], [f"{name}_{at}" for at in range(4)], 0.5, 0.2, count, by_class)
        missing = count - len(places)
        outputs[f"{name}_0"] = np.pad(boxes[:, places], ((0, 0), (0, missing), (0, 0)))
        outputs[f"{name}_1"] = np.pad(inputs[source][:, places], ((0, 0), (0, missing), (0, 0)))
        outputs[f"{name}_2"] = np.pad(np.array([places]), ((0, 0), (0, missing)), constant_values=-1)
        outputs[f"{name}_3"] = np.array([len(places)])

    chosen("plain", "scores", 4, False, [0, 3])
    chosen("by_class", "scores", 4, True, [0, 1, 3])
    chosen("few", "scores", 2, True, [0, 1])
    chosen("none", "low", 3, False, [0])
    finish(net, outputs)
    case("tensor", "suppression", net, inputs, outputs)

    inputs = {"x": rand(2, 3), "p": np.array([[0, 1, 0], [1, 0, 0]], np.float32)}
    net = network(inputs, [])
    net.add_random_normal_like("n", "x", "n", 2.0, 0.0, 5)
    net.add_random_normal_static("ns", "ns", [2, 2], 1.0, 0.0, 5)
    net.add_get_shape("shape", "x", "shape")
    net.add_random_normal_dynamic("nd", ["shape"], "nd", -1.0, 0.0, 5)
    net.add_random_uniform_like("u", "x", "u", 0.5, 0.5, 5)
    net.add_random_uniform_static("us", "us", [3], 0.25, 0.25, 5)
    net.add_random_uniform_dynamic("ud", ["shape"], "ud", 0.75, 0.75, 5)
    net.add_random_bernoulli_like("b", "x", "b", 1.0, 5)
    net.add_random_bernoulli_static("bs", "bs", [4], 0.0, 5)
    net.add_random_bernoulli_dynamic("bd", ["shape"], "bd", 1.0, 5)
    net.add_categorical_distribution("c", "p", "c", 4, False, seed=5)
    outputs = {
        "n": np.full((2, 3), 2), "ns": np.ones((2, 2)), "nd": -np.ones((2, 3)), "u": np.full((2, 3), 0.5),
        "us": np.full(3, 0.25), "ud": np.full((2, 3), 0.75), "b": np.ones((2, 3)), "bs": np.zeros(4),
        "bd": np.ones((2, 3)), "c": np.array([[1] * 4, [0] * 4]),
    }
    finish(net, outputs)
    case("tensor", "random", net, inputs, outputs, why="distributions of one value")
