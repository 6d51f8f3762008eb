"""What is new: each alarm once, a shaky one only when it stands, and a withdrawn one said to be so.

A sign of a growing record may come and go with the next points. What arithmetic decides (NaN, a crash) is raised at
once. What statistics says must be there in two diagnoses in a row, with new points between them. An alarm that two
diagnoses in a row no longer show is withdrawn, in words.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from wheeltapper.finding import Finding
from wheeltapper.judge.model import Diagnosis
from wheeltapper.observations import observations
from wheeltapper.report.text import clean, position

# guard, early: told by a guard inside the training; an early warning is less than an alarm.
Kind = Literal["alarm", "guard", "early", "withdrawn", "silent", "again", "finished", "crashed", "target"]
ADDS_UP = "ill"  # the alarm of a run that no single sign makes ill
LOOKS = 2  # diagnoses in a row, both to raise and to withdraw
MARKS: dict[Kind, str] = {
    "alarm": "✗", "guard": "✗", "early": "!", "withdrawn": "○", "silent": "…", "again": "→", "finished": "■", "crashed": "✗", "target": "★",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Incident:
    """Something that happened to a run since the last look."""

    run: str
    kind: Kind
    id: str  # of the sign, or the kind again
    text: str
    seen: float  # seconds since 1970, by the clock of this machine
    at: float | None = None
    clock: str | None = None

    @property
    def line(self) -> str:
        """
        >>> Incident("exp1", "alarm", "not-finite", "train/loss is NaN from step 40 on.", 0.0, 40, "step").line
        '✗ exp1: not-finite at step 40: train/loss is NaN from step 40 on.'
        """
        where = f" at {position(self.at, self.clock)}" if self.at is not None else ""
        name = f"{self.id}{where}: " if self.kind in ("alarm", "guard", "early") else "withdrawn: " if self.kind == "withdrawn" else ""
        return f"{MARKS[self.kind]} {clean(self.run, 80)}: {name}{clean(self.text)}"


@dataclass(slots=True)
class _Known:
    """One sign of one run."""

    text: str
    seen: int = 0  # diagnoses in a row that show it
    missed: int = 0  # diagnoses in a row that do not, since it was raised
    raised: bool = False
    withdrawn_at: float | None = None  # how far the run had come when it was withdrawn
    onset: float | None = None


def _alarms(diagnosis: Diagnosis) -> dict[str, Finding]:
    """What makes the run ill, by sign or proved defect. The observations behind a verdict change with every look: they
    raise one alarm of their own, and only where there is nothing else to name."""
    ill = [f for f in reversed(diagnosis.findings) if f.severity == "ill" and f.grade != "suspected"]
    observed = {o.id for o in observations()}
    named = {f.id: f for f in ill if f.id not in observed}
    return named if named or not ill else {ADDS_UP: ill[-1]}


class Ledger:
    """What was said about each run. It fits a small file, so that the next call of a cron job knows it."""

    def __init__(self) -> None:
        self._runs: dict[str, dict[str, _Known]] = {}
        self._said: dict[str, list[str]] = {}  # words said once for each run: finished, silent

    def judge(self, key: str, diagnosis: Diagnosis, now: float, *, name: str, first: bool) -> list[Incident]:
        """What this diagnosis of a run has that the last one had not. `first`: nothing was known of the run, so
        that what is found stood there before and need not prove itself."""
        known = self._runs.setdefault(key, {})
        alarms = _alarms(diagnosis)
        out: list[Incident] = []
        for id, finding in alarms.items():
            if self._rises(known.setdefault(id, _Known(finding.summary)), finding, first=first):
                out.append(Incident(name, "alarm", id, finding.summary, now, finding.onset, finding.clock))
        # What another alarm outdoes (a loss that rose, by its NaN) is told as a watch, and is not taken back; nor is
        # what arithmetic decides, while it stands there and only the verdict wavers.
        outdone = {f.id for f in diagnosis.findings if f.severity == "watch" and (alarms or f.grade == "is")}
        for id, record in known.items():
            if id in alarms or id in outdone:
                continue
            record.seen = 0
            if record.raised and record.withdrawn_at is None:
                record.missed += 1
                if record.missed >= LOOKS:
                    record.withdrawn_at = diagnosis.progress.at if diagnosis.progress.at is not None else float("inf")
                    text = f"{id} is no longer seen now that more is known (it was: {record.text})"
                    out.append(Incident(name, "withdrawn", id, text, now))
        return sorted(out, key=lambda i: (i.kind != "alarm", i.at is None, i.at or 0.0))

    def _rises(self, record: _Known, finding: Finding, *, first: bool) -> bool:
        record.missed = 0
        record.seen += 1
        record.text = finding.summary
        if record.withdrawn_at is not None:
            # Only what began after it was withdrawn is another event; the same one is not told twice.
            if finding.onset is None or finding.onset <= record.withdrawn_at:
                return False
            record.raised, record.withdrawn_at, record.seen = False, None, 1
        if record.raised or not (first or finding.grade == "is" or record.seen >= LOOKS):
            return False
        record.raised, record.onset = True, finding.onset
        return True

    def new(self, key: str, word: str) -> bool:
        """Whether this was not passed on before; from now on it was."""
        said = self._said.setdefault(key, [])
        if word in said:
            return False
        said.append(word)
        return True

    def once(self, key: str, name: str, kind: Kind, text: str, now: float) -> list[Incident]:
        """Something that is said once, until `unsay`."""
        return [Incident(name, kind, kind, text, now)] if self.new(key, kind) else []

    def unsay(self, key: str, kind: Kind) -> bool:
        """It is no longer so; was it said?"""
        said = self._said.get(key, [])
        if kind in said:
            said.remove(kind)
            return True
        return False

    def open(self, key: str) -> list[str]:
        """The signs that were raised and still stand."""
        return [id for id, r in self._runs.get(key, {}).items() if r.raised and r.withdrawn_at is None]

    def to_json(self) -> dict[str, Any]:
        return {
            "signs": {key: {id: asdict(r) for id, r in known.items()} for key, known in self._runs.items()},
            "said": self._said,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Ledger:
        """Raises TypeError, KeyError or AttributeError on what is no ledger."""
        ledger = cls()
        ledger._runs = {
            str(key): {str(id): _Known(**record) for id, record in known.items()}
            for key, known in data["signs"].items()
        }
        ledger._said = {str(key): [str(kind) for kind in said] for key, said in data["said"].items()}
        return ledger
