"""Logits to names and probabilities, the most probable first."""

import pathlib

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        labels = pathlib.Path(__file__).with_name("labels.txt").read_text(encoding="utf-8")
        self.labels = np.array(labels.split(), dtype=object)

    def execute(self, requests):
        return [self.respond(request) for request in requests]

    def respond(self, request):
        logits = pb_utils.get_input_tensor_by_name(request, "LOGITS").as_numpy()
        powers = np.exp(logits - logits.max(1, keepdims=True))
        scores = powers / powers.sum(1, keepdims=True)
        order = np.argsort(-scores, axis=1, kind="stable")
        return pb_utils.InferenceResponse([
            pb_utils.Tensor("LABEL", self.labels[order]),
            pb_utils.Tensor("SCORE", np.take_along_axis(scores, order, axis=1)),
        ])
