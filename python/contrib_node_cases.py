"""Write cases of one node each for the operators of com.microsoft and ai.onnx.ml, computed by ONNX Runtime.

usage: contrib_node_cases.py DIR

Writes DIR/contrib_NAME/model.onnx with test_data_set_0/input_I.pb and output_I.pb, in the form of the
ONNX backend node cases. The inputs are random with fixed seeds.
"""

import pathlib
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import ml_node_cases
import optimised_models
import stateful_cases
import translation_cases

DOMAIN = "com.microsoft"
CASES = []


def case(name, operator, inputs, outputs=1, domain=DOMAIN, version=17, constants=(), **attributes):
    """A case: inputs are arrays or None; those at `constants` become initializers; the version is that of ONNX."""
    CASES.append((name, operator, inputs, outputs, domain, version, constants, attributes))


def ml_case(name, operator, inputs, outputs=1, version=3, **attributes):
    """A case of ai.onnx.ml in a version of it."""
    CASES.append((name, operator, inputs, outputs, ml_node_cases.DOMAIN, version, (), attributes))


def build(operator, inputs, outputs, domain, version, constants, attributes):
    names = ["" if value is None else f"x{index}" for index, value in enumerate(inputs)]
    results = [f"y{index}" for index in range(outputs)] if isinstance(outputs, int) else list(outputs)
    node = helper.make_node(operator, names, results, domain=domain, **attributes)
    given = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for index, (name, value) in enumerate(zip(names, inputs))
        if value is not None and index not in constants
    ]
    fixed = [numpy_helper.from_array(inputs[index], names[index]) for index in constants]
    # ONNX Runtime knows the types of the results; they are declared once it has said them.
    declared = [helper.make_empty_tensor_value_info(name) for name in results if name]
    graph = helper.make_graph([node], operator, given, declared, fixed)
    if domain == ml_node_cases.DOMAIN:
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid(domain, version)]
    else:
        opsets = [helper.make_opsetid("", version), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def write(folder, model, inputs, constants):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    given = {
        f"x{index}": value
        for index, value in enumerate(inputs)
        if value is not None and index not in constants
    }
    results = session.run(None, given)
    for info, result in zip(model.graph.output, results):
        dtype = helper.np_dtype_to_tensor_dtype(result.dtype)
        info.CopyFrom(helper.make_tensor_value_info(info.name, dtype, result.shape))
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for kind, values in [("input", given.values()), ("output", results)]:
        for index, value in enumerate(values):
            proto = numpy_helper.from_array(value)
            (data / f"{kind}_{index}.pb").write_bytes(proto.SerializeToString())


RANDOM = np.random.default_rng(7)


def floats(*shape, scale=1.0):
    return (RANDOM.standard_normal(shape) * scale).astype(np.float32)


def integers(low, high, *shape, dtype=np.int64):
    return RANDOM.integers(low, high, shape).astype(dtype)


def seven_bits(*shape):
    """Of seven bits: on processors without instructions for products of bytes ONNX Runtime adds two of them in 16 bits,
    where larger ones do not fit."""
    return integers(-64, 64, *shape, dtype=np.int8)


def scalar(value, dtype=np.float32):
    return np.array(value, dtype=dtype)


def activations():
    x, bias = floats(2, 3, 8), floats(8)
    case("bias_gelu", "BiasGelu", [x, bias])
    case("fast_gelu", "FastGelu", [x])
    case("fast_gelu_bias", "FastGelu", [x, bias])
    case("gelu", "Gelu", [x])
    case("quick_gelu", "QuickGelu", [x])
    case("quick_gelu_alpha", "QuickGelu", [x], alpha=1.2)


def normalisations():
    x, skip, gamma, beta, bias = floats(2, 3, 8), floats(2, 3, 8), floats(8), floats(8), floats(8)
    case("skip_layer_norm", "SkipLayerNormalization", [x, skip, gamma, beta, bias], ["y", "", "", "s"], epsilon=1e-5)
    case("skip_layer_norm_plain", "SkipLayerNormalization", [x, skip, gamma], epsilon=1e-5)
    case("skip_layer_norm_broadcast", "SkipLayerNormalization", [x, floats(3, 8), gamma, beta], epsilon=1e-5)
    case("skip_rms_norm", "SkipSimplifiedLayerNormalization", [x, skip, gamma, bias], ["y", "", "", "s"], epsilon=1e-6)
    case("skip_rms_norm_rows", "SkipSimplifiedLayerNormalization", [floats(4, 8), floats(4, 8), gamma], epsilon=1e-6)
    case("rms_norm", "SimplifiedLayerNormalization", [x, gamma], domain="", epsilon=1e-6, axis=-1, stash_type=1)
    words, places, kinds = floats(20, 8), floats(10, 8), floats(2, 8)
    ids, segments = integers(0, 20, 2, 5, dtype=np.int32), integers(0, 2, 2, 5, dtype=np.int32)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    case("embed_layer_norm", "EmbedLayerNormalization", [ids, segments, words, places, kinds, gamma, beta, mask], 2, epsilon=1e-5)
    case("embed_layer_norm_plain", "EmbedLayerNormalization", [ids, None, words, places, None, gamma, beta], ["y", "", "s"], epsilon=1e-5)
    positions = np.array([[4, 3, 2, 1, 0]], np.int32)
    case("embed_layer_norm_positions", "EmbedLayerNormalization",
         [ids, segments, words, places, kinds, gamma, beta, None, positions], 2, epsilon=1e-5)


def products():
    case("fused_mat_mul", "FusedMatMul", [floats(2, 3, 4), floats(2, 5, 4)], transB=1, alpha=0.5)
    case("fused_mat_mul_both", "FusedMatMul", [floats(2, 4, 3), floats(2, 5, 4)], transA=1, transB=1)
    case("fused_mat_mul_batch_a", "FusedMatMul", [floats(3, 2, 4), floats(2, 4, 5)], transBatchA=1)
    case("fused_mat_mul_batch_b", "FusedMatMul", [floats(2, 3, 4), floats(4, 2, 5)], transBatchB=1)
    case("fused_mat_mul_batch_all", "FusedMatMul", [floats(4, 2, 3), floats(4, 2, 5)], transBatchA=1, transBatchB=1, transA=1)
    case("fused_gemm", "FusedGemm", [floats(3, 4), floats(4, 5), floats(5)], activation="LeakyRelu", activation_alpha=0.1, alpha=0.5)
    case("fused_gemm_relu", "FusedGemm", [floats(4, 3), floats(5, 4)], activation="Relu", transA=1, transB=1)
    x, w, bias = floats(1, 4, 6, 5), floats(6, 2, 3, 3), floats(6)
    case("fused_conv", "FusedConv", [x, w, bias], activation="Relu", group=2, pads=[1, 1, 1, 1])
    case("fused_conv_leaky", "FusedConv", [x, w], activation="LeakyRelu", activation_params=[0.2], group=2)
    case("fused_conv_sum", "FusedConv", [x, w, bias, floats(1, 6, 4, 3)], activation="Tanh", group=2)
    square = floats(2, 4, 4) + 4 * np.eye(4, dtype=np.float32)
    case("inverse", "Inverse", [square])
    case("trilu", "Trilu", [floats(2, 4, 5), scalar(-1, np.int64)], upper=0)


def small_weights():
    n, k = 5, 70
    for bits, block in [(4, 32), (4, 16), (8, 32), (2, 16)]:
        blocks = -(-k // block)
        b = integers(0, 256, n, blocks, block * bits // 8, dtype=np.uint8)
        scales = np.abs(floats(n, blocks, scale=0.1))
        zeros = integers(0, 256, n, -(-blocks * bits // 8), dtype=np.uint8)
        attributes = dict(K=k, N=n, bits=bits, block_size=block)
        name = f"mat_mul_{bits}_bits_{block}"
        case(name, "MatMulNBits", [floats(2, 3, k), b, scales], constants=(1, 2), **attributes)
        case(f"{name}_zero_points", "MatMulNBits", [floats(3, k), b, scales, zeros], constants=(1, 2, 3), **attributes)
    b = integers(0, 256, n, 3, 16, dtype=np.uint8)
    scales, points = np.abs(floats(n, 3, scale=0.1)), floats(n, 3, scale=4) + 8
    case("mat_mul_4_bits_float_zero_points", "MatMulNBits", [floats(3, k), b, scales, points, None, floats(n)],
         constants=(1, 2, 3, 5), K=k, N=n, bits=4, block_size=32)
    a, b = integers(0, 256, 3, 8, dtype=np.uint8), seven_bits(8, 5)
    case("integer_product", "MatMulIntegerToFloat", [a, b, scalar(0.02), scalar(0.03), scalar(120, np.uint8), scalar(3, np.int8), floats(5)])
    case("integer_product_columns", "MatMulIntegerToFloat",
         [a, b, scalar(0.02), np.abs(floats(5)), scalar(7, np.uint8), integers(-9, 9, 5, dtype=np.int8)])
    case("dynamic_product", "DynamicQuantizeMatMul", [floats(2, 3, 8), b, scalar(0.03), scalar(3, np.int8), floats(5)])
    case("dynamic_product_columns", "DynamicQuantizeMatMul", [floats(3, 8), b, np.abs(floats(5))])
    table, scales = integers(0, 256, 6, 16, dtype=np.uint8), np.abs(floats(6, 2))
    picks = integers(0, 6, 2, 3)
    case("gather_4_bits", "GatherBlockQuantized", [table, picks, scales], constants=(0, 2), block_size=16)
    case("gather_4_bits_zero_points", "GatherBlockQuantized", [table, picks, scales, integers(0, 256, 6, 1, dtype=np.uint8)],
         constants=(0, 2, 3), block_size=16)
    case("gather_8_bits", "GatherBlockQuantized", [integers(0, 256, 6, 32, dtype=np.uint8), picks, scales],
         constants=(0, 2), block_size=16, bits=8)


def quantised():
    for dtype, zero in [(np.uint8, 120), (np.int8, -5)]:
        info = np.iinfo(dtype)
        x = integers(info.min, info.max + 1, 2, 3, 6, 5, dtype=dtype)
        other = integers(info.min, info.max + 1, 6, 5, dtype=dtype)
        sx, zx, sy, zy = scalar(0.05), scalar(zero, dtype), scalar(0.03), scalar(zero + 4, dtype)
        name = np.dtype(dtype).name
        for operator in ["QLinearAdd", "QLinearMul"]:
            case(f"{operator}_{name}", operator, [x, sx, zx, other, sy, zy, scalar(0.07), zx])
        case(f"QLinearAveragePool_{name}", "QLinearAveragePool", [x, sx, zx, sy, zy], kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 0])
        case(f"QLinearAveragePool_pads_{name}", "QLinearAveragePool", [x, sx, zx, sy, zy], kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
        case(f"QLinearGlobalAveragePool_{name}", "QLinearGlobalAveragePool", [x, sx, zx, sy, zy])
        case(f"QLinearLeakyRelu_{name}", "QLinearLeakyRelu", [x, sx, zx, sy, zy], constants=(1, 2, 3, 4), alpha=0.2)
        case(f"QLinearSigmoid_{name}", "QLinearSigmoid", [x, sx, zx, scalar(1 / 256), scalar(0 if dtype == np.uint8 else -128, dtype)], constants=(1, 2, 3, 4))
        case(f"QLinearSoftmax_{name}", "QLinearSoftmax", [x, sx, zx, scalar(1 / 256), scalar(0 if dtype == np.uint8 else -128, dtype)],
             constants=(1, 2, 3, 4), opset=13, axis=-1)
        case(f"QLinearConcat_{name}", "QLinearConcat", [sy, zy, x, sx, zx, x, sy, zy], axis=1)
    case("QLinearWhere", "QLinearWhere",
         [integers(0, 2, 6, 5).astype(bool), other, sx, zx, integers(-128, 128, 6, 5, dtype=np.int8), sy, zy, scalar(0.06), zx],
         constants=(2, 3, 5, 6, 7, 8))
    x = floats(2, 5)
    case("quantize_16_bits", "QuantizeLinear", [x, scalar(0.0002), scalar(30000, np.uint16)])
    case("quantize_axis", "QuantizeLinear", [x, np.abs(floats(2)) + 0.1, integers(0, 9, 2, dtype=np.uint8)], axis=0)
    case("dequantize_16_bits", "DequantizeLinear", [integers(-999, 999, 2, 5, dtype=np.int16), scalar(0.02), scalar(3, np.int16)])


def attentions():
    b, s, hidden, heads = 2, 4, 8, 2
    x, w, bias = floats(b, s, hidden), floats(hidden, 3 * hidden, scale=0.3), floats(3 * hidden)
    case("attention", "Attention", [x, w, bias], num_heads=heads)
    case("attention_causal", "Attention", [x, w, bias], num_heads=heads, unidirectional=1)
    case("attention_scale", "Attention", [x, w, bias], num_heads=heads, scale=0.4)
    ends = np.array([2, 4], np.int32)
    case("attention_ends", "Attention", [x, w, bias, ends], num_heads=heads)
    case("attention_ends_starts", "Attention", [x, w, bias, np.array([3, 4, 1, 0], np.int32)], num_heads=heads)
    keys = np.array([[1, 1, 0, 0], [1, 0, 1, 1]], np.int32)
    case("attention_keys", "Attention", [x, w, bias, keys], num_heads=heads)
    case("attention_scores", "Attention", [x, w, bias, integers(0, 2, b, s, s, dtype=np.int32) | np.eye(s, dtype=np.int32)], num_heads=heads)
    past = floats(2, b, heads, 3, hidden // heads)
    case("attention_past", "Attention", [x, w, bias, None, past], 2, num_heads=heads, unidirectional=1)
    case("attention_past_mask", "Attention", [x, w, bias, integers(0, 2, b, 7, dtype=np.int32) | (np.arange(7) > 2), past], 2, num_heads=heads)
    case("attention_bias", "Attention", [x, w, bias, None, None, floats(b, heads, s, s)], num_heads=heads)
    case("attention_sizes", "Attention", [x, floats(hidden, 20, scale=0.3), floats(20)], num_heads=heads, qkv_hidden_sizes=[8, 8, 4])

    q, k, v = floats(b, s, hidden), floats(b, 5, hidden), floats(b, 5, hidden)
    case("multi_head", "MultiHeadAttention", [q, k, v], num_heads=heads)
    case("multi_head_bias", "MultiHeadAttention", [q, k, v, bias], num_heads=heads)
    case("multi_head_values", "MultiHeadAttention", [q, k, floats(b, 5, 12)], num_heads=heads)
    case("multi_head_causal", "MultiHeadAttention", [q, q, floats(b, s, hidden)], num_heads=heads, unidirectional=1)
    case("multi_head_ends", "MultiHeadAttention", [q, k, v, None, np.array([2, 5], np.int32)], num_heads=heads)
    case("multi_head_keys", "MultiHeadAttention", [q, k, v, None, np.array([[1, 1, 1, 0, 0], [1, 0, 1, 1, 1]], np.int32)], num_heads=heads)
    case("multi_head_scores", "MultiHeadAttention", [q, k, v, None, None, floats(1, heads, s, 5)], num_heads=heads)
    d = hidden // heads
    case("multi_head_by_head", "MultiHeadAttention", [q, floats(b, heads, 6, d), floats(b, heads, 6, d), bias], num_heads=heads)
    case("multi_head_past", "MultiHeadAttention", [q, q, v[:, :s], None, None, None, floats(b, heads, 3, d), floats(b, heads, 3, d)], 3,
         num_heads=heads)

    position = integers(0, 6, b, s)
    caches = [np.cos(floats(16, 2)), np.sin(floats(16, 2))]
    case("rotary", "RotaryEmbedding", [floats(b, s, hidden), position, *caches])
    case("rotary_interleaved", "RotaryEmbedding", [floats(b, s, hidden), position, *caches], interleaved=1)
    case("rotary_first", "RotaryEmbedding", [floats(b, heads, s, d), np.array([3], np.int64), *caches])
    case("rotary_part", "RotaryEmbedding", [floats(b, s, 16), position, *caches], num_heads=2, rotary_embedding_dim=4)

    grouped = dict(num_heads=4, kv_num_heads=2)
    wide, narrow = (lambda n: floats(b, n, 32)), (lambda n: floats(b, n, 16))
    total = lambda n: scalar(n, np.int32)
    lengths = lambda *all: np.array(all, np.int32)
    # Without outputs for keys and values ONNX Runtime computes nothing that is defined.
    case("grouped_prompt", "GroupQueryAttention", [wide(5), narrow(5), narrow(5), None, None, lengths(4, 4), total(5)], 3, **grouped)
    cache = lambda n: floats(b, 2, n, 8)
    step = [wide(1), narrow(1), narrow(1), cache(6), cache(6), lengths(6, 6), total(7)]
    case("grouped_step", "GroupQueryAttention", step, 3, **grouped)
    shared = [wide(1), narrow(1), narrow(1), cache(9), cache(9), lengths(6, 3), total(7)]
    case("grouped_step_shared", "GroupQueryAttention", shared, 3, **grouped)
    caches = [np.cos(floats(16, 8)), np.sin(floats(16, 8))]
    wider = [floats(b, 1, 64), floats(b, 1, 32), floats(b, 1, 32), floats(b, 2, 6, 16), floats(b, 2, 6, 16)]
    case("grouped_rotary", "GroupQueryAttention", [*wider, lengths(6, 6), total(7), *caches], 3, do_rotary=1, **grouped)
    prompt = [floats(b, 5, 64), floats(b, 5, 32), floats(b, 5, 32), None, None]
    case("grouped_rotary_prompt", "GroupQueryAttention", [*prompt, lengths(4, 4), total(5), *caches], 3,
         do_rotary=1, rotary_interleaved=1, **grouped)
    case("grouped_window", "GroupQueryAttention", step, 3, local_window_size=3, **grouped)
    case("grouped_window_prompt", "GroupQueryAttention",
         [wide(5), narrow(5), narrow(5), None, None, lengths(4, 4), total(5)], 3, local_window_size=2, **grouped)
    case("grouped_softcap", "GroupQueryAttention", step, 3, softcap=0.8, scale=0.9, **grouped)
    case("grouped_smooth", "GroupQueryAttention", step, 3, smooth_softmax=1, **grouped)
    case("grouped_sinks", "GroupQueryAttention", [*step, None, None, None, None, floats(4)], 3, **grouped)
    case("grouped_scores", "GroupQueryAttention", [*step, None, None, None, floats(b, 4, 1, 7)], 3, **grouped)
    case("grouped_packed", "GroupQueryAttention", [floats(b, 5, 64), None, None, None, None, lengths(4, 4), total(5)], 3, **grouped)


def quantised_layers():
    b, s, hidden, heads = 2, 4, 8, 2
    x, w = integers(0, 256, b, s, hidden, dtype=np.uint8), seven_bits(hidden, 3 * hidden)
    bias, sx, sw, zx = floats(3 * hidden), scalar(0.01), scalar(0.005), scalar(128, np.uint8)
    case("q_attention", "QAttention", [x, w, bias, sx, sw, None, zx, scalar(0, np.int8)], num_heads=heads)
    case("q_attention_mask", "QAttention", [x, w, bias, sx, sw, np.array([2, 4], np.int32), zx, scalar(2, np.int8)], num_heads=heads,
         unidirectional=1)
    case("q_attention_columns", "QAttention",
         [x, w, bias, sx, np.abs(floats(3 * hidden, scale=0.01)), None, zx, np.zeros(3 * hidden, np.int8)], constants=(1, 4, 7), num_heads=heads)
    past = floats(2, b, heads, 3, hidden // heads)
    case("q_attention_past", "QAttention", [x, w, bias, sx, sw, None, zx, scalar(0, np.int8), past], 2, num_heads=heads, unidirectional=1)
    a, m = integers(0, 256, 3, 6, dtype=np.uint8), seven_bits(5, 6)
    c = integers(-900, 900, 5, dtype=np.int32)
    gemm = [a, sx, zx, m, sw, scalar(1, np.int8), c]
    case("q_gemm", "QGemm", gemm, transB=1)
    case("q_gemm_quantised", "QGemm", [*gemm, scalar(0.02), scalar(100, np.uint8)], transB=1)
    case("q_gemm_columns", "QGemm", [a, sx, zx, m, np.abs(floats(5, scale=0.01)), np.zeros(5, np.int8), c], transB=1)
    directions, size, inner = 2, 3, 4
    weights = [seven_bits(directions, n, 4 * size) for n in (inner, size)]
    scales = [scalar([0.01] * directions), np.zeros(directions, np.int8)] * 2
    case("dynamic_lstm", "DynamicQuantizeLSTM",
         [floats(5, 2, inner), *weights, floats(directions, 8 * size), None, None, None, None, *scales], 3,
         constants=(1, 2, 8, 9, 10, 11), hidden_size=size, direction="bidirectional")
    image = integers(0, 256, 1, 6, 5, 4, dtype=np.uint8)
    case("nhwc_max_pool", "NhwcMaxPool", [image], kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1])
    kernel = seven_bits(3, 4, 3, 3)
    scales = [sx, zx, kernel, sw, scalar(0, np.int8), scalar(0.1), scalar(120, np.uint8)]
    case("q_linear_conv_last", "QLinearConv", [image, *scales], constants=(3,), channels_last=1, pads=[1, 1, 1, 1])


def others():
    a, b = floats(4, 3), floats(5, 3)
    case("c_dist", "CDist", [a, b])
    case("c_dist_euclidean", "CDist", [a, b], metric="euclidean")
    case("expand_dims", "ExpandDims", [a, scalar(1, np.int32)])
    case("range", "Range", [scalar(2, np.int32), scalar(9, np.int32), scalar(3, np.int32)])
    case("range_step", "Range", [scalar(2.5), scalar(6.0)])
    case("gather_nd", "GatherND", [a, np.array([[0, 1], [3, 2]], np.int64)])
    case("pad", "Pad", [a, np.array([1, 0, 0, 2], np.int64), scalar(0.5)])
    for mode in ["bilinear", "nearest", "bicubic"]:
        case(f"grid_sample_{mode}", "GridSample", [floats(1, 2, 4, 5), floats(1, 3, 3, 2)], mode=mode, padding_mode="border")
    x, weight = floats(2, 6, 5), floats(6, 1, 4)
    case("causal_conv", "CausalConvWithState", [x, weight, floats(6), floats(2, 6, 3)], 2, activation="silu")
    case("causal_conv_plain", "CausalConvWithState", [x, weight], 2)
    q, k, v, state = floats(2, 5, 8), floats(2, 5, 4, scale=0.5), floats(2, 5, 6), floats(2, 2, 2, 3)
    decay, beta = -np.abs(floats(2, 5, 2)), np.abs(floats(2, 5, 2, scale=0.3))
    heads = dict(q_num_heads=4, kv_num_heads=2)
    case("linear_attention", "LinearAttention", [q, k, v, state], 2, update_rule="linear", **heads)
    case("linear_attention_gated", "LinearAttention", [q, k, v, state, decay], 2, update_rule="gated", **heads)
    case("linear_attention_delta", "LinearAttention", [q, k, v, state, decay, beta], 2, update_rule="gated_delta", **heads)


def texts_and_tokens():
    texts = np.array([["Hello, world x", ""], ["a bb  ccc", "d-e_f 12"]], object)
    common = dict(pad_value="#", mincharnum=1)
    case("tokenizer_words", "Tokenizer", [texts], tokenexp="[a-zA-Z0-9_]+", mark=0, **common)
    case("tokenizer_words_marked", "Tokenizer", [texts.ravel()], tokenexp=r"\w\w+|\d", mark=1, pad_value="", mincharnum=2)
    case("tokenizer_separators", "Tokenizer", [texts], separators=[" ", "[-_,]+"], mark=1, **common)
    case("tokenizer_characters", "Tokenizer", [texts[:, 0]], separators=[""], mark=0, **common)
    tokens = np.array([[0, 1, 2, 0, 1], [3, 3, 3, 3, 3]], np.int64)
    case("ngram_repeat_block", "NGramRepeatBlock", [tokens, floats(2, 4)], ngram_size=3)
    case("murmur_hash", "MurmurHash3", [integers(-9, 9, 2, 3)], seed=7)
    case("murmur_hash_text", "MurmurHash3", [texts], positive=0)
    # ONNX Runtime leaves the vector of an empty word as it finds the memory.
    words = np.array([[1, 2, 3, 0, 0], [4, 0, 0, 0, 0], [1, 0, 2, 3, 0]], np.int32)
    case("word_conv_embedding", "WordConvEmbedding", [words, floats(3, 1, 2, 4), floats(3), floats(6, 4)])
    case("dynamic_time_warping", "DynamicTimeWarping", [np.abs(floats(1, 5, 7))])
    case("unique", "Unique", [np.array([2, 1, 1, 3, 4, 3], np.float32)], 3)


def images_and_experts():
    image = floats(2, 3, 5, 6)
    regions = np.array([[0, 0, 1, 1], [-0.5, 0.2, 0.6, 1.2], [0.6, 0.1, 0.1, 0.9]], np.float32)
    crops = [image, regions, np.array([0, 1, 1], np.int32), np.array([4, 3], np.int32)]
    case("crop_and_resize", "CropAndResize", crops, extrapolation_value=-7.0)
    case("crop_and_resize_nearest", "CropAndResize", crops, mode="nearest")
    mask = (np.arange(30) % 4 != 0).astype(np.int32).reshape(1, 1, 5, 6)
    case("max_pool_with_mask", "MaxpoolWithMask", [image[:1, :1], mask], kernel_shape=[3, 2], pads=[1, 0, 1, 1])
    kernel, pads = floats(3, 2, 3, 3), np.array([1, 0, 1, 2], np.int64)
    case("conv_transpose_dynamic_pads", "ConvTransposeWithDynamicPads", [image, kernel, pads, floats(2)], strides=[2, 1])
    case("unfold", "UnfoldTensor", [image], dim=2, size=3, step=2)
    case("mat_mul_integer16", "MatMulInteger16", [integers(-999, 999, 2, 3, 4, dtype=np.int16), integers(-999, 999, 4, 5, dtype=np.int16)])
    codes = integers(0, 256, 5 * 32 // 2, dtype=np.uint8)
    for kind, name in enumerate(["fp4", "nf4"]):
        case(f"mat_mul_bnb4_{name}", "MatMulBnb4", [floats(2, 3, 32), codes, np.abs(floats(10))], constants=(1, 2),
             K=32, N=5, block_size=16, quant_type=kind)
    tokens, scores = floats(2, 3, 8), floats(6, 4)
    weights = [floats(4, 6, 8), floats(4, 6), floats(4, 8, 6), floats(4, 8)]
    for name in ["relu", "gelu", "silu", "identity"]:
        case(f"moe_{name}", "MoE", [tokens, scores, *weights], k=2, activation_type=name)
    case("moe_normalised", "MoE", [tokens, scores, *weights], k=3, activation_type="silu", normalize_routing_weights=1)
    gated = [floats(4, 12, 8), floats(4, 12), *weights[2:]]
    case("moe_swiglu", "MoE", [tokens, scores, *gated], k=2, activation_type="swiglu", swiglu_fusion=1,
         activation_alpha=1.702, activation_beta=1.0, swiglu_limit=1.5)
    bytes_of = lambda *shape: integers(0, 256, *shape, dtype=np.uint8)
    ids, kinds = integers(0, 20, 2, 5, dtype=np.int32), integers(0, 2, 2, 5, dtype=np.int32)
    tables = [bytes_of(20, 8), bytes_of(10, 8), bytes_of(2, 8), bytes_of(8), bytes_of(8)]
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    scales = [scalar(value) for value in (0.01, 0.02, 0.03, 0.04, 0.05)]
    points = [scalar(value, np.uint8) for value in (128, 120, 0, 3, 200)]
    case("q_embed_layer_norm", "QEmbedLayerNormalization", [ids, kinds, *tables, mask, *scales, *points], 2)
    without = [ids, None, *tables[:2], None, *tables[3:], None, *scales[:2], None, *scales[3:], *points[:2], None, *points[3:]]
    case("q_embed_layer_norm_plain", "QEmbedLayerNormalization", without, 2)


def experimental():
    """Operators that ONNX had before version 10 and that ONNX Runtime still runs, and those that were its own first."""
    old = dict(domain="", version=8)
    x, image = floats(2, 3, 4), floats(2, 3, 4, 5)
    case("old_affine", "Affine", [x], alpha=2.0, beta=0.5, **old)
    case("old_affine_plain", "Affine", [x], **old)
    case("old_scaled_tanh", "ScaledTanh", [x], alpha=2.0, beta=0.5, **old)
    case("old_parametric_softplus", "ParametricSoftplus", [x], alpha=0.5, beta=3.0, **old)
    case("old_scale", "Scale", [x], scale=3.0, **old)
    case("old_crop", "Crop", [image], border=[1, 0, 2, 1], **old)
    case("old_crop_part", "Crop", [image], border=[1, 1, 0, 0], scale=[2, 3], **old)
    case("old_image_scaler", "ImageScaler", [image], scale=2.0, bias=[0.5, -1.0, 3.0], **old)
    starts, ends = np.array([0, -2]), np.array([2, 100])
    case("old_dynamic_slice", "DynamicSlice", [x, starts, ends, np.array([1, 2])], constants=(1, 2, 3), **old)
    case("old_dynamic_slice_first", "DynamicSlice", [x, starts.astype(np.int32), ends.astype(np.int32)],
         constants=(1, 2), **old)
    case("old_mvn", "MeanVarianceNormalization", [image], **old)
    case("old_mvn_across", "MeanVarianceNormalization", [image], across_channels=1, **old)
    case("old_mvn_mean", "MeanVarianceNormalization", [image], normalize_variance=0, **old)
    case("old_thresholded_relu", "ThresholdedRelu", [x], alpha=0.5, **old)
    for version in (8, 14):
        case(f"old_layer_norm_{version}", "LayerNormalization", [x, floats(4), floats(4)], 3, domain="", version=version)
    case("old_layer_norm_plain", "LayerNormalization", [x, floats(4)], domain="", version=11, epsilon=1e-3, axis=2)


def streams_and_gates():
    streams, flat, three = floats(2, 3, 4), floats(2, 12), dict(num_branches=3)
    case("branchwise_rms_norm", "BranchwiseRMSNorm", [streams, floats(3, 4)])
    case("branchwise_rms_norm_plain", "BranchwiseRMSNorm", [streams])
    case("branchwise_rms_norm_flat", "BranchwiseRMSNorm", [flat, floats(12)], epsilon=1e-2, **three)
    case("branchwise_rms_norm_shared", "BranchwiseRMSNorm", [flat, floats(4)], **three)
    case("stream_pre_mix", "HyperConnectionPreMix", [streams, floats(2, 3)])
    case("stream_pre_mix_each", "HyperConnectionPreMix", [flat, floats(2, 12)], reduction_scale=0.5, **three)
    case("stream_post_mix", "HyperConnectionPostMix", [streams, floats(2, 4), floats(2, 3, 1), floats(2, 3, 3)])
    case("stream_post_mix_plain", "HyperConnectionPostMix", [flat, floats(2, 4), floats(2, 3, 4)], **three)
    case("gated_rms_norm", "GatedRMSNorm", [floats(2, 4), floats(2), floats(2, 4)])
    case("gated_rms_norm_sigmoid", "GatedRMSNorm", [floats(2, 4), floats(4), floats(2, 4)], activation="sigmoid")
    half = [floats(2, 4).astype(np.float16) for _ in range(2)]
    case("gated_rms_norm_half", "GatedRMSNorm", [half[0], floats(4).astype(np.float16), half[1]])
    case("linear_attention_gate", "LinearAttentionGate", [floats(2, 3), floats(3), floats(3), floats(2, 3)], 2)
    case("linear_attention_decay", "LinearAttentionGate", [floats(2, 5, 3), floats(3), floats(3)])
    keys, each = floats(2, 3, 2, 4), lambda: floats(2, 4)
    case("engram_gate", "EngramGate", [keys, floats(2, 3, 2, 4), floats(2, 3, 4), each(), each(), each()], 2)
    case("engram_gate_alone", "EngramGate", [keys, floats(2, 3, 2, 4), floats(2, 3, 4), each(), each()])
    source, sizes = np.array([1, 5, 3, 4, 2]), dict(min_ngram_size=1, max_ngram_size=3)
    guesses = np.array([1, 5, 3, 9, 2, 7])
    case("bifurcation", "BifurcationDetector", [source, np.array([2]), np.array([0]), guesses], 2, **sizes)
    case("bifurcation_match", "BifurcationDetector", [source, np.array([0, 3, 4]), np.array([0])], 2, **sizes)
    case("bifurcation_twice", "BifurcationDetector", [np.array([4, 1, 4, 2]), np.array([4]), np.array([0])], 2, **sizes)
    positions, caches = integers(0, 6, 3, 2, 5), [floats(6, 4), floats(6, 4)]
    case("m_rotary", "MRotaryEmbedding", [floats(2, 5, 24), positions, *caches], num_heads=3, mrope_section=[2, 1, 1])
    case("m_rotary_heads", "MRotaryEmbedding", [floats(2, 3, 5, 10), positions, *caches], num_heads=3, interleaved=1,
         rotary_embedding_dim=8, mrope_section=[2, 1, 1], mrope_layout=1, scale=0.5)
    case("expert_groups", "MoEGroupRouter", [floats(4, 12), floats(12)], top_k=3, n_group=4, topk_group=2, group_topk=2)
    case("expert_groups_one", "MoEGroupRouter", [floats(2, 2, 6), floats(6)], top_k=2, router_sentinel=-3.0)
    hashes = dict(max_ngram_size=3, n_head_per_ngram=2, pad_id=1)
    for dtype in (np.int32, np.int64):
        ids, factors = integers(0, 9, 2, 5, dtype=dtype), integers(1, 2**30, 3, dtype=dtype)
        counts, offsets = integers(5, 1000, 4, dtype=dtype), integers(0, 10**6, 4, dtype=dtype)
        past, end, name = integers(0, 9, 2, 2, dtype=dtype), np.array(3, dtype), np.dtype(dtype).name
        parts = np.array([[0, 0, 1, 1, 1], [2, 2, 2, 3, 4]], np.int32)
        case(f"n_gram_hashes_{name}", "NGramHashMapping", [ids, factors, counts, past], 2, **hashes)
        case(f"n_gram_hashes_end_{name}", "NGramHashMapping", [ids, factors, counts, past, offsets, end, parts], 2,
             reset_on_eos=1, **hashes)
        borders, row = np.array([0, 4, 10], np.int32), parts.reshape(-1)
        case(f"n_gram_hashes_joined_{name}", "VarlenNGramHashMapping",
             [ids.reshape(-1), factors, counts, borders, past, offsets, end, row, parts[:, :2].copy()], 3,
             reset_on_eos=1, **hashes)


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    for group in [activations, normalisations, products, small_weights, quantised, attentions, quantised_layers, others, texts_and_tokens, images_and_experts,
                  experimental, streams_and_gates]:
        group()
    translation_cases.translations(case)
    for group in stateful_cases.GROUPS:
        group(case)
    for group in ml_node_cases.GROUPS:
        group(ml_case)
    out, failed = pathlib.Path(sys.argv[1]), 0
    for name, operator, inputs, outputs, domain, version, constants, attributes in CASES:
        inputs = [None if value is None else np.asarray(value) for value in inputs]
        try:
            model = build(operator, inputs, outputs, domain, version, constants, attributes)
            write(out / f"contrib_{name}", model, inputs, constants)
        except Exception as error:  # noqa: BLE001
            failed += 1
            print(f"{name}: {error}")
    for name, model, inputs in optimised_models.models():
        write(out / f"contrib_{name}", model, inputs, ())
    print(f"{len(CASES) - failed} cases of ONNX Runtime {onnxruntime.__version__} in {out}")
    if failed:
        raise SystemExit(f"{failed} cases failed")


if __name__ == "__main__":
    main()
