"""The numbers of a checkpoint's tensors, summed up: norm, extremes, how many are not finite. Streaming."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wheeltapper.reading._checkpoint_open import Opened, open_content
from wheeltapper.reading._file_bytes import FileBytes
from wheeltapper.reading._torch_objects import TensorRef

_CHUNK = 1 << 20  # elements at a time: 8 MB as float64
FLOATS = {"float64": "<f8", "float32": "<f4", "float16": "<f2", "bfloat16": "<u2"}


@dataclass(frozen=True, slots=True)
class TensorStats:
    name: str
    count: int
    norm: float  # of the finite elements
    absmax: float  # of the finite elements
    nan: int
    inf: int
    zeros: int

    @property
    def finite(self) -> bool:
        return not self.nan and not self.inf


def tensor_stats(path: Path, names: Collection[str] | None = None) -> Iterator[TensorStats]:
    """Statistics of each floating-point tensor (or of those named), in file order.

    Tensors whose numbers are not in the file (cut off, compressed, other types) are left out.
    """
    with FileBytes(path) as data:
        opened = open_content(data, str(path))
        for name, tensor in opened.content.tensors:
            if names is not None and name not in names:
                continue
            place = place_in_file(opened, tensor)
            if place is not None:
                yield _sum_up(name, data, tensor, *place)


def place_in_file(opened: Opened, tensor: TensorRef) -> tuple[int, int] | None:
    """Where the tensor's elements start and how many of them the storage holds from there."""
    where = opened.place_of(tensor)
    if where is None or tensor.dtype not in FLOATS or tensor.numel == 0:
        return None
    room = where[1] // tensor.itemsize - tensor.offset
    return (where[0] + tensor.offset * tensor.itemsize, room) if 0 < tensor.numel <= room else None


def _sum_up(name: str, data: FileBytes, tensor: TensorRef, start: int, room: int) -> TensorStats:
    dtype = FLOATS[tensor.dtype]
    norm = absmax = 0.0
    nan = inf = zeros = 0
    for chunk in _chunks(data, tensor, dtype, start, room):
        values = as_floats(chunk, tensor.dtype)
        zeros += int(values.size - np.count_nonzero(values))
        with np.errstate(over="ignore", invalid="ignore"):
            square = float(np.dot(values, values))
        if math.isfinite(square):
            norm = math.hypot(norm, math.sqrt(square))
        else:  # elements that are not finite, or squares too large for a float
            good = np.isfinite(values)
            nan += int(np.count_nonzero(np.isnan(values)))
            inf += int(values.size - np.count_nonzero(good)) - int(np.count_nonzero(np.isnan(values)))
            values = values[good]
            largest = float(np.abs(values).max()) if values.size else 0.0
            if largest:
                norm = math.hypot(norm, largest * float(np.linalg.norm(values / largest)))
        absmax = max(absmax, float(np.abs(values).max()) if values.size else 0.0)
    return TensorStats(name, tensor.numel, norm, absmax, nan, inf, zeros)


def as_floats(chunk: NDArray[Any], dtype: str) -> NDArray[np.float64]:
    if dtype == "bfloat16":
        chunk = (chunk.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return chunk.astype(np.float64)


def _chunks(data: FileBytes, tensor: TensorRef, dtype: str, start: int, room: int) -> Iterator[NDArray[Any]]:
    """The tensor's elements, a part at a time; copied, so that the file can be closed."""
    size = np.dtype(dtype).itemsize
    if is_dense(tensor):  # any order of the same elements gives the same sums
        for at in range(0, tensor.numel, _CHUNK):
            count = min(_CHUNK, tensor.numel - at)
            yield np.frombuffer(data[start + at * size : start + (at + count) * size], dtype=dtype)
        return
    stride = tensor.stride or ()
    reach = sum((n - 1) * s for n, s in zip(tensor.shape, stride, strict=False)) + 1
    if len(stride) != len(tensor.shape) or reach > room:
        return
    raw = np.frombuffer(data[start : start + reach * size], dtype=dtype)
    view = np.lib.stride_tricks.as_strided(raw, tensor.shape, [s * size for s in stride], writeable=False)
    yield view.ravel()


def is_dense(tensor: TensorRef) -> bool:
    """Whether the elements fill one stretch of the storage, in whatever order."""
    if tensor.stride is None or len(tensor.stride) != len(tensor.shape):
        return tensor.stride is None
    expected = 1
    for stride, n in sorted((s, n) for s, n in zip(tensor.stride, tensor.shape, strict=True) if n != 1):
        if stride != expected:
            return False
        expected *= n
    return True
