"""Which of several keys with one meaning is the training's own: outside evaluation, nearest to the top."""

from __future__ import annotations

import re
from typing import Any

from wheeltapper.settings.dialects.schema import View, unresolved
from wheeltapper.settings.tree import Leaf

EVAL = re.compile(r"^(?:val|valid|validation|eval|evaluation|test|inference|sampl\w*|generation|teacher)$")
SIDE = re.compile(r"discriminator|critic|optim_d|net_?d$|network_d|_d$|wandb|logger$|slurm|submitit|teacher|distill|observer|quant")
_HOME = re.compile(r"^(?:train\w*|optim\w*|solver|hparams|hyper\w*|args|opt|cfg|config|model|data\w*|trainer)$")


def settings_of(view: View) -> list[tuple[tuple[str, ...], Any, Leaf]]:
    out: list[tuple[tuple[str, ...], Any, Leaf]] = []
    lists: set[tuple[str, ...]] = set()
    for path, leaf in view.plain():
        if unresolved(leaf) or leaf.value is None:
            continue
        if path[-1].isdigit() and len(path) > 1:
            if path[:-1] not in lists:
                lists.add(path[:-1])
                items = view.items(".".join(path[:-1]))
                out.append((path[:-1], [item.value for item in items[:1000]], leaf))
        else:
            out.append((path, leaf.value, leaf))
    return out


def distance(path: tuple[str, ...]) -> int:
    """Settings at the top or in a section of their own subject count first."""
    return sum(0 if _HOME.match(part.lower()) else 1 for part in path[:-1]) * 10 + len(path) - 1
