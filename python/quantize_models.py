"""Quantises models with onnxruntime.quantization, as users do.

usage: quantize_models.py SOURCE OUT [NAME ...]

SOURCE holds NAME.onnx as export_models.py writes them. For each name OUT gets
  NAME.qdq.onnx       static, QDQ form, UINT8 activations and INT8 weights with a scale per channel
  NAME.signed.onnx    static, QDQ form, everything INT8, one scale per tensor
  NAME.dynamic.onnx   dynamic, for models whose inputs are tokens
Calibration runs on inputs made from seed 0, so that the values are those that rewrite_effect.py
sends. Accuracy on a task is not the point; that two programs compute the same is.
"""

import argparse
import pathlib
import tempfile

import numpy
import onnx
import onnxruntime
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
from rewrite_effect import make_inputs

ROUNDS = 4


class Inputs(CalibrationDataReader):
    def __init__(self, path):
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        self.left = [make_inputs(session) for _ in range(ROUNDS)]

    def get_next(self):
        return self.left.pop() if self.left else None


def prepare(source, folder):
    """The model with its shapes inferred and its batch normalisations folded."""
    out = folder / "prepared.onnx"
    quant_pre_process(str(source), str(out), skip_symbolic_shape=True)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("names", nargs="*", default=["mobilenetv2", "resnet50", "minilm"])
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    numpy.random.seed(0)
    for name in given.names:
        source = given.source / f"{name}.onnx"
        tokens = any(value.type.tensor_type.elem_type == onnx.TensorProto.INT64 for value in onnx.load(source).graph.input)
        with tempfile.TemporaryDirectory() as folder:
            prepared = str(prepare(source, pathlib.Path(folder)))
            for suffix, activation, by_channel in (("qdq", QuantType.QUInt8, True), ("signed", QuantType.QInt8, False)):
                quantize_static(
                    prepared, str(given.out / f"{name}.{suffix}.onnx"), Inputs(prepared), quant_format=QuantFormat.QDQ,
                    per_channel=by_channel, activation_type=activation, weight_type=QuantType.QInt8,
                )
            if tokens:
                quantize_dynamic(prepared, str(given.out / f"{name}.dynamic.onnx"), weight_type=QuantType.QInt8)
        print(name, flush=True)


if __name__ == "__main__":
    main()
