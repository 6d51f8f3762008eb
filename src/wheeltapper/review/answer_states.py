"""Claims about the run as a whole, held against its progress, its checkpoints, its clock and its findings."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable
from pathlib import PurePath

import numpy as np

from wheeltapper.review.model import Answer, Checkpoint, Speed, State, Sum, Verdict
from wheeltapper.review.record import Record
from wheeltapper.run.model import Series

NEAR = 0.02  # of the length: how exactly an end is quoted
SPEED = 0.18  # relative: an epoch's time includes its evaluation
MOST_EXPRESSION = 80


def answer_state(claim: State, record: Record) -> Answer:
    return _STATES[claim.state](claim, record)


def _ended(claim: State, record: Record) -> Answer:
    """Finished or stopped, and where."""
    p = record.diagnosis.progress
    if p.at is None:
        return Answer(claim, "not-in-record", "the record does not tell how far the run came")
    here = claim.at
    if here is not None and claim.clock is not None and p.clock is not None and claim.clock != p.clock:
        each = record.steps_per_epoch
        here = None if not each else here * each if claim.clock == "epoch" else here / each
    at_end = here is None or any(abs(here - end) <= max(NEAR * end, 1.5) for end in _ends(record, p.at, p.total))
    state: Verdict = "supported" if at_end else "contradicted"
    if claim.state == "stopped" and p.state == "finished" and at_end:
        state = "contradicted"
    return Answer(claim, state, p.text)


def _ends(record: Record, at: float, total: float | None) -> list[float]:
    """Positions that count as the end: of the record, of the plan, and of single curves."""
    last = [float(s.at[-1]) for s in record.run.series.values() if len(s)]
    return [at, at + 1, *([] if total is None else [total]), *last]


def _going_on(claim: State, record: Record) -> Answer:
    p = record.diagnosis.progress
    over = p.state in ("finished", "crashed")
    return Answer(
        claim, "contradicted" if over else "undecided", f"there is nothing to stop: {p.text}" if over else p.text
    )


def _healthy(claim: State, record: Record) -> Answer:
    d = record.diagnosis
    if "script" in claim.text:
        idle = [f for f in record.audit.findings if f.grade == "is" and f.severity != "note"]
        if idle:
            return Answer(
                claim,
                "contradicted",
                f"{len(idle)} things in it do not do what they declare: {idle[0].summary}",
                idle[0].places[:2],
            )
        return Answer(claim, "undecided", "nothing was found in the program")
    word: Verdict = {"sound": "supported", "ill": "contradicted"}.get(d.verdict, "undecided")  # type: ignore[assignment]
    return Answer(claim, word, f"{d.verdict} ({d.p_ill:.0%} ill): {d.headline}")


def _ill(claim: State, record: Record) -> Answer:
    d = record.diagnosis
    if d.verdict == "sound" or (d.p_ill < 0.1 and not record.found("diverged")):
        return Answer(claim, "contradicted", f"{d.headline} ({d.p_ill:.0%} ill)")
    seen = record.found("diverged", "not-finite")
    return Answer(
        claim,
        "supported" if seen else "undecided",
        seen.summary if seen else d.headline,
        seen.places[:2] if seen else (),
    )


def _not_finite(claim: State, record: Record) -> Answer:
    """A curve is NaN, from a position on."""
    series = [s for name in claim.subject if (s := record.run.series_named(name)) is not None]
    if not series:
        return Answer(claim, "not-in-record", "no such curve is logged")
    sick = [s for s in series if not s.finite.all()]
    if not sick:
        told = ", ".join(s.name for s in series[:3])
        return Answer(claim, "contradicted", f"{told}: every value is finite ({sum(map(len, series))} in all)")
    return _first_bad(claim, sick[0], record)


def _first_bad(claim: State, series: Series, record: Record) -> Answer:
    index = int(np.flatnonzero(~series.finite)[0])
    told = f"{series.name} is not finite in {int((~series.finite).sum())} of {len(series)} rows, first at {series.clock} {series.at[index]:,.10g}"
    at = None if claim.at is None else record.on_clock(series, claim.at, claim.clock)
    gap = float(np.median(np.diff(series.at))) if len(series) > 1 else 1.0
    off = at is not None and abs(at - series.at[index]) > max(3 * gap, 0.03 * float(np.ptp(series.at)))
    return Answer(claim, "contradicted" if off else "supported", told, (series.place(index),))


def _all_finite(claim: State, record: Record) -> Answer:
    sick = next((s for s in record.run.series.values() if s.quantity == "loss" and not s.finite.all()), None)
    if sick is None:
        return Answer(claim, "supported", "every logged loss is finite")
    index = int(np.flatnonzero(~sick.finite)[0])
    return Answer(
        claim,
        "contradicted",
        f"{sick.name} is not finite from {sick.clock} {sick.at[index]:,.10g} on",
        (sick.place(index),),
    )


def _no_warnings(claim: State, record: Record) -> Answer:
    bad = next((f for f in record.findings if f.severity == "ill" and f.grade == "is"), None)
    if bad is not None:
        return Answer(claim, "contradicted", bad.summary, bad.places[:2])
    events = [e for e in record.run.events if e.kind in ("warning", "error", "crash")]
    if events:
        return Answer(claim, "contradicted", f"{len(events)} are logged, the first: {events[0].text[:120]}")
    return Answer(claim, "supported", "none is logged")


_STATES: dict[str, Callable[[State, Record], Answer]] = {
    "finished": _ended,
    "stopped": _ended,
    "going-on": _going_on,
    "healthy": _healthy,
    "ill": _ill,
    "overfits": _ill,
    "not-finite": _not_finite,
    "all-finite": _all_finite,
    "no-warnings": _no_warnings,
}


# -- checkpoints -----------------------------------------------------------------------------------------


def answer_checkpoint(claim: Checkpoint, record: Record) -> Answer:
    if claim.resume:
        refused = next((r for r in record.diagnosis.ruled_out if r.id in ("resume-unread", "resume-at-peak")), None)
        if refused is not None:
            return Answer(claim, "contradicted", refused.why)
    best = record.diagnosis.best
    if claim.best and claim.step is not None and best is not None and best.step is not None:
        series = record.run.series_named(best.metric)
        if series is not None and len(series) and not _equally_good(series, claim.step, best.value):
            at = int(np.abs(series.at - claim.step).argmin())
            return Answer(
                claim, "contradicted",
                f"{best.metric} is {series.values[at]:.5g} there; it is best with {best.value:.5g} at {series.clock} {best.step:,.10g}", (series.place(at),),
            )  # fmt: skip
    return _exists(claim, record)


def _equally_good(series: Series, step: float, best: float) -> bool:
    at = int(np.abs(series.at - step).argmin())
    spread = float(np.ptp(series.values[series.finite])) or 1.0
    return abs(float(series.values[at]) - best) <= 0.03 * spread


def _exists(claim: Checkpoint, record: Record) -> Answer:
    known = [c for c in record.run.checkpoints if c.path or c.step is not None]
    names = {PurePath(c.path).name for c in known if c.path}
    if claim.path is not None and PurePath(claim.path).name in names:
        return Answer(
            claim, "supported", f"{PurePath(claim.path).name} is among the {len(names)} checkpoints of the run"
        )
    if names and claim.path is not None:
        near = next(
            (n for n in sorted(names) if claim.step is not None and re.search(rf"(?<!\d)0*{claim.step:.0f}(?!\d)", n)),
            sorted(names)[0],
        )
        return Answer(
            claim,
            "contradicted",
            f"there is no {PurePath(claim.path).name}; the run wrote {near}"
            + (f" and {len(names) - 1} more" if len(names) > 1 else ""),
        )
    every = record.knobs.value("checkpoint.every")
    if claim.step is not None and isinstance(every, int | float) and every > 0 and claim.step % every:
        return Answer(
            claim,
            "contradicted",
            f"none was written at {claim.step:,.10g}: one is saved every {every:,g}",
            (record.knobs.place("checkpoint.every"),),
        )
    steps = {c.step for c in known}
    if claim.step in steps:
        return Answer(claim, "supported", f"a checkpoint of {claim.step:,.10g} was written")
    if claim.path is not None and re.search(
        r"\bin (?:the|this) (?:run|output|same)?\s*(?:folder|directory)\b", claim.text, re.I
    ):
        return Answer(claim, "contradicted", f"there is no {PurePath(claim.path).name} among the files of the run")
    return Answer(claim, "not-in-record", "the record holds no such checkpoint, and no word of one")


# -- speed and sums --------------------------------------------------------------------------------------


def answer_speed(claim: Speed, record: Record) -> Answer:
    """From the times of the log's rows, the batch and the length of an epoch."""
    epoch = _seconds_per_epoch(record)
    each = record.steps_per_epoch
    batch = record.row("effective batch")
    size = float(re.match(r"[\d,]+", batch).group().replace(",", "")) if batch and re.match(r"[\d,]+", batch) else None  # type: ignore[union-attr]
    if epoch is None:
        return Answer(claim, "not-in-record", "the record does not tell how long an epoch takes")
    value = {
        "s/epoch": epoch,
        "steps/s": each / epoch if each else None,
        "samples/s": each * size / epoch if each and size else None,
    }[claim.unit]
    if value is None:
        return Answer(claim, "not-in-record", "steps an epoch and batch are not both told")
    right = claim.low * (1 - SPEED) <= value <= claim.high * (1 + SPEED)
    parts = (
        f"an epoch takes {epoch:.4g} s"
        + (f" for {each:,.0f} steps" if each else "")
        + (f" of {size:,.0f} samples" if size else "")
    )
    return Answer(claim, "supported" if right else "contradicted", f"{parts}: {value:,.4g} {claim.unit}")


def _seconds_per_epoch(record: Record) -> float | None:
    for series in record.run.series.values():
        seconds = series.clocks.get("second")
        epochs = series.on("epoch")
        if seconds is not None and epochs is not None and len(seconds) > 2 and np.ptp(epochs) > 0:
            return float(np.median(np.diff(seconds) / np.maximum(np.diff(epochs), 1e-9)))
    return None


_OPERATIONS: dict[type[ast.AST], Callable[..., float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.USub: operator.neg,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., float]] = {"sqrt": math.sqrt, "ln": math.log, "log": math.log, "min": min}


def answer_sum(claim: Sum, record: Record) -> Answer:  # noqa: ARG001 (one signature for all)
    try:
        value = evaluated(claim.expression)
    except (ValueError, SyntaxError, ArithmeticError, TypeError):
        return Answer(claim, "undecided", f"{claim.expression} could not be worked out")
    if claim.expression.startswith("min("):
        right = value == claim.value
        return Answer(
            claim,
            "supported" if right else "contradicted",
            "more is said to remain than there is in all" if not right else "the parts fit",
        )
    right = abs(value - claim.value) <= max(claim.slack * 1.05, 1e-6 * abs(value))
    return Answer(claim, "supported" if right else "contradicted", f"{claim.expression} = {value:.5g}")


def evaluated(expression: str) -> float:
    """
    >>> evaluated("0.1 × sqrt(32) × 2"), evaluated("2^3 - 1")
    (1.1313708498984762, 7.0)
    """
    text = re.sub(r"(?<=\d),(?=\d{3})", "", expression)
    for written, meant in (("×", "*"), ("·", "*"), ("−", "-"), ("^", "**")):
        text = text.replace(written, meant)
    text = re.sub(r"(?<=[\d)])\s*x\s*(?=[\d(])", "*", text)
    if len(text) > MOST_EXPRESSION:
        raise ValueError("too long")
    return float(_worked(ast.parse(text.strip(), mode="eval").body))


def _worked(node: ast.AST) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        base, power = _worked(node.left), _worked(node.right)
        if abs(power) > 100 or abs(base) > 1e6:
            raise ValueError("too large a power")
        return float(base**power)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_worked(node.left), _worked(node.right))
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_worked(node.operand))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        return float(_FUNCTIONS[node.func.id](*(_worked(one) for one in node.args)))
    raise ValueError("not arithmetic")
