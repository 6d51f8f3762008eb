"""How right is `diagnose`? Measured on runs whose truth is known.

What counts: an ill run said to be ill (detection), a healthy or odd one said to be ill (false alarm), the
true cause first or among the first three, the onset, and whether "80 %" is right in 80 % of the cases.
A fault that did its run no harm is neither: it is counted apart. So is a lesser trouble (memory that grows, time lost, a
crash after the training): the training is sound, and what counts is that it was noticed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, cast

from wheeltapper.api import diagnose
from wheeltapper.errors import InputError, WheeltapperError
from wheeltapper.judge.model import SOMETHING_ELSE, Diagnosis
from wheeltapper.lab.truth import Truth, load_all
from wheeltapper.reading.record import ClockName
from wheeltapper.rules.causes import causes
from wheeltapper.run.onsets import began

LESSER = ("time", "memory", "after")
BINS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.01)


@dataclass(frozen=True, slots=True)
class Case:
    """One run: what is true, and what was said."""

    truth: Truth
    verdict: str  # "sound" | "ill" | "cannot-tell" | "unread"
    causes: tuple[tuple[str, float], ...]  # most probable first, "something else" left out
    onset: float | None  # in the truth's unit
    runs: int  # how many runs diagnose saw in the folder; more than one is a fault of ours
    headline: str = ""
    noted: tuple[str, ...] = ()  # ids of the signs that are worth a watch or worse

    @property
    def harmed(self) -> bool:
        """The training or its evaluation was hurt."""
        return self.truth.kind == "fault" and self.truth.manifested is not False and self.truth.harm not in LESSER

    @property
    def troubled(self) -> bool:
        """A lesser trouble came about."""
        return self.truth.kind == "fault" and self.truth.manifested is not False and self.truth.harm in LESSER

    @property
    def noticed(self) -> bool:
        explains = {sign for cause in causes() if self.truth.cause == cause.id for sign in cause.explains}
        return self.verdict == "ill" or bool(explains & set(self.noted))

    def rank(self) -> int | None:
        """The place of the true cause, from 1; None: not named."""
        right = {self.truth.cause, *self.truth.also}
        return next((place for place, (name, _) in enumerate(self.causes, 1) if name in right), None)


def examine(truth: Truth, out: Path) -> Case:
    try:
        said = diagnose(out / "runs" / truth.run)
    except WheeltapperError as error:
        return Case(truth, "unread", (), None, 0, str(error))
    worst = max(said, key=lambda d: (d.verdict == "ill", d.verdict == "sound", len(d.run.series)))
    named = tuple((c.id, c.probability) for c in worst.causes if c.id != SOMETHING_ELSE)
    noted = tuple(dict.fromkeys(f.id for f in worst.findings if f.severity != "note"))
    return Case(truth, worst.verdict, named, onset_of(worst, truth), len(said), worst.headline, noted)


def onset_of(said: Diagnosis, truth: Truth) -> float | None:
    """The first moment at which something ill was seen, on the clock of the truth."""
    first = began(said.run, (f for f in said.findings if f.severity == "ill"), cast(ClockName, truth.unit))
    return first[0][0] if first else None


def examine_all(out: Path, say: Callable[[str], None] = lambda _line: None) -> list[Case]:
    truths = load_all(out)
    if not truths:
        raise InputError(f"{out} holds no truth/ of lab runs", do=f"Make one with: wheeltapper lab corpus -o {out}")
    cases = []
    for number, truth in enumerate(truths, 1):
        cases.append(examine(truth, out))
        say(f"[{number}/{len(truths)}] {truth.run}: {cases[-1].verdict}")
    return cases


def share(items: Iterable[bool]) -> float | None:
    values = list(items)
    return sum(values) / len(values) if values else None


def summary(cases: list[Case]) -> dict[str, Any]:
    """All the figures of one set of cases."""
    harmed = [c for c in cases if c.harmed]
    calm = [c for c in cases if c.truth.kind != "fault"]
    troubled = [c for c in cases if c.troubled]
    unharmed = [c for c in cases if c.truth.kind == "fault" and not c.harmed and not c.troubled]
    decidable = [c for c in harmed if c.truth.decidable]
    timed = [c for c in harmed if c.truth.onset and c.onset is not None]
    errors = [abs(c.onset - c.truth.onset) / max(1, c.truth.length) for c in timed if c.onset and c.truth.onset]
    return {
        "runs": len(cases),
        "harmed": len(harmed),
        "detected": share(c.verdict == "ill" for c in harmed),
        "detected_decidable": share(c.verdict == "ill" for c in decidable),
        "troubled": len(troubled),
        "noticed": share(c.noticed for c in troubled),
        "healthy": len([c for c in calm if c.truth.kind == "healthy"]),
        "false_alarms_healthy": share(c.verdict == "ill" for c in calm if c.truth.kind == "healthy"),
        "benign": len([c for c in calm if c.truth.kind == "benign"]),
        "false_alarms_benign": share(c.verdict == "ill" for c in calm if c.truth.kind == "benign"),
        "unharmed": len(unharmed),
        "unharmed_called_ill": share(c.verdict == "ill" for c in unharmed),
        "cannot_tell": share(c.verdict == "cannot-tell" for c in cases),
        "unread": len([c for c in cases if c.verdict == "unread"]),
        "split_runs": len([c for c in cases if c.runs > 1]),
        "top1": share(c.rank() == 1 for c in harmed),
        "top3": share((c.rank() or 99) <= 3 for c in harmed),
        "decidable": len(decidable),
        "top1_decidable": share(c.rank() == 1 for c in decidable),
        "top3_decidable": share((c.rank() or 99) <= 3 for c in decidable),
        "onset_error_median": median(errors) if errors else None,  # as a share of the run
        "onset_known": len(errors),
        "calibration": calibration(harmed),
    }


def calibration(cases: list[Case]) -> list[dict[str, float]]:
    """For each band of stated probability: how many first causes were in it, and how many were right."""
    rows = []
    for low, high in pairwise(BINS):
        inside = [c for c in cases if c.causes and low <= c.causes[0][1] < high]
        if inside:
            said = sum(c.causes[0][1] for c in inside) / len(inside)
            right = sum(c.rank() == 1 for c in inside) / len(inside)
            rows.append({"from": low, "to": min(high, 1.0), "runs": len(inside), "said": said, "right": right})
    return rows


def confusion(cases: list[Case]) -> list[tuple[str, str, int]]:
    """(what is true, what was said first, how often), wrong ones only, most frequent first."""
    pairs: Counter[tuple[str, str]] = Counter()
    for case in cases:
        true = case.truth.cause if case.harmed else case.truth.kind
        said = case.causes[0][0] if case.verdict == "ill" and case.causes else case.verdict
        if case.harmed and case.rank() != 1:
            pairs[str(true), said] += 1
        elif not case.harmed and case.truth.kind != "fault" and case.verdict == "ill":
            pairs[f"{true} {case.truth.fault or ''}".strip(), said] += 1
    return [(true, said, count) for (true, said), count in pairs.most_common()]


def leave_one_out(cases: list[Case]) -> dict[str, tuple[list[Case], list[Case]]]:
    """For each system: the cases of all others (to fit on) and its own (to test on)."""
    systems = sorted({c.truth.system for c in cases})
    return {
        name: ([c for c in cases if c.truth.system != name], [c for c in cases if c.truth.system == name])
        for name in systems
    }
