"""Cases of operators that keep a state between calls, and of tables whose numbers lie in blocks of bytes."""

import ml_dtypes
import numpy as np

RANDOM = np.random.default_rng(13)


def floats(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def counts(*numbers):
    return np.array(numbers, np.int32)


def convolutions(case):
    weights, bias = floats(4, 1, 3), floats(4)
    case("causal_conv_apart", "CausalConvWithState", [floats(2, 4, 5), weights, bias, floats(2, 4, 4)], 2, dilation=2)
    case("causal_conv_last", "CausalConvWithState", [floats(2, 5, 4), weights, bias, floats(2, 2, 4)], 2, channels_last=1)
    case("causal_conv_last_axes", "CausalConvWithState", [floats(1, 5, 2, 2), weights], 2, channels_last=1, dilation=2, activation="silu")
    name, tokens, starts = "VarlenCausalConvWithState", floats(7, 4), counts(0, 2, 7)
    case("joined_conv", name, [tokens, weights, starts, bias, floats(2, 4, 2)], 2)
    case("joined_conv_silu", name, [tokens, weights, starts, None, floats(2, 4, 4)], 2, dilation=2, activation="silu")
    case("joined_conv_report", name, [tokens, weights, starts, bias, floats(2, 4, 2), counts(1, 9)], 3, state_update_capacity=3)
    case("joined_conv_empty", name, [tokens, weights, counts(0, 0, 7), bias, floats(2, 4, 2)], 2)
    half = [array.astype(np.float16) for array in (tokens, weights, floats(2, 4, 2))]
    case("joined_conv_half", name, [half[0], half[1], starts, None, half[2]], 2)


def delta_nets(case):
    name, starts = "GatedDeltaNet", counts(0, 2, 5)
    query, key, value, state = floats(5, 2, 4), floats(5, 2, 4), floats(5, 4, 3), floats(2, 4, 3, 4)
    decay, rate = -np.abs(floats(5, 4)), np.abs(floats(5, 4))
    vectors = [query, key, value, starts]
    case("delta_net", name, [*vectors, decay, rate, state], 2)
    case("delta_net_new", name, [*vectors, decay, rate], 2)
    case("delta_net_linear", name, [*vectors, None, None, state], 2, update_rule="linear", scale=0.3)
    case("delta_net_gated", name, [*vectors, decay, None, state], 2, update_rule="gated")
    case("delta_net_delta", name, [*vectors, None, rate, state], 2, update_rule="delta", qk_l2_norm=1)
    case("delta_net_keys", name, [*vectors, -np.abs(floats(5, 4, 4)), rate, state], 2)
    raw, bias = floats(5, 4), floats(4)
    case("delta_net_softplus", name, [*vectors, raw, raw, state, bias, floats(4)], 2, gate_activation="softplus", beta_activation="sigmoid", qk_l2_norm=1)
    case("delta_net_sigmoid", name, [*vectors, floats(5, 4, 4), rate, state, bias, floats(4, 4)], 2, gate_activation="kda", gate_lower_bound=-2.0)
    even = [array[:4].reshape(2, 2, *array.shape[1:]) for array in (query, key, value, decay, rate)]
    case("delta_net_batch", name, [*even[:3], None, even[3], even[4], state], 2)
    packed = np.concatenate([array.reshape(5, -1) for array in (query, key, value)], axis=1)
    case("delta_net_packed", name, [packed, None, None, starts, decay, rate, state], 2)
    case("delta_net_report", name, [*vectors, decay, rate, state, None, None, counts(2, 2)], 3, state_update_capacity=2)
    case("delta_net_silent", name, [*vectors, decay, rate, state, None, None, counts(1, 5), counts(0)], 3, state_update_capacity=2)
    half = [array.astype(np.float16) for array in (query, key, value)]
    case("delta_net_half", name, [*half, starts, decay, rate, state], 2)


def attention_lstms(case):
    name, size = "AttnLSTM", dict(hidden_size=3)

    def inputs(passes, found, lengths=None, layer=None):
        lstm = [floats(4, 2, 2), floats(passes, 12, 2 + found), floats(passes, 12, 3), floats(passes, 24), counts(4, 2)]
        attention = [floats(passes, 3, 4), floats(passes, 5, 4), floats(passes, 4), floats(2, 6, 5), lengths, layer]
        return [*lstm, floats(passes, 2, 3), floats(passes, 2, 3), floats(passes, 9), *attention]

    case("attention_lstm", name, inputs(1, 5)[:12], 3, **size)
    case("attention_lstm_lengths", name, inputs(1, 5, counts(6, 2))[:13], 3, **size)
    case("attention_lstm_layer", name, inputs(2, 3, counts(1, 6), floats(2, 8, 3)), 3, direction="bidirectional", **size)


def tables(case):
    for dtype in (ml_dtypes.int4, ml_dtypes.uint4):
        table = RANDOM.integers(-8 if dtype == ml_dtypes.int4 else 0, 8, (3, 4, 32)).astype(dtype)
        zeros = np.ones((3, 4, 2)).astype(dtype)
        scales, picks, blocks = floats(3, 4, 2), np.array([[2, -1]]), dict(block_size=16, quantize_axis=2)
        kind = np.dtype(dtype).name
        case(f"gather_{kind}", "GatherBlockQuantized", [table, picks, scales], version=21, constants=(0,), **blocks)
        case(f"gather_{kind}_zeros", "GatherBlockQuantized", [table, picks, scales, zeros], version=21, constants=(0, 3), gather_axis=1, **blocks)
    rows = {0: 4 * 256, 1: 512, 2: 144, 6: 176, 8: 272, 13: 176, 14: 210, 20: 144, 23: 136, 30: 512, 42: 72}
    for number, width in rows.items():
        table = RANDOM.integers(0, 256, (3, width), dtype=np.uint8)
        # The second byte of factors of FP16 is such that none is infinite or too large.
        table[:, 1::2] &= 0x37
        picks = np.array([[2, 0], [1, 7]])
        case(f"gather_packed_{number}", "GatherPacked", [table, picks], packed_type=number, K=256, output_dtype=1)


GROUPS = [convolutions, delta_nets, attention_lstms, tables]
