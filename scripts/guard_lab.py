"""How soon and how wrongly the guard speaks: alarm delay per fault, false alarms, lead before a visible divergence.

    python scripts/guard_lab.py small  OUT [--runs N]     small trainings of our own, every step measured
    python scripts/guard_lab.py lab    OUT [--runs N]     trainings of the lab with a Guard put on their optimizer
    python scripts/guard_lab.py score  OUT... [--signs]   the guard's verdicts replayed over what was measured

OUT gets one .npz per run (loss, gradient norm, update ratio, rate, per step) with its truth inside.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np

COLUMNS = ("loss", "grad_norm", "update_ratio", "lr", "step_s")


def save(out: Path, name: str, truth: dict[str, Any], guard: Any) -> None:
    rows = {
        key: np.array([getattr(r, key) if key != "lr" else r.lr[0] if r.lr else math.nan for r in guard.kept])
        for key in COLUMNS
    }
    told = [[i.kind, i.step, i.severity, i.text] for i in guard.incidents]
    out.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(out / f"{name}.npz", truth=json.dumps(truth), incidents=json.dumps(told), **rows)


class Light:
    """The guard's per-step numbers without the guard: a third of its cost on a network this small, where a step is
    all overhead."""

    def __init__(self, model: Any, optimizer: Any) -> None:
        self.params, self.optimizer = list(model.parameters()), optimizer
        self.kept: list[Any] = []
        self.incidents: list[Any] = []

    def step(self, loss: Any) -> None:
        import torch

        norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm([p.grad for p in self.params])))
        self.row = (float(loss.detach()), float(norm), float(self.optimizer.param_groups[0]["lr"]))
        self.before = torch.cat([p.detach().flatten() for p in self.params])

    def after(self) -> None:
        import torch

        now = torch.cat([p.detach().flatten() for p in self.params])
        loss, norm, rate = self.row
        moved = float((now - self.before).norm() / self.before.norm())
        self.kept.append(SimpleNamespace(loss=loss, grad_norm=norm, update_ratio=moved, lr=(rate,), step_s=math.nan))


def watched(model: Any, optimizer: Any, **options: Any) -> Any:
    """A guard that keeps every record."""
    from wheeltapper.guard import Guard

    guard = Guard(model, optimizer, **options)
    guard.kept = []
    guard.listen(step=guard.kept.append)
    return guard


# Small trainings of our own: seconds for thousands of steps, so that a million looks can be had.

TASKS = ("mlp", "conv", "tokens", "regression")
FAULTS = ("lr-jump", "lr-ramp", "label-flip", "input-scale", "no-warmup", "nan-batch")
# How a rate that is too high for the curvature shows: it climbs by half a percent a step until the training breaks.
EDGE = 1.005


def build(task: str, rng: Random) -> tuple[Any, Any]:
    """A model and a function batch(n) -> (inputs, targets)."""
    import torch
    from torch import nn

    width = rng.choice([16, 32])
    if task == "mlp":
        teacher = nn.Linear(12, 5)
        model: Any = nn.Sequential(
            nn.Linear(12, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 5)
        )
        return model, lambda n: (x := torch.randn(n, 12), teacher(x.abs()).argmax(1))
    if task == "conv":
        model = nn.Sequential(
            nn.Conv2d(1, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(),
            nn.Flatten(), nn.Linear(32, 4),
        )  # fmt: skip
        marks = torch.randn(4, 1, 8, 8)
        return model, lambda n: (marks[y := torch.randint(0, 4, (n,))] + 1.5 * torch.randn(n, 1, 8, 8), y)
    if task == "tokens":
        table = torch.softmax(2 * torch.randn(11, 11), 1)

        class Small(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.embed, self.inner, self.head = (
                    nn.Embedding(11, width),
                    nn.Linear(width, width),
                    nn.Linear(width, 11),
                )

            def forward(self, x: Any) -> Any:
                return self.head(torch.relu(self.inner(self.embed(x))))

        def batch(n: int) -> tuple[Any, Any]:
            x = torch.randint(0, 11, (4 * n,))
            return x, torch.multinomial(table[x], 1).squeeze(1)

        return Small(), batch
    # Heavy tails: targets with Student noise, as losses of single batches often have.
    model = nn.Sequential(nn.Linear(8, width), nn.Tanh(), nn.Linear(width, 1))
    weight = torch.randn(8, 1)
    noise = torch.distributions.StudentT(rng.choice([3.0, 5.0, 30.0]))
    return model, lambda n: (x := torch.randn(n, 8), torch.sin(x @ weight) + 0.3 * noise.sample((n, 1)))


def small(out: Path, number: int, steps: int) -> None:
    """One training with settings drawn by its number; every third has a fault."""
    import torch
    from torch import nn

    rng = Random(f"guard:{number}")
    torch.manual_seed(number)
    torch.set_num_threads(1)
    task = TASKS[number % len(TASKS)]
    fault = FAULTS[(number // 3) % len(FAULTS)] if number % 3 == 2 else None
    fault = "edge" if number >= 1000 else fault  # a set of its own, for the lead
    steps = steps if fault is None else min(steps, 3000)
    model, batch = build(task, rng)
    kind = rng.choice(["sgd", "adam", "adamw"])
    base = rng.choice([0.02, 0.05]) if kind == "sgd" else rng.choice([1e-3, 3e-3])
    if kind == "sgd":
        optimizer: Any = torch.optim.SGD(model.parameters(), base, momentum=0.9, foreach=True)
    else:
        beta2 = rng.choice([0.95, 0.99, 0.999])
        optimizer = (torch.optim.Adam if kind == "adam" else torch.optim.AdamW)(
            model.parameters(), base, betas=(0.9, beta2), foreach=True
        )
    size, clip, schedule = rng.choice([4, 16, 64]), rng.choice([None, 1.0]), rng.choice(["constant", "cosine", "step"])
    warmup = 0 if fault == "no-warmup" else rng.choice([0, 100])
    onset = 0 if fault == "no-warmup" else int(steps * rng.uniform(0.3, 0.7))
    factor = rng.choice([10, 30, 100])
    if fault == "edge":
        steps, onset, warmup, schedule, clip, size = 1700, 500, 0, "constant", None, 64
    guard = Light(model, optimizer)
    loss_of = nn.functional.mse_loss if task == "regression" else nn.functional.cross_entropy
    for step in range(steps):
        rate = base * min(1.0, (step + 1) / warmup if warmup else 1.0)
        if schedule == "cosine":
            rate *= 0.5 * (1 + math.cos(math.pi * step / steps))
        elif schedule == "step":
            rate *= 0.1 ** (step * 3 // steps)
        if fault == "lr-jump" and step >= onset:
            rate = base * factor
        elif fault == "lr-ramp" and step >= onset:
            rate = base * 1.01 ** (step - onset)
        elif fault == "edge" and step >= onset:
            rate = base * EDGE ** (step - onset)
        elif fault == "no-warmup":
            rate = base * factor
        optimizer.param_groups[0]["lr"] = rate
        x, y = batch(size)
        if fault and step >= onset:
            if fault == "label-flip":
                y = y[torch.randperm(len(y))] if task != "regression" else y + 3
            elif fault == "input-scale" and x.is_floating_point():
                x = x * factor
            elif fault == "nan-batch" and step == onset and x.is_floating_point():
                x = x / 0.0
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        guard.step(loss)
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        guard.after()
    truth = {
        "system": f"small-{task}",
        "kind": "fault" if fault else "healthy",
        "fault": fault,
        "onset": onset if fault else None,
    }
    save(
        out, f"small-{number:04}", truth | {"optimizer": kind, "batch": size, "clip": clip, "schedule": schedule}, guard
    )


# The lab's own trainings: the guard is put on the first optimizer that steps, and sees each loss at its backward().


@contextlib.contextmanager
def on_any_training() -> Iterator[list[Any]]:
    import torch
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    made: list[Any] = []
    last: list[Any] = [None]
    backward, scale = torch.Tensor.backward, torch.amp.GradScaler.scale

    def scaled(self: Any, outputs: Any) -> Any:
        last[0] = outputs.detach() if isinstance(outputs, torch.Tensor) else None
        return scale(self, outputs)

    def noted(self: Any, *args: Any, **kwargs: Any) -> Any:
        backward(self, *args, **kwargs)
        loss = self.detach() if last[0] is None else last[0]
        last[0] = None
        if made:
            made[0].step(loss)

    class Named:
        """A guard asks a model for its parameters' names only."""

        def __init__(self, optimizer: Any) -> None:
            self.held = [p for g in optimizer.param_groups for p in g["params"]]

        def named_parameters(self) -> Iterator[tuple[str, Any]]:
            return ((f"p{i}", p) for i, p in enumerate(self.held))

        def parameters(self) -> Iterator[Any]:
            return iter(self.held)

        def modules(self) -> Iterator[Any]:
            return iter(())

        def named_buffers(self) -> Iterator[Any]:
            return iter(())

        buffers = named_modules = modules

    def first(optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if not made:
            made.append(watched(Named(optimizer), optimizer, every=10**9))

    handle = register_optimizer_step_pre_hook(first)
    torch.Tensor.backward, torch.amp.GradScaler.scale = noted, scaled
    try:
        yield made
    finally:
        torch.Tensor.backward, torch.amp.GradScaler.scale = backward, scale
        handle.remove()


LOUD = (
    "lr-too-high",
    "no-warmup",
    "bad-shard",
    "nan-batch",
    "zero-grad-missing",
    "wrong-sign",
    "fp16-overflow",
    "zero-noise-nan",
    "accumulation-not-divided",
)


def lab(out: Path, runs: int, seed: int) -> None:
    """Healthy trainings and those with a fault that can break the optimisation."""
    from wheeltapper.lab.faults import faults_of
    from wheeltapper.lab.launch import plan_run, run
    from wheeltapper.lab.systems import NAMES, system

    wanted: list[tuple[str, str | None]] = []
    for name in NAMES:
        wanted += [(name, f.id) for f in faults_of(name) if f.id in LOUD]
        wanted += [(name, None)] * 3
    for number in range(runs):
        name, fault = wanted[number % len(wanted)]
        one = seed + number
        base = system(name).vary(system(name).RECIPES["test"], Random(f"{one}:{name}"))
        plan = plan_run(name, "test", one, fault, base)
        label = f"lab-{name}-{fault or 'healthy'}-{one}"
        if (out / f"{label}.npz").exists():
            continue
        with tempfile.TemporaryDirectory() as folder, on_any_training() as made:
            truth = run(plan, Path(folder))
        if made:
            guard = made[0]
            guard.close()
            per = len(guard.kept) / max(1, truth.length)
            onset = None if truth.onset is None or fault is None else truth.onset * per
            facts = {
                "system": name,
                "kind": truth.kind,
                "fault": fault,
                "onset": onset,
                "ended": truth.ended,
                "score": truth.score,
            }
            save(out, label, facts, guard)
            print(label, len(guard.kept), "steps", guard.passive or "", flush=True)


# What the guard would have said of the measured steps.


class Replayed:
    """As much of a guard as an Asker needs."""

    def __init__(self) -> None:
        self.rank, self.at = 0, 0
        self.history: list[Any] = []
        self.incidents: list[Any] = []

    def listen(self, step: Any) -> None:
        self.tell = step

    def report(self, incident: Any) -> None:
        self.incidents.append(incident)


def records(rows: dict[str, Any]) -> Iterator[Any]:
    from wheeltapper.guard.record import StepRecord

    for i, (loss, norm, ratio, rate) in enumerate(zip(*(rows[c].tolist() for c in COLUMNS[:4]), strict=True)):
        bad = not math.isfinite(norm)
        yield StepRecord(
            i, i, 0.0, loss, 1, norm, (), True, (rate,), ratio, int(bad), 0 if bad else -1, None, math.nan, False
        )


def visible(loss: Any, onset: int) -> int | None:
    """The step from which ten losses lie, by their median, above all but 0.5 % of the 200 before the onset: what a
    reader of the curve would see. None without a quiet stretch before, or if it never shows."""
    quiet = loss[max(0, onset - 200) : onset]
    quiet = quiet[np.isfinite(quiet)]
    if len(quiet) < 50:
        return None
    limit = np.quantile(quiet, 0.995)
    high = np.where(np.isfinite(loss), loss, np.inf)
    return next(
        (t for t in range(onset, len(loss)) if np.median(high[t : t + 10]) > limit or not np.isfinite(loss[t])), None
    )


def said(rows: dict[str, Any], signs: bool) -> dict[str, int]:
    """The first step at which each kind of alarm speaks, notes left out."""
    from wheeltapper.guard import ask
    from wheeltapper.guard.judge import Judge

    judge, first, guard = Judge(("p",)), {}, Replayed()
    ask.LONGEST = 100  # as a run of many hours would be asked in its first thousand steps
    asker = ask.Asker(guard, thread=False, share=math.inf) if signs else None
    for record in records(rows):
        guard.at, before = record.step + 1, len(guard.incidents)
        guard.history = [record]
        for alarm in judge.step(record):
            if alarm.severity != "note":
                first.setdefault(alarm.kind, record.step)
        if asker is not None:
            asker.step(record)
        for incident in guard.incidents[before:]:
            first.setdefault(incident.kind, record.step)
    return first


def score(folders: list[Path], signs: bool) -> None:
    looks = runs = alarmed = 0
    kinds: Counter[str] = Counter()
    delays: dict[tuple[str, str], list[str]] = defaultdict(list)
    leads: dict[str, list[int]] = defaultdict(list)
    for path in sorted(p for folder in folders for p in folder.glob("*.npz")):
        rows = dict(np.load(path))
        truth = json.loads(str(rows["truth"]))
        first = said(rows, signs)
        if truth["kind"] != "fault":
            runs, looks = runs + 1, looks + len(rows["loss"])
            kinds.update(first.keys())
            alarmed += bool(first)
            if first:
                print("false alarm:", path.name, first)
            continue
        onset = round(truth["onset"] or 0)
        seen = visible(rows["loss"], onset)
        soonest = min(first.items(), key=lambda item: item[1], default=None)
        told = "silent" if soonest is None else f"{soonest[0]} {soonest[1] - onset:+}"
        delays[truth["system"], truth["fault"]].append(
            f"{told} (visible {'no' if seen is None else f'{seen - onset:+}'}, {len(rows['loss'])} steps)"
        )
        if seen is not None:
            for kind, step in first.items():
                leads[kind].append(seen - step)
    print(f"healthy: {runs} runs, {looks:,} steps, {alarmed} runs with an alarm {dict(kinds)}")
    for (name, fault), rows_ in sorted(delays.items()):
        print(f"{name:18} {fault:26} {'; '.join(rows_)}")
    for kind, all_ in sorted(leads.items()):
        print(
            f"lead before the loss shows it: {kind:16} n={len(all_)} median {np.median(all_):+.0f} before it in {sum(v > 0 for v in all_)} {sorted(all_)}"
        )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("small", "lab", "score"))
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--runs", type=int, default=150)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument(
        "--signs", action="store_true", help="score: ask the signs too (a tenth of a second for each question)"
    )
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(arguments)
    if args.what == "small":
        for number in range(args.seed, args.seed + args.runs):
            if not (args.paths[0] / f"small-{number:04}.npz").exists():
                small(args.paths[0], number, args.steps)
    elif args.what == "lab":
        lab(args.paths[0], args.runs, args.seed)
    else:
        score(args.paths, args.signs)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
