"""Species of irises with scikit-learn, fitted when the model is loaded."""

import numpy as np
import triton_python_backend_utils as pb_utils

from .classifier import classifier, training


class TritonPythonModel:
    def initialize(self, args):
        self.classifier = classifier().fit(*training())

    def execute(self, requests):
        rows = [pb_utils.get_input_tensor_by_name(request, "MEASUREMENTS").as_numpy() for request in requests]
        # One prediction for the flowers of all requests; each request gets its own rows back.
        probabilities = self.classifier.predict_proba(np.concatenate(rows)).astype(np.float32)
        ends = np.cumsum([len(part) for part in rows])
        return [self.response(part) for part in np.split(probabilities, ends[:-1])]

    def response(self, probabilities):
        species = self.classifier.classes_[probabilities.argmax(1)].astype(object)
        return pb_utils.InferenceResponse([
            pb_utils.Tensor("SPECIES", species[:, None]), pb_utils.Tensor("PROBABILITIES", probabilities),
        ])
