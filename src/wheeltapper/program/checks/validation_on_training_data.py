"""Validation is made on the training data.

What it sees
------------
An evaluation (or the evaluation set given to a framework) on the very data that the network is trained on, and no
other evaluation.

Why it matters
--------------
The score says how well the training set is known by heart. Overfitting cannot be seen.

How it decides
--------------
The dataset under the loop of the evaluation, or the part of the array its inputs are cut from, is made in the same
way as that of the training loop: same object, or same constructor with the same arguments. If any evaluation uses
other data, nothing is said.

When it is wrong
----------------
If both names mean other data by a side effect, such as a file that is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from wheeltapper.finding import Finding
from wheeltapper.program.play.lineage import evaluated_on, key, lineage, trained_on
from wheeltapper.program.play.roles import TRAIN, VALIDATION, uses, written
from wheeltapper.program.play.value import Val
from wheeltapper.program.reading import Code

ID = "validation-on-training-data"
CAUSE: str | None = "train-val-leak"
DECIDES = True

MASKS = re.compile(r"(train|val|valid|test)_?mask|ndata|edge_index")
HELD_OUT = re.compile(r"test|val|eval|dev|held")
TRAINERS = ("train_dataset", "eval_dataset")


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    train = trained_on(story)
    keys = {key(t): t for t in train}
    tested = list(evaluated_on(story))
    if tested and keys and all(_known(key(source)) for _, source in tested):
        hits = [(call, source) for call, source in tested if key(source) in keys]
        if len(hits) == len(tested):
            call, source = hits[0]
            mine = keys[key(source)]
            if _one_graph(code):
                return
            shared = {id(t.node) for t in call.loops} & {id(t.node) for c, _ in story.backwards for t in c.loops[-1:]}
            yield code.seen(
                ID, "The only evaluation is made on the data that the network is trained on.", call, source, mine,
                grade="suspected" if (shared and mine is source) or source.op in ("phi", "attr") else "is",
            )  # fmt: skip
            return
    yield from _by_framework(code)


def _known(found: Any) -> bool:
    return not (isinstance(found, tuple) and found[0] in ("param", "free", "index"))


def _by_framework(code: Code) -> Iterator[Finding]:
    yield from list(_by_roles(code))[:1] or _by_arguments(code)


def _by_roles(code: Code) -> Iterator[Finding]:
    every = [u for u in uses(code.story) if _known(key(u.data))]
    trained = [u for u in every if u.role == TRAIN]
    for use in trained:
        if (part := _named_part(use.data)) is not None and _has_train(code, use.data):
            yield code.seen(ID, f"Training is given the part of the data that is named {part}.", written(use), use.call)
            return
    for call in dict.fromkeys(u.call for u in every if u.role == VALIDATION):
        held = [u for u in every if u.call is call and u.role == VALIDATION]
        mine = {key(u.data) for u in trained if u.call is call}
        if mine and all(key(u.data) in mine for u in held):
            yield code.seen(ID, "What is validated on is the data of the training.", written(held[-1]), call)
            return
    learned = {key(u.data) for u in trained if u.call.name != "fit" or len(u.call.args) > 2}
    for use in every:
        if use.role not in (TRAIN, VALIDATION) and HELD_OUT.search(use.told) and key(use.data) in learned:
            yield code.seen(ID, f"What is reported as {use.told} is measured on the data of the training.", use.call, written(use))
            return


def _named_part(data: Val) -> str | None:
    """`splits["test"]`: the name of a part that is not for training."""
    for one in lineage(data)[:6]:
        if one.op == "item" and isinstance(one.data, str):
            return one.data if one.data.lower() in ("test", "validation", "val", "valid", "dev", "eval") else None
    return None


def _has_train(code: Code, data: Val) -> bool:
    """Whether the program scores the same part afterwards."""
    return any(u.role != TRAIN and key(u.data) == key(data) for u in uses(code.story))


def _by_arguments(code: Code) -> Iterator[Finding]:
    for call in code.story.calls:
        given = [call.kwargs.get(name) for name in TRAINERS]
        if given[0] is not None and given[1] is not None and _known(key(given[0])) and key(given[0]) == key(given[1]):
            yield code.seen(ID, "The evaluation set given to the trainer is its training set.", given[1], call)
            return
        held = call.kwargs.get("validation_data")
        if (
            call.name == "fit"
            and held is not None
            and len(call.args) > 1
            and _first(held) is not None
            and _same(call.args[1], _first(held))
        ):
            yield code.seen(ID, "The validation data given to fit() is the training data.", held, call)
            return
    yield from _by_loaders(code)


def _by_loaders(code: Code) -> Iterator[Finding]:
    """Loaders handed to a Lightning trainer, or evaluated by a function that cannot be seen."""
    if _one_graph(code):
        return
    for call in code.story.named("fit"):
        loaders = [a for a in (*call.args[1:], *call.kwargs.values()) if a.op == "call" and a.name == "DataLoader"]
        sets = [a.arg("dataset", 0) for a in loaders]
        if len(sets) == 2 and sets[0] is not None and sets[1] is not None and _same(sets[0], sets[1]):
            yield code.seen(ID, "The loader for validation holds the training data.", loaders[1], loaders[0])
            return


def _one_graph(code: Code) -> bool:
    """One graph for all, and masks that say which nodes are whose."""
    return any(MASKS.search(s.text) for s in code.program.scripts)


def _first(value: Val) -> Val | None:
    return value.items[0] if value.items else None


def _same(a: Val, b: Val | None) -> bool:
    return b is not None and _known(key(a)) and key(a) == key(b)
