"""The first elements of each tensor of a checkpoint: enough to see whether two checkpoints differ, at any size of file."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wheeltapper.reading._checkpoint_open import open_content
from wheeltapper.reading._file_bytes import FileBytes
from wheeltapper.reading._tensor_stats import FLOATS, as_floats, is_dense, place_in_file


@dataclass(frozen=True, slots=True)
class TensorStart:
    """The first elements of a tensor as they lie in the file: equal bits are equal numbers, whatever the type."""

    dtype: str
    shape: tuple[int, ...]
    bits: NDArray[Any]

    def values(self) -> NDArray[np.float64]:
        return as_floats(self.bits, self.dtype)


def tensor_starts(path: Path, names: Collection[str], most: int) -> dict[str, TensorStart]:
    """Up to `most` elements of each of the named tensors that hold floating-point numbers. A tensor whose numbers are not in the file (cut off,
    compressed) or that looks into another one with gaps is left out."""
    out: dict[str, TensorStart] = {}
    with FileBytes(path) as data:
        opened = open_content(data, str(path))
        for name, tensor in opened.content.tensors:
            place = place_in_file(opened, tensor) if name in names else None
            if place is None or not is_dense(tensor):
                continue
            dtype = np.dtype(FLOATS[tensor.dtype])
            start, size = place[0], min(tensor.numel, most) * dtype.itemsize
            out[name] = TensorStart(tensor.dtype, tuple(tensor.shape), np.frombuffer(data[start : start + size], dtype=dtype))
        data.check_unchanged()
    return out
