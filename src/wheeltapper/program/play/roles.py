"""Who plays which part where a framework owns the loop: the data of training and of evaluation, with their targets.

One table of call effects for all frameworks; a check asks for roles and never for a framework.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from wheeltapper.program.play.story import Story
from wheeltapper.program.play.value import Val, text_of

TRAIN, VALIDATION, TEST = "train", "validation", "test"
# Arguments that hold data, whatever is called.
GIVEN = {
    "train_dataset": TRAIN, "train_dataloader": TRAIN, "train_dataloaders": TRAIN, "eval_dataset": VALIDATION, "val_dataset": VALIDATION,
    "validation_data": VALIDATION, "val_dataloaders": VALIDATION, "eval_set": VALIDATION, "valid_sets": VALIDATION, "evals": VALIDATION,
}  # fmt: skip
SCORES = {"evaluate": TEST, "score": TEST, "predict": TEST, "predict_proba": TEST, "test": TEST}


@dataclass(frozen=True, eq=False)
class Use:
    """Data in a role: what trains, what is validated on during training, what is scored or predicted afterwards."""

    role: str
    data: Val
    target: Val | None
    call: Val
    told: str  # what the program calls the result, in small letters


def uses(story: Story) -> list[Use]:
    return list(_uses(story))


def _uses(story: Story) -> Iterator[Use]:
    for call in story.calls:
        if call.op != "call":
            continue
        for name, role in GIVEN.items():
            if (given := call.kwargs.get(name)) is not None:
                yield from _pairs(role, given, call)
        if call.name in ("fit", "partial_fit") and len(call.args) > 1 and call.args[0].op != "lib":
            yield Use(TRAIN, call.args[1], call.args[2] if len(call.args) > 2 else call.kwargs.get("y"), call, "")
        elif call.name in SCORES and (data := _scored(call)) is not None:
            told = text_of(call.kwargs.get("metric_key_prefix")) or ""
            yield Use(SCORES[call.name], data, call.args[2] if len(call.args) > 2 else None, call, told.lower())


def _scored(call: Val) -> Val | None:
    given = call.arg("eval_dataset", 1) or call.kwargs.get("test_dataset") or call.kwargs.get("x")
    return given if given is not None and given.op not in ("const", "lib") else None


def _pairs(role: str, given: Val, call: Val) -> Iterator[Use]:
    """One dataset, a pair of inputs and targets, or several such pairs."""
    items = given.items if given.op in ("list", "tuple") else None
    if items and all(i.op == "tuple" and i.items for i in items):
        for pair in items:
            inner = pair.items or []
            yield Use(role, inner[0], inner[1] if len(inner) > 1 else None, call, "")
    elif items and given.op == "tuple":
        yield Use(role, items[0], items[1] if len(items) > 1 else None, call, "")
    elif items:
        for one in items:
            yield Use(role, one, None, call, "")
    elif given.op != "const":
        yield Use(role, given, None, call, "")


def written(use: Use) -> Val:
    """Where the data is named in the call that uses it: the same data may be named elsewhere first."""
    node = use.call.node
    if isinstance(node, ast.Call):
        for keyword in node.keywords:
            if keyword.arg in GIVEN and use.call.kwargs.get(keyword.arg) is use.data:
                return Val("const", node=keyword.value)
        if node.args and use.role != VALIDATION:
            return Val("const", node=node.args[0])
    return use.call
