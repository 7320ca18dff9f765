"""Cases of BeamSearch with an encoder and a decoder as T5's: two small subgraphs over seven words."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

WORDS = 7
RANDOM = np.random.default_rng(11)
NUMBERS = {
    "read": RANDOM.standard_normal((WORDS, 2)).astype(np.float32),
    "write": RANDOM.standard_normal((WORDS, 2)).astype(np.float32),
    "scores": (2 * RANDOM.standard_normal((2, WORDS))).astype(np.float32),
    "part": np.array(0.3, np.float32),
    "first": np.array([1]),
    "second": np.array([2]),
    "last": np.array([-1]),
    "end": np.array([2**31]),
}


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def tokens(name, shape):
    return value(name, shape, TensorProto.INT32)


def past(name, length):
    return value(name, ["texts", 1, length, 2])


def graph(name, nodes, inputs, outputs):
    read = {word for node in nodes for word in node.input}
    numbers = [numpy_helper.from_array(array, word) for word, array in NUMBERS.items() if word in read]
    return helper.make_graph(nodes, name, inputs, outputs, numbers)


def node(operator, inputs, output, **attributes):
    return helper.make_node(operator, inputs.split(), [output], **attributes)


def reading():
    """What the encoder makes of the prompts: keys and values of one layer."""
    return [
        node("Gather", "read encoder_input_ids", "word"),
        node("Cast", "encoder_attention_mask", "counts", to=TensorProto.FLOAT),
        node("Unsqueeze", "counts second", "seen"),
        node("Mul", "word seen", "encoder_hidden_states"),
        node("Unsqueeze", "encoder_hidden_states first", "present_key_cross_0"),
        node("Mul", "present_key_cross_0 part", "present_value_cross_0"),
    ]


def encoder(starts):
    inputs = [tokens("encoder_input_ids", ["texts", "length"]), tokens("encoder_attention_mask", ["texts", "length"])]
    cross = [past("present_key_cross_0", "length"), past("present_value_cross_0", "length")]
    if not starts:
        return graph("encoder", reading(), inputs, cross)
    nodes = reading() + [
        node("Gather", "write decoder_input_ids", "own"),
        node("Unsqueeze", "own first", "present_key_self_0"),
        node("Mul", "present_key_self_0 part", "present_value_self_0"),
        node("ReduceSum", "encoder_hidden_states first", "sum", keepdims=1),
        node("Add", "own sum", "all"),
        node("MatMul", "all scores", "logits"),
    ]
    own = [past("present_key_self_0", 1), past("present_value_self_0", 1)]
    outputs = [value("logits", ["texts", 1, WORDS]), value("encoder_hidden_states", ["texts", "length", 2]), *own, *cross]
    return graph("encoder", nodes, [*inputs, tokens("decoder_input_ids", ["texts", 1])], outputs)


def decoder(hidden, whole):
    inputs = [tokens("input_ids", ["texts", "written" if whole else 1]), tokens("encoder_attention_mask", ["texts", "length"])]
    inputs += [value("encoder_hidden_states", ["texts", "length", 2])] if hidden else []
    inputs += [past("past_key_self_0", "before"), past("past_value_self_0", "before")]
    inputs += [past("past_key_cross_0", "length"), past("past_value_cross_0", "length")]
    nodes = [
        node("Slice", "input_ids last end first", "token"),
        node("Gather", "write token", "own"),
        node("Unsqueeze", "own first", "key"),
        node("Mul", "key part", "value"),
        node("Concat", "past_key_self_0 key", "present_key_self_0", axis=2),
        node("Concat", "past_value_self_0 value", "present_value_self_0", axis=2),
        node("ReduceSum", "present_value_self_0 second", "written", keepdims=0),
        node("ReduceSum", "past_value_cross_0 second", "read_values", keepdims=0),
        node("ReduceMax", "past_key_cross_0", "read_keys", axes=[2], keepdims=0),
        node("Sum", "own written read_values read_keys", "all"),
    ]
    if hidden:
        nodes += [node("ReduceMin", "encoder_hidden_states", "low", axes=[1], keepdims=1), node("Add", "all low", "sum")]
    nodes.append(node("MatMul", "sum scores" if hidden else "all scores", "logits"))
    outputs = [value("logits", ["texts", 1, WORDS]), past("present_key_self_0", "after"), past("present_value_self_0", "after")]
    return graph("decoder", nodes, inputs, outputs)


def translations(case):
    prompts = np.array([[3, 2, 5, 6], [0, 0, 4, 1]], np.int32)
    number = lambda one: np.array([one], np.int32)
    factor = lambda one: np.array([one], np.float32)
    lengths = [prompts, number(7), number(1), number(3), number(2)]
    neutral = [factor(1.0), factor(1.0), None, None, np.ones((2, 4), np.int32)]
    attributes = dict(eos_token_id=6, pad_token_id=0, decoder_start_token_id=0, model_type=1)
    constants = (1, 2, 3, 4)
    forms = [("start", True, True, False), ("plain", False, False, False), ("whole", True, True, True)]
    for name, starts, hidden, whole in forms:
        bodies = dict(encoder=encoder(starts), decoder=decoder(hidden, whole))
        case(f"beam_search_t5_{name}", "BeamSearch", [*lengths, *neutral], 3, constants=constants, **bodies, **attributes)
    mask = np.array([[1, 1, 1, 0], [0, 1, 1, 1]], np.int32)
    words = np.array([1, 1, 0, 1, 1, 1, 1], np.int32)
    rules = [*lengths[:2], number(4), *lengths[3:], factor(0.5), factor(1.4), words, None, mask]
    case("beam_search_t5_rules", "BeamSearch", rules, 2, constants=constants, early_stopping=1, no_repeat_ngram_size=2,
         encoder=encoder(True), decoder=decoder(True, False), **attributes)
