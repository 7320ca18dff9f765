"""Cases of recurrent layers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from .case import Family, f16, f32, words

RESET = (
    "the operator's text multiplies r by the product of weights and state; the reference of "
    "coremltools' tests, which Core ML passes, and TensorFlow multiply r by the state before"
)
AFTER = (
    "coremltools' text says little of reset_after; its test expects what torch computes, bias "
    "being that of the state, but is marked as failing"
)
BACKWARDS = "the first result is that of the last step of x, as in coremltools' tests"

ACTIVATIONS: dict[str, Callable] = {
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "relu": lambda x: np.maximum(x, 0),
    "linear": lambda x: x,
    "hard_sigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "sigmoid_hard": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "scaled_tanh": np.tanh,
}


def steps(x: np.ndarray, direction: str) -> np.ndarray:
    """The steps in the order in which they are computed."""
    return x[::-1] if direction == "reverse" else x


def lstm_pass(x, h, c, weight_ih, weight_hh, bias=None, peephole=None, *, gate="sigmoid",
              cell="tanh", out="tanh", clip=None):
    """One direction: every step's state, the last state and the last cell. Gates are i, f, o, z."""
    f, g, o = ACTIVATIONS[gate], ACTIVATIONS[cell], ACTIVATIONS[out]
    p = np.zeros((3, h.shape[1])) if peephole is None else peephole.astype(float).reshape(3, -1)
    all_h = []
    for step in x:
        gates = step @ weight_ih.T.astype(float) + h @ weight_hh.T.astype(float)
        gates = gates if bias is None else gates + bias.astype(float)
        i_, f_, o_, z_ = np.split(gates, 4, 1)
        c = f(f_ + p[1] * c) * c + f(i_ + p[0] * c) * g(z_)
        c = c if clip is None else np.clip(c, -float(clip), float(clip))
        h = f(o_ + p[2] * c) * o(c)
        all_h.append(h)
    return np.stack(all_h), h, c


def lstm(x, initial_h, initial_c, *, weight_ih, weight_hh, bias=None, peephole=None,
         weight_ih_back=None, weight_hh_back=None, bias_back=None, peephole_back=None,
         direction="forward", output_sequence=False, recurrent_activation="sigmoid",
         cell_activation="tanh", activation="tanh", clip=None):
    """`lstm` in all directions."""
    names = {"gate": recurrent_activation, "cell": cell_activation, "out": activation, "clip": clip}
    if direction != "bidirectional":
        all_h, h, c = lstm_pass(
            steps(x, direction), initial_h, initial_c, weight_ih, weight_hh, bias, peephole, **names
        )
        return (all_h if output_sequence else all_h[-1:]), h, c
    h, c = np.split(initial_h, 2, 1), np.split(initial_c, 2, 1)
    there = lstm_pass(x, h[0], c[0], weight_ih, weight_hh, bias, peephole, **names)
    back = lstm_pass(x[::-1], h[1], c[1], weight_ih_back, weight_hh_back, bias_back, peephole_back,
                     **names)
    all_h = np.concatenate([there[0], back[0][::-1]], -1)
    last = np.concatenate([there[1], back[1]], -1)
    return (all_h if output_sequence else last[None]), last, np.concatenate([there[2], back[2]], -1)


def rnn(x, initial_h, *, weight_ih, weight_hh, bias=None, direction="forward",
        output_sequence=False, activation="tanh"):
    """`rnn` in both directions."""
    h, all_h = initial_h, []
    for step in steps(x, direction):
        total = step @ weight_ih.T.astype(float) + h @ weight_hh.T.astype(float)
        h = ACTIVATIONS[activation](total if bias is None else total + bias.astype(float))
        all_h.append(h)
    return (np.stack(all_h) if output_sequence else h[None]), h


def gru(x, initial_h, *, weight_ih, weight_hh, bias=None, direction="forward",
        output_sequence=False, recurrent_activation="sigmoid", activation="tanh",
        reset_after=False, input_bias=None):
    """`gru` in both directions. Gates are r, o, z."""
    gate, out = ACTIVATIONS[recurrent_activation], ACTIVATIONS[activation]
    zeros = np.zeros(len(weight_hh))
    bias = np.split(zeros if bias is None else bias.astype(float), 3)
    more = np.split(zeros if input_bias is None else input_bias.astype(float), 3)
    w_r, w_o, w_z = np.split(weight_ih.astype(float), 3)
    u_r, u_o, u_z = np.split(weight_hh.astype(float), 3)
    h, all_h = initial_h, []
    for step in steps(x, direction):
        r = gate(step @ w_r.T + more[0] + h @ u_r.T + bias[0])
        z = gate(step @ w_z.T + more[2] + h @ u_z.T + bias[2])
        old = r * (h @ u_o.T + bias[1]) if reset_after else (r * h) @ u_o.T + bias[1]
        h = (1 - z) * out(step @ w_o.T + more[1] + old) + z * h
        all_h.append(h)
    return (np.stack(all_h) if output_sequence else h[None]), h


def check_against_torch() -> None:
    """The loops give what torch's layers give, gates in torch's order."""
    torch.manual_seed(1)
    x, h, c = torch.randn(4, 2, 3), torch.randn(2, 2, 5), torch.randn(2, 2, 5)
    layer = torch.nn.LSTM(3, 5, bidirectional=True)
    names = {}
    for ours, theirs in (("", ""), ("_back", "_reverse")):
        for part in ("weight_ih", "weight_hh"):
            names[part + ours] = reordered(getattr(layer, f"{part}_l0{theirs}"), (0, 1, 3, 2))
        biases = getattr(layer, f"bias_ih_l0{theirs}") + getattr(layer, f"bias_hh_l0{theirs}")
        names["bias" + ours] = reordered(biases, (0, 1, 3, 2))
    expected, (last, _) = layer(x, (h, c))
    joined = [np.concatenate(list(part.numpy()), 1) for part in (h, c)]
    found = lstm(x.numpy(), *joined, **names, direction="bidirectional", output_sequence=True)
    assert np.allclose(found[0], expected.detach().numpy(), atol=1e-5)
    assert np.allclose(found[1], np.concatenate(list(last.detach().numpy()), 1), atol=1e-5)
    layer = torch.nn.GRU(3, 5)
    order = (0, 2, 1)
    expected, _ = layer(x, h[:1])
    found = gru(
        x.numpy(), h[0].numpy(), weight_ih=reordered(layer.weight_ih_l0, order),
        weight_hh=reordered(layer.weight_hh_l0, order), bias=reordered(layer.bias_hh_l0, order),
        input_bias=reordered(layer.bias_ih_l0, order), reset_after=True, output_sequence=True,
    )
    assert np.allclose(found[0], expected.detach().numpy(), atol=1e-5)
    layer = torch.nn.RNN(3, 5)
    expected, _ = layer(x, h[:1])
    found = rnn(
        x.numpy(), h[0].numpy(), weight_ih=layer.weight_ih_l0.detach().numpy(),
        weight_hh=layer.weight_hh_l0.detach().numpy(), output_sequence=True,
        bias=(layer.bias_ih_l0 + layer.bias_hh_l0).detach().numpy(),
    )
    assert np.allclose(found[0], expected.detach().numpy(), atol=1e-5)


def reordered(value: torch.Tensor, order: tuple[int, ...]) -> np.ndarray:
    """torch's gates in another order."""
    parts = np.split(value.detach().numpy(), len(order))
    return np.concatenate([parts[at] for at in order])


def weights(family: Family, gates: int, dtype: type = f32, suffix: str = "", bias: bool = True,
            size: tuple[int, int] = (2, 3)) -> dict[str, np.ndarray]:
    """Weights of one direction, of `size` (input, state)."""
    inputs, hidden = size
    made = {f"weight_ih{suffix}": family.normal(gates * hidden, inputs, dtype=dtype, scale=0.5),
            f"weight_hh{suffix}": family.normal(gates * hidden, hidden, dtype=dtype, scale=0.5)}
    if bias:
        made[f"bias{suffix}"] = family.normal(gates * hidden, dtype=dtype, scale=0.5)
    return made


def lstms(family: Family) -> None:
    """`lstm`."""
    for direction in ("forward", "reverse", "bidirectional"):
        for sequence in (False, True):
            for peephole in (False, True):
                params: dict = weights(family, 4, bias=peephole or sequence)
                sides = ["", "_back"] if direction == "bidirectional" else [""]
                if len(sides) == 2:
                    params |= weights(family, 4, suffix="_back", bias=peephole or sequence)
                if peephole:
                    params |= {f"peephole{side}": family.normal(9, scale=0.5) for side in sides}
                params |= {"direction": direction, "output_sequence": sequence}
                name = f"lstm_{direction}{'_with_every_step' if sequence else ''}"
                lstm_case(family, name + ("_with_peepholes" if peephole else ""), params, 3 * len(sides))
    for gate, cell, out in (("hard_sigmoid", "relu", "linear"), ("sigmoid", "scaled_tanh", "relu"),
                            ("tanh", "linear", "scaled_tanh"), ("linear", "sigmoid", "hard_sigmoid"),
                            ("relu", "hard_sigmoid", "sigmoid"), ("scaled_tanh", "tanh", "tanh")):
        params = weights(family, 4) | {"recurrent_activation": gate, "cell_activation": cell,
                                       "activation": out}
        lstm_case(family, f"lstm_with_{gate}_{cell}_and_{out}", params, 3)
    for clip in (0.125, 50.0):
        params = weights(family, 4) | {"clip": f32(clip), "output_sequence": True}
        lstm_case(family, f"lstm_that_clips_its_cell_at_{clip:g}".replace(".", "_"), params, 3)
    for dtype in (f32, f16):
        params = weights(family, 4, dtype) | {"output_sequence": True, "clip": dtype(2)}
        lstm_case(family, f"lstm_of_ios17_in_{words(dtype)}", params, 3, 17, dtype)
    params = weights(family, 4) | {"output_sequence": True}
    lstm_case(family, "lstm_over_an_unknown_number_of_steps", params, 3,
              flexible={"x": {0: "s"}})


def lstm_case(family: Family, name: str, params: dict, state: int, opset: int = 15,
              dtype: type = f32, **more) -> None:
    """A case of `lstm` with two sequences of four steps."""
    if params.get("direction") == "reverse":
        more["why"] = BACKWARDS
    family.one(
        name, "lstm",
        {"x": family.normal(4, 2, 2, dtype=dtype), "initial_h": family.normal(2, state, dtype=dtype),
         "initial_c": family.normal(2, state, dtype=dtype)},
        lambda x, initial_h, initial_c, p=params: lstm(x, initial_h, initial_c, **p), opset, params,
        **more,
    )


def others(family: Family) -> None:
    """`rnn` and `gru`."""
    layers: dict[str, tuple[Callable, int]] = {"rnn": (rnn, 1), "gru": (gru, 3)}
    for operator, (oracle, gates) in layers.items():

        def case(name: str, params: dict, opset: int = 15, dtype: type = f32,
                 operator=operator, oracle=oracle, **more) -> None:
            why = [RESET] if operator == "gru" and not params.get("reset_after") else []
            why += [AFTER] if params.get("reset_after") else []
            why += [BACKWARDS] if params.get("direction") == "reverse" else []
            more |= {"why": "; ".join(why)} if why else {}
            family.one(
                f"{operator}_{name}", operator,
                {"x": family.normal(4, 2, 2, dtype=dtype),
                 "initial_h": family.normal(2, 3, dtype=dtype)},
                lambda x, initial_h: oracle(x, initial_h, **params), opset, params, **more,
            )

        for direction in ("forward", "reverse"):
            for sequence in (False, True):
                params = weights(family, gates, bias=sequence)
                params |= {"direction": direction, "output_sequence": sequence}
                case(direction + ("_with_every_step" if sequence else ""), params)
        if operator == "rnn":
            for activation in ("relu", "sigmoid", "sigmoid_hard", "scaled_tanh", "linear"):
                case(f"with_{activation}", weights(family, 1) | {"activation": activation})
        else:
            for gate, out in (("hard_sigmoid", "relu"), ("tanh", "sigmoid"), ("sigmoid", "linear")):
                case(f"with_{gate}_and_{out}",
                     weights(family, 3) | {"recurrent_activation": gate, "activation": out})
        for dtype in (f32, f16):
            params = weights(family, gates, dtype) | {"output_sequence": True}
            case(f"of_ios17_in_{words(dtype)}", params, 17, dtype)
        case("over_an_unknown_number_of_steps", weights(family, gates) | {"output_sequence": True},
             flexible={"x": {0: "s"}})
        if operator == "gru":
            for dtype in (f32, f16):
                more = {"input_bias": family.normal(9, dtype=dtype, scale=0.5), "output_sequence": True}
                case(f"of_ios18_in_{words(dtype)}_with_input_bias",
                     weights(family, 3, dtype) | more, 18, dtype)
                case(f"of_ios18_in_{words(dtype)}_that_resets_after",
                     weights(family, 3, dtype) | more | {"reset_after": True}, 18, dtype)
            case("of_ios18_that_resets_before", weights(family, 3) | {"reset_after": False}, 18)


def recurrent() -> Family:
    """Recurrent layers."""
    check_against_torch()
    family = Family("recurrent")
    for part in (lstms, others):
        part(family)
    return family
