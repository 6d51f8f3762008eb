"""One batch learned by heart, on copies; then what training and evaluation make of the same batch.

Dropout is off and the random numbers of each step are the same, so that a diffusion loss also has one batch to learn.
The copies are trained by an Adam of our own: the user's rate may begin at zero, and the question is whether the model
can learn at all.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import torch

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.guard.preflight_checks.bench import DROPS, NORMS, Bench
from wheeltapper.guard.preflight_checks.gradients import names
from wheeltapper.guard.preflight_checks.inputs import found

RATES = (1e-3, 1e-2, 1e-4)
STEPS = 200
# A model that learns loses half of its loss on one batch in some tens of steps; one that has not lost a fiftieth in
# fifty steps at any of three rates, a hundredfold apart, does not learn.
ENOUGH, STUCK, LEAST = 0.5, 0.02, 50


@dataclass
class Learned:
    model: Any
    rate: float
    losses: list[float]
    reached: frozenset[str] = frozenset()  # parameters that a gradient reached

    @property
    def left(self) -> float:
        """The share of the first loss that is left at the best step."""
        finite = [v for v in self.losses if math.isfinite(v)]
        return min(finite) / abs(self.losses[0]) if finite and self.losses[0] else 1.0


def learn(bench: Bench, rate: float, seconds: float) -> Learned:
    model, _ = bench.fresh()
    model.train()
    for module in model.modules():
        if isinstance(module, DROPS):
            module.eval()
    # Half-precision weights would not show small updates; the question here is the model, not its storage.
    if any(p.dtype in (torch.float16, torch.bfloat16) for p in model.parameters()) and bench.autocast is None:
        rate = max(rate, 1e-3)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(trained, lr=rate, eps=1e-6)
    learned = Learned(model, rate, [])
    end = time.perf_counter() + seconds
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = bench.run(model).loss
        learned.losses.append(float(loss.detach()))
        if not math.isfinite(learned.losses[-1]) or not loss.requires_grad or learned.left < 0.05:
            break
        loss.backward()
        optimizer.step()
        if time.perf_counter() > end:
            break
    learned.reached = frozenset(n for n, p in model.named_parameters() if p.grad is not None)
    optimizer.zero_grad()
    return learned


def check_overfit(bench: Bench, seconds: float) -> tuple[list[tuple[str, Answer]], Learned | None]:
    tried: list[Learned] = []
    for rate in RATES:
        tried.append(learn(bench, rate, seconds / len(RATES)))
        best = min(tried, key=lambda t: t.left)
        for one in tried:
            if one is not best:
                one.model = None  # copies of a large model are not kept for nothing
        if best.left <= ENOUGH:
            break
    first = best.losses[0]
    steps = max(len(t.losses) for t in tried)
    low = min((v for v in best.losses if math.isfinite(v)), default=math.nan)
    numbers = {"first": first, "lowest": low, "steps": float(len(best.losses)), "rate": best.rate}
    text = f"the loss on one batch goes from {first:.4g} to {low:.4g} in {len(best.losses)} steps (Adam, rate {best.rate:g})"
    if not math.isfinite(first):
        return [("overfit", Unknown("the first loss is not finite"))], None
    if first <= 0:
        return [("overfit", Unknown(f"{text}; a loss that may be negative has no floor to measure against"))], best
    if best.left <= 1 - STUCK:
        if best.left <= ENOUGH or steps < STEPS:
            return [("overfit", Clear(text))], best
        text += f" and no lower, at none of {len(tried)} rates: right where the loss has a floor (label smoothing), or the model is small"
        return [found("overfit", text, "note", "suspected", **numbers)], best
    if min(len(t.losses) for t in tried) < LEAST and all(math.isfinite(v) for t in tried for v in t.losses):
        return [("overfit", Unknown(f"{text}; {steps} steps are too few to tell", ("more seconds=",)))], best
    text = f"one batch cannot be learned: {text}, and no better at {', '.join(f'{t.rate:g}' for t in tried if t is not best)}"
    return [found("overfit", text, "ill", "suspected", **numbers)], best


def check_not_moving(bench: Bench, learned: Learned) -> list[tuple[str, Answer]]:
    """Parameters that got a zero gradient in every step: dead, whatever they begin with."""
    if len(learned.losses) < 5:
        return []
    begun = dict(bench.pristine.named_parameters())
    still = [
        name
        for name, p in learned.model.named_parameters()
        if p.requires_grad and name in learned.reached and torch.equal(p.detach(), begun[name].detach())
    ]
    if not still:
        return []
    total = sum(p.requires_grad for p in learned.model.parameters())
    text = f"{len(still)} of {total} parameters did not move in {len(learned.losses)} steps, though in the graph: {names(still)}"
    return [found("dead-parameters", text, "watch", tensors=len(still))]


def check_train_eval(bench: Bench, learned: Learned) -> list[tuple[str, Answer]]:
    """The learned batch in training mode and in evaluation mode."""
    model = learned.model
    with torch.no_grad():
        model.train()
        for module in model.modules():
            if isinstance(module, DROPS):
                module.eval()
        norms = [m for m in model.modules() if isinstance(m, NORMS)]
        # Running statistics follow the weights with a memory of ten passes at the usual momentum of 0.1: thirty
        # passes leave 4 % of what they were. Slower ones are what this check is to find.
        for _ in range(30 if norms else 0):
            bench.run(model)
        train = bench.run(model)
        model.eval()
        evaluated = bench.run(model)
        again = bench.run(model, draws=_other_draws(bench))
    a, b = float(train.loss), float(evaluated.loss)
    out: list[tuple[str, Answer]] = []
    if _same_inputs(evaluated, again) and _moved(evaluated.output, again.output):
        text = "in evaluation, the model gives another output for the same input each time: a dropout that is never switched off, or sampling"
        out.append(found("eval-random", text, "watch", "suspected"))
    first = learned.losses[0]
    numbers = {"train": a, "eval": b}
    words = f"the learned batch has a loss of {a:.4g} in training mode and {b:.4g} in evaluation mode"
    if not math.isfinite(b) and math.isfinite(a):
        out.append(found("train-eval", words, "ill", "is", **numbers))
    elif a < 0.5 * first and b > a + 0.5 * (first - a):
        why = (
            f": {len(norms)} batch-norm layers hold statistics that do not fit"
            if norms
            else ": some layer acts differently"
        )
        size = train.inputs[0].shape[0] if train.inputs else 0
        small = f" (the batch has {size} samples)" if norms and 0 < size < 8 else ""
        out.append(found("train-eval", words + why + small, "watch", "suspected", **numbers))
    outputs = evaluated.output
    if (
        learned.left > 1 - STUCK
        and outputs is not None
        and outputs.shape[0] > 1
        and bool((outputs == outputs[:1]).all())
    ):
        text = f"after {len(learned.losses)} steps every sample still has the same output: the input does not reach it"
        out.append(found("dead-network", text, "ill", "suspected"))
    return out or [("train-eval", Clear(words))]


def _other_draws(bench: Bench) -> Any:
    torch.manual_seed(20_261_116)
    other = dict(bench.draws)
    other["torch"] = torch.get_rng_state()
    if "cuda" in other:
        other["cuda"] = list(torch.cuda.get_rng_state_all())
    return other


def _same_inputs(a: Any, b: Any) -> bool:
    return bool(a.inputs) and len(a.inputs) == len(b.inputs) and all(map(torch.equal, a.inputs, b.inputs))


def _moved(a: Any, b: Any) -> bool:
    if a is None or b is None or a.shape != b.shape:
        return False
    return float((a.double() - b.double()).abs().max()) > 1e-3 * max(float(a.double().abs().max()), 1e-12)
