"""The score in words and in JSON."""

from __future__ import annotations

from typing import Any

from wheeltapper.lab.score import Case, calibration, confusion, leave_one_out, summary

LINES = (
    ("detected", "faults that did harm, called ill", "harmed"),
    ("detected_decidable", "  where the folder can tell the cause", "decidable"),
    ("noticed", "lesser troubles (memory, time, after the end) noticed", "troubled"),
    ("false_alarms_healthy", "healthy runs called ill", "healthy"),
    ("false_alarms_benign", "benign oddities called ill", "benign"),
    ("unharmed_called_ill", "faults that did no harm, called ill", "unharmed"),
    ("top1", "true cause named first", "harmed"),
    ("top3", "true cause among the first three", "harmed"),
    ("top1_decidable", "  first, where the folder can tell the cause", "decidable"),
    ("top3_decidable", "  among three, where the folder can tell", "decidable"),
    ("onset_error_median", "median error of the onset, share of the run", "onset_known"),
    ("cannot_tell", "runs of which it said it cannot tell", "runs"),
)


def percent(value: float | None) -> str:
    return "     -" if value is None else f"{100 * value:5.1f}%"


def as_text(cases: list[Case], misses: bool = False) -> str:
    columns = {"all": summary(cases)} | {name: summary(own) for name, (_, own) in leave_one_out(cases).items()}
    lines = [f"{'':54}" + "".join(f"{name:>20}" for name in columns)]
    for key, words, count in LINES:
        cells = (f"{percent(figures[key])} of {figures[count]:4d}" for figures in columns.values())
        lines.append(f"{words:54}" + "".join(f"{cell:>20}" for cell in cells))
    lines += ["", "stated probability of the first cause against how often it was right:"]
    lines += [
        f"  {row['from']:.1f} to {row['to']:.1f}: {row['runs']:4.0f} runs, said {percent(row['said'])}, "
        f"right {percent(row['right'])}"
        for row in calibration([c for c in cases if c.harmed])
    ]
    lines += ["", "taken for something else (true, said, runs):"]
    lines += [f"  {true:34} {said:34} {count:3d}" for true, said, count in confusion(cases)]
    if misses:
        lines += ["", "every run that was got wrong:", *(miss(c) for c in cases if wrong(c))]
    return "\n".join(lines)


def wrong(case: Case) -> bool:
    if case.harmed:
        return case.verdict != "ill" or case.rank() != 1
    if case.troubled:
        return not case.noticed
    return case.truth.kind != "fault" and case.verdict != "sound"


def miss(case: Case) -> str:
    said = ", ".join(f"{name} {p:.2f}" for name, p in case.causes[:3]) or "no cause"
    truth = case.truth
    what = f"{truth.system} {truth.fault or 'healthy'}" + ("" if truth.kind != "fault" else f" [{truth.cause}]")
    return f"  {truth.run} {what}: {case.verdict}; {said}"


def as_json(cases: list[Case]) -> dict[str, Any]:
    return {
        "all": summary(cases),
        "systems": {name: summary(own) for name, (_, own) in leave_one_out(cases).items()},
        "confusion": [{"true": t, "said": s, "runs": n} for t, s, n in confusion(cases)],
        "cases": [
            {
                "run": c.truth.run,
                "system": c.truth.system,
                "kind": c.truth.kind,
                "fault": c.truth.fault,
                "cause": c.truth.cause,
                "harmed": c.harmed,
                "decidable": c.truth.decidable,
                "verdict": c.verdict,
                "said": [{"cause": name, "probability": p} for name, p in c.causes],
                "onset": c.onset,
                "true_onset": c.truth.onset,
                "headline": c.headline,
            }
            for c in cases
        ],
    }
