"""Tensors as a Python model sees them: types, strings, DLPack."""

import ctypes
import math
import operator
import struct

import numpy as np


class TritonModelException(Exception):
    """What a model raises, and what the server's own calls raise in a model."""


def as_text(value):
    """A text, or the one that bytes are in UTF-8, as names come out of tensors; None for anything else."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace")
    return None


def as_integer(value):
    """An integer, whatever type it has, as NumPy's; None for anything else."""
    try:
        return operator.index(value)
    except TypeError:
        return None


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


# NumPy's types by their names in a configuration. As in Triton, booleans are Python's here.
TRITON_STRING_TO_NUMPY = {row[0]: bool if row[2] is np.bool_ else row[2] for row in _TYPES if row[2] is not None}


def triton_to_numpy_type(data_type):
    """NumPy's type for a number of TRITONSERVER_DataType; None where there is none."""
    for row in _TYPES:
        if row[3] == data_type:
            return row[2]
    return None


def numpy_to_triton_type(data_type):
    """The number of TRITONSERVER_DataType for one of NumPy's types; None where there is none."""
    if data_type is None:
        # To NumPy this is a type.
        return None
    try:
        return _TYPES[number_of(np.dtype(data_type), "")][3]
    except (TypeError, TritonModelException):
        return None


def triton_string_to_numpy(triton_type_string):
    """NumPy's type for a name in a configuration, such as `TYPE_FP32`; KeyError where there is none."""
    return TRITON_STRING_TO_NUMPY[triton_type_string]


def serialize_byte_tensor(input_tensor):
    """The strings of an array, each behind its length in 4 little-endian bytes, as bytes; None for an array of anything
    else."""
    return encode_strings(input_tensor) if input_tensor.dtype.kind in "OSU" else None


def encode_strings(array):
    """The strings of an array as they lie in messages and in memory."""
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


# What tensors have as elements on their way: an array, or bytes for strings.


def elements_size(elements):
    """How many bytes elements take."""
    return len(elements) if type(elements) is bytes else elements.nbytes


def elements_bytes(number, elements):
    """Elements of a type as bytes."""
    if type(elements) is bytes:
        return elements
    if elements.dtype.byteorder == ">":
        elements = elements.astype(STORAGE[number])
    return elements.tobytes()


def store_elements(room, number, elements):
    """Copies elements of a type to memory, an array of uint8 that is as long as they are."""
    if type(elements) is bytes:
        room[:] = np.frombuffer(elements, dtype=np.uint8)
    elif elements.dtype == np.uint8:
        room[:] = elements.reshape(-1)
    else:
        np.copyto(room.view(STORAGE[number]).reshape(elements.shape), elements)


def _check_received(name, number, shape, memory, offset, size):
    """Refuses bytes that are not those of the shape, before anything reads them."""
    if not 0 <= number < len(STORAGE):
        raise TritonModelException(f"tensor '{name}' has type {number} on the wire, expected 0 to {len(STORAGE) - 1}")
    held = 0 if memory is None else memory.nbytes
    if offset < 0 or size < 0 or offset + size > held:
        raise TritonModelException(
            f"tensor '{name}' lies at {offset} with {size} bytes, outside of the {held} bytes of its memory"
        )
    # Python's integers do not overflow, whatever the sizes are.
    count = math.prod(shape)
    if min(shape, default=0) < 0:
        raise TritonModelException(f"tensor '{name}' has the shape {list(shape)}, expected no size below 0")
    if number != BYTES and count * STORAGE[number].itemsize != size:
        raise TritonModelException(
            f"tensor '{name}' of shape {list(shape)} and type {_TYPES[number][1]} has {size} bytes, expected "
            f"{count * STORAGE[number].itemsize}"
        )
    if number == BYTES and size < count * _LENGTH.size:
        raise TritonModelException(
            f"tensor '{name}' of shape {list(shape)} has {size} bytes, too few for {count} strings"
        )


class Tensor:
    """A tensor of a request or a response, in memory of the processor."""

    __slots__ = ("_name", "_number", "_array", "_shape", "_raw")

    def __init__(self, name, numpy_array):
        if not isinstance(numpy_array, np.ndarray):
            raise TypeError(f"tensor '{name}' is made of {type(numpy_array).__name__}, expected numpy.ndarray")
        text = as_text(name)
        if text is None:
            raise TypeError(f"the name of a tensor is {type(name).__name__}, expected str or bytes")
        name = text
        if not name:
            raise TritonModelException("Tensor name cannot be an empty string.")
        if not numpy_array.flags.c_contiguous:
            numpy_array = np.ascontiguousarray(numpy_array)
        self._name = name
        self._number = number = number_of(numpy_array.dtype, name)
        self._array = numpy_array
        self._shape = numpy_array.shape
        # Strings as they cross: those that came until somebody looks at them, a model's as they are now.
        self._raw = encode_strings(numpy_array) if number == BYTES else None

    @classmethod
    def _received(cls, name, number, shape, memory, offset, size):
        """Makes a tensor over `size` bytes that came from the server, from `offset` on in `memory`, an array of uint8.

        Raises TritonModelException where shape and bytes do not agree, or bytes lie outside of the memory: what lies
        beside them may be another client's.
        """
        _check_received(name, number, shape, memory, offset, size)
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
            raise TritonModelException(
                "Tensor dtype is BF16 and cannot be converted to NumPy. Use to_dlpack() and from_dlpack() instead."
            )
        if self._array is None:
            strings = deserialize_bytes_tensor(self._raw)
            if len(strings) != math.prod(self._shape):
                raise TritonModelException(
                    f"tensor '{self._name}' of shape {list(self._shape)} has {len(strings)} strings, expected "
                    f"{math.prod(self._shape)}"
                )
            self._array = strings.reshape(self._shape)
            self._raw = None
        return self._array

    def _parts(self):
        """Number of the type, sizes, and the elements: an array, or bytes for strings."""
        if self._number != BYTES:
            return self._number, self._shape, self._array
        elements = encode_strings(self._array) if self._raw is None else self._raw
        return self._number, self._shape, elements

    def to_dlpack(self):
        """The tensor as a capsule of DLPack, without a copy."""
        if self._number == BYTES:
            raise TritonModelException(f"DLPack does not have support for string tensors, such as '{self._name}'.")
        return _export(self._array, self._number == BF16)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if dl_device not in (None, (1, 0)):
            raise BufferError(f"tensor '{self._name}' lies in memory of the processor")
        if copy and self._number != BYTES:
            return _export(self._array.copy(), self._number == BF16)
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
_BOOL_CODE, _BF16_CODE = 6, 4


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


# Deleters may need the lock of the interpreter, and those that take it themselves may have it.
_Deleter = ctypes.PYFUNCTYPE(None, ctypes.POINTER(_DLManagedTensor))
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
_api.PyCapsule_SetName.restype = ctypes.c_int
_api.PyCapsule_SetName.argtypes = (ctypes.py_object, ctypes.c_char_p)
# Capsules keep the addresses of their names.
_NAME = b"dltensor"
_USED = b"used_dltensor"


class _Memory:
    """What NumPy makes an array over; `owner` keeps the memory."""

    __slots__ = ("__array_interface__", "owner")


def _export(array, bfloat):
    """A capsule of NumPy's own: what frees it is no code in Python, which could not run while an exception is on its
    way."""
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    code = _BF16_CODE if bfloat else _BOOL_CODE if array.dtype.kind == "b" else None
    if not hasattr(array, "__dlpack__"):
        return _export_by_hand(array, code)
    if code == _BOOL_CODE:
        # Not every NumPy exports them.
        array = array.view(np.uint8)
    if not array.flags.writeable:
        # Nor arrays that it will not write to.
        memory = _Memory()
        memory.owner = array
        interface = array.__array_interface__
        memory.__array_interface__ = {**interface, "data": (interface["data"][0], False)}
        array = np.asarray(memory)
    capsule = array.__dlpack__()
    if code is not None:
        _managed(capsule).contents.dl_tensor.code = code
    return capsule


def _managed(capsule):
    return ctypes.cast(_api.PyCapsule_GetPointer(capsule, _NAME), ctypes.POINTER(_DLManagedTensor))


# What consumers have not given back of that made by hand, by the address of its structure.
_exported = {}


@ctypes.CFUNCTYPE(None, ctypes.POINTER(_DLManagedTensor))
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


def _export_by_hand(array, code):
    """For NumPy before 1.22, which has no DLPack. An exception that is on its way when such a capsule goes is lost."""
    if code is None:
        code = {"i": 0, "u": 1, "f": 2}[array.dtype.kind]
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
    managed.deleter = ctypes.cast(_release, _Deleter)
    address = ctypes.addressof(managed)
    _exported[address] = (managed, sizes, steps, array)
    return _api.PyCapsule_New(address, _NAME, ctypes.cast(_capsule_gone, ctypes.c_void_p))


class _Borrowed:
    """What a capsule held, to be given back when it goes."""

    __slots__ = ("_managed",)

    def __init__(self, managed):
        self._managed = managed

    def __del__(self):
        deleter = self._managed.contents.deleter
        if deleter:
            deleter(self._managed)


def _import(capsule, name):
    """An array over what a capsule holds, which nobody else can take any more, and whether that is BF16."""
    if not _api.PyCapsule_IsValid(capsule, _NAME):
        raise TritonModelException(f"tensor '{name}' is made of something that is no unused capsule of DLPack")
    managed = _managed(capsule)
    tensor = managed.contents.dl_tensor
    if tensor.device_type not in _HOST_DEVICES:
        raise TritonModelException(
            f"tensor '{name}' lies on device type {tensor.device_type} of DLPack, expected memory of the processor"
        )
    bfloat = tensor.code == _BF16_CODE
    kind = {0: "i", 1: "u", 2: "f", _BF16_CODE: "u", _BOOL_CODE: "b"}.get(tensor.code)
    dtype = np.dtype(f"{kind}{tensor.bits // 8}") if (kind, tensor.bits) in _IMPORTED else None
    if dtype is None or tensor.lanes != 1 or bfloat and tensor.bits != 16:
        raise TritonModelException(
            f"tensor '{name}' has type code {tensor.code} with {tensor.bits} bits of DLPack, which is not supported"
        )
    shape = tuple(tensor.shape[at] for at in range(tensor.ndim))
    steps = None
    if tensor.strides:
        steps = tuple(tensor.strides[at] * dtype.itemsize for at in range(tensor.ndim))
    _api.PyCapsule_SetName(capsule, _USED)
    memory = _Memory()
    memory.owner = _Borrowed(managed)
    if 0 in shape:
        return np.empty(shape, dtype), bfloat
    memory.__array_interface__ = {
        "version": 3,
        "shape": shape,
        "typestr": dtype.str,
        "data": ((tensor.data or 0) + tensor.byte_offset, False),
        "strides": steps,
    }
    return np.asarray(memory), bfloat


# Kinds and bits of the types that NumPy has.
_IMPORTED = {(dtype.kind, 8 * dtype.itemsize) for dtype in STORAGE if dtype.kind in "iufb"}
