"""Groups are given to a splitter that does not use them.

What it sees
------------
KFold, StratifiedKFold or a shuffled split that is handed `groups`.

Why it matters
--------------
Rows of one group fall on both sides: the validation knows them from training.

How it decides
--------------
The splitter is made by a class without groups, and `split` gets a third argument or `groups=`.

When it is wrong
----------------
Never: such a splitter ignores it.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.reading import Code

ID = "groups-ignored"
CAUSE: str | None = "train-val-leak"
DECIDES = True

WITHOUT = {"KFold", "StratifiedKFold", "ShuffleSplit", "StratifiedShuffleSplit", "RepeatedKFold", "RepeatedStratifiedKFold", "TimeSeriesSplit"}


def check(code: Code) -> Iterator[Finding]:
    for call in code.story.named("split", "cross_val_score", "cross_validate", "cross_val_predict"):
        splitter = call.args[0] if call.name == "split" and call.args else call.kwargs.get("cv")
        groups = call.kwargs.get("groups") or (call.args[3] if call.name == "split" and len(call.args) > 3 else None)
        known = splitter is not None and splitter.op == "call" and splitter.name in WITHOUT
        if known and groups is not None and not (groups.op == "const" and groups.data is None):
            assert splitter is not None
            yield code.seen(ID, f"{splitter.name} ignores the groups it is given: one group falls on both sides.", splitter, call)
            return
