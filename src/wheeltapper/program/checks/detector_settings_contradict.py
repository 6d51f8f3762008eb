"""Settings of a detector contradict its classes or each other.

What it sees
------------
Training with ultralytics: mirrored pictures with classes that differ by left and right, every layer frozen, a rate
that the automatic choice ignores, one list of pictures for training and validation.

Why it matters
--------------
Classes that cannot be told apart; nothing that can learn; a setting without effect; a score that says nothing.

How it decides
--------------
The arguments of `train()` and the file of the data beside the program: names, `train` and `val`.

When it is wrong
----------------
If left and right are told by something else in the picture.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from wheeltapper.finding import Finding, Place
from wheeltapper.program.play.value import number, text_of
from wheeltapper.program.reading import Code
from wheeltapper.settings.tree import ConfigTree

ID = "detector-settings-contradict"
CAUSE: str | None = "setting-beyond-practice"
DECIDES = True

SIDE = re.compile(r"(^|[_\W])(left|right|links|rechts)($|[_\W])", re.I)
LAYERS = 22  # modules of the smallest family of these networks, the head with them


def check(code: Code) -> Iterator[Finding]:
    if not any("ultralytics" in str(table) for table in code.program.imported.values()):
        return
    data = [tree for tree in code.configs if tree.leaf("train") is not None and tree.leaf("val") is not None and _names(tree)]
    for call in code.story.named("train"):
        flip, freeze, choice = call.kwargs.get("fliplr"), call.kwargs.get("freeze"), call.kwargs.get("optimizer")
        sided = [n for tree in data for n in _names(tree) if SIDE.search(n)]
        flips = 0.5 if flip is None else number(flip)
        if len(sided) > 1 and flips is not None and flips > 0:
            yield code.seen(ID, f"Pictures are mirrored and the classes {sided[0]} and {sided[1]} are not.", flip or call, call)
            return
        if freeze is not None and (many := number(freeze)) is not None and many >= LAYERS:
            yield code.seen(ID, f"freeze={many:g} freezes the head as well: nothing is trained.", freeze, call)
            return
        if choice is not None and text_of(choice) == "auto" and "lr0" in call.kwargs:
            yield code.seen(ID, "optimizer='auto' chooses its own rate: lr0 and momentum have no effect.", choice, call)
            return
    for tree in data:
        train, val = tree.leaf("train"), tree.leaf("val")
        if train is not None and val is not None and isinstance(train.value, str) and train.value == val.value and train.value:
            yield code.finding(ID, "The pictures for validation are those of the training.", Place(val.file, val.line, val.column), Place(train.file, train.line))
            return


def _names(tree: ConfigTree) -> list[str]:
    return [leaf.value for leaf in tree.leaves if leaf.path[0] == "names" and isinstance(leaf.value, str)]
