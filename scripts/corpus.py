"""The labelled records against our diagnosis: verdicts, false alarms per sign, the causes named.

    python scripts/corpus.py [FOLDER] [NAME ...]

FOLDER holds MANIFEST.csv and one folder per record (default: ../shared/runs beside the checkout).
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from wheeltapper.api import diagnose
from wheeltapper.judge.model import Diagnosis

HEALTHY = {"healthy", "healthy-hard-negative"}


@dataclass(frozen=True)
class Row:
    name: str
    kind: str  # the class in the manifest
    label: str
    verdict: str  # the worst verdict among the runs of the record
    right: bool | None  # None: the label does not decide, or we do not claim to judge
    diagnoses: tuple[Diagnosis, ...]


def judge(folder: Path, only: list[str] | None = None) -> list[Row]:
    rows = []
    with (folder / "MANIFEST.csv").open(encoding="utf-8") as file:
        for entry in csv.DictReader(file):
            if only and not any(word in entry["name"] for word in only):
                continue
            diagnoses = tuple(diagnose(folder / entry["name"]))
            verdicts = [d.verdict for d in diagnoses]
            verdict = next((v for v in ("ill", "sound", "cannot-tell") if v in verdicts), "cannot-tell")
            rows.append(
                Row(entry["name"], entry["class"], entry["label"], verdict, _right(entry["class"], verdict), diagnoses)
            )
    return rows


def _right(kind: str, verdict: str) -> bool | None:
    if verdict == "cannot-tell":
        return True if kind == "unjudgeable" else None
    if kind in HEALTHY:
        return verdict == "sound"
    if kind == "trouble":
        return verdict == "ill"
    if kind == "unjudgeable":
        return False
    return None


def main(arguments: list[str]) -> int:
    folder = Path(__file__).resolve().parents[2] / "shared" / "runs"
    if arguments and (Path(arguments[0]) / "MANIFEST.csv").is_file():
        folder = Path(arguments.pop(0))
    if not (folder / "MANIFEST.csv").is_file():
        print(f"{folder} holds no MANIFEST.csv; give the folder of labelled records as the first argument")
        return 2
    rows = judge(folder, arguments)
    alarms: Counter[str] = Counter()
    for row in rows:
        mark = {True: "ok   ", False: "WRONG", None: "open "}[row.right]
        print(f"{mark} {row.verdict:12} {row.kind:22} {row.name:34} {row.label[:70]}")
        for diagnosis in row.diagnoses[:2]:
            for finding in diagnosis.findings:
                if finding.severity == "ill":
                    print(f"        {finding.id} @ {finding.onset} ({finding.grade}): {finding.summary[:150]}")
                if finding.severity == "ill" and row.kind in HEALTHY:
                    alarms[finding.id] += 1
            shown = [f"{c.id} {c.probability:.0%}" for c in diagnosis.causes[:4]]
            if shown:
                print(f"        causes: {', '.join(shown)}")
    judged = [r for r in rows if r.right is not None]
    print(
        f"\n{sum(bool(r.right) for r in judged)} of {len(judged)} judged records right; {len(rows) - len(judged)} left open"
    )
    healthy = [r for r in rows if r.kind in HEALTHY]
    ill = [r for r in rows if r.kind == "trouble"]
    print(
        f"false alarms: {sum(r.verdict == 'ill' for r in healthy)} of {len(healthy)} healthy; by sign: {dict(alarms) or 'none'}"
    )
    print(
        f"found: {sum(r.verdict == 'ill' for r in ill)} of {len(ill)} in trouble; called sound: {[r.name for r in ill if r.verdict == 'sound']}"
    )
    return 1 if any(r.right is False for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
