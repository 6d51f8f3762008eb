"""How often a trial is wrong, when it is looked at after every pair: simulated outcomes, and real toy trainings.

    python scripts/trial_errors.py [--plays 20000] [--toys 300]

Prints a table in Markdown; the figures in LOG.md come from here. A rate is right if it is at or under its alpha
(or beta); the column "of" says how many trials it comes from.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from wheeltapper.trial.compare import LEAST_PAIRS, STILL_BREAKS, decide_all
from wheeltapper.trial.exact import student_cdf
from wheeltapper.trial.measure import endpoint
from wheeltapper.trial.model import Outcome, Rule
from wheeltapper.trial.sequential import fewer_evalue, over_evalue, t_evalue

ALPHA, PAIRS = 0.05, 20
TOY = Path(__file__).resolve().parents[1] / "tests" / "trial" / "toy" / "train.py"
Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]

# Values of one run; control and arm are drawn alike, so whatever is confirmed is wrong.
NULLS: dict[str, Draw] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "heavy tails (t, 2 degrees)": lambda rng, shape: rng.standard_t(2, shape),
    "skewed (lognormal 1.5)": lambda rng, shape: rng.lognormal(0, 1.5, shape),
    "two clusters, half of the runs ill": lambda rng, shape: (rng.random(shape) < 0.5) + 0.05 * rng.normal(size=shape),
    "two clusters, one in ten ill": lambda rng, shape: (rng.random(shape) < 0.1) + 0.05 * rng.normal(size=shape),
    "rounded to a coarse grid": lambda rng, shape: np.round(rng.normal(size=shape)),
    "mostly ties": lambda rng, shape: np.round(0.4 * rng.normal(size=shape)),
}


def row(name: str, wrong: float, bound: float, many: int) -> None:
    print(f"| {name} | {100 * wrong:.2f} % | {100 * bound:g} % | {many:,} |")


def differences(plays: int) -> None:
    rng = np.random.default_rng(1)
    for name, draw in NULLS.items():
        gain = draw(rng, (plays, PAIRS)) - draw(rng, (plays, PAIRS))
        bets = np.stack([t_evalue(gain[:, :n]) for n in range(LEAST_PAIRS, PAIRS + 1)], 1).max(1)
        row(f"difference, {name}, one arm", float(np.mean(bets >= 1 / ALPHA)), ALPHA, plays)
    spread = rng.normal(size=(plays, PAIRS)) - 10 * rng.normal(size=(plays, PAIRS))
    bets = np.stack([t_evalue(spread[:, :n]) for n in range(LEAST_PAIRS, PAIRS + 1)], 1).max(1)
    row("difference, spreads 1 and 10, one arm", float(np.mean(bets >= 1 / ALPHA)), ALPHA, plays)
    plain = np.zeros(plays, dtype=bool)
    gain = rng.normal(size=(plays, PAIRS))
    for n in range(LEAST_PAIRS, PAIRS + 1):
        t = gain[:, :n].mean(1) / gain[:, :n].std(1, ddof=1) * np.sqrt(n)
        plain |= student_cdf(t, n - 1) >= 1 - ALPHA
    row("for comparison: a plain t-test at every look", float(plain.mean()), ALPHA, plays)
    rng = np.random.default_rng(2)
    base = rng.normal(size=(plays, PAIRS))
    worst = np.zeros(plays)
    for _ in range(3):
        gain = rng.normal(size=(plays, PAIRS)) - base  # three arms share one control
        bets = np.stack([t_evalue(gain[:, :n]) for n in range(LEAST_PAIRS, PAIRS + 1)], 1).max(1)
        worst = np.maximum(worst, bets)
    row("difference, three arms and one control, any confirmed", float(np.mean(worst >= 3 / ALPHA)), ALPHA, plays)
    for share in (0.5, 0.99):
        gain = rng.normal(10 * share, 1, (plays, PAIRS)) - 10
        bets = np.stack([t_evalue(gain[:, :n]) for n in range(LEAST_PAIRS, PAIRS + 1)], 1).max(1)
        row(
            f"difference, the arm gains {share:.0%} of delta = 10 spreads",
            float(np.mean(bets >= 1 / ALPHA)),
            ALPHA,
            plays,
        )


def symptoms(plays: int) -> None:
    rng = np.random.default_rng(3)
    for rate in (0.1, 0.3, 0.5, 0.7, 0.9, 1.0):
        control, arm = rng.random((plays, PAIRS)) < rate, rng.random((plays, PAIRS)) < rate
        kinds = [control & arm, control & ~arm, ~control & arm, ~control & ~arm]
        counts = np.stack([np.cumsum(kind, 1) for kind in kinds], -1).reshape(-1, 4)
        rows, which = np.unique(counts, axis=0, return_inverse=True)
        few = rows[:, 0] + rows[:, 2] <= STILL_BREAKS * rows.sum(1)
        hit = ((fewer_evalue(*rows.T) >= 1 / ALPHA) & few)[which.reshape(-1)].reshape(plays, PAIRS)
        row(f"symptom, both break in {rate:.0%}, confirmed", float(hit.any(1).mean()), ALPHA, plays)
    broke = np.cumsum(rng.random((plays, PAIRS)) < STILL_BREAKS, 1)
    hit = over_evalue(broke, np.arange(1, PAIRS + 1), STILL_BREAKS)[:, 2:] >= 1 / ALPHA
    row("symptom, the arm breaks in a quarter, refuted", float(hit.any(1).mean()), ALPHA, plays)


def toy_runs() -> Callable[[int, float, float], Outcome]:
    """The toy of the tests, run in this process; its outcome as the driver would judge it."""
    spec = importlib.util.spec_from_file_location("toy", TOY)
    assert spec is not None
    assert spec.loader is not None
    toy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(toy)
    folder = Path(tempfile.mkdtemp(prefix="toys-"))

    def run(seed: int, lr: float, decay: float) -> Outcome:
        config = folder / "config.yaml"
        config.write_text(f"seed: 1\ntotal_steps: 60\nlr: {lr}\nweight_decay: {decay}\nwarmup_steps: 5\nnoise: 0.3\n")
        sys.argv = ["train.py", "--config", str(config), "--out", str(folder), "--seed", str(seed)]
        toy.print = lambda *_: None
        toy.main()
        words = [line.split() for line in (folder / "train.log").read_text().splitlines() if "val_loss" in line]
        value = endpoint(tuple((float(w[1]), float(w[3])) for w in words), 3)
        return Outcome(seed, value, value is None or not value < 5.0)

    return run


def toys(many: int) -> None:
    """Trials of real trainings, one control and two arms, at most eight pairs, judged after each."""
    run = toy_runs()
    kinds: dict[str, tuple[Rule, float, float, tuple[tuple[float, float, int], ...]]] = {
        # name: rule, lr and decay of the control, and of each arm (lr, decay, seeds shifted by)
        "no effect on the endpoint (other seeds)": (
            Rule("difference", "val/loss", "down", 0.0, arms=2), 0.5, 0.0, ((0.5, 0.0, 5000), (0.5, 0.0, 9000)),
        ),
        "runs at the edge diverge by luck (other seeds)": (
            Rule("symptom", "val/loss", "down", arms=2), 1.96, 0.0, ((1.96, 0.0, 5000), (1.96, 0.0, 9000)),
        ),
        "diverges: rate cut (true), decay added (wrong)": (
            Rule("symptom", "val/loss", "down", arms=2), 2.3, 0.0, ((0.5, 0.0, 0), (2.3, 0.001, 0)),
        ),
        "decline by decay: removed (true), rate cut (wrong)": (
            Rule("difference", "val/loss", "down", 0.05, arms=2), 0.5, 2.0, ((0.5, 0.0, 0), (0.3, 2.0, 0)),
        ),
    }  # fmt: skip
    seeds = itertools.count(1)
    for name, (rule, lr, decay, arms) in kinds.items():
        answers: list[dict[str, str]] = []
        for _ in range(many):
            control: list[Outcome] = []
            found: dict[str, list[Outcome]] = {str(k): [] for k in range(len(arms))}
            settled: dict[str, str] = {}
            for _ in range(8):
                seed = next(seeds)
                one = run(seed, lr, decay)
                control.append(replace(one, broke=None) if rule.kind == "difference" else one)
                for k, (arm_lr, arm_decay, shift) in enumerate(arms):
                    two = run(seed + 10**6 * shift, arm_lr, arm_decay)
                    found[str(k)].append(
                        replace(two, seed=seed, broke=None if rule.kind == "difference" else two.broke)
                    )
                verdicts = decide_all(control, found, rule, forecast=False)
                for arm, verdict in verdicts.items():
                    if verdict.answer != "cannot-tell":
                        settled.setdefault(arm, verdict.answer)
                if len(settled) == len(arms):
                    break
            answers.append(settled)
        tally = [
            " ".join(f"{word} {sum(a.get(str(k)) == word for a in answers)}" for word in ("confirmed", "refuted"))
            for k in range(len(arms))
        ]
        wrong = {"0", "1"} if arms[0][2] else {"1"}
        row(f"toy: {name}: {'; '.join(tally)}; wrongly confirmed", sum(
            any(a.get(k) == "confirmed" for k in wrong) for a in answers) / many, ALPHA, many)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plays", type=int, default=20_000)
    parser.add_argument("--toys", type=int, default=300)
    args = parser.parse_args()
    print("| trial | wrong | allowed | of |\n| --- | --- | --- | --- |")
    differences(args.plays)
    symptoms(args.plays)
    toys(args.toys)


if __name__ == "__main__":
    main()
