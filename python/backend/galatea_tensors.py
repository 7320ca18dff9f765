"""Tensors as a Python model sees them: types, strings, DLPack."""

import ctypes
import struct

import numpy as np


class TritonModelException(Exception):
    """What a model raises, and what the server's own calls raise in a model."""


# Types in the order of their numbers on the wire between server and worker: name in a configuration, name on Triton's
# wire, NumPy's type, number of TRITONSERVER_DataType. BF16 has no type in NumPy; its bits are kept as uint16.
_TYPES = (
    ("TYPE_BOOL", "BOOL", np.bool_, 1),
    ("TYPE_UINT8", "UINT8", np.uint8, 2),
    ("TYPE_UINT16", "UINT16", np.uint16, 3),
    ("TYPE_UINT32", "UINT32", np.uint32, 4),
    ("TYPE_UINT64", "UINT64", np.uint64, 5),
    ("TYPE_INT8", "INT8", np.int8, 6),
    ("TYPE_INT16", "INT16", np.int16, 7),
    ("TYPE_INT32", "INT32", np.int32, 8),
    ("TYPE_INT64", "INT64", np.int64, 9),
    ("TYPE_FP16", "FP16", np.float16, 10),
    ("TYPE_FP32", "FP32", np.float32, 11),
    ("TYPE_FP64", "FP64", np.float64, 12),
    ("TYPE_BF16", "BF16", None, 14),
    ("TYPE_STRING", "BYTES", np.object_, 13),
)
BF16 = 12
BYTES = 13
STORAGE = tuple(np.dtype(np.uint16 if row[2] is None else row[2]) for row in _TYPES)
CONFIG_NAMES = tuple(row[0] for row in _TYPES)
_NUMBER_OF = {dtype: number for number, dtype in enumerate(STORAGE) if number not in (BF16, BYTES)}
_LENGTH = struct.Struct("<I")


def number_of(dtype, name):
    """The number of a NumPy type; `name` is the tensor's, for the error."""
    number = _NUMBER_OF.get(dtype)
    if number is None:
        if dtype.kind in "OSU":
            return BYTES
        # Another order of bytes is the same type.
        number = _NUMBER_OF.get(dtype.newbyteorder("="))
    if number is None:
        raise TritonModelException(f"NumPy type '{dtype}' of tensor '{name}' is not supported")
    return number


def triton_to_numpy_type(data_type):
    """NumPy's type for a number of TRITONSERVER_DataType."""
    for row in _TYPES:
        if row[3] == data_type:
            return _numpy_of(row)
    raise TritonModelException(f"{data_type} is the number of no data type")


def numpy_to_triton_type(data_type):
    """The number of TRITONSERVER_DataType for one of NumPy's types."""
    return _TYPES[number_of(np.dtype(data_type), "")][3]


def triton_string_to_numpy(triton_type_string):
    """NumPy's type for a name in a configuration, such as `TYPE_FP32`."""
    for row in _TYPES:
        if row[0] == triton_type_string:
            return _numpy_of(row)
    raise TritonModelException(f"'{triton_type_string}' is the name of no data type")


def _numpy_of(row):
    if row[2] is None:
        raise TritonModelException(f"{row[0]} has no type in NumPy; use DLPack")
    return row[2]


def serialize_byte_tensor(input_tensor):
    """The strings of an array, each behind its length in 4 little-endian bytes, as an array with one object."""
    if input_tensor.size == 0:
        return np.empty([0], dtype=np.object_)
    return np.asarray(encode_strings(input_tensor), dtype=np.object_)


def encode_strings(array):
    """As `serialize_byte_tensor`, as bytes."""
    parts = []
    kind = array.dtype.kind
    if kind == "S":
        # What NumPy hands out as a scalar has lost zeros at its end, which are padding.
        elements = array.ravel().tolist()
    elif kind == "U":
        elements = [text.encode("utf-8") for text in array.ravel().tolist()]
    elif kind == "O":
        elements = array.ravel().tolist()
    else:
        raise TritonModelException(f"strings cannot be made of '{array.dtype}'")
    for element in elements:
        if type(element) is not bytes:
            if isinstance(element, (bytes, bytearray, memoryview, np.bytes_)):
                element = bytes(element)
            else:
                element = str(element).encode("utf-8")
        parts.append(_LENGTH.pack(len(element)))
        parts.append(element)
    return b"".join(parts)


def deserialize_bytes_tensor(encoded_tensor):
    """The strings in the bytes of `serialize_byte_tensor`, as an array of one dimension of `bytes`."""
    raw = memoryview(encoded_tensor).cast("B")
    strings = []
    at = 0
    total = len(raw)
    unpack = _LENGTH.unpack_from
    while at < total:
        if at + 4 > total:
            raise TritonModelException(f"the strings end inside a length, at byte {at} of {total}")
        end = at + 4 + unpack(raw, at)[0]
        if end > total:
            raise TritonModelException(f"the strings end inside one, at byte {at} of {total}")
        strings.append(bytes(raw[at + 4 : end]))
        at = end
    array = np.empty(len(strings), dtype=np.object_)
    array[:] = strings
    return array


class Tensor:
    """A tensor of a request or a response, in memory of the processor."""

    __slots__ = ("_name", "_number", "_array", "_shape", "_raw")

    def __init__(self, name, numpy_array):
        if not isinstance(numpy_array, np.ndarray):
            raise TypeError(f"tensor '{name}' is made of {type(numpy_array).__name__}, expected numpy.ndarray")
        self._name = name
        self._number = number_of(numpy_array.dtype, name)
        self._array = numpy_array
        self._shape = numpy_array.shape
        # Strings as they came, until somebody looks at them.
        self._raw = None

    @classmethod
    def _received(cls, name, number, shape, memory, offset, size):
        """A tensor over bytes that came from the server: so many from there on, in an array of uint8."""
        self = cls.__new__(cls)
        self._name = name
        self._number = number
        self._shape = shape
        self._raw = None
        if number == BYTES:
            self._array = None
            self._raw = memory[offset : offset + size]
        else:
            self._array = np.ndarray(shape, STORAGE[number], memory, offset)
        return self

    def name(self):
        """Name."""
        return self._name

    def triton_dtype(self):
        """Number of TRITONSERVER_DataType."""
        return _TYPES[self._number][3]

    def dtype(self):
        """As `triton_dtype`."""
        return _TYPES[self._number][3]

    def shape(self):
        """Sizes of all dimensions."""
        return list(self._shape)

    def is_cpu(self):
        """Whether the tensor lies in memory of the processor: always."""
        return True

    def as_numpy(self):
        """The tensor as an array: a view without a copy, but for strings, which become objects of type `bytes`."""
        if self._number == BF16:
            raise TritonModelException(f"tensor '{self._name}' is BF16, which NumPy does not have; use to_dlpack()")
        if self._array is None:
            self._array = deserialize_bytes_tensor(self._raw).reshape(self._shape)
            self._raw = None
        return self._array

    def _parts(self):
        """Number of the type, sizes, and the elements: an array, or bytes for strings."""
        if self._number != BYTES:
            return self._number, self._shape, self._array
        elements = self._raw if self._array is None else encode_strings(self._array)
        return self._number, self._shape, elements

    def to_dlpack(self):
        """The tensor as a capsule of DLPack, without a copy."""
        if self._number == BYTES:
            raise TritonModelException(f"tensor '{self._name}' holds strings, which DLPack does not have")
        return _export(self._array, 4 if self._number == BF16 else None)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if dl_device not in (None, (1, 0)):
            raise BufferError(f"tensor '{self._name}' lies in memory of the processor")
        return self.to_dlpack()

    def __dlpack_device__(self):
        return (1, 0)

    @staticmethod
    def from_dlpack(name, dlpack):
        """A tensor over what a capsule of DLPack, or an object that gives one, holds; without a copy where that is
        memory of the processor."""
        if isinstance(dlpack, np.ndarray):
            # NumPy refuses to export arrays that it will not write to.
            return Tensor(name, dlpack)
        capsule = dlpack
        if hasattr(dlpack, "__dlpack__"):
            device = dlpack.__dlpack_device__()[0] if hasattr(dlpack, "__dlpack_device__") else 1
            if int(device) not in _HOST_DEVICES and hasattr(dlpack, "cpu"):
                dlpack = dlpack.cpu()
            capsule = dlpack.__dlpack__()
        array, bfloat = _import(capsule, name)
        tensor = Tensor(name, array)
        if bfloat:
            tensor._number = BF16
        return tensor


# DLPack: the structures of version 0.x, which every library reads.

_HOST_DEVICES = (1, 3)


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _DLManagedTensor(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_DLManagedTensor))
_DLManagedTensor._fields_ = [
    ("dl_tensor", _DLTensor),
    ("manager_ctx", ctypes.c_void_p),
    ("deleter", _Deleter),
]

_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_api.PyCapsule_IsValid.restype = ctypes.c_int
_api.PyCapsule_IsValid.argtypes = (ctypes.py_object, ctypes.c_char_p)
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
_NAME = b"dltensor"
# What consumers have not given back, by the address of its structure.
_exported = {}


@_Deleter
def _release(managed):
    _exported.pop(ctypes.addressof(managed.contents), None)


# A capsule that is being destroyed is only spoken of by its address: nothing may count references to it.
_valid_at = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_pointer_at = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _capsule_gone(address):
    # One that was consumed has another name, and its consumer calls the deleter.
    if _valid_at(address, _NAME):
        _exported.pop(_pointer_at(address, _NAME), None)


def _export(array, code):
    if code is None:
        code = {"i": 0, "u": 1, "f": 2, "b": 6}[array.dtype.kind]
    rank = array.ndim
    sizes = (ctypes.c_int64 * max(rank, 1))(*array.shape)
    item = array.dtype.itemsize
    steps = (ctypes.c_int64 * max(rank, 1))(*(step // item for step in array.strides))
    managed = _DLManagedTensor()
    tensor = managed.dl_tensor
    tensor.data = array.__array_interface__["data"][0]
    tensor.device_type, tensor.device_id = 1, 0
    tensor.ndim, tensor.code, tensor.bits, tensor.lanes = rank, code, 8 * item, 1
    tensor.shape = ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int64))
    tensor.strides = ctypes.cast(steps, ctypes.POINTER(ctypes.c_int64))
    tensor.byte_offset = 0
    managed.deleter = _release
    address = ctypes.addressof(managed)
    _exported[address] = (managed, sizes, steps, array)
    return _api.PyCapsule_New(address, _NAME, ctypes.cast(_capsule_gone, ctypes.c_void_p))


class _Borrowed:
    """Memory that a capsule owns. The capsule stays unconsumed, so that it frees its memory when it goes."""

    __slots__ = ("__array_interface__", "capsule")


def _import(capsule, name):
    if not _api.PyCapsule_IsValid(capsule, _NAME):
        raise TritonModelException(f"tensor '{name}' is made of something that is no unused capsule of DLPack")
    managed = ctypes.cast(_api.PyCapsule_GetPointer(capsule, _NAME), ctypes.POINTER(_DLManagedTensor))
    tensor = managed.contents.dl_tensor
    if tensor.device_type not in _HOST_DEVICES:
        raise TritonModelException(
            f"tensor '{name}' lies on device type {tensor.device_type} of DLPack, expected memory of the processor"
        )
    kinds = {0: "i", 1: "u", 2: "f", 4: "u", 6: "b"}
    if tensor.lanes != 1 or tensor.code not in kinds or tensor.bits % 8:
        raise TritonModelException(
            f"tensor '{name}' has type code {tensor.code} with {tensor.bits} bits of DLPack, which is not supported"
        )
    item = tensor.bits // 8
    shape = tuple(tensor.shape[at] for at in range(tensor.ndim))
    borrowed = _Borrowed()
    borrowed.capsule = capsule
    interface = {
        "version": 3,
        "shape": shape,
        "typestr": f"{'|' if item == 1 else '<'}{kinds[tensor.code]}{item}",
        "data": ((tensor.data or 0) + tensor.byte_offset, False),
    }
    if tensor.strides:
        interface["strides"] = tuple(tensor.strides[at] * item for at in range(tensor.ndim))
    borrowed.__array_interface__ = interface
    if 0 in shape:
        return np.empty(shape, dtype=interface["typestr"]), tensor.code == 4
    return np.asarray(borrowed), tensor.code == 4
