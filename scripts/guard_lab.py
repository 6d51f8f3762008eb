"""How soon and how wrongly the guard speaks: alarm delay per fault, false alarms, lead before a visible divergence.

    python scripts/guard_lab.py small  OUT [--jobs N]     healthy trainings, sixteen at once (guard_ensemble.py)
    python scripts/guard_lab.py breaks OUT [--jobs N]     the same, every second one with a rate that breaks it
    python scripts/guard_lab.py odd    OUT [--jobs N]     the same, healthy, with batches that change their size
    python scripts/guard_lab.py gpt    OUT [--jobs N]     small GPTs that break slowly, and their twins (guard_gpt.py)
    python scripts/guard_lab.py faults OUT [--runs N]     small trainings, every third with a fault
    python scripts/guard_lab.py lab    OUT [--runs N]     trainings of the lab with a Guard put on their optimizer
    python scripts/guard_lab.py score  OUT... [--signs]   the guard's verdicts replayed over what was measured

OUT gets one .npz per run (loss, gradient norm, update ratio, rate, per step; of the sixteen also the looks at every tensor)
with its truth inside. `small` makes 42 times 16 trainings of 5,300 steps, 3.6 million looks: about 10 CPU minutes, divided by
--jobs. An alarm is a warning or an error; a note is not one, and an early warning is counted apart. An alarm that lasts is
counted once in 100 steps, as the guard tells it.
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
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np

EVERY, LOOKED = (
    100,
    ("weight_rms", "grad_rms", "update_rms", "moved", "lag", "active"),
)  # as guard_ensemble.py keeps them
COLUMNS = ("loss", "grad_norm", "update_ratio", "lr", "step_s")
# What the numbers of a file do not hold where it has no looks: the guard that ran told of it. (A loss may be nan for none was given.)
ONLY_LIVE = ("nonfinite-loss", "weights", "no-gradient", "frozen", "stagnant")


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


# Small trainings of our own, one at a time, for faults.

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


def single(out: Path, number: int, steps: int) -> None:
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
            made.append(watched(Named(optimizer), optimizer, every=LAB_EVERY))

    handle = register_optimizer_step_pre_hook(first)
    torch.Tensor.backward, torch.amp.GradScaler.scale = noted, scaled
    try:
        yield made
    finally:
        torch.Tensor.backward, torch.amp.GradScaler.scale = backward, scale
        handle.remove()


LAB_EVERY = 50  # steps between looks at every tensor: these trainings have a few hundred


def lab_runs() -> list[tuple[str, str | None]]:
    """Every fault and every oddity of every system, and six healthy trainings of each."""
    from wheeltapper.lab.faults import benign_of, faults_of
    from wheeltapper.lab.systems import NAMES

    wanted: list[tuple[str, str | None]] = []
    for name in NAMES:
        wanted += [(name, f.id) for f in (*faults_of(name), *benign_of(name))] + [(name, None)] * 6
    return wanted


def lab(out: Path, number: int) -> None:
    """One training of the lab, drawn by its number."""
    import torch

    from wheeltapper.lab.launch import plan_run, run
    from wheeltapper.lab.systems import system

    torch.set_num_threads(1)
    wanted = lab_runs()
    name, fault = wanted[number % len(wanted)]
    label = f"lab-{name}-{fault or 'healthy'}-{number}"
    if (out / f"{label}.npz").exists():
        return
    base = system(name).vary(system(name).RECIPES["test"], Random(f"{number}:{name}"))
    plan = plan_run(name, "test", number, fault, base)
    with tempfile.TemporaryDirectory() as folder, on_any_training() as made:
        truth = run(plan, Path(folder))
    if not made:
        return
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


def tensors(step: int, numbers: Any) -> Any:
    from wheeltapper.guard.record import TensorRecord

    columns = dict(zip(LOOKED, numbers.astype(np.float64).T, strict=True))
    absent = tuple(np.flatnonzero(~np.isfinite(columns["grad_rms"])).tolist())
    return TensorRecord(step, step, **columns, absent=absent)


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


def said(rows: dict[str, Any], signs: bool) -> list[tuple[str, int]]:
    """Every alarm the guard would have told, and its step; notes left out."""
    from wheeltapper.guard import ask
    from wheeltapper.guard.judge import Judge
    from wheeltapper.guard.verdict import AGAIN

    looks = rows.get("looks")  # [looks, tensors, numbers]
    judge, told, guard = Judge(tuple(f"p{k}" for k in range(1 if looks is None else looks.shape[1]))), [], Replayed()
    last: dict[str, int] = {}
    ask.LONGEST = 100  # as a run of many hours would be asked in its first thousand steps
    asker = ask.Asker(guard, thread=False, share=math.inf) if signs else None
    if looks is None:
        told += [(kind, step) for kind, step, *_ in json.loads(str(rows["incidents"])) if kind in ONLY_LIVE]
    for record in records(rows):
        guard.at, before = record.step + 1, len(guard.incidents)
        guard.history = [record]
        alarms = list(judge.step(record))
        if looks is not None and record.step % EVERY == 0 and record.step // EVERY < len(looks):
            alarms += judge.tensors(
                tensors(record.step, looks[record.step // EVERY]), record.lr, [0] * len(judge.names)
            )
        for alarm in alarms:
            if alarm.severity != "note" and record.step - last.get(alarm.kind, -AGAIN) >= AGAIN:
                last[alarm.kind] = record.step
                told.append((alarm.kind, record.step))
        if asker is not None:
            asker.step(record)
        told += [(incident.kind, record.step) for incident in guard.incidents[before:] if incident.severity != "note"]
    return told


def upper(count: int, share: float = 0.95) -> float:
    """The upper limit of a Poisson mean of which `count` were seen: at it, as few or fewer are as rare as 1 - share.

    >>> round(upper(0), 2), round(upper(4), 2)
    (3.0, 9.15)
    """
    low, high = 0.0, 10.0 * (count + 2)
    while high - low > 1e-9:
        mean = (low + high) / 2
        few = sum(math.exp(-mean + k * math.log(mean) - math.lgamma(k + 1)) for k in range(count + 1))
        low, high = (mean, high) if few > 1 - share else (low, mean)
    return high


def broke(loss: Any) -> int | None:
    """The step at which the loss is not finite any more, or has gone back nine tenths of the way to that of the start, by the
    median of ten and of a hundred: what nobody overlooks."""
    n = len(loss) // 10
    high = np.where(np.isfinite(loss), loss, np.inf)[: 10 * n].reshape(n, 10)
    middle = np.median(high, 1)
    start = float(np.median(high.reshape(-1)[: max(20, len(loss) // 50)])) if n else math.inf
    low = np.minimum.accumulate(middle)
    gain = start - low
    for i in range(1, n):
        if not np.isfinite(middle[i]):
            return 10 * i
        limit = low[i - 1] + 0.9 * gain[i - 1]
        learned = gain[i - 1] >= 0.3 * gain.max() and gain[i - 1] > 0.05 * abs(start)
        if learned and middle[i] > limit and np.median(middle[i : i + 10]) > limit:
            return 10 * i
    return None


@dataclass(frozen=True)
class Judged:
    """One run: its name, truth, length, alarms and early warnings, and the steps at which its loss shows trouble and is
    gone."""

    name: str
    truth: dict[str, Any]
    length: int
    told: list[tuple[str, int]]
    early: list[int]
    seen: int | None
    broke: int | None


def judged(path: Path, signs: bool) -> Judged:
    with np.load(path) as file:
        rows = dict(file)
    truth = json.loads(str(rows["truth"]))
    told = said(rows, signs)
    seen = visible(rows["loss"], round(truth["onset"] or 0)) if truth["kind"] == "fault" else None
    early = [step for kind, step in told if kind == "early"]
    alarms = [(kind, step) for kind, step in told if kind != "early"]
    return Judged(path.name, truth, len(rows["loss"]), alarms, early, seen, broke(rows["loss"]))


def score(folders: list[Path], signs: bool, jobs: int) -> None:
    paths = sorted(p for folder in folders for p in folder.glob("*.npz"))
    with ProcessPoolExecutor(jobs) as pool:
        found = list(pool.map(judged, paths, [signs] * len(paths), chunksize=4))
    sound = [j for j in found if j.truth["kind"] not in ("fault", "not learned")]
    left_out = Counter("with an alarm" if j.told else "silent" for j in found if j.truth["kind"] == "not learned")
    if left_out:
        print(f"trainings that did not learn or broke, by their losses alone, not counted as healthy: {dict(left_out)}")
    for kind in sorted({j.truth["kind"] for j in sound}):
        false_alarms([j for j in sound if j.truth["kind"] == kind], kind)
    delays([j for j in found if j.truth["kind"] == "fault"])
    early_warnings(found)


def false_alarms(sound: list[Judged], word: str) -> None:
    looks, alarms = sum(j.length for j in sound), sum(len(j.told) for j in sound)
    for j in sound:
        if j.told:
            print("false alarm:", j.name, j.told[:4], {k: j.truth.get(k) for k in ("optimizer", "batch", "schedule")})
    kinds = Counter(kind for j in sound for kind, _ in j.told)
    print(f"{word}: {len(sound)} runs, {looks:,} looks, {alarms} alarms {dict(kinds)}")
    print(
        f"false alarms: {1e6 * alarms / looks:.2f} in a million looks, at most {1e6 * upper(alarms) / looks:.2f} at 95 %"
    )


def delays(faulty: list[Judged]) -> None:
    """Steps from the onset to the first alarm at or after it, of every fault; what was told before it is false."""
    rows: dict[tuple[str, str], list[str]] = defaultdict(list)
    leads: dict[str, list[int]] = defaultdict(list)
    for j in faulty:
        onset = round(j.truth["onset"] or 0)
        after = [(step, kind) for kind, step in j.told if step >= onset]
        word = f"{min(after)[1]} +{min(after)[0] - onset}" if after else "silent"
        if len(after) < len(j.told):
            word += f" (before it: {[t for t in j.told if t[1] < onset]})"
        shows = "no" if j.seen is None else f"{j.seen - onset:+}"
        rows[j.truth["system"], j.truth["fault"]].append(f"{word} (visible {shows}, {j.length} steps)")
        for kind, step in dict(reversed(j.told)).items() if j.seen is not None else ():
            leads[kind].append((j.seen or 0) - step)
    for (name, fault), words in sorted(rows.items()):
        print(f"{name:18} {fault:26} {'; '.join(words)}")
    for kind, all_ in sorted(leads.items()):
        ahead = sum(v > 0 for v in all_)
        print(
            f"lead before the loss shows it: {kind:16} n={len(all_)} median {np.median(all_):+.0f} before it in {ahead}"
        )


def early_warnings(found: list[Judged]) -> None:
    """Of every system and fault: how many broke, how many of these had a warning before, by how many steps."""
    groups: dict[tuple[str, str], list[Judged]] = defaultdict(list)
    for j in found:
        groups[j.truth["system"], j.truth["fault"] if j.truth["kind"] == "fault" else j.truth["kind"]].append(j)
    print(
        "early warnings: runs, with one; broke after step 512, of these before, late; steps before it broke, before visible"
    )
    for (name, what), mine in sorted(groups.items()):
        spoke = [j for j in mine if j.early]
        late = [j for j in mine if j.broke is not None and j.broke > 512]
        gone = sorted(j.broke - j.early[0] for j in late if j.early and j.broke is not None)
        shown = sorted(j.seen - j.early[0] for j in mine if j.early and j.seen is not None)
        ahead = [v for v in gone if v > 0]
        calm = [j.name for j in spoke if j.broke is None and j.seen is None]
        print(
            f"{name:18} {what:26} {len(mine)}, {len(spoke)}; {len(late)}, {len(ahead)}, {len(gone) - len(ahead)}; {gone} {shown} never: {calm[:6]}"
        )


def ensemble(out: Path, number: int, steps: int, what: str) -> None:
    import guard_ensemble

    if not (out / f"ensemble-{what}-{number:03}-15.npz").exists():
        guard_ensemble.train(out, number, steps, what)


def gpt(out: Path, number: int, size: str, seconds: float) -> None:
    import guard_gpt

    guard_gpt.train(out, number, size, seconds)


ENSEMBLES = {"small": "healthy", "breaks": "faults", "odd": "odd"}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=(*ENSEMBLES, "gpt", "faults", "lab", "score"))
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--runs", type=int, help="small: 42 (of 16 trainings each), gpt: 2 (likewise), others: 150")
    parser.add_argument("--steps", type=int, help="small: 5300, faults: 10000")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--tiny", action="store_true", help="gpt: models for a CPU")
    parser.add_argument("--seconds", type=float, default=math.inf, help="gpt: end after so long, with what there is")
    parser.add_argument(
        "--signs", action="store_true", help="score: ask the signs too (a tenth of a second for each question)"
    )
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(arguments)
    if args.what == "score":
        score(args.paths, args.signs, args.jobs)
        return 0
    out = args.paths[0]
    out.mkdir(parents=True, exist_ok=True)
    work: list[tuple[Any, ...]] = []
    for number in range(args.seed, args.seed + (args.runs or {"gpt": 2, "faults": 150, "lab": 150}.get(args.what, 42))):
        if args.what in ENSEMBLES:
            work.append((ensemble, out, number, args.steps or 5300, ENSEMBLES[args.what]))
        elif args.what == "gpt":
            work.append((gpt, out, number, "tiny" if args.tiny else "full", args.seconds))
        elif args.what == "lab":
            work.append((lab, out, number))
        elif not (out / f"small-{number:04}.npz").exists():
            work.append((single, out, number, args.steps or 10_000))
    # Fresh processes: a forked one may not use a GPU that its parent has touched.
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        for one in [pool.submit(*item) for item in work]:
            if one.exception() is not None:
                print("failed:", one.exception(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
