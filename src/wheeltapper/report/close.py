"""Near names, for "did you mean"."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def close_matches(name: str, known: Iterable[str], most: int = 5) -> list[str]:
    """Names that contain the word, then names spelled alike.

    >>> close_matches("loss", ["train/loss", "val/loss", "lr"])
    ['train/loss', 'val/loss']
    >>> close_matches("at-chanse", ["at-chance", "not-finite"])
    ['at-chance']
    """
    names = list(known)
    wanted = name.lower()
    inside = [n for n in names if wanted in n.lower()]
    alike = difflib.get_close_matches(wanted, [n.lower() for n in names], n=most, cutoff=0.6)
    by_lower = {n.lower(): n for n in names}
    return list(dict.fromkeys([*inside, *(by_lower[a] for a in alike)]))[:most]
