"""What is true of a run: harm against its healthy twin, onset, best checkpoint, class."""

from __future__ import annotations

import math
import statistics
from itertools import pairwise
from typing import Any

from wheeltapper.lab.worlds.draw import Draw
from wheeltapper.lab.worlds.faults import Fault

Rows = list[dict[str, Any]]
Curve = list[tuple[int, float]]
HARM = 0.1  # share of the twin's improvement that must be lost
OTHER_SCORES = {"r2": ("r2", "max"), "mase": ("mase", "min")}
CEILINGS = {"acc": 1.0, "miou": 1.0, "map50": 1.0, "knn_acc": 1.0}
FAR_STARTS = {"swd": 1.0}  # samples of an untrained network may lie anywhere; a unit distance is bad enough
RETURNS = {"Pole-v0": 110.0, "Reach-v0": -14.0, "Grid-v0": 0.6}


def curve(rows: Rows, key: str) -> Curve:
    """The score by step, the last word on a step that was logged twice."""
    found = {row["step"]: row["values"][key] for row in rows if row["split"] != "train" and key in row["values"]}
    return sorted(found.items())


def last_level(points: Curve) -> float:
    values = [v for _, v in points[-3:]]
    return statistics.median(values) if values and all(map(math.isfinite, values)) else math.nan


def noise_of(points: Curve) -> float:
    """Typical jump from one evaluation to the next in the last third, as a standard deviation."""
    values = [v for _, v in points[-max(4, len(points) // 3) :] if math.isfinite(v)]
    jumps = [abs(b - a) for a, b in pairwise(values)]
    return statistics.median(jumps) / 0.95 if jumps else 0.0


def best_of(points: Curve, mode: str) -> tuple[int, float] | None:
    finite = [p for p in points if math.isfinite(p[1])]
    if not finite:
        return None
    return (max if mode == "max" else min)(finite, key=lambda p: p[1])


def best_steps(points: Curve, mode: str, noise: float) -> list[int]:
    best = best_of(points, mode)
    if best is None:
        return []
    finite = [v for _, v in points if math.isfinite(v)]
    slack = max(0.5 * noise, 0.01 * (max(finite) - min(finite)))
    return [s for s, v in points if math.isfinite(v) and abs(v - best[1]) <= slack]


def learned(draw: Draw, init: float, final: float) -> bool:
    """Did a healthy run learn its task, by its own numbers?"""
    name, main = draw.family.name, draw.family.main
    if not math.isfinite(final):
        return False
    if main == "ep_rew_mean":
        return final >= RETURNS[draw.cfg["env_id"]]
    if main == "rewards_accuracy":
        return final >= 0.65
    if main == "psnr":
        return final >= init + 8
    if main in CEILINGS:
        return (final - init) / (1 - init + 1e-9) >= 0.3
    if init <= 0:
        return final < init
    return (init - final) / init >= (0.1 if name in ("gpt", "mlm", "lora", "rec") else 0.25)


def sound(draw: Draw, points: Curve, init: float) -> list[str]:
    """What speaks against a healthy run; empty when it is sound."""
    final, best = last_level(points), best_of(points, draw.family.mode)
    if best is None or not learned(draw, init, final):
        return ["not learned"]
    gain = abs(best[1] - init)
    if abs(best[1] - final) > max(0.12 * gain, 3 * noise_of(points)):
        return ["final far from best"]
    return []


def harm(draw: Draw, fault: Fault, run: Rows, twin: Rows, init: float) -> tuple[float, bool, bool]:
    """Effect, whether it counts, and whether the run claims to be better than its twin."""
    key, mode = OTHER_SCORES.get(fault.measure, (draw.family.main, draw.family.mode))
    factor = draw.cfg["image_size"] ** 2 if fault.measure == "scaled" else 1.0
    mine, theirs = curve(run, key), curve(twin, key)
    final, twin_final, best = factor * last_level(mine), last_level(theirs), best_of(theirs, mode)
    if fault.measure in OTHER_SCORES:
        init = 0.0 if mode == "max" else 1.0
    if best is None or not math.isfinite(twin_final):
        return 0.0, False, False
    gain = max(abs(best[1] - init), 1e-9)
    if not math.isfinite(final):
        return 1.0, True, False
    sign = 1 if mode == "max" else -1
    lost = sign * (twin_final - final) / gain
    above_noise = abs(twin_final - final) > 3 * noise_of(theirs)
    if fault.measure == "claim":
        halves = final < 0.5 * twin_final if mode == "min" else (1 - final) < 0.5 * (1 - twin_final)
        counts = above_noise and (abs(lost) >= HARM or lost < -0.05 or (halves and lost < -0.02))
        return abs(lost), counts, lost < 0
    return lost, lost >= HARM and above_noise, False


def cost(fault: Fault, run: Rows, twin: Rows) -> tuple[float, bool]:
    """Slowdown or growth of memory against the twin."""
    if fault.measure == "speed":
        factor = run[-1]["clock"] / max(1e-6, twin[-1]["clock"])
        return factor - 1, factor >= 1.4
    grown = [r["values"]["mem_mb"] for r in run if "mem_mb" in r["values"]]
    base = [r["values"]["mem_mb"] for r in twin if "mem_mb" in r["values"]]
    if len(grown) < 4:
        return 0.0, False
    mine, theirs = grown[-1] - grown[len(grown) // 8], base[-1] - base[len(base) // 8]
    return mine / max(1.0, grown[0]), mine > 40 and mine > 4 * max(5.0, theirs)


def shows_at(draw: Draw, run: Rows, twin: Rows, init: float) -> int | None:
    """The first evaluation from which the run stays clearly behind its twin, or away from it."""
    mine, theirs = curve(run, draw.family.main), curve(twin, draw.family.main)
    best = best_of(theirs, draw.family.mode)
    if best is None or not theirs:
        return None
    bar = max(0.07 * abs(best[1] - init), 2 * noise_of(theirs))
    apart = []
    for step, value in mine:
        near = min(theirs, key=lambda p: abs(p[0] - step))[1]
        apart.append(not math.isfinite(value) or abs(value - near) > bar)
    for i, (step, _) in enumerate(mine):
        rest = apart[i:]
        if apart[i] and sum(rest) >= 0.8 * len(rest):
            return step
    return mine[-1][0] if mine else None


def first_not_finite(rows: Rows) -> int | None:
    for row in rows:
        if any(isinstance(v, float) and not math.isfinite(v) for v in row["values"].values()):
            return int(row["step"])
    return None


def pattern_of(draw: Draw, fault: Fault, run: Rows, effect: float, better: bool, init: float) -> str:
    if fault.measure in ("speed", "memory"):
        return "throughput"
    points = curve(run, draw.family.main)
    final, best = last_level(points), best_of(points, draw.family.mode)
    losses = [r["values"].get("loss", 0.0) for r in run if r["split"] == "train"]
    if best is None or not all(map(math.isfinite, [final, *losses[-3:]])):
        return "nan"
    if better:
        return "too_good"
    if fault.group == "evaluation":
        return "ema_gap" if "ema" in fault.id else "val_gap"
    if fault.cause == "overfitting":
        return "overfit"
    if len(losses) > 4 and losses[-1] > 1.3 * losses[0] > 0:
        return "divergence"
    if abs(best[1] - init) > 0 and abs(best[1] - final) > 0.4 * abs(best[1] - init):
        return "degradation"
    return "stuck" if effect >= 0.85 else "plateau"


ALIKE = [
    {"stuck", "plateau", "degradation", "divergence", "slow", "oscillation"},
    {"val_gap", "overfit", "plateau", "stuck", "ema_gap"},
]


def patterns_ok(pattern: str) -> list[str]:
    """Other words for the same picture that a reader may use as well."""
    alike = set().union(*(group for group in ALIKE if pattern in group))
    return [pattern, *sorted(alike - {pattern})]


def onset_of(draw: Draw, fault: Fault, run: Rows, twin: Rows, init: float) -> tuple[int, int, int]:
    total = max(row["step"] for row in run)
    begin = int(draw.notes.get("cause_step", 0))
    if fault.measure in ("speed", "memory"):
        return begin, begin, begin + int(0.3 * total)
    shows = shows_at(draw, run, twin, init) if fault.measure in ("score", "claim") else None
    bad = first_not_finite([r for r in run if r["split"] == "train"]) if draw.family.name != "dqn" else None
    shows = min((x for x in (shows, bad) if x is not None), default=begin + int(0.1 * total))
    end = max(begin + int(0.1 * total), shows)
    return (begin or shows), begin, end
