"""Texts to numbers of tokens, with the library `tokenizers`."""

import pathlib

import numpy as np
import triton_python_backend_utils as pb_utils
from tokenizers import Tokenizer


class TritonPythonModel:
    def initialize(self, args):
        # The file also says how texts are cut and padded: up to a multiple of 16 tokens, so that texts of
        # similar length have tensors of one shape, which the server may put in one batch of the encoder.
        self.tokenizer = Tokenizer.from_file(str(pathlib.Path(__file__).with_name("tokenizer.json")))

    def execute(self, requests):
        return [self.respond(request) for request in requests]

    def respond(self, request):
        texts = pb_utils.get_input_tensor_by_name(request, "TEXT").as_numpy()
        try:
            texts = [text.decode() for text in texts.ravel()]
        except UnicodeDecodeError as error:
            # The error of one request; the others of this execution are answered.
            refusal = pb_utils.TritonError(f"TEXT is not UTF-8: {error}", pb_utils.TritonError.INVALID_ARG)
            return pb_utils.InferenceResponse(error=refusal)
        encoded = self.tokenizer.encode_batch(texts)
        ids = np.array([text.ids for text in encoded], np.int64)
        mask = np.array([text.attention_mask for text in encoded], np.int64)
        return pb_utils.InferenceResponse([
            pb_utils.Tensor("INPUT_IDS", ids), pb_utils.Tensor("ATTENTION_MASK", mask),
        ])
