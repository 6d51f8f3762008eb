"""What the objects in a torch pickle mean, by their names alone: tensors, arrays, numbers, settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from wheeltapper.limits import spend
from wheeltapper.reading._pickle import Blob, Call, Name, Persistent

MAX_VISITS = 400_000  # a checkpoint of 100,000 tensors takes half of it
MAX_DEPTH = 24

# torch's storage classes and dtypes, and safetensors' names -> dtype, bytes per element
DTYPES: dict[str, tuple[str, int]] = {
    "FloatStorage": ("float32", 4), "DoubleStorage": ("float64", 8), "HalfStorage": ("float16", 2),
    "BFloat16Storage": ("bfloat16", 2), "LongStorage": ("int64", 8), "IntStorage": ("int32", 4),
    "ShortStorage": ("int16", 2), "CharStorage": ("int8", 1), "ByteStorage": ("uint8", 1),
    "BoolStorage": ("bool", 1), "ComplexFloatStorage": ("complex64", 8), "ComplexDoubleStorage": ("complex128", 16),
    "UntypedStorage": ("uint8", 1), "QInt8Storage": ("qint8", 1), "QUInt8Storage": ("quint8", 1),
    "float32": ("float32", 4), "float64": ("float64", 8), "float16": ("float16", 2), "bfloat16": ("bfloat16", 2),
    "int64": ("int64", 8), "int32": ("int32", 4), "int16": ("int16", 2), "int8": ("int8", 1), "uint8": ("uint8", 1),
    "uint16": ("uint16", 2), "uint32": ("uint32", 4), "uint64": ("uint64", 8), "bool": ("bool", 1),
    "complex64": ("complex64", 8), "float8_e4m3fn": ("float8_e4m3fn", 1), "float8_e5m2": ("float8_e5m2", 1),
    "F64": ("float64", 8), "F32": ("float32", 4), "F16": ("float16", 2), "BF16": ("bfloat16", 2),
    "I64": ("int64", 8), "I32": ("int32", 4), "I16": ("int16", 2), "I8": ("int8", 1), "U8": ("uint8", 1),
    "U16": ("uint16", 2), "U32": ("uint32", 4), "U64": ("uint64", 8), "BOOL": ("bool", 1), "C64": ("complex64", 8),
    "F8_E4M3": ("float8_e4m3fn", 1), "F8_E5M2": ("float8_e5m2", 1),
}  # fmt: skip
_NUMPY_CODES = {
    "f8": "float64", "f4": "float32", "f2": "float16", "i8": "int64", "i4": "int32", "i2": "int16", "i1": "int8",
    "u8": "uint64", "u4": "uint32", "u2": "uint16", "u1": "uint8", "b1": "bool",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Storage:
    key: str
    dtype: str
    itemsize: int


@dataclass(frozen=True, slots=True)
class TensorRef:
    """A tensor as its pickle describes it; the numbers are elsewhere."""

    dtype: str
    itemsize: int
    shape: tuple[int, ...]
    stride: tuple[int, ...] | None  # None: contiguous
    offset: int  # elements into the storage
    storage: Storage | Blob | bytes | None

    @property
    def numel(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.numel * self.itemsize


def meaning(node: Any) -> Any:
    """A plain value, a mapping, a list or a TensorRef for what a pickle holds; else the node itself."""
    for _ in range(8):  # a tensor may be wrapped: subclass of a parameter of a tensor
        if not isinstance(node, Call):
            return node
        of = node.of if isinstance(node.of, Name) else Name("?", "?")
        args = node.args if isinstance(node.args, tuple) else ()
        if of.name in ("_rebuild_parameter", "_rebuild_parameter_with_state") and args:
            node = args[0]
        elif of.name == "_rebuild_from_type_v2" and len(args) >= 3:
            node = Call(args[0], args[2])
        else:
            if node.meant is None:
                found = _object(of, args, node)
                if not isinstance(found, _Children):  # a copy of what many objects may share: made anew, not kept
                    node.meant = found
                return found
            return node.meant
    return node


class _Children(dict[Any, Any]):
    """Parameters, buffers and modules of a module in one."""


def plain_text(node: Any) -> str:
    """A word or a number as text. Nothing else: parts that a pickle shares may be endless when they are written out."""
    return str(node)[:300] if isinstance(node, str | int | float | Name) else "?"


def _object(of: Name, args: tuple[Any, ...], node: Call) -> Any:
    if of.name.startswith("_rebuild"):
        return _tensor(of.name, args) or node
    if of.name == "_reconstruct" and "numpy" in of.module:
        return _array(node.state) or node
    if of.name == "scalar" and "numpy" in of.module and len(args) == 2:
        return _numpy_scalar(*args)
    if of.name in ("PosixPath", "WindowsPath", "Path", "PurePosixPath"):
        return "/".join(plain_text(a) for a in args[:50])
    state = node.state
    if isinstance(state, tuple) and len(state) == 2 and isinstance(state[1], dict):
        state = state[1]  # objects with slots
    if isinstance(state, dict) and state:
        return _attributes(state)
    if node.pairs:
        return node.pairs
    if node.items:
        return node.items
    if len(args) == 1 and isinstance(args[0], str | int | float):
        return args[0]  # an Enum by its value, a torch.device by its name
    return node


def _attributes(state: dict[Any, Any]) -> Any:
    """The attributes of an object; for a module what it holds, for an OmegaConf node its content."""
    if "_modules" in state and "_parameters" in state:
        inner = _Children()
        for part in ("_parameters", "_buffers", "_modules"):
            held = meaning(state.get(part))
            if isinstance(held, dict):
                spend(len(held))
                inner.update(held)
        return inner
    if "_content" in state and "_metadata" in state:
        return state["_content"]
    if "_val" in state and "_metadata" in state:
        return state["_val"]
    return state


def _tensor(function: str, args: tuple[Any, ...]) -> TensorRef | None:
    if function == "_rebuild_meta_tensor_no_storage" and len(args) >= 2:
        dtype, itemsize = _dtype_of(args[0])
        shape = _sizes(args[1])
        return None if shape is None else TensorRef(dtype, itemsize, shape, None, 0, None)
    if (
        function not in ("_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_qtensor")
        or len(args) < 4
    ):
        return None
    storage, offset, shape, stride = storage_of(args[0]), args[1], _sizes(args[2]), _sizes(args[3])
    if storage is None or shape is None or not isinstance(offset, int) or offset < 0:
        return None
    dtype, itemsize = storage.dtype, storage.itemsize
    if function == "_rebuild_tensor_v3" and len(args) >= 7:
        dtype, itemsize = _dtype_of(args[6])
    return TensorRef(dtype, itemsize, shape, stride, offset, storage)


def storage_of(node: Any) -> Storage | None:
    """("storage", torch.FloatStorage, key, location, numel): how torch points to the numbers."""
    if not isinstance(node, Persistent) or not isinstance(node.id, tuple) or len(node.id) < 3:
        return None
    if node.id[0] != "storage":
        return None
    dtype, itemsize = _dtype_of(node.id[1])
    return Storage(plain_text(node.id[2])[:200], dtype, itemsize)


def _dtype_of(node: Any) -> tuple[str, int]:
    name = node.name if isinstance(node, Name) else "?"
    return DTYPES.get(name, (name, 1))


def _sizes(node: Any) -> tuple[int, ...] | None:
    if not isinstance(node, tuple | list) or len(node) > 64:
        return None
    plain = all(isinstance(n, int) and 0 <= n < 1 << 48 for n in node)
    return tuple(node) if plain else None


def _array(state: Any) -> TensorRef | None:
    """A numpy array from the state that its pickle sets: (version, shape, dtype, order, bytes)."""
    if not isinstance(state, tuple) or len(state) != 5:
        return None
    shape, dtype = _sizes(state[1]), _numpy_dtype(state[2])
    raw = state[4] if isinstance(state[4], Blob | bytes) else None
    if shape is None or dtype is None:
        return None
    return TensorRef(dtype, DTYPES[dtype][1], shape, None, 0, raw)


def _numpy_dtype(node: Any) -> str | None:
    if isinstance(node, Call) and isinstance(node.args, tuple) and node.args and isinstance(node.args[0], str):
        return _NUMPY_CODES.get(node.args[0].lstrip("<|="))
    return None


def _numpy_scalar(dtype: Any, raw: Any) -> Any:
    name = _numpy_dtype(dtype)
    if name is None or not isinstance(raw, bytes) or len(raw) != DTYPES[name][1]:
        return None
    return np.frombuffer(raw, dtype=name)[0].item()


class Budget:
    """How many more values may be looked at in one file, over all walks through it."""

    def __init__(self, visits: int = MAX_VISITS) -> None:
        self.left = visits


def walk(root: Any, budget: Budget) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every plain value and tensor below `root` with its path, in the order written. Bounded."""
    stack: list[tuple[tuple[str, ...], Any]] = [((), root)]
    while stack and budget.left > 0:
        budget.left -= 1
        path, node = stack.pop()
        node = meaning(node)
        if isinstance(node, dict | list | tuple) and len(path) < MAX_DEPTH:
            if len(node) + len(stack) > budget.left:
                continue
            pairs = node.items() if isinstance(node, dict) else enumerate(node)
            inner = [((*path, str(key)[:300]), value) for key, value in pairs if isinstance(key, str | int)]
            budget.left -= len(node) - len(inner)  # looked at, too: the same dict may be met many times
            spend(len(node))
            stack += reversed(inner)
        else:
            yield path, node
