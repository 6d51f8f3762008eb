"""Curves saved by numpy: `np.save("train_loss.npy", losses)`, `np.savez("history.npz", loss=..., val_loss=...)`.

A file of one array is read only if its name says what it holds; a data set is no curve. Nothing is unpickled.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from pathlib import Path
from typing import IO

import numpy as np

from wheeltapper.reading import Head
from wheeltapper.reading._measure import names_measure
from wheeltapper.reading.record import Floats, Note, Points, Reading

FORMAT = "numpy arrays"
MOST_VALUES = 5_000_000  # of a file: a training of so many logged steps; more is data
MOST_ARRAYS = 200
_MAGIC = b"\x93NUMPY"
_TYPE = re.compile(r"'descr': '([<>|=]?)([fiu])([1248])'")
_SHAPE = re.compile(r"'shape': \((\d+),(?: (\d+))?\)")
_EVALUATIONS = "evaluations.npz"  # of Stable-Baselines' EvalCallback: a row an evaluation, a column an episode


def sniff(head: Head) -> float:
    if head.data.startswith(_MAGIC):
        return 0.9 if names_measure(head.path.stem) else 0.0
    return (
        0.8
        if head.path.suffix == ".npz" and head.data.startswith(b"PK\x03\x04") and b".npy" in head.data[:300]
        else 0.0
    )


def read(path: Path) -> list[Reading]:
    file, notes = str(path), list[Note]()
    curves: dict[str, Floats] = {}
    try:
        with path.open("rb") as opened:
            if path.suffix == ".npz":
                if path.name == _EVALUATIONS:
                    return [_evaluations(opened, file)]
                curves = _archive(opened, file, notes)
            else:
                curves = {path.stem: _array(opened, path.stem, file, notes, MOST_VALUES)}
    except (OSError, ValueError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        notes.append(Note(f"cannot be read as a list of numbers: {str(error)[:100]}", file, level="lost"))
    points = [
        Points(name, values, np.arange(len(values), dtype=np.float64), "row", file, np.arange(1, len(values) + 1))
        for name, values in curves.items()
        if len(values)
    ]
    if points:
        notes.append(Note("no steps are stored with the numbers: they are counted", file))
    return [Reading(file, FORMAT, tuple(points), notes=tuple(notes))]


def _evaluations(opened: IO[bytes], file: str) -> Reading:
    with zipfile.ZipFile(opened) as archive:
        columns = {}
        for name in ("timesteps", "results", "ep_lengths"):
            if f"{name}.npy" in archive.namelist():
                with archive.open(f"{name}.npy") as member:
                    columns[name] = _array(member, name, file, [], MOST_VALUES, mean=True)
    steps = columns.pop("timesteps", np.empty(0))
    lines = np.arange(1, len(steps) + 1)
    names = {"results": "eval/mean_reward", "ep_lengths": "eval/mean_ep_length"}
    points = [
        Points(names[name], values, steps, "step", file, lines, split="val", window="eval")
        for name, values in columns.items()
        if len(values) == len(steps) > 0
    ]
    return Reading(file, FORMAT, tuple(points))


def _archive(opened: IO[bytes], file: str, notes: list[Note]) -> dict[str, Floats]:
    out: dict[str, Floats] = {}
    left = MOST_VALUES
    with zipfile.ZipFile(opened) as archive:
        for entry in archive.infolist()[:MOST_ARRAYS]:
            name = entry.filename.removesuffix(".npy")
            if not names_measure(name):
                continue
            try:
                with archive.open(entry) as member:
                    out[name] = _array(member, name, file, notes, left)
                    left -= len(out[name])
            except ValueError as error:
                notes.append(Note(f"`{name}` is left out: {str(error)[:100]}", file))
    return out


def _array(opened: IO[bytes], name: str, file: str, notes: list[Note], most: int, *, mean: bool = False) -> Floats:
    """One column of numbers, or the `mean` of each row of a table. Its header is looked at, never evaluated."""
    start = opened.read(10)
    if start[:6] != _MAGIC or len(start) < 10:
        raise ValueError("not a numpy file")
    size = int.from_bytes(start[8:10], "little")
    if start[6] != 1:  # later versions count in four bytes
        size = int.from_bytes(start[8:10] + opened.read(2), "little")
    header = opened.read(min(size, 10_000)).decode("latin-1")
    kind, shape = _TYPE.search(header), _SHAPE.search(header)
    across = int(shape[2][:12]) if shape is not None and shape[2] else 1
    if kind is None or shape is None or (across != 1 and not mean):
        raise ValueError("not one column of plain numbers")
    n, width = int(shape[1][:12]) * across, int(kind[3])
    if n > most:
        raise ValueError(f"{n:,} values: data, not a curve")
    if kind[2] == "f" and width == 1:
        raise ValueError("a type that numpy does not have")
    data = opened.read(n * width)
    if len(data) < n * width:
        notes.append(Note(f"`{name}` is cut off: {len(data) // width:,} of {n:,} values are there", file, level="lost"))
    dtype = np.dtype(f"{'>' if kind[1] == '>' else '<'}{kind[2]}{width}")
    values = np.frombuffer(data[: len(data) // width * width], dtype=dtype).astype(np.float64)
    return np.asarray(values[: len(values) // across * across].reshape(-1, across).mean(axis=1)) if across > 1 else values
