"""Trials on lab systems for the scripts of this folder: arms with shared seeds, judged after every pair.

The runs are those of `lab_arm.py`; their records are read and judged by the project's own trial.measure and
trial.compare. What came out of a run is kept in a JSON-lines file, so that a script that was stopped goes on.
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lab_arm

from wheeltapper.run.gather import read_runs
from wheeltapper.trial.compare import Bias, decide_all, rate_bias
from wheeltapper.trial.measure import curve_of, endpoint
from wheeltapper.trial.model import Outcome, Rule, Verdict

# The endpoint of each system, as its own log gives it: name, which way is better, clock, what a spread over
# seeds of the healthy recipe is in its unit (lab/systems: NOISE).
ENDPOINTS = {
    "sr-nano": ("val/psnr.Scenes_Val", "up", "step"),
    "resnet-ddp": ("val/accuracy", "up", "epoch"),
    "sedd-protein": ("val/loss", "down", "step"),
    "edm-prior": ("val/loss", "down", "step"),
}
# Size "test", cut to 25 to 40 % of its length: hundreds of runs on a shared machine. Schedules are cut with it.
SHORT: dict[str, dict[str, Any]] = {
    "sr-nano": {"total_iter": 160, "milestones": [80, 120], "T_max": 160, "T_0": 40, "warmup_iter": 12}
    | {"val_freq": 16, "print_freq": 8, "save_freq": 1000},
    "resnet-ddp": {"epochs": 14, "warmup_epochs": 3, "max_samples": 384, "checkpoint_interval": 100},
    "sedd-protein": {"n_iters": 180, "warmup": 12, "eval_freq": 20, "snapshot_freq": 1000, "preschool_time": 90},
    "edm-prior": {"max_steps": 110, "warmup_steps": 9, "val_frequency": 10, "save_frequency_steps": 1000},
}
SEED = 100  # the first seed of a pair; the ill run itself has seed 0, and is not one of the pairs


@dataclass(frozen=True)
class Case:
    """One trial: the settings of the ill run, and the arms as settings to put over them."""

    name: str
    config: dict[str, Any]
    arms: Mapping[str, dict[str, Any]]
    right: frozenset[str] = frozenset()  # arms that mend the true cause
    kind: str = "difference"
    metric: str = ""  # "" for the system's endpoint
    better: str = ""
    delta: float | None = None  # None: half of what the ill run lacks against the healthy one
    says: Mapping[str, str] = field(default_factory=dict)  # arm -> the claim in words


@dataclass
class Bench:
    """Where outcomes are kept."""

    folder: Path
    known: dict[str, dict[str, Any]] = field(default_factory=dict)
    seconds: float = 0.0
    runs: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.file = self.folder / "outcomes.jsonl"
        if self.file.exists():
            rows = [json.loads(line) for line in self.file.read_text(encoding="utf-8").splitlines()]
            self.known = {row["key"]: row for row in rows}

    def outcome(self, config: dict[str, Any], seed: int, metric: str, clock: str, again: int = 0) -> dict[str, Any]:
        """Train once (or take what is known) and read the record. `again` tells repeats of one seed apart (A/A)."""
        text = json.dumps([config, seed, metric, again], sort_keys=True)
        key = hashlib.sha256(text.encode()).hexdigest()[:16]
        if key not in self.known:
            self.known[key] = self._train(key, config, seed, metric, clock)
            with self.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(self.known[key]) + "\n")
        return self.known[key]

    def _train(self, key: str, config: dict[str, Any], seed: int, metric: str, clock: str) -> dict[str, Any]:
        place = Path(tempfile.mkdtemp(prefix="arm-", dir=self.folder))
        began = time.monotonic()
        ended = lab_arm.run(config, seed, place / "out")
        runs = [run for run in read_runs(place / "out") if run.series_named(metric) is not None]
        series = runs[0].series_named(metric) if runs else None
        curve = () if series is None else curve_of(series, clock, None)
        rates = runs[0].series_named("lr") if runs else None
        finite = [] if rates is None else [float(v) for v in rates.values if math.isfinite(v)]
        raw = runs[0].series_named("train/loss") if runs else None
        losses = None if raw is None else curve_of(raw, clock, None)
        shutil.rmtree(place)
        took = time.monotonic() - began
        self.seconds, self.runs = self.seconds + took, self.runs + 1
        return {
            "key": key,
            "seed": seed,
            "ended": ended,
            "value": endpoint(curve, 3),
            "position": curve[-1][0] if curve else 0.0,
            "rates": [max(finite), finite[-1]] if finite else [],
            "train": [] if losses is None else [endpoint(losses[:9], 9), endpoint(losses, 9)],
            "seconds": round(took, 2),
        }


def ill(name: str, fault: str | None, **base: Any) -> dict[str, Any]:
    """The settings of an ill run (or a healthy one), in short."""
    return lab_arm.config_of(name, fault, 0, "test", **(SHORT[name] | base))


def healthy(config: dict[str, Any]) -> dict[str, Any]:
    """The recipe that the fault was put on, with what the fault needs around it."""
    fault = lab_arm.plan_of(config, 0).fault
    return ill(config["system"], None) | (fault.needs if fault else {})


def run_case(
    case: Case, bench: Bench, *, most_pairs: int = 6, alpha: float = 0.05, beta: float = 0.05
) -> dict[str, Any]:
    """The trial, pair by pair, until every arm is decided or the pairs are used up."""
    name, way, clock = ENDPOINTS[case.config["system"]]
    metric, better = case.metric or name, case.better or way
    ill = bench.outcome(case.config, 0, metric, clock)
    delta, line = case.delta, None
    if case.kind == "difference" and delta is None:
        well = bench.outcome(healthy(case.config), 0, metric, clock)
        delta = abs(well["value"] - ill["value"]) / 2
        line = (well["value"] + ill["value"]) / 2
    rule = Rule(case.kind, metric, better, delta, alpha=alpha, beta=beta, arms=len(case.arms))  # type: ignore[arg-type]

    def judged(row: dict[str, Any]) -> Outcome:
        # What a run logged before it crashed is not an endpoint.
        value = row["value"] if row["ended"] == "finished" else math.nan
        broke: bool | None = None
        if line is not None:
            bad = value is None or not math.isfinite(value)
            broke = bad or ((value < line) if better == "up" else (value > line))
        elif case.kind == "symptom":
            broke = value is None or not math.isfinite(value)
        return Outcome(row["seed"], value, broke, row["position"])

    control: list[Outcome] = []
    arms: dict[str, list[Outcome]] = {arm: [] for arm in case.arms}
    rates: dict[str, list[float]] = {}
    verdicts: dict[str, Verdict] = {}
    settled: dict[str, Verdict] = {}
    base = bench.outcome(case.config, SEED, metric, clock)
    aa = [judged(bench.outcome(case.config, SEED, metric, clock, again=1))]
    for seed in range(SEED, SEED + most_pairs):
        control.append(judged(bench.outcome(case.config, seed, metric, clock)))
        for arm, change in case.arms.items():
            if arm not in settled:
                row = bench.outcome({**case.config, **change}, seed, metric, clock)
                arms[arm].append(judged(row))
                rates[arm] = row["rates"]
        bias: dict[str, Bias] = {arm: rate_bias(base["rates"], rates[arm]) for arm in arms}
        verdicts = decide_all(control, arms, rule, aa=aa, bias=bias, forecast=False)
        settled |= {a: v for a, v in verdicts.items() if v.answer != "cannot-tell" and a not in settled}
        if len(settled) == len(arms):
            break
    verdicts |= settled  # an arm that was decided is not looked at again
    return {
        "case": case.name,
        "system": case.config["system"],
        "delta": delta,
        "control": [one.value for one in control],
        "train": base.get("train", []),
        "aa": abs(aa[0].value - control[0].value) if aa[0].value is not None and control[0].value is not None else None,
        "arms": {
            arm: {
                "right": arm in case.right,
                "answer": one.answer,
                "why": one.why,
                "pairs": one.pairs,
                "p": one.p,
                "effect": one.effect,
                "low": one.low,
                "high": one.high,
                "rung": one.rung,
                "more": one.more,
                "values": [two.value for two in arms[arm]],
                "change": case.arms[arm],
            }
            for arm, one in verdicts.items()
        },
    }
