"""Did the fault really do harm? Measured against the healthy twin, never taken for granted.

A score counts as worse when it lies more than three times the spread over seeds below the twin's: two
scores of one spread differ by more than 3 in about 3 % of pairs (normal, sd of a difference is 1.41 times).
"""

from __future__ import annotations

import math

from wheeltapper.lab.truth import Truth

WORSE = 3.0  # spreads
SLOWER = 1.5  # times the twin's CPU seconds: over the 10-20 % that equal runs differ by on a shared machine
GREW = 32.0  # MiB more than the twin


def compare(truth: Truth, twin: Truth, noise: float) -> tuple[bool, str]:
    """Whether the harm is there, and the comparison in words. Looks at all kinds of harm to the weights and
    the log, not the meant one; time and memory vary by themselves, and count where they are meant."""
    found = []
    if truth.ended != "finished":
        found.append(truth.ended)
    elif not_as_good(truth.score, twin.score, noise):
        found.append(f"final score {show(truth.score)} against {show(twin.score)} for the healthy twin")
    if misreported(truth, twin, noise):
        found.append(f"the log reports {show(truth.reported)}, the weights are worth {show(truth.score)}")
    if truth.harm == "time" and truth.seconds > SLOWER * twin.seconds:
        found.append(f"{truth.seconds:.1f} CPU s against {twin.seconds:.1f}")
    if truth.harm == "memory" and truth.memory > twin.memory + GREW:  # a second launch keeps what the first one took
        found.append(f"memory grew by {truth.memory:.0f} MiB against {twin.memory:.0f}")
    if truth.harm == "nothing" and not found:
        return False, "what it declares is not what it does; the result is the same"
    return bool(found), "; ".join(found) or "no harm found against the healthy twin"


def not_as_good(score: float | None, twin: float | None, noise: float) -> bool:
    if score is None or twin is None:
        return score is None
    return not math.isfinite(score) or score < twin - WORSE * noise


def misreported(truth: Truth, twin: Truth, noise: float) -> bool:
    """The log is further off than the twin's, whose validation set is the same and as hard or easy."""
    off, usual = gap(truth), gap(twin)
    return off is not None and not abs(off - (usual or 0.0)) <= WORSE * noise


def gap(truth: Truth) -> float | None:
    if truth.reported is None or truth.score is None or not math.isfinite(truth.score):
        return None
    return truth.reported - truth.score


def show(value: float | None) -> str:
    return "nothing" if value is None else f"{value:.4g}"
