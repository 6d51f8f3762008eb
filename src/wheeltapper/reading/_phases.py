"""Headings that say of which data the rows below them are: "Training...", "testing in eval mode", "--- Validation ---".

Scripts print the same line for both phases, `loss: 0.52 acc: 0.81`, and the heading alone tells them apart.
"""

from __future__ import annotations

import re

import numpy as np

from wheeltapper.reading.record import Ints

LONGEST = 60
LEAST = 2  # headings of each kind
_TRAIN = re.compile(r"(?i)\btrain(?:ing)?\b")
_HELD = re.compile(
    r"(?i)\b(?:(?P<val>val(?:id(?:at(?:ion|ing|e))?)?|eval(?:uat(?:ion|ing|e))?|dev)|(?P<test>test(?:ing)?))\b"
)
_NUMBERS = re.compile(r"\d\.\d|=|\d{4,}|%|[/\\]\w+[/\\]")
_ABOUT = re.compile(
    r"(?i)\b(?:saved?|saving|loaded?|loading|best|set|data|dataset|size|samples|images|files?|split|complete[d]?|finished|done|took|time)\b"
)


def phase_of(body: str) -> str | None:
    """The split that a heading names; None if the line is no heading.

    >>> phase_of("testing in eval mode……"), phase_of("--- Training ---"), phase_of("Now continue training")
    ('val', 'train', 'train')
    >>> phase_of("Test set: loss 0.3"), phase_of("validation took 3 s"), phase_of("Epoch 3")
    (None, None, None)
    """
    if len(body) > LONGEST or _NUMBERS.search(body) or _ABOUT.search(body):
        return None
    held, train = _HELD.search(body), _TRAIN.search(body)
    if held and train:
        return None
    if held:
        return "val" if held["val"] or "eval" in body.lower() else "test"
    return "train" if train else None


class Phases:
    """The headings of a file, by their lines."""

    def __init__(self) -> None:
        self._lines: list[int] = []
        self._splits: list[str] = []

    def add(self, line: int, split: str) -> None:
        self._lines.append(line)
        self._splits.append(split)

    def splits_of(self, lines: Ints) -> np.ndarray[tuple[int], np.dtype[np.object_]] | None:
        """The split of each row by the heading above it; None where the headings do not come in turns, or stand over one
        kind of rows only."""
        held = [split for split in self._splits if split != "train"]
        if min(len(held), len(self._splits) - len(held)) < LEAST:
            return None
        index = np.searchsorted(np.asarray(self._lines), lines, side="right") - 1
        names = np.asarray([*self._splits, "train"], dtype=object)  # what stands above the first heading is of training
        found = names[index]
        kinds = set(found.tolist())
        return found if "train" in kinds and len(kinds) > 1 else None
