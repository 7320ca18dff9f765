"""Cases of layers on images and volumes."""

import numpy as np
import torch.nn.functional as F

from neural_network_archive import case, finish, network, rand, t, weights


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
