"""Write cases of classic Core ML neural networks, computed by NumPy and PyTorch from what the schema says.

usage: neural_network_cases.py DIR

Writes DIR/FAMILY.zip with a folder for each case: model.mlmodel, inputs/NAME.npy, outputs/NAME.npy and
case.json. The networks are made by the NeuralNetworkBuilder of coremltools 9.0; there is nothing on Linux that
runs them, so the expected values are written here a second time, by hand. Inputs are random with fixed seeds.
"""

import io
import json
import pathlib
import sys
import zipfile

import numpy as np
import torch
import torch.nn.functional as F
from coremltools.models import datatypes
from coremltools.models.neural_network import NeuralNetworkBuilder
from coremltools.proto import Model_pb2

CASES = {}
RNG = np.random.default_rng(7)


def rand(*shape, low=-1.0, high=1.0):
    return RNG.uniform(low, high, shape).astype(np.float32)


def weights(*shape):
    """Weights with few digits, which compress."""
    return (RNG.integers(-8, 9, shape) / 8).astype(np.float32)


def network(inputs, outputs, rank5=False, shapes=None, **options):
    """A builder of a network with these inputs (arrays by name) and names of outputs."""
    shapes = shapes or {}
    given = [(name, datatypes.Array(*shapes.get(name, value.shape))) for name, value in inputs.items()]
    # Those of cases that are declared when all values are known have a name in between.
    wanted = [(name, shapes.get(name) and datatypes.Array(*shapes[name])) for name in outputs] or [("later", None)]
    return NeuralNetworkBuilder(
        given, wanted, disable_rank5_shape_mapping=not rank5, use_float_arraytype=True, **options
    )


def case(family, name, builder, inputs, outputs, tolerance=1e-5, why="single precision"):
    spec = builder.spec if hasattr(builder, "spec") else builder
    spec.description.metadata.Clear()
    kind = spec.WhichOneof("Type")
    layers = sorted({layer.WhichOneof("layer") for layer in getattr(getattr(spec, kind), "layers", [])}) or [kind]
    CASES.setdefault(family, []).append((name, spec, inputs, outputs, layers, tolerance, why))


def t(array):
    return torch.from_numpy(np.ascontiguousarray(array))


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


def finish(net, outputs, rank5_shape=False):
    """Declares the outputs of a builder that was made without."""
    del net.spec.description.output[:]
    for name, value in outputs.items():
        outputs[name] = np.asarray(value, np.float32)
        output = net.spec.description.output.add()
        output.name = name
        output.type.multiArrayType.dataType = 65568
        output.type.multiArrayType.shape.extend(outputs[name].shape)


def images():
    x = rand(4, 7, 6)
    inputs = {"x": x}
    net = network(inputs, [], rank5=True)
    outputs = {}
    batch = t(x)[None]

    def conv(name, border="valid", groups=1, stride=(1, 1), dilation=(1, 1), kernel=(3, 3), pads=(0, 0, 0, 0), heavy="BOTTOM_RIGHT_HEAVY"):
        w, b = weights(*kernel, 4 // groups, 6), weights(6)
        net.add_convolution(
            name, 4 // groups, 6, *kernel, *stride, border, groups, w, b, True, input_name="x", output_name=name,
            dilation_factors=list(dilation), padding_top=pads[0], padding_bottom=pads[1], padding_left=pads[2],
            padding_right=pads[3], same_padding_asymmetry_mode=heavy,
        )
        value = batch
        if border == "same":
            pads = []
            for length, k, s, d in zip(x.shape[1:], kernel, stride, dilation):
                extent = (k - 1) * d + 1
                total = max(0, (-(-length // s) - 1) * s + extent - length)
                less, more = total // 2, total - total // 2
                pads += [less, more] if heavy.startswith("BOTTOM") else [more, less]
        value = F.pad(value, (pads[2], pads[3], pads[0], pads[1]))
        kernels = t(np.transpose(w, (3, 2, 0, 1)))
        outputs[name] = F.conv2d(value, kernels, t(b), stride, 0, dilation, groups).numpy()[0]

    conv("conv_valid", stride=(2, 1), pads=(1, 0, 2, 1))
    conv("conv_groups", groups=2, dilation=(2, 1))
    conv("conv_same", "same", stride=(2, 2), kernel=(2, 3))
    conv("conv_same_top", "same", stride=(2, 2), kernel=(2, 3), heavy="TOP_LEFT_HEAVY")
    finish(net, outputs)
    case("image", "convolution", net, inputs, outputs)

    net = network(inputs, [], rank5=True)
    outputs = {}

    def deconv(name, border="valid", groups=1, stride=(2, 2), kernel=(3, 3), pads=(0, 0, 0, 0), shape=None):
        w, b = weights(*kernel, 4, 6 // groups), weights(6)
        net.add_convolution(
            name, 4, 6, *kernel, *stride, border, groups, w, b, True, is_deconv=True, output_shape=shape, input_name="x",
            output_name=name, padding_top=pads[0], padding_bottom=pads[1], padding_left=pads[2], padding_right=pads[3],
        )
        full = F.conv_transpose2d(batch, t(np.transpose(w, (2, 3, 0, 1))), None, stride, 0, 0, groups).numpy()[0]
        if border == "same" or shape:
            wanted = shape or [length * s for length, s in zip(x.shape[1:], stride)]
            for axis, length in enumerate(wanted, 1):
                total = full.shape[axis] - length
                if total < 0:
                    full = np.pad(full, [(0, -total if at == axis else 0) for at in range(3)])
                else:
                    full = np.take(full, range(total // 2, total // 2 + length), axis)
        else:
            full = full[:, pads[0] : full.shape[1] - pads[1], pads[2] : full.shape[2] - pads[3]]
        outputs[name] = full + b[:, None, None]

    deconv("deconv_valid", pads=(1, 0, 0, 1))
    deconv("deconv_groups", groups=2, stride=(1, 2))
    deconv("deconv_same", "same", kernel=(4, 3))
    deconv("deconv_gap", "same", kernel=(2, 2), stride=(3, 2))
    deconv("deconv_shape", shape=(13, 12))
    finish(net, outputs)
    case("image", "deconvolution", net, inputs, outputs)

    net = network(inputs, [], rank5=True)
    outputs = {}

    def windows(kind, kernel, stride, before, after, exclude):
        result = []
        height = (x.shape[1] + before[0] + after[0] - kernel[0]) // stride[0] + 1
        width = (x.shape[2] + before[1] + after[1] - kernel[1]) // stride[1] + 1
        out = np.zeros((4, height, width), np.float32)
        for i in range(height):
            for j in range(width):
                top, left = i * stride[0] - before[0], j * stride[1] - before[1]
                part = x[:, max(top, 0) : top + kernel[0], max(left, 0) : left + kernel[1]].reshape(4, -1)
                # What lies behind the last padding is no part of a window.
                rows = min(top + kernel[0], x.shape[1] + before[0]) - top
                columns = min(left + kernel[1], x.shape[2] + before[1]) - left
                count = part.shape[1] if exclude else rows * columns
                out[:, i, j] = {
                    "MAX": lambda: part.max(1), "AVERAGE": lambda: part.sum(1) / count, "L2": lambda: np.sqrt((part**2).sum(1)),
                }[kind]()
        return out

    for kind in ["MAX", "AVERAGE", "L2"]:
        net.add_pooling(f"valid_{kind}", 3, 2, 2, 2, kind, "VALID", "x", f"valid_{kind}", exclude_pad_area=False, padding_top=1, padding_bottom=1, padding_left=1, padding_right=1)
        outputs[f"valid_{kind}"] = windows(kind, (3, 2), (2, 2), (1, 1), (1, 1), False)
        net.add_pooling(f"global_{kind}", 0, 0, 1, 1, kind, "VALID", "x", f"global_{kind}", is_global=True)
        outputs[f"global_{kind}"] = windows(kind, (7, 6), (1, 1), (0, 0), (0, 0), True)
    net.add_pooling("excluded", 3, 3, 2, 2, "AVERAGE", "VALID", "x", "excluded", exclude_pad_area=True, padding_top=1, padding_bottom=1, padding_left=1, padding_right=1)
    outputs["excluded"] = windows("AVERAGE", (3, 3), (2, 2), (1, 1), (1, 1), True)
    net.add_pooling("same", 2, 3, 2, 2, "MAX", "SAME", "x", "same")
    outputs["same"] = windows("MAX", (2, 3), (2, 2), (0, 0), (1, 1), True)
    net.add_pooling("last", 2, 3, 2, 2, "MAX", "INCLUDE_LAST_PIXEL", "x", "last")
    outputs["last"] = windows("MAX", (2, 3), (2, 2), (0, 0), (1, 1), True)
    net.add_pooling("last_padded", 2, 2, 2, 2, "AVERAGE", "INCLUDE_LAST_PIXEL", "x", "last_padded", exclude_pad_area=True, padding_top=1, padding_left=1, padding_bottom=1, padding_right=1)
    outputs["last_padded"] = windows("AVERAGE", (2, 2), (2, 2), (1, 1), (0, 1), True)
    finish(net, outputs)
    case("image", "pooling", net, inputs, outputs)

    net = network(inputs, [], rank5=True)
    outputs = {}
    gamma, beta, mean, variance = weights(4), weights(4), weights(4), np.abs(weights(4)) + 0.5
    c = lambda v: v[:, None, None]
    net.add_batchnorm("bn", 4, gamma, beta, mean, variance, "x", "bn", epsilon=1e-3)
    outputs["bn"] = c(gamma) * (x - c(mean)) / np.sqrt(c(variance) + 1e-3) + c(beta)
    moments = lambda axes: (x - x.mean(axes, keepdims=True), x.var(axes, keepdims=True))
    centred, var = moments((1, 2))
    net.add_batchnorm("instance", 4, gamma, beta, None, None, "x", "instance", True, True, 1e-3)
    net.add_batchnorm("whole", 4, gamma, beta, None, None, "x", "whole", True, True, 1e-3)
    net.spec.neuralNetwork.layers[-1].batchnorm.instanceNormalization = False
    outputs["instance"] = outputs["whole"] = c(gamma) * centred / np.sqrt(var + 1e-3) + c(beta)
    net.add_mvn("mvn", "x", "mvn", False, True, 1e-3)
    outputs["mvn"] = centred / np.sqrt(var + 1e-3)
    net.add_mvn("mean_only", "x", "mean_only", True, False)
    outputs["mean_only"] = x - x.mean()
    net.add_mvn("across", "x", "across", True, True, 1e-3)
    outputs["across"] = (x - x.mean()) / np.sqrt(x.var() + 1e-3)
    net.add_l2_normalize("l2", "x", "l2", 1e-3)
    outputs["l2"] = x / np.sqrt((x**2).sum() + 1e-3)
    net.add_softmax("softmax", "x", "softmax")
    outputs["softmax"] = np.exp(x) / np.exp(x).sum(0)
    net.add_lrn("lrn", "x", "lrn", 0.5, 0.75, 3, 2.0)
    padded = np.pad(x**2, ((1, 1), (0, 0), (0, 0)))
    outputs["lrn"] = x / (2 + 0.5 / 3 * (padded[:-2] + padded[1:-1] + padded[2:])) ** 0.75
    finish(net, outputs)
    case("image", "normalize", net, inputs, outputs)

    y = rand(4, 4, 3)
    inputs = {"x": x, "y": y}
    net = network(inputs, [], rank5=True)
    outputs = {}
    net.add_crop("crop", 1, 2, 3, 0, [], ["x"], "crop")
    outputs["crop"] = x[:, 3:7, 1:4]
    net.add_crop("crop_like", 0, 0, 0, 0, [2, 1], ["x", "y"], "crop_like")
    outputs["crop_like"] = x[:, 2:6, 1:4]
    for kind, mode in [("constant", "constant"), ("reflection", "reflect"), ("replication", "edge")]:
        net.add_padding(kind, 2, 1, 0, 3, 0.5, "x", kind, kind)
        options = {"constant_values": 0.5} if mode == "constant" else {}
        outputs[kind] = np.pad(x, ((0, 0), (0, 3), (2, 1)), mode, **options)
    net.add_upsample("nearest", 2, 3, "y", "nearest")
    outputs["nearest"] = y.repeat(2, 1).repeat(3, 2)
    outputs["linear"] = resize(y, [grid_upsample(4, 8), grid_upsample(3, 9)])
    net.add_upsample("linear", 2, 3, "y", "linear", "BILINEAR")
    outputs["corners"] = resize(y, [np.linspace(0, 3, 8), np.linspace(0, 2, 9)])
    net.add_upsample("corners", 2, 3, "y", "corners", "BILINEAR", "ALIGN_CORNERS_TRUE")
    half = lambda n, m: np.clip((np.arange(m) + 0.5) * n / m - 0.5, 0, n - 1)
    outputs["centres"] = resize(y, [half(4, 6), half(3, 7)])
    net.add_upsample("centres", 1.5, 2.5, "y", "centres", "BILINEAR", "ALIGN_CORNERS_FALSE")
    grids = {
        "STRICT_ALIGN_ENDPOINTS_MODE": lambda n, m: np.linspace(0, n - 1, m),
        "ALIGN_ENDPOINTS_MODE": lambda n, m: np.array([(n - 1) / 2]) if m == 1 else np.linspace(0, n - 1, m),
        "UPSAMPLE_MODE": grid_upsample,
        "ROI_ALIGN_MODE": lambda n, m: np.minimum(n - 1, (np.arange(m) + 0.5) * max(1, n - 1) / m),
    }
    for mode, grid in grids.items():
        for size in [(5, 8), (1, 2)]:
            name = f"{mode[:5]}_{size[0]}"
            net.add_resize_bilinear(name, "y", name, *size, mode)
            outputs[name] = resize(y, [grid(4, size[0]), grid(3, size[1])])
    for mode, (n, m, order) in {"SPACE_TO_DEPTH": (None,) * 3, "DEPTH_TO_SPACE": (None,) * 3, "PIXEL_SHUFFLE": (None,) * 3}.items():
        source = "even" if mode == "SPACE_TO_DEPTH" else "y"
        if mode == "SPACE_TO_DEPTH":
            net.add_slice("even", "x", "even", "height", 0, 6)
        net.add_reorganize_data(mode, source, mode, mode, 2)
    even = x[:, :6]
    outputs["SPACE_TO_DEPTH"] = np.concatenate([even[:, i::2, j::2] for i in range(2) for j in range(2)])
    deep = np.zeros((1, 8, 6), np.float32)
    for i in range(2):
        for j in range(2):
            deep[0, i::2, j::2] = y[2 * i + j]
    outputs["DEPTH_TO_SPACE"] = deep
    outputs["PIXEL_SHUFFLE"] = F.pixel_shuffle(t(y)[None], 2).numpy()[0]
    finish(net, outputs)
    case("image", "geometry", net, inputs, outputs)

    features, boxes = rand(1, 2, 3, 6, 5), np.array([[0.5, 1, 4, 3.5], [0, 0, 5, 4]], np.float32)
    roi = boxes.reshape(2, 1, 4, 1, 1)
    numbered = np.concatenate([np.array([[1], [0]], np.float32), boxes], 1).reshape(2, 1, 5, 1, 1)
    inputs = {"x": features, "roi": roi, "numbered": numbered}
    net = network(inputs, [])
    outputs = {}
    box_grids = {
        "STRICT_ALIGN_ENDPOINTS_MODE": lambda a, b, m: np.linspace(a, b, m),
        "UPSAMPLE_MODE": lambda a, b, m: np.minimum(b, a + np.arange(m) * (b - a + 1) / m),
        "ROI_ALIGN_MODE": lambda a, b, m: np.minimum(b, a + (np.arange(m) + 0.5) * max(1, b - a) / m),
    }
    for mode, grid in box_grids.items():
        net.add_crop_resize(mode, ["x", "roi"], mode, 3, 2, mode)
        outputs[mode] = np.stack([
            np.stack([resize(image, [grid(a, c2, 3), grid(b, d, 2)]) for image in features[0]]) for a, b, c2, d in boxes
        ])
    net.add_crop_resize("one", ["x", "numbered"], "one", 3, 2, "STRICT_ALIGN_ENDPOINTS_MODE", spatial_scale=0.5)
    grid = box_grids["STRICT_ALIGN_ENDPOINTS_MODE"]
    outputs["one"] = np.stack([
        resize(features[0, int(n)], [grid(a / 2, c2 / 2, 3), grid(b / 2, d / 2, 2)])[None] for n, a, b, c2, d in numbered.reshape(2, 5)
    ])
    centre = np.array([[0.5, 0.4, 0.6, 0.2]], np.float32)
    inputs["centre"] = centre.reshape(1, 1, 4, 1, 1)
    feature = net.spec.description.input.add()
    feature.name = "centre"
    feature.type.multiArrayType.dataType = 65568
    feature.type.multiArrayType.shape.extend([1, 1, 4, 1, 1])
    net.add_crop_resize("centred", ["x", "centre"], "centred", 2, 2, "STRICT_ALIGN_ENDPOINTS_MODE", True, "CENTER_SIZE_WIDTH_FIRST")
    # Width first: the centre lies at (0.5, 0.4), the box is 0.6 wide and 0.2 high.
    rows, columns = grid(0.3 * 5, 0.5 * 5, 2), grid(0.2 * 4, 0.8 * 4, 2)
    outputs["centred"] = np.stack([resize(image, [rows, columns]) for image in features[0]])[None]
    finish(net, outputs)
    case("image", "crop_resize", net, inputs, outputs, 1e-4, "coordinates go from 0 to 1 and back")

    volume = rand(1, 2, 4, 5, 4)
    inputs = {"x": volume}
    net = network(inputs, [])
    outputs = {}
    w, b = weights(4, 1, 2, 3, 2), weights(4)
    net.add_convolution3d("conv", 2, 4, 2, 3, 2, w, b, True, groups=2, stride_depth=2, padding_mode="custom", padding_front=1, padding_right=1, input_name="x", output_name="conv")
    outputs["conv"] = F.conv3d(F.pad(t(volume), (0, 1, 0, 0, 1, 0)), t(w), t(b), (2, 1, 1), groups=2).numpy()
    w = weights(4, 2, 3, 3, 3)
    net.add_convolution3d("same", 2, 4, 3, 3, 3, w, None, False, stride_height=2, padding_mode="same", input_name="x", output_name="same")
    outputs["same"] = F.conv3d(F.pad(t(volume), (1, 1, 1, 1, 1, 1)), t(w), None, (1, 2, 1)).numpy()
    w = weights(3, 2, 2, 2, 2)
    net.add_convolution3d("deconv", 2, 3, 2, 2, 2, w, None, False, stride_depth=2, stride_height=2, stride_width=2, is_deconv=True, input_name="x", output_name="deconv")
    outputs["deconv"] = F.conv_transpose3d(t(volume), t(np.transpose(w, (1, 0, 2, 3, 4))), None, 2).numpy()
    net.add_pooling3d("max", "x", "max", "MAX", 2, 2, 2, 2, 1, 2, "VALID")
    outputs["max"] = F.max_pool3d(t(volume), 2, (2, 1, 2)).numpy()
    net.add_pooling3d("mean", "x", "mean", "AVERAGE", 3, 3, 3, 1, 2, 1, "CUSTOM", 1, 1, 1, 1, 1, 1, True)
    outputs["mean"] = F.avg_pool3d(t(volume), 3, (1, 2, 1), 1, count_include_pad=False).numpy()
    net.add_global_pooling3d("global_max", "x", "global_max", "MAX")
    outputs["global_max"] = volume.max((2, 3, 4), keepdims=True)
    net.add_global_pooling3d("global_mean", "x", "global_mean", "AVERAGE")
    outputs["global_mean"] = volume.mean((2, 3, 4), keepdims=True)
    finish(net, outputs)
    case("image", "volume", net, inputs, outputs)

    # Two steps of a sequence: leading axes are one batch.
    deep = rand(2, 2, 3, 4, 4)
    net = network({"x": deep}, [])
    w = weights(3, 3, 3, 2)
    net.add_convolution("conv", 3, 2, 3, 3, 1, 1, "valid", 1, w, None, False, input_name="x", output_name="conv")
    value = F.conv2d(t(deep.reshape(4, 3, 4, 4)), t(np.transpose(w, (3, 2, 0, 1)))).numpy().reshape(2, 2, 2, 2, 2)
    net.add_pooling("pool", 2, 2, 2, 2, "MAX", "VALID", "conv", "pool")
    outputs = {"conv": value, "pool": value.max((3, 4), keepdims=True)}
    finish(net, outputs)
    case("image", "leading", net, {"x": deep}, outputs)


def grid_upsample(n, m):
    return np.minimum(n - 1, np.arange(m) * n / m)


def resize(image, grids):
    """Bilinear values of [channels, height, width] at positions of rows and of columns."""
    for axis, grid in enumerate(grids, 1):
        low = np.floor(grid).astype(int)
        high = np.minimum(low + 1, image.shape[axis] - 1)
        share = (grid - low).reshape([-1 if at == axis else 1 for at in range(3)])
        image = np.take(image, low, axis) * (1 - share) + np.take(image, high, axis) * share
    return image.astype(np.float32)


def lower(value):
    return value.astype(np.float32)


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


def model(kind, inputs, outputs, probabilities=""):
    """A model of a kind, and its message; features are names with a shape, or a kind of number."""
    spec = Model_pb2.Model(specificationVersion=4)
    getattr(spec, kind).SetInParent()
    for given, wanted in [(inputs, spec.description.input), (outputs, spec.description.output)]:
        for name, what in given.items():
            feature = wanted.add(name=name)
            if isinstance(what, str):
                getattr(feature.type, what).SetInParent()
            else:
                feature.type.multiArrayType.dataType = 65600
                feature.type.multiArrayType.shape.extend(what)
    if probabilities:
        spec.description.predictedFeatureName = next(iter(outputs))
        spec.description.predictedProbabilitiesName = probabilities
        spec.description.output[1].type.dictionaryType.stringKeyType.SetInParent()
    return spec, getattr(spec, kind)


def pipeline(kind, members, inputs, outputs, probabilities=""):
    spec, message = model(kind, inputs, outputs, probabilities)
    pipe = message if kind == "pipeline" else message.pipeline
    for member in members:
        pipe.models.add().CopyFrom(member)
        pipe.names.append(member.WhichOneof("Type"))
    return spec


def grown(trees, params):
    """Adds trees as nested (feature, threshold, then, other) whose leaves are lists of values."""

    def add(tree, branch, at):
        node = params.nodes.add(treeId=tree, nodeId=at)
        if isinstance(branch, list):
            node.nodeBehavior = 6
            for index, value in enumerate(branch):
                node.evaluationInfo.add(evaluationIndex=index, evaluationValue=value)
            return at + 1
        node.branchFeatureIndex, node.branchFeatureValue = branch[:2]
        node.trueChildNodeId = at + 1
        node.falseChildNodeId = add(tree, branch[2], at + 1)
        return add(tree, branch[3], node.falseChildNodeId)

    for tree, branch in enumerate(trees):
        add(tree, branch, 0)


def summed(trees, x):
    total = 0
    for branch in trees:
        while not isinstance(branch, list):
            branch = branch[2] if x[branch[0]] <= branch[1] else branch[3]
        total = total + np.array(branch)
    return total


def pipelines():
    softmax = lambda v: np.exp(v) / np.exp(v).sum()
    x = rand(3).astype(np.float64)
    scaler, message = model("scaler", {"x": [3]}, {"scaled": [3]})
    message.shiftValue.extend([1, 2, 3])
    message.scaleValue.extend([0.5])
    normalizer, message = model("normalizer", {"scaled": [3]}, {"unit": [3]})
    message.normType = 2
    w, b = weights(2, 3), weights(2)
    net = NeuralNetworkBuilder([("unit", datatypes.Array(3))], [("y", datatypes.Array(2))])
    net.add_inner_product("dense", w, b, 3, 2, True, "unit", "y")
    net.spec.description.metadata.Clear()
    scaled = (x + [1, 2, 3]) * 0.5
    spec = pipeline("pipeline", [scaler, normalizer, net.spec], {"x": [3]}, {"y": [2]})
    case("pipeline", "network", spec, {"x": x}, {"y": scaled / np.linalg.norm(scaled) @ w.T + b})

    joined, message = model("featureVectorizer", {"a": "doubleType", "b": [2]}, {"all": [3]})
    message.inputList.add(inputColumn="a", inputDimensions=1)
    message.inputList.add(inputColumn="b", inputDimensions=2)
    trees = [(0, 0.25, [0.5, 0.25, -1.0], (2, -0.5, [0, 1, 0.5], [2, 0, 0])), (1, 0.0, [0.25, 0, 0.75], [0, 0.5, 0])]
    forest, message = model("treeEnsembleClassifier", {"all": [3]}, {"label": "stringType", "shares": [3]}, "shares")
    message.treeEnsemble.numPredictionDimensions = 3
    message.treeEnsemble.basePredictionValue.extend([0.25, 0, 0.5])
    message.postEvaluationTransform = 1
    message.stringClassLabels.vector.extend(["low", "middle", "high"])
    grown(trees, message.treeEnsemble)
    spec = pipeline(
        "pipelineClassifier", [joined, forest], {"a": "doubleType", "b": [2]}, {"label": "stringType", "shares": [3]}, "shares"
    )
    a, b = np.array([0.75]), np.array([-0.5, 0.5])
    shares = softmax(summed(trees, [0.75, -0.5, 0.5]) + [0.25, 0, 0.5])
    outputs = {"label": np.array(["low", "middle", "high"][shares.argmax()]), "shares": shares.astype(np.float32)}
    case("pipeline", "trees", spec, {"a": a, "b": b}, outputs)

    boosted, message = model("treeEnsembleRegressor", {"x": [3]}, {"y": "doubleType"})
    message.treeEnsemble.numPredictionDimensions = 1
    message.treeEnsemble.basePredictionValue.append(0.5)
    trees = [(0, 0.0, [0.25], [-0.5]), (1, 0.125, [1.5], (2, 0.5, [0.75], [-2.0]))]
    grown(trees, message.treeEnsemble)
    case("pipeline", "regression", boosted, {"x": x}, {"y": (summed(trees, x) + 0.5).astype(np.float64)})

    hot, message = model("oneHotEncoder", {"kind": "int64Type"}, {"hot": [3]})
    message.int64Categories.vector.extend([4, 7, 9])
    line, message = model("glmRegressor", {"hot": [3]}, {"y": "doubleType"})
    row = [0.5, -1.0, 2.0]
    message.weights.add().value.extend(row)
    message.offset.append(0.25)
    message.postEvaluationTransform = 1
    spec = pipeline("pipelineRegressor", [hot, line], {"kind": "int64Type"}, {"y": "doubleType"})
    case("pipeline", "one_hot", spec, {"kind": np.array([7])}, {"y": np.array([sigmoid(-1.0 + 0.25)])})

    filled, message = model("imputer", {"x": [4]}, {"filled": [4]})
    message.imputedDoubleArray.vector.extend([1, 2, 3, 4])
    message.replaceDoubleValue = float("nan")
    chosen, message = model("arrayFeatureExtractor", {"filled": [4]}, {"some": [2]})
    message.extractIndex.extend([3, 1])
    classes, message = model("glmClassifier", {"some": [2]}, {"label": "int64Type", "shares": [3]}, "shares")
    rows, offset = [[0.5, -0.25], [1.0, 0.5]], [0.25, -0.5]
    for row in rows:
        message.weights.add().value.extend(row)
    message.offset.extend(offset)
    message.int64ClassLabels.vector.extend([10, 20, 30])
    spec = pipeline("pipelineClassifier", [filled, chosen, classes], {"x": [4]}, {"label": "int64Type", "shares": [3]}, "shares")
    x = np.array([0.5, np.nan, 0.25, -1.5])
    shares = softmax(np.concatenate([[0], np.array(rows) @ [-1.5, 2] + offset]))
    outputs = {"label": np.array([10, 20, 30][shares.argmax()]), "shares": shares.astype(np.float32)}
    case("pipeline", "imputer", spec, {"x": x}, outputs)

    boxes = np.array([[1, 1, 2, 2], [1.1, 1, 2, 2], [5, 5, 2, 2], [5, 5.2, 2, 2], [9, 1, 1, 1]])
    scores = np.array([[0.9, 0.1], [0.3, 0.8], [0.6, 0.2], [0.7, 0.1], [0.05, 0.1]])
    for by_class, kept in [(False, [0, 3]), (True, [0, 1, 3])]:
        spec, message = model("nonMaximumSuppression", {"confidence": [5, 2], "coordinates": [5, 4]}, {"scores": [], "boxes": []})
        message.pickTop.perClass = by_class
        message.iouThreshold, message.confidenceThreshold = 0.5, 0.2
        message.confidenceInputFeatureName, message.coordinatesInputFeatureName = "confidence", "coordinates"
        message.confidenceOutputFeatureName, message.coordinatesOutputFeatureName = "scores", "boxes"
        outputs = {"scores": scores[kept], "boxes": boxes[kept]}
        case("pipeline", f"suppression_{by_class}", spec, {"confidence": scores, "coordinates": boxes}, outputs)

    mapped, message = model("categoricalMapping", {"word": "stringType"}, {"number": "int64Type"})
    message.stringToInt64Map.map.update({"one": 1, "two": 2})
    message.int64Value = -1
    for word, number in [("two", 2), ("ten", -1)]:
        case("pipeline", f"mapping_{word}", mapped, {"word": np.array([word])}, {"number": np.array([number])})

    vectors, alpha, rho = weights(3, 2), weights(3), 0.25
    x = rand(2).astype(np.float64)
    kernels = {
        "linear": lambda: vectors @ x,
        "rbf": lambda: np.exp(-0.5 * ((vectors - x) ** 2).sum(1)),
        "poly": lambda: (0.5 * vectors @ x + 1.0) ** 3,
        "sigmoid": lambda: np.tanh(0.5 * vectors @ x + 1.0),
    }
    fields = {"linear": {}, "rbf": {"gamma": 0.5}, "poly": {"gamma": 0.5, "c": 1.0, "degree": 3}, "sigmoid": {"gamma": 0.5, "c": 1.0}}
    for name, values in kernels.items():
        spec, message = model("supportVectorRegressor", {"x": [2]}, {"y": "doubleType"})
        kernel = getattr(message.kernel, f"{name}Kernel")
        kernel.SetInParent()
        for field, value in fields[name].items():
            setattr(kernel, field, value)
        for row in vectors:
            if name == "poly":
                vector = message.sparseSupportVectors.vectors.add()
                for at, value in enumerate(row):
                    vector.nodes.add(index=at + 1, value=value)
            else:
                message.denseSupportVectors.vectors.add().values.extend(row)
        message.coefficients.alpha.extend(alpha)
        message.rho = rho
        case("pipeline", f"svm_{name}", spec, {"x": x}, {"y": np.array([alpha @ values() - rho], np.float64)})

    spec, message = model("supportVectorClassifier", {"x": [2]}, {"label": "int64Type", "shares": [2]}, "shares")
    message.kernel.linearKernel.SetInParent()
    for row in vectors:
        message.denseSupportVectors.vectors.add().values.extend(row)
    message.numberOfSupportVectorsPerClass.extend([2, 1])
    message.coefficients.add().alpha.extend(alpha)
    message.rho.append(rho)
    message.probA.append(-1.5)
    message.probB.append(0.25)
    message.int64ClassLabels.vector.extend([3, 8])
    share = 1 / (1 + np.exp(-1.5 * (alpha @ vectors @ x - rho) + 0.25))
    outputs = {"label": np.array([3, 8][int(share < 0.5)]), "shares": np.array([share, 1 - share], np.float32)}
    case("pipeline", "svm_labels", spec, {"x": x}, outputs)


FAMILIES = [elementwise, images, matrices, reductions, shapes, positions, recurrent, control, models, pipelines]


def write(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for family, cases in CASES.items():
        path = folder / f"{family}.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name, spec, inputs, outputs, layers, tolerance, why in cases:
                said = {"layers": layers, "tolerance_abs": tolerance, "tolerance_rel": tolerance, "why": why}
                files = {"model.mlmodel": spec.SerializeToString(deterministic=True)}
                for kind, arrays in [("inputs", inputs), ("outputs", outputs)]:
                    for key, value in arrays.items():
                        file = io.BytesIO()
                        np.save(file, np.asarray(value, order="C"))
                        files[f"{kind}/{key}.npy"] = file.getvalue()
                files["case.json"] = json.dumps(said).encode()
                for file, data in files.items():
                    # The oldest time that the format has: archives of one script are equal.
                    archive.writestr(zipfile.ZipInfo(f"{name}/{file}", (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED, 9)
        print(f"{path}: {len(cases)} cases, {path.stat().st_size} bytes")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for family in FAMILIES:
        family()
    write(pathlib.Path(sys.argv[1]))


if __name__ == "__main__":
    main()
