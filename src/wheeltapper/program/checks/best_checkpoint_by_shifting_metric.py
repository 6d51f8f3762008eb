"""The best checkpoint is chosen by a training loss whose meaning changes.

What it sees
------------
A "best" checkpoint decided by the training loss, in a program that makes its examples harder as it goes.

Why it matters
--------------
The loss is lowest while the examples are easiest. The earliest checkpoint then wins, is kept as best, and is what
the next run resumes from.

How it decides
--------------
A comparison `loss < best_loss` guards the saving; the compared name is not a validation's; and a curriculum
(difficulty, ramp, progressive) enters the program's loss. Suspected: names decide it.

When it is wrong
----------------
If the loss compared is computed at fixed difficulty.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.conditions import nodes_of
from wheeltapper.program.program import dotted_name
from wheeltapper.program.reading import Code

ID = "best-checkpoint-by-shifting-metric"
CAUSE = None
DECIDES = False
CURRICULUM = re.compile(r"curriculum|preschool|difficulty", re.I)
TRAIN_LOSS = re.compile(r"^(train_|avg_|average_|running_|epoch_|mean_|current_)*(train_)?loss(_avg)?$", re.I)


def check(code: Code) -> Iterator[Finding]:
    ramps = [c for name, calls in code.program.calls.items() for c in calls if CURRICULUM.search(name)]
    keywords = [k for c in code.program.all_calls() for k in c.keywords if k.arg and CURRICULUM.search(k.arg)]
    if not (ramps or keywords) or code.values.option("curriculum_enabled") is False or _disabled(code):
        return
    for test in nodes_of(code.program, ast.Compare):
        assert isinstance(test, ast.Compare)
        if len(test.comparators) != 1 or not isinstance(test.ops[0], ast.Lt | ast.LtE):
            continue
        metric, best = _name(test.left), _name(test.comparators[0])
        if (
            TRAIN_LOSS.match(metric)
            and re.search(r"best", best, re.I)
            and "val" not in best
            and not _is_validation(code, test.left)
        ):
            yield code.finding(
                ID,
                f"The best checkpoint is the one of lowest {metric}, and a curriculum makes the examples harder: the earliest, easiest "
                "checkpoint wins.",
                test,
                (ramps + keywords)[0] if ramps else keywords[0].value,
                severity="watch",
                grade="suspected",
            )
            return


def _disabled(code: Code) -> bool:
    leaf = code.values.leaf(("curriculum", "enabled"))
    return leaf is not None and leaf.value is False


def _is_validation(code: Code, node: ast.expr) -> bool:
    rest = code.program.rest_of(node)
    values = code.program.writes.get(rest, []) if rest else []
    return any(re.search(r"val|eval|test", ast.unparse(v), re.I) for v in values)


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return dotted_name(node).split(".")[-1]
