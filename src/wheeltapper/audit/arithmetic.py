"""Declared lengths against each other: what can never be reached, saved or forgotten in the time given.

Every claim here is arithmetic on the settings, so it is graded "is"; where a unit is not known nothing is said.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace

from wheeltapper.audit.length import Length
from wheeltapper.finding import Finding, Severity
from wheeltapper.settings.knobs import Knobs
from wheeltapper.simulate.ema import RAMPED, first_copy_weight
from wheeltapper.simulate.plan import Plan

# Averages whose decay is the bare number: others ramp it, and are judged by their own rule (EMA-02).
CONSTANT_AVERAGES = {None, "torch", "timm", "constant", "averaged_model"}
STALE = 0.5
DECOUPLED = {"adamw", "lion", "lamb", "adamw8bit", "fusedadamw"}
BY_THE_RATE = DECOUPLED - {"lamb"} | {"adam", "nadam", "radam", "adamax", "adam8bit", "fusedadam"}
LEAPS = 0.1  # twice a weight as it is drawn for a thousand inputs (He: the root of 2/1000 is 0.045)
FORGETS = 20.0  # updates; usual recipes forget within 2,000 (SGD, 0.1 x 5e-4 / 0.1) to 100,000 (AdamW, 1e-3 x 0.01)
REPLACED = 0.95  # of the tokens at the strongest noise; SEDD's own settings reach 99.9 % (log-linear) and more
HARMS = 2.0  # a ramp twice the run: the harder half is never seen


def arithmetic(knobs: Knobs, length: Length, plan: Plan | None = None) -> Iterator[Finding]:
    """Findings from the settings alone."""
    if length.total is not None:
        yield from _beyond_the_end(knobs, length, length.total)
        yield from _average(knobs, length.total)
    yield from _decay(knobs)
    yield from _rate(knobs)
    yield from _last_noise(knobs)
    yield from _cosine(knobs, length)
    yield from _cut_short(knobs, length)
    if plan is not None:
        yield from _overrun(plan, length)


def _found(knobs: Knobs, id_: str, knob: str, text: str, severity: Severity = "ill", **numbers: float) -> Finding:
    return Finding(id_, text, severity, "is", numbers=numbers, places=(knobs.place(knob),))


def _updates(knobs: Knobs, knob: str, length: Length) -> float | None:
    value = knobs.get(knob)
    if value is None or value.default or not isinstance(value.value, (int, float)) or isinstance(value.value, bool):
        return None
    return length.updates(float(value.value), value.unit)


def _beyond_the_end(knobs: Knobs, length: Length, total: float) -> Iterator[Finding]:
    warm = _updates(knobs, "schedule.warmup", length)
    if warm is not None and warm >= total:
        text = f"the warm-up of {warm:,.0f} updates is as long as the run or longer ({total:,.0f}): the learning rate never reaches its peak"
        yield _found(knobs, "warmup-longer-than-run", "schedule.warmup", text, warmup=warm, total=total)
    milestones = knobs.get("schedule.milestones")
    if milestones is not None and not milestones.default and isinstance(milestones.value, list) and milestones.value:
        places = [length.updates(float(m), milestones.unit) for m in milestones.value if isinstance(m, (int, float))]
        late = [p for p in places if p is not None and p >= total]
        if late and None not in places:
            which = (
                "no milestone is" if len(late) == len(places) else f"{len(late)} of {len(places)} milestones are not"
            )
            text = f"{which} reached: {', '.join(f'{p:,.0f}' for p in late)} of a run of {total:,.0f} updates"
            severity: Severity = "ill" if len(late) == len(places) else "watch"
            yield _found(
                knobs, "milestones-never-reached", "schedule.milestones", text, severity, late=len(late), total=total
            )
    ramp = _updates(knobs, "curriculum.steps", length)
    if ramp is not None and ramp > total:
        text = (
            f"the curriculum needs {ramp:,.0f} updates and the run has {total:,.0f}: full difficulty is never trained"
        )
        severity = "ill" if ramp > HARMS * total else "watch"
        yield _found(knobs, "curriculum-longer-than-run", "curriculum.steps", text, severity, ramp=ramp, total=total)
    for knob, id_, what in (
        ("checkpoint.every", "checkpoint-never-saved", "checkpoint"),
        ("eval.every", "never-evaluated", "evaluation"),
    ):
        every = _updates(knobs, knob, length)
        if every is not None and every > total:
            text = f"the first {what} would come after {every:,.0f} updates, and the run has {total:,.0f}"
            yield _found(knobs, id_, knob, text, "watch", every=every, total=total)


def _average(knobs: Knobs, total: float) -> Iterator[Finding]:
    decay, every = knobs.value("ema.decay"), knobs.value("ema.every") or 1
    power, impl = knobs.value("ema.warmup_power"), knobs.value("ema.impl")
    ramped = impl in RAMPED and isinstance(power, (int, float)) and not knobs["ema.warmup_power"].default
    if not isinstance(decay, (int, float)) or not 0 < decay < 1 or knobs.value("ema.enabled") is False:
        return
    if not ramped and (impl not in CONSTANT_AVERAGES or power):
        return
    left = first_copy_weight(float(decay), int(total / every), float(power) if ramped else None)
    if left > STALE:
        text = (
            f"an average with decay {decay:g}, updated every {every:g} steps, is after {total:,.0f} updates still {left:.0%} "
            f"its first copy (horizon {every / (1 - decay):,.0f} updates)"
        )
        found = _found(knobs, "ema-horizon-too-long", "ema.decay", text, left=left, horizon=every / (1 - decay))
        if knobs.value("ema.impl") is None:  # many averages ramp their decay up, which only the code can tell
            found = replace(
                found, grade="suspected", severity="watch", summary=f"{text}, unless its decay is ramped up"
            )
        yield found


def _decay(knobs: Knobs) -> Iterator[Finding]:
    """Weights shrink by lr x decay a step where the decay is decoupled; by that over 1 - momentum under SGD."""
    decay, rate = knobs.value("optimizer.weight_decay"), knobs.value("optimizer.lr")
    name = str(knobs.value("optimizer.name") or "").lower()
    plain = name.startswith("sgd")
    if not isinstance(decay, (int, float)) or not isinstance(rate, (int, float)) or decay <= 0 or rate <= 0:
        return
    if not plain and name not in DECOUPLED:
        return
    momentum = knobs.value("optimizer.momentum") if plain else 0.0
    still = 1 - float(momentum) if isinstance(momentum, (int, float)) and 0 <= momentum < 1 else 1.0
    steps = still / (float(rate) * float(decay))
    if steps < FORGETS:
        text = (
            f"a weight decay of {decay:g} at a learning rate of {rate:g} shrinks every weight to a third within {steps:.2g} "
            "updates: nothing learned before that is kept"
        )
        yield _found(knobs, "weight-decay-too-strong", "optimizer.weight_decay", text, horizon=steps)


def _rate(knobs: Knobs) -> Iterator[Finding]:
    """Adam and Lion move every weight by about the rate in a step, whatever the gradient."""
    rate, name = knobs.value("optimizer.lr"), str(knobs.value("optimizer.name") or "").lower()
    if re.search("noam|rsqrt|inverse|inv_sqrt", str(knobs.value("schedule.name") or "").lower()):
        return  # there the number is a factor of a curve that is far below 1
    if isinstance(rate, (int, float)) and not isinstance(rate, bool) and rate >= LEAPS and name in BY_THE_RATE:
        text = (
            f"a learning rate of {rate:g} under {name} moves every weight by about that much in a step, several times what "
            "weights are drawn with, unless a schedule scales it far down"
        )
        # In code of one's own the number may be a factor of a schedule, too (the annotated transformer has 1.0).
        yield replace(
            _found(knobs, "rate-beyond-recipes", "optimizer.lr", text, "watch", rate=float(rate)), grade="suspected"
        )


def _last_noise(knobs: Knobs) -> Iterator[Finding]:
    """Discrete diffusion: a token has changed with probability 1 - exp(-sigma); generation starts where all have."""
    top, graph, noise = (knobs.value(f"diffusion.{name}") for name in ("sigma_max", "graph", "noise"))
    if not isinstance(top, (int, float)) or top <= 0 or not isinstance(graph, str):
        return
    if str(noise).lower().replace("_", "") == "loglinear":  # it ends at -log(eps), whatever sigma_max says
        return
    reached = 1 - math.exp(-float(top))
    if reached < REPLACED:
        what = "masked" if "absorb" in graph.lower() else "replaced"
        text = f"sigma_max {top:g}: training sees at most {reached:.0%} of the tokens {what}, and generation starts from all of them"
        severity: Severity = "ill" if reached < 0.5 else "watch"  # most tokens always visible: another task
        yield _found(knobs, "noise-ends-early", "diffusion.sigma_max", text, severity, reached=reached)


def _cosine(knobs: Knobs, length: Length) -> Iterator[Finding]:
    """torch's CosineAnnealingLR climbs again after T_max (SCH-02)."""
    name = str(knobs.value("schedule.name") or "").lower()
    period = _updates(knobs, "schedule.t_max", length)
    if period is None or length.total is None or "cosineannealinglr" not in name.replace("_", ""):
        return
    if period < 0.98 * length.total:
        text = f"T_max is {period:,.0f} updates and the run has {length.total:,.0f}: the learning rate climbs back up after T_max"
        yield _found(knobs, "cosine-rises-again", "schedule.t_max", text, t_max=period, total=length.total)
    elif period > 1.5 * length.total:
        text = f"T_max is {period:,.0f} updates and the run has {length.total:,.0f}: the learning rate is still high at the end"
        yield _found(knobs, "cosine-never-ends", "schedule.t_max", text, "watch", t_max=period, total=length.total)


def _cut_short(knobs: Knobs, length: Length) -> Iterator[Finding]:
    """A step limit that the epochs never reach, or epochs that the limit cuts (CASES §1.3)."""
    limit = knobs.get("run.total_steps")
    if limit is None or limit.default or length.epochs is None or length.steps_per_epoch is None:
        return
    if not isinstance(limit.value, (int, float)) or limit.value <= 0:
        return
    by_epochs = length.epochs * length.steps_per_epoch
    declared = length.updates(float(limit.value), limit.unit) or 0.0
    if declared > 2 * by_epochs:
        text = (
            f"{length.epochs:g} epochs of {length.steps_per_epoch:,.0f} updates are {by_epochs:,.0f}, far from the {declared:,.0f} that are "
            "declared: everything planned for later is never reached"
        )
        yield _found(
            knobs,
            "run-shorter-than-declared",
            "run.total_steps",
            text,
            "watch",
            declared=declared,
            real=by_epochs,
        )


def _overrun(plan: Plan, length: Length) -> Iterator[Finding]:
    end = plan.first("overrun")
    if end is not None and length.total is not None and end.at < length.total:
        yield Finding(
            "onecycle-overrun",
            f"the schedule raises an error at update {end.at:,.0f} of {length.total:,.0f}: {end.text}",
            "ill",
            "is",
        )
