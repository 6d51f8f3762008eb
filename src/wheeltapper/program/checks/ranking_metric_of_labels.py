"""A metric of ranking is given labels and not scores.

What it sees
------------
roc_auc_score or average_precision_score of predictions that were already cut to classes.

Why it matters
--------------
The order of the scores is lost; the figure is that of one threshold.

How it decides
--------------
The second argument is a comparison with a threshold, a rounding, an argmax, or what `predict()` of a classifier
returns.

When it is wrong
----------------
If a regressor's predict() gives the score.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, plain
from wheeltapper.program.reading import Code

ID = "ranking-metric-of-labels"
CAUSE: str | None = "eval-broken"
DECIDES = True

METRICS = ("roc_auc_score", "average_precision_score", "precision_recall_curve", "roc_curve")
CLASSIFIER = re.compile(r"Classifier$|^LogisticRegression$|^SVC$|NB$|Discriminant")


def check(code: Code) -> Iterator[Finding]:
    for call in code.story.named(*METRICS):
        given = call.arg("y_score", 1)
        if given is not None and call.op == "call" and _is_cut(plain(given)):
            yield code.seen(ID, f"{call.name} is given classes and not scores.", call, given)
            return


def _is_cut(value: Val) -> bool:
    if value.op == "cmp" and value.name in ("Gt", "GtE", "Lt", "LtE"):
        return True
    if value.op == "call" and value.name in ("round", "argmax", "rint") and value.args:
        return True
    maker = value.args[0] if value.op == "call" and value.name == "predict" and value.args else None
    return maker is not None and maker.op == "call" and bool(CLASSIFIER.search(maker.name))
