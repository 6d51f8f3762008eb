"""Validation inputs are prepared otherwise than training inputs.

What it sees
------------
Inputs that are normalised for training and not for the evaluation, or the other way round.

Why it matters
--------------
The network is judged on inputs of another mean and spread than it learned from: training looks well and validation is
at chance.

How it decides
--------------
The ways of the inputs of training and of evaluation back to the data are compared: one holds a scaling (a subtraction
and a division, a division by 255, a fitted scaler, a Normalize in the transform) and the other holds none.

When it is wrong
----------------
If the other data is stored in its normalised form.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.elements import SUBSETS
from wheeltapper.program.play.lineage import SCALES, STATISTICS, dataset_of, evaluated_on, lineage, pairs_of
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

ID = "evaluated-otherwise"
CAUSE: str | None = "eval-normalisation-mismatch"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    train = [(given, loss) for loss, given, _ in pairs_of(story)]
    if train:
        for call, source in evaluated_on(story):
            if len(call.args) < 2:
                continue
            given, loss = train[0]
            a = scaled_by(given) or _transformed(loss.loops)
            b = scaled_by(call.args[1]) or _transformed((*call.loops,))
            odd = _missing_step(given, call.args[1])
            if odd is not None:
                yield code.seen(
                    ID, "Inputs of training and evaluation are not scaled by the same steps.", odd, call, loss
                )
                return
            if (a is None) != (b is None) and _traced(given) and _traced(call.args[1]) and _root(given, call.args[1]):
                which = (
                    "Training inputs are scaled and those of the evaluation are not."
                    if b is None
                    else "Inputs of the evaluation are scaled and those of training are not."
                )
                yield code.seen(ID, which, call if b is None else loss, source, (a or b))  # type: ignore[arg-type]
                return
    yield from _of_evaluate(code)
    for call in story.named("fit"):
        held = call.kwargs.get("validation_data")
        if held is not None and held.items and len(call.args) > 1:
            a, b = scaled_by(call.args[1]), scaled_by(held.items[0])
            if (a is None) != (b is None):
                yield code.seen(ID, "Only one of training and validation inputs is scaled.", a or b or held, held, call)
                return


def _missing_step(given: Val, held: Val) -> Val | None:
    """A mean taken off (or a spread divided by) on one side only, where the other step of the pair is on both."""
    one, other = (_steps(v) for v in (given, held))
    shared = one.keys() & other.keys()
    odd = [v for k, v in {**one, **other}.items() if k not in shared]
    return odd[0] if shared and len(odd) == 1 else None


def _steps(value: Val) -> dict[tuple[str, str], Val]:
    """The steps of scaling by a statistic, each by its sign and what was measured."""
    out = {}
    for one in lineage(value):
        if (
            one.op == "bin"
            and one.name in ("Sub", "Div")
            and one.args[1].op == "call"
            and one.args[1].name in STATISTICS
        ):
            out[one.name, str(id(one.args[1]))] = one
    return out


def _of_evaluate(code: Code) -> Iterator[Finding]:
    """`model.fit(x / 255)` and `model.evaluate(x_test)` of a Keras model."""
    story = code.story
    for fit in story.named("fit"):
        for call in story.named("evaluate", "predict"):
            if len(fit.args) < 2 or len(call.args) < 2 or call.args[0] is not fit.args[0]:
                continue
            a, b = scaled_by(fit.args[1]), scaled_by(call.args[1])
            if (a is None) != (b is None) and _same_file(fit.args[1], call.args[1]):
                which = "Training inputs are scaled and those of the evaluation are not."
                which = which if b is None else "Inputs of the evaluation are scaled and those of training are not."
                yield code.seen(ID, which, call.args[1], call, (a or b))  # type: ignore[arg-type]
                return


def _same_file(a: Val, b: Val) -> bool:
    """Both are unpacked from one call that reads the data."""
    x, y = lineage(a)[-1], lineage(b)[-1]
    return x is y and x.op in ("call", "lib")


def scaled_by(value: Val) -> Val | None:
    for one in lineage(value):
        if one.op == "call" and one.name in SCALES:
            return one
        if (
            one.op == "bin"
            and one.name == "Div"
            and (number(one.args[1]) in (255, 256, 127.5) or _statistic(one.args[1]))
        ):
            return one
    return None


def _statistic(value: Val) -> bool:
    return any(v.op == "call" and v.name in STATISTICS for v in made_of(value))


def _transformed(loops: tuple) -> Val | None:  # type: ignore[type-arg]
    for turn in reversed(loops):
        dataset = whole_of(dataset_of(turn.over))
        given = dataset.kwargs.get("transform") if dataset is not None else None
        for one in made_of(given) if given is not None else ():
            if one.op == "call" and one.name == "Normalize":
                return one
    return None


def whole_of(dataset: Val | None) -> Val | None:
    """The dataset that a part of it was split from."""
    for _ in range(4):
        if (
            dataset is not None
            and dataset.args
            and (dataset.op == "item" or (dataset.op == "call" and dataset.name in SUBSETS))
        ):
            dataset = dataset.args[0]
    return dataset


def _traced(value: Val) -> bool:
    return lineage(value)[-1].op in ("call", "item", "attr", "lib", "const", "elem")


def _root(a: Val, b: Val) -> bool:
    """Both come from data that is read the same way."""
    x, y = lineage(a)[-1], lineage(b)[-1]
    return x.op == y.op and x.name == y.name
