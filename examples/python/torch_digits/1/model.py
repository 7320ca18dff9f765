"""Handwritten digits with PyTorch, on a GPU where there is one."""

import pathlib

import numpy as np
import torch
import triton_python_backend_utils as pb_utils

from .network import Digits


class TritonPythonModel:
    def initialize(self, args):
        self.device = device()
        path = pathlib.Path(__file__).with_name("weights.pt")
        # `weights_only` reads tensors and runs no code of the file.
        weights = torch.load(path, map_location=self.device, weights_only=True)
        self.network = Digits().to(self.device).eval()
        self.network.load_state_dict(weights)
        pb_utils.Logger.log_info(f"{args['model_instance_name']} runs on {self.device}")

    def execute(self, requests):
        images = [pb_utils.get_input_tensor_by_name(request, "IMAGE").as_numpy() for request in requests]
        # One run for the images of all requests; each request gets its own rows back.
        probabilities = self.probabilities(np.concatenate(images))
        ends = np.cumsum([len(rows) for rows in images])
        return [response(rows) for rows in np.split(probabilities, ends[:-1])]

    @torch.inference_mode()
    def probabilities(self, images):
        return self.network(torch.from_numpy(images).to(self.device)).cpu().numpy()


def device():
    """Metal on a Mac, CUDA where there is a card for it, else the processor."""
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def response(probabilities):
    digits = probabilities.argmax(1, keepdims=True).astype(np.int64)
    return pb_utils.InferenceResponse([
        pb_utils.Tensor("DIGIT", digits), pb_utils.Tensor("PROBABILITIES", probabilities),
    ])
