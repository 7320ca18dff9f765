"""`simple_ensemble`: `simple` after `simple`, (a + b) + (a - b) and (a + b) - (a - b)."""

import pathlib

import numpy as np

from .repository import Io, tensor_json, write_json

STEPS = """ensemble_scheduling {
  step [
    {
      model_name: "simple"
      model_version: -1
      input_map { key: "INPUT0" value: "A" }
      input_map { key: "INPUT1" value: "B" }
      output_map { key: "OUTPUT0" value: "sum" }
      output_map { key: "OUTPUT1" value: "difference" }
    },
    {
      model_name: "simple"
      model_version: -1
      input_map { key: "INPUT0" value: "sum" }
      input_map { key: "INPUT1" value: "difference" }
      output_map { key: "OUTPUT0" value: "TWICE_A" }
      output_map { key: "OUTPUT1" value: "TWICE_B" }
    }
  ]
}
"""


def build(repository):
    inputs = [Io("A", "INT32", [16]), Io("B", "INT32", [16])]
    outputs = [Io("TWICE_A", "INT32", [16]), Io("TWICE_B", "INT32", [16])]
    folder = pathlib.Path(repository) / "simple_ensemble"
    (folder / "1").mkdir(parents=True, exist_ok=True)
    # The version folder of an ensemble is empty, which Git does not keep.
    (folder / "1" / ".gitkeep").touch()
    blocks = [io.config("input") for io in inputs] + [io.config("output") for io in outputs]
    head = 'name: "simple_ensemble"\nplatform: "ensemble"\nmax_batch_size: 8\n'
    (folder / "config.pbtxt").write_text(head + "".join(blocks) + STEPS)
    values = {"A": np.arange(16, dtype=np.int32).reshape(1, 16), "B": np.arange(0, 160, 10, dtype=np.int32).reshape(1, 16)}
    answer = {"TWICE_A": 2 * values["A"], "TWICE_B": 2 * values["B"]}
    write_json(folder / "sample_input.json", {"inputs": [tensor_json(io, values[io.name]) for io in inputs]})
    write_json(folder / "sample_output.json", {"model_name": "simple_ensemble", "model_version": "1",
                                               # An ensemble answers with the last output first, as Triton does.
                                               "outputs": [tensor_json(io, answer[io.name]) for io in reversed(outputs)]})
