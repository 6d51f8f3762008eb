"""A history that was pickled: `pickle.dump(history.history, f)` of Keras, lists of losses by name.

It is read as data (`_pickle`): nothing in it is imported or called.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from wheeltapper.reading import Head
from wheeltapper.reading._blocks import whole
from wheeltapper.reading._generic import readings_of_table
from wheeltapper.reading._measure import names_measure
from wheeltapper.reading._pickle import Blob, load
from wheeltapper.reading._table import TableBuilder
from wheeltapper.reading._torch_objects import Budget, TensorRef, meaning
from wheeltapper.reading.generic_json import add_lists
from wheeltapper.reading.record import Note, Reading

FORMAT = "pickled history"
MOST_BYTES = 50_000_000  # of a history; larger pickles hold data or weights
MOST_DEPTH = 4
MOST_VALUES = 5_000_000
_TYPES = {"float64", "float32", "float16", "int64", "int32"}
_KEYS = (b"loss", b"acc", b"reward", b"score")


def sniff(head: Head) -> float:
    data = head.data
    if head.size > MOST_BYTES or b"torch" in data[:4096]:
        return 0.0
    begins = data[:1] == b"\x80" and data[1:2] in b"\x02\x03\x04\x05" and any(c in data[2:16] for c in b"}](")
    named = any(key in data for key in _KEYS) or names_measure(head.path.stem)
    return 0.7 if begins and named and b"state_dict" not in data else 0.0


def read(path: Path) -> list[Reading]:
    file = str(path)
    notes: list[Note] = []
    data = whole(path, notes)
    loaded = load(data, 0, len(data))
    if loaded.problem:
        notes.append(Note(f"the pickle is not whole: {loaded.problem}", file, level="lost"))
    builder = TableBuilder(file)
    builder.notes += notes
    found = _plain(loaded.value, data, 0, Budget(MOST_VALUES))
    if isinstance(found, list) and names_measure(path.stem):
        found = {path.stem: found}
    if isinstance(found, dict):
        add_lists(found, builder)
    return readings_of_table(builder.table(), FORMAT)


def _plain(node: Any, data: bytes, depth: int, budget: Budget) -> Any:
    """Dicts of lists of numbers, as a history is; what is something else is left out. Bounded, as lists may share parts."""
    budget.left -= 1
    node = meaning(node) if budget.left > 0 else None
    if isinstance(node, int | float):
        return float(node) if isinstance(node, float) or abs(node) < 1 << 60 else None
    if depth >= MOST_DEPTH:
        return None
    if isinstance(node, dict):
        return {
            key[:200]: _plain(value, data, depth + 1, budget) for key, value in node.items() if isinstance(key, str)
        }
    if isinstance(node, list | tuple):
        values = (_plain(value, data, MOST_DEPTH, budget) for value in node)
        return [value for value in values if isinstance(value, float)]
    if isinstance(node, TensorRef) and len(node.shape) == 1 and node.dtype in _TYPES:
        held = node.storage
        raw = data[held.at : held.at + held.size] if isinstance(held, Blob) else held
        budget.left -= node.numel
        if isinstance(raw, bytes) and len(raw) == node.nbytes and budget.left > 0:
            return np.frombuffer(raw, dtype=node.dtype).astype(np.float64).tolist()
    return None
