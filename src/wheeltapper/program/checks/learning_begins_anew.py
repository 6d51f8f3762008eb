"""Every chunk of a stream begins the learning anew.

What it sees
------------
An estimator or a scaler made before a loop over chunks that is fitted with fit() in every turn, on that chunk alone.

Why it matters
--------------
fit() forgets what was learned before: after the loop only the last chunk is known, and coefficients meet inputs of
another scale.

How it decides
--------------
The object is made outside of the loop, fit() is called on it inside, with data of the turn; and it is also used
inside on what it is not fitted on, or after the loop. Folds, where each turn is a run of its own, are left out: there
the turn goes over a splitter.

When it is wrong
----------------
warm_start=True, or a loop that keeps the fitted objects.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "learning-begins-anew"
CAUSE: str | None = "same-batch-repeated"
DECIDES = True

ONLINE = {"SGDClassifier", "SGDRegressor", "Perceptron", "PassiveAggressiveClassifier", "MultinomialNB", "BernoulliNB", "GaussianNB", "MLPClassifier",
          "MLPRegressor", "StandardScaler", "MinMaxScaler", "MaxAbsScaler", "IncrementalPCA", "MiniBatchKMeans"}  # fmt: skip
SPLITS = {"split", "KFold", "StratifiedKFold", "GroupKFold", "range", "product", "ParameterGrid", "items", "zip"}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for call in story.named("fit"):
        maker = call.args[0] if call.args else None
        if maker is None or maker.op != "call" or maker.name not in ONLINE or not call.loops or "warm_start" in maker.kwargs:
            continue
        turn = call.loops[-1]
        if turn in maker.loops or turn.over is None or _is_repetition(turn.over):
            continue
        if len(call.args) > 1 and any(v is turn.over or v.op in ("elem", "batch") for v in made_of(call.args[1])):
            yield code.seen(ID, f"{maker.name} is fitted anew in every turn of the loop: what it learned before is lost.", call, maker)
            return
    yield from _classes(code)


def _is_repetition(over: Val) -> bool:
    return any(v.op == "call" and v.name in SPLITS for v in [over, *over.args, *(a for b in over.args for a in b.args)]) or over.op in ("list", "tuple", "dict")


def _classes(code: Code) -> Iterator[Finding]:
    """`partial_fit(..., classes=np.unique(y))` of the chunk at hand."""
    for call in code.story.named("partial_fit"):
        classes = call.kwargs.get("classes")
        if classes is not None and classes.op == "call" and classes.name in ("unique", "unique_labels") and call.loops and classes.loops == call.loops:
            yield code.seen(ID, "The classes are those of one chunk: one that misses a class breaks the next.", classes, call)
            return
