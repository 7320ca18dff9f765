"""Export small PyTorch models with loops, branches and lists, with ONNX Runtime's answers.

usage: export_control_flow.py DIR

Writes DIR/NAME.onnx, DIR/NAME.in.npz and DIR/NAME.out.npz: weights and inputs are random with a
fixed seed, the outputs are those of ONNX Runtime. The files in crates/testkit/control_flow
were made with PyTorch 2.15 and ONNX Runtime 1.31. Needs torch, onnx, onnxscript and onnxruntime.
"""

import pathlib
import sys
from typing import List

import numpy as np
import onnx
import onnxruntime
import torch
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

OPSET = 17
DYNAMO_OPSET = 20


class Repeat(torch.nn.Module):
    """A loop whose number of rounds is an input, with a branch in each round."""

    def __init__(self):
        super().__init__()
        self.inner, self.outer = torch.nn.Linear(16, 16), torch.nn.Linear(16, 4)

    def forward(self, x, rounds: int):
        state = x
        for index in range(rounds):
            state = torch.tanh(self.inner(state)) + x
            if index % 2 == 0:
                state = state * 0.5
        return self.outer(state)


class Choose(torch.nn.Module):
    """A branch that depends on values."""

    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, x):
        y = torch.relu(self.convolution(x))
        if bool(y.mean() > 0.3):
            y = y.mean(dim=(2, 3))
        else:
            y = y.amax(dim=(2, 3))
        return y


class Collect(torch.nn.Module):
    """A recurrence that keeps its states in a list."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)

    def forward(self, x):
        states: List[torch.Tensor] = []
        state = torch.zeros_like(x[0])
        for step in range(x.size(0)):
            state = torch.tanh(self.layer(x[step] + state))
            states.append(state)
        return torch.stack(states), state


class Generate(torch.nn.Module):
    """Greedy decoding: a loop that ends by a value, over a tensor that grows."""

    def __init__(self):
        super().__init__()
        self.embedding, self.layer = torch.nn.Embedding(20, 16), torch.nn.Linear(16, 20)

    def forward(self, tokens):
        count, done = 0, False
        while count < 12 and not done:
            following = self.layer(self.embedding(tokens).mean(0)).argmax().reshape(1)
            tokens = torch.cat([tokens, following])
            done = bool(following[0] == 3)
            count += 1
        return tokens


class Nested(torch.nn.Module):
    """A loop in a loop; both read what is outside."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(6, 6)

    def forward(self, x, rows: int, columns: int):
        total = torch.zeros_like(x)
        for row in range(rows):
            line = x * (row + 1)
            for column in range(columns):
                line = self.layer(line) + x * column
                if float(line.sum()) > 50.0:
                    line = line / 10.0
            total = total + line
        return total


class Condition(torch.nn.Module):
    """`torch.cond`: the newer exporter makes a branch of it, and functions of the branches."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)

    def forward(self, x):
        def positive(x):
            return (torch.relu(self.layer(x)),)

        def negative(x):
            return (x - 1.0,)

        return torch.cond(x.sum() > 0, positive, negative, (x,))[0]


class Recur(torch.nn.Module):
    """`torch.scan`: a recurrence along the first axis."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        def step(state, row):
            state = torch.tanh(self.layer(state) + row)
            return state, state.clone()

        return scan(step, torch.zeros(4), x, dim=0)


class Until(torch.nn.Module):
    """`torch.while_loop`: a loop that ends by a value."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, count, x):
        def goes_on(count, x):
            return count < 5

        def step(count, x):
            return count + 1, torch.relu(self.layer(x)) + 1

        return while_loop(goes_on, step, (count, x))


def scripted(model, inputs, axes):
    def write(path):
        torch.onnx.export(
            torch.jit.script(model.eval()), tuple(inputs.values()), str(path), opset_version=OPSET,
            dynamo=False, input_names=list(inputs), dynamic_axes=axes,
        )

    return write


def traced(model, inputs):
    def write(path):
        torch.onnx.export(
            model.eval(), tuple(inputs.values()), str(path), opset_version=DYNAMO_OPSET, dynamo=True,
            input_names=list(inputs), external_data=False, verbose=False, optimize=False,
        )

    return write


def models():
    torch.manual_seed(0)
    x = {"x": torch.randn(2, 16), "rounds": torch.tensor(5)}
    yield "repeat", x, scripted(Repeat(), x, {"x": {0: "batch"}})
    x = {"x": torch.randn(1, 3, 8, 8)}
    yield "choose", x, scripted(Choose(), x, {"x": {0: "batch", 2: "height", 3: "width"}})
    x = {"x": torch.randn(6, 2, 8)}
    yield "collect", x, scripted(Collect(), x, {"x": {0: "time", 1: "batch"}})
    x = {"tokens": torch.tensor([1, 2, 5])}
    yield "generate", x, scripted(Generate(), x, {"tokens": {0: "length"}})
    x = {"x": torch.randn(3, 6), "rows": torch.tensor(3), "columns": torch.tensor(4)}
    yield "nested", x, scripted(Nested(), x, {"x": {0: "batch"}})
    x = {"x": torch.randn(2, 8) + 1.0}
    yield "condition", x, traced(Condition(), x)
    x = {"x": torch.randn(5, 4)}
    yield "recur", x, traced(Recur(), x)
    x = {"count": torch.tensor(0), "x": torch.randn(4)}
    yield "until", x, traced(Until(), x)


def strip(graph):
    """Takes out what the exporter notes about the place of each node in the source."""
    for item in [graph, *graph.node, *graph.input, *graph.output, *graph.value_info]:
        del item.metadata_props[:]
        item.doc_string = ""
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                strip(attribute.g)


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for name, inputs, write in models():
        path = out / f"{name}.onnx"
        write(path)
        model = onnx.load(path)
        strip(model.graph)
        onnx.save(model, path)
        session = onnxruntime.InferenceSession(str(path))
        given = {key: np.asarray(value) for key, value in inputs.items()}
        found = session.run(None, given)
        np.savez(out / f"{name}.in.npz", **given)
        np.savez(out / f"{name}.out.npz", **{o.name: f for o, f in zip(session.get_outputs(), found)})
        print(name, [value.shape for value in found])


if __name__ == "__main__":
    main()
