"""A monitor looks for the wrong end.

What it sees
------------
Early stopping, a checkpoint or a plateau schedule that watches a loss with mode `max`, or an accuracy with `min`; a
trainer whose `greater_is_better` contradicts its metric.

Why it matters
--------------
Training stops as soon as it improves, the worst checkpoint is kept, or the rate falls while all is well.

How it decides
--------------
The name of what is monitored says which end is better; for a plateau schedule the value it is stepped with is traced
to a loss or to a share of right answers.

When it is wrong
----------------
If the quantity is better the other way round against its name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import direction, direction_by_name
from wheeltapper.program.play.value import Val, text_of
from wheeltapper.program.program import dotted_name
from wheeltapper.program.reading import Code

ID = "kept-by-the-wrong-end"
CAUSE: str | None = "early-stop-wrong-mode"
DECIDES = True

WATCHERS = {"EarlyStopping", "ModelCheckpoint", "ReduceLROnPlateau", "BackupAndRestore"}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for call in story.named(*WATCHERS):
        mode, watched = text_of(call.kwargs.get("mode")), text_of(call.arg("monitor", 0))
        if mode in ("min", "max") and watched is not None and _against(direction_by_name(watched), mode):
            yield code.seen(
                ID,
                f"{call.name} watches {watched} and takes the {'highest' if mode == 'max' else 'lowest'} for the best.",
                call.kwargs["mode"],
                call,
            )
            return
    for call in story.calls:
        name, greater = text_of(call.kwargs.get("metric_for_best_model")), call.kwargs.get("greater_is_better")
        if (
            name is not None
            and greater is not None
            and isinstance(greater.data, bool)
            and _against(direction_by_name(name), "max" if greater.data else "min")
        ):
            yield code.seen(
                ID,
                f"greater_is_better={greater.data} for {name}: the worst checkpoint is kept as the best.",
                greater,
                call,
            )
            return
    for call in story.named("ReduceLROnPlateau"):
        mode = text_of(call.arg("mode", 1)) or "min"
        for step in story.named("step"):
            if step.args[0] is call and len(step.args) > 1 and _against(_better(step), mode):
                yield code.seen(
                    ID,
                    f"The plateau schedule has mode {mode} and is stepped with a value that is better at the other end.",
                    call,
                    _mode(call),
                    step,
                )
                return


def _against(better: str | None, mode: str) -> bool:
    return (better == "low" and mode == "max") or (better == "high" and mode == "min")


def _better(step: Val) -> str | None:
    """Which way what the schedule is told is better: as it is computed, and as it is called."""
    node = step.node.args[0] if isinstance(step.node, ast.Call) and step.node.args else None
    told = direction_by_name(dotted_name(node).split(".")[-1]) if isinstance(node, ast.Name | ast.Attribute) else None
    made = direction(step.args[1])
    return told or made if not (told and made and told != made) else None


def _mode(call: Val) -> Val:
    return call.kwargs.get("mode", call)
