"""Arrays, wire tensors and the sample files."""

import numpy as np
from tritonclient.utils import triton_to_np_dtype

# Sums of a few hundred float32 terms in another order: relative error below 1e-5 of values near 1.
RTOL, ATOL = 1e-4, 1e-6


def array(tensor):
    """The array of a tensor in JSON form. BF16 is held as float32, as the client does."""
    data = tensor["data"]
    if tensor["datatype"] == "BYTES":
        values = np.array([text.encode() for text in data], dtype=object)
    else:
        values = np.array(data, dtype=triton_to_np_dtype(tensor["datatype"]))
    return values.reshape(tensor["shape"])


def wire_inputs(protocol, tensors, **options):
    """InferInputs of the given protocol; `options` go to set_data_from_numpy."""
    inputs = []
    for tensor in tensors:
        inputs.append(protocol.InferInput(tensor["name"], tensor["shape"], tensor["datatype"]))
        inputs[-1].set_data_from_numpy(array(tensor), **options)
    return inputs


def simple_inputs(protocol, first=None, second=None, **options):
    """The two inputs of `simple`."""
    first = np.arange(16, dtype=np.int32).reshape(1, 16) if first is None else first
    second = np.ones_like(first) if second is None else second
    inputs = [protocol.InferInput(name, list(value.shape), "INT32")
              for name, value in [("INPUT0", first), ("INPUT1", second)]]
    inputs[0].set_data_from_numpy(first, **options)
    inputs[1].set_data_from_numpy(second, **options)
    return first, second, inputs


def check_simple(result, first, second):
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), first + second)
    np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), first - second)


def check_outputs(result, expected):
    """Compares a client's result with recorded output tensors."""
    for tensor in expected:
        found, wanted = result.as_numpy(tensor["name"]), array(tensor)
        assert list(found.shape) == tensor["shape"], tensor["name"]
        if np.issubdtype(wanted.dtype, np.floating):
            np.testing.assert_allclose(found, wanted, rtol=RTOL, atol=ATOL, err_msg=tensor["name"])
        else:
            np.testing.assert_array_equal(found, wanted, err_msg=tensor["name"])
