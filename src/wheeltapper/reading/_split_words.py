"""The words by which logs say of which data a number is: one list for every reader and for the names of series.

A word of `SPLITS` says it wherever it stands as a word of its own. One of `BESIDE_RESULT` has other meanings ("fit" is a
verb, "v" a value function): it counts only next to the name of a loss or a score.
"""

from __future__ import annotations

import re
from typing import Literal

Split = Literal["train", "val", "test"]

SPLITS: dict[str, Split] = {
    "train": "train", "training": "train", "trn": "train", "learn": "train", "trainset": "train", "insample": "train",
    "val": "val", "valid": "val", "validation": "val", "vali": "val", "validate": "val", "validating": "val", "vld": "val",
    "valset": "val", "eval": "val", "evaluation": "val", "evaluate": "val", "evaluating": "val", "dev": "val", "devset": "val",
    "heldout": "val", "holdout": "val", "oof": "val", "oos": "val", "xval": "val",
    "test": "test", "testing": "test", "tst": "test", "testset": "test",
}  # fmt: skip
BESIDE_RESULT: dict[str, Split] = {
    "tr": "train", "fit": "train", "tra": "train", "va": "val", "vl": "val", "v": "val", "ho": "val", "cv": "val",
    "te": "test",
}  # fmt: skip
# "held_out", "out-of-sample", "in sample": one word each.
_JOINED = re.compile(r"(?i)(?<![a-z])(?:(held|hold)[-_ ]?(out)|(out)[-_ ]of[-_ ](?:sample|fold)|(in)[-_ ](sample))(?![a-z])")
_FIRST = re.compile(rf"(?i)({'|'.join(sorted(SPLITS, key=len, reverse=True))})(?=[\W_]|$)")


def joined(name: str) -> str:
    """The name with the phrases for a split as one word.

    >>> joined("held-out loss"), joined("acc/out_of_sample"), joined("in sample mse"), joined("threshold out")
    ('holdout loss', 'acc/oos', 'insample mse', 'threshold out')
    """
    return _JOINED.sub(lambda hit: "holdout" if hit[1] else "oos" if hit[3] else "insample", name)


def split_of(name: str) -> Split | None:
    """The split a name begins with, if it states one.

    >>> split_of("Val Acc"), split_of("train_loss"), split_of("value_loss"), split_of("held-out nll")
    ('val', 'train', None, 'val')
    """
    found = _FIRST.match(joined(name))
    return SPLITS[found[1].lower()] if found else None
