"""What instrumenting a training step costs, side by side: `python benchmarks/guard.py [--budget SECONDS] [--quick]`.

One model and one optimizer per configuration. The guard and nothing take turns in segments of two steps, in pairs of
random order, with no pause between them; every step is timed by events of the device. So a slow host, heat and
neighbours meet both of a pair: where the host changes its speed by a fifth every few steps, only short segments and many
pairs tell. The figure is the Hodges-Lehmann mean of guarded / plain over the pairs (the median of the means of any two,
which is as robust as the median and needs a third fewer pairs), with its 95 % interval by bootstrap over the pairs; a
goal is met where the interval ends below it, missed where it begins above it, and otherwise not decided. Beside it
stands the plain median over the pairs. The control is the same arithmetic on plain against plain. The process keeps to a
few cores, so that its threads stay where they are; --raw writes the times of all steps. The hooks of the guard are put
on and taken off by exchanging the dictionaries that the optimizer holds them in.

Beside it two figures without noise: the device time of the guard's own kernels over that of a plain step (profiler),
and the host's time inside the guard against the slack that the host has in a plain step.

Other arms, few segments each, for they are far from a percent: the real wandb.watch where wandb is installed, a loop of
`.item()` over gradient norms, detect_anomaly, histograms of gradients by hooks, per-tensor norms of gradient, weight and
moments read every step (as the Lightning and Composer monitors do). Also, on a GPU: that guard.step waits for nothing
(torch.cuda.set_sync_debug_mode) and that training with the guard is bit-identical.

Needs torch, numpy and msgspec only: PYTHONPATH=src python3 benchmarks/guard.py
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import gc
import json
import os
import platform
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # so that the bit-identity test can ask for determinism

import numpy as np
import torch
from guard_models import Training

from wheeltapper.guard import Guard
from wheeltapper.guard.native import BUILD

SEGMENT = 2  # steps
CORES = 6  # the main thread, autograd's, the driver's
EVERY = 100  # steps between looks, the guard's default
HOOKS = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")
GOALS = {"guard": 0.01, f"guard + tensors every {EVERY}": 0.02}  # issue 7

# The arms: each is a context that yields what to call between backward() and step()

Look = Callable[[torch.Tensor], None] | None


@contextlib.contextmanager
def plain(_: Training) -> Iterator[Look]:
    yield None


class Watched:
    """A guard that can be put beside a training and taken away for a few steps."""

    def __init__(self, t: Training, guard: Guard) -> None:
        self.t, self.guard = t, guard
        guard.attach()
        self._on = [getattr(t.optimizer, name) for name in HOOKS]
        self._off = [type(hooks)() for hooks in self._on]
        self._put(self._off)

    def _put(self, hooks: list[Any]) -> None:
        for name, value in zip(HOOKS, hooks, strict=True):
            setattr(self.t.optimizer, name, value)

    @contextlib.contextmanager
    def arm(self) -> Iterator[Look]:
        self._put(self._on)
        yield self._look
        self._put(self._off)
        if self.guard._straight is not None:
            # The next launch would bring the update of the last step; plain steps come first, so it is given up. The
            # next guarded step does the same work for nothing.
            self.guard._straight._pending = None

    def _look(self, loss: torch.Tensor) -> None:
        self.guard.step(loss, batch_id=0, inputs=self.t.x, targets=self.t.y)

    def close(self) -> None:
        self._put(self._on)
        self.guard.close()


@contextlib.contextmanager
def item_loop(t: Training) -> Iterator[Look]:
    kept: dict[str, float] = {}

    def look(loss: torch.Tensor) -> None:
        kept["loss"] = loss.item()
        for name, p in t.model.named_parameters():
            if p.grad is not None:
                kept[name] = p.grad.norm().item()

    yield look


@contextlib.contextmanager
def anomaly(_: Training) -> Iterator[Look]:
    with torch.autograd.detect_anomaly(check_nan=True):
        yield None


@contextlib.contextmanager
def histograms(t: Training) -> Iterator[Look]:
    """wandb.watch(log="gradients", log_freq=1): a hook on each gradient, its range read, 64 bins, to the host."""
    kept: dict[str, Any] = {}

    def hook_for(name: str) -> Callable[[torch.Tensor], None]:
        def hook(grad: torch.Tensor) -> None:
            flat = grad.detach().float().reshape(-1)
            if not bool(torch.isfinite(flat).all()):
                return
            low, high = flat.min().item(), flat.max().item()
            kept[name] = (torch.histc(flat, 64, low, high).cpu().tolist(), low, high)

        return hook

    hooks = [p.register_hook(hook_for(n)) for n, p in t.model.named_parameters()]
    yield None
    for h in hooks:
        h.remove()


@contextlib.contextmanager
def monitor(t: Training) -> Iterator[Look]:
    """OptimizerMonitor's numbers: norms of gradient, weight and moments of every tensor, brought to the host together."""
    kept: dict[str, float] = {}

    def look(_: torch.Tensor) -> None:
        found: dict[str, torch.Tensor] = {}
        for name, p in t.model.named_parameters():
            if p.grad is None:
                continue
            found[f"l2_norm/grad/{name}"] = torch.linalg.vector_norm(p.grad)
            found[f"l2_norm/param/{name}"] = torch.linalg.vector_norm(p.detach())
            for key, value in t.optimizer.state.get(p, {}).items():
                if isinstance(value, torch.Tensor) and value.dim():
                    found[f"l2_norm/{key}/{name}"] = torch.linalg.vector_norm(value)
        kept.update(zip(found, torch.stack(list(found.values())).tolist(), strict=True))

    yield look


@contextlib.contextmanager
def wandb_watch(t: Training) -> Iterator[Look]:
    """The real one, offline: gradients and parameters, at every step; its default is every 1000."""
    import wandb

    with tempfile.TemporaryDirectory() as folder:
        os.environ["WANDB_SILENT"] = "true"
        run = wandb.init(mode="offline", dir=folder, project="benchmark")
        run.watch(t.model, log="all", log_freq=1)
        yield lambda _: run.log({})
        run.unwatch(t.model)
        run.finish()


# Timing


class Clock:
    """Marks between segments: events of the device, read when it is idle; on a CPU the process's own time, which holds
    still on a busy machine."""

    def __init__(self, device: torch.device) -> None:
        self.cuda = device.type == "cuda"
        self.marks: list[Any] = []

    def mark(self) -> None:
        if self.cuda:
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self.marks.append(event)
        else:
            self.marks.append(time.process_time())

    def lengths(self) -> list[float]:
        """Seconds between the marks so far; the next ones are counted anew."""
        marks, self.marks = self.marks, []
        if self.cuda:
            torch.cuda.synchronize()
            return [a.elapsed_time(b) / 1000 for a, b in pairwise(marks)]
        return [b - a for a, b in pairwise(marks)]


def segment(t: Training, arm: Callable[[], Any], steps: int = SEGMENT, clock: Clock | None = None) -> None:
    with arm() as look:
        for _ in range(steps):
            t.step(look)
            if clock is not None:
                clock.mark()


Pair = tuple[list[float], list[float]]  # seconds of the steps of a plain segment and of one with the arm


def pairs(t: Training, arm: Callable[[], Any], seconds: float, least: int, rng: random.Random) -> list[Pair]:
    """Pairs of segments in random order, until the time is up. The host runs ahead of the device as in a training; it is
    stopped every few pairs only, and the steps after that do not count."""
    found: list[Pair] = []
    clock, begun = Clock(t.device), time.perf_counter()
    nothing = lambda: plain(t)  # noqa: E731
    gc.collect()
    gc.disable()
    try:
        while len(found) < least or time.perf_counter() - begun < seconds:
            orders = rng.sample([True, False] * 12, 24)
            segment(t, nothing, 2)
            clock.mark()
            for swapped in orders:
                for one in (arm, nothing) if swapped else (nothing, arm):
                    segment(t, one, clock=clock)
            times = clock.lengths()
            for k, swapped in enumerate(orders):
                at = 2 * k * SEGMENT
                a, b = times[at : at + SEGMENT], times[at + SEGMENT : at + 2 * SEGMENT]
                found.append((b, a) if swapped else (a, b))
            gc.collect()
            if time.perf_counter() - begun > 4 * seconds:
                break
    finally:
        gc.enable()
    return found


def over(found: list[Pair]) -> dict[str, Any]:
    """The Hodges-Lehmann mean and the median over pairs of arm / plain, less 1, each with its 95 % interval."""
    steps = np.array(found)  # pair, arm, step
    ratios = steps[:, 1].sum(1) / steps[:, 0].sum(1) - 1
    n, rng = len(ratios), np.random.default_rng(0)
    draws = rng.integers(0, n, (1000, n))
    low, high = np.quantile(np.median(ratios[draws], axis=1), [0.025, 0.975])
    ends = np.quantile([hodges_lehmann(ratios[d], rng) for d in draws], [0.025, 0.975])
    return {
        "mean": hodges_lehmann(ratios, rng),
        "low": float(ends[0]),
        "high": float(ends[1]),
        "median": float(np.median(ratios)),
        "median_low": float(low),
        "median_high": float(high),
        "pairs": n,
    }


def hodges_lehmann(values: Any, rng: Any) -> float:
    """The median of the means of two: of all of them, or of twenty thousand."""
    n = len(values)
    if n <= 200:
        a, b = np.triu_indices(n)
    else:
        a, b = rng.integers(0, n, (2, 20_000))
    return float(np.median((values[a] + values[b]) / 2))


def measure(t: Training, seconds: float, others: bool, raw: dict[str, Any]) -> dict[str, Any]:
    """Most of the time for the guard without looks at every tensor, the rest for looks, control and the other arms."""
    rng = random.Random(0)
    guard = Guard(t.model, t.optimizer, every=10**9)
    guard.tick = 1  # the first step would be a look
    watched = Watched(t, guard)
    arm = watched.arm
    segment(t, arm, 4)
    found: dict[str, Any] = {"failed": {}, "over": {}}
    mine = raw["guard"] = pairs(t, arm, (0.5 if others else 0.8) * seconds, 24, rng)
    found["plain_ms"] = 1000 * statistics.median(v for a, _ in mine for v in a)
    found["over"]["guard"] = over(mine)
    control = raw["control"] = pairs(t, lambda: plain(t), (0.15 if others else 0.1) * seconds, 24, rng)
    found["over"]["plain again"] = over(control)
    guard.every = SEGMENT  # one look a segment
    looks = raw["looks"] = pairs(t, arm, (0.15 if others else 0.1) * seconds, 16, rng)
    more = [statistics.median(sum(b) - sum(a) for a, b in found_) for found_ in (looks, mine)]
    cost = more[0] - more[1]  # of one look
    found["look_ms"] = 1000 * cost
    share = max(cost, 0.0) / EVERY / (found["plain_ms"] / 1000)
    found["over"][f"guard + tensors every {EVERY}"] = {
        k: v + share if k != "pairs" else len(looks) for k, v in found["over"]["guard"].items()
    }
    watched.close()
    found["passive"] = guard.passive
    beside: dict[str, Callable[[], Any]] = {}
    if others:
        beside |= {"norm monitor": lambda: monitor(t), ".item() loop": lambda: item_loop(t)}
    if others and t.run is t.model:  # hooks would compile the model anew, and mostly measure that
        beside |= hooked(t)
    for name, other in beside.items():
        try:
            found["over"][name] = slow(t, other)
        except Exception as error:
            found["failed"][name] = f"{type(error).__name__}: {error}"
    return found


def hooked(t: Training) -> dict[str, Callable[[], Any]]:
    return {
        "histogram hooks": lambda: histograms(t),
        "detect_anomaly": lambda: anomaly(t),
        "wandb.watch(all), every step": lambda: wandb_watch(t),
    }


def slow(t: Training, arm: Callable[[], Any]) -> dict[str, float]:
    """An arm far from a percent: one segment of it after a step that warms up, and one of plain, from idle to idle."""
    clock = time.perf_counter if t.device.type == "cuda" else time.process_time

    def once(one: Callable[[], Any]) -> float:
        with one() as look:
            t.step(look)
            t.idle()
            begun = clock()
            for _ in range(SEGMENT):
                t.step(look)
            t.idle()
            return clock() - begun

    return {"mean": once(arm) / statistics.median(once(lambda: plain(t)) for _ in range(3)) - 1}


def direct(t: Training) -> dict[str, float]:
    """Microseconds of host time inside the guard's own calls, medians without and with a look at every tensor, and what
    the host has to spare in a plain step: the step's time in a row less the time it takes to launch one."""
    guard = Guard(t.model, t.optimizer, every=32)
    inside, spent = 0.0, []
    clock = time.perf_counter if t.device.type == "cuda" else time.thread_time

    def timed(inner: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal inside
            begun = clock()
            result = inner(*args, **kwargs)
            inside += clock() - begun
            return result

        return call

    guard.detach()
    for name in ("step", "_pre_hook", "_post_hook"):
        setattr(guard, name, timed(getattr(guard, name)))
    guard.attach()
    for k in range(128):
        inside = 0.0
        if k % 2 == 0:
            t.idle()  # a full launch queue would make the host wait inside the guard, for nothing of its own
        t.step(lambda loss: guard.step(loss, batch_id=0, inputs=t.x, targets=t.y))
        spent.append(1e6 * inside)
    guard.close()
    launch = []
    for _ in range(8):
        t.idle()
        begun = time.perf_counter()
        t.step()
        launch.append(time.perf_counter() - begun)
    t.idle()
    begun = time.perf_counter()
    for _ in range(12):
        t.step()
    t.idle()
    step = (time.perf_counter() - begun) / 12
    return {
        "step_us": statistics.median(v for k, v in enumerate(spent) if k % 32),
        "step_us_mean": statistics.mean(v for k, v in enumerate(spent) if k % 32 and k > 32),
        "step_us_least": min(v for k, v in enumerate(spent) if k % 32),
        "look_us": statistics.median(spent[32::32]),
        "launch_us": 1e6 * min(launch),
        "slack_us": 1e6 * (step - min(launch)),
    }


def kernels(t: Training, steps: int = 4) -> dict[str, float]:
    """Device microseconds a step: all kernels of a plain step, and those of the guard with and without a look."""
    guard = Guard(t.model, t.optimizer, every=10**9)
    guard.tick = 1
    inner = guard._guarded

    def named(*args: Any) -> None:
        with torch.profiler.record_function("the guard"):
            inner(*args)

    guard._guarded = named  # type: ignore[method-assign]

    def profiled(look: Look) -> tuple[float, float, float]:
        t.idle()
        kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=kinds) as seen:
            for _ in range(steps):
                t.step(look)
            t.idle()
        table = seen.key_averages()
        total = sum(
            e.self_device_time_total for e in table if str(e.device_type).endswith("CUDA") and e.key != "the guard"
        )
        ours = sum(e.device_time_total for e in table if e.key == "the guard" and str(e.device_type).endswith("CPU"))
        # Launched past torch, our own kernels are not laid to the account of what torch saw around them.
        ours += sum(e.self_device_time_total for e in table if e.key.startswith("wheeltapper_"))
        launches = sum(
            e.count for e in table if e.key.startswith("cudaLaunchKernel") or e.key.startswith("cuLaunchKernel")
        )
        return total / steps, ours / steps, launches / steps

    look = lambda loss: guard.step(loss, batch_id=0, inputs=t.x, targets=t.y)  # noqa: E731
    for _ in range(2):
        t.step(look)
    _, ours, launches = profiled(look)
    guard.every = 1
    _, looking, _ = profiled(look)
    guard.close()
    total, _, plain_launches = profiled(None)
    return {
        "plain_us": total,
        "guard_us": ours,
        "look_us": looking - ours,
        "share": ours / total,
        "share_with_looks": (ours + (looking - ours) / EVERY) / total,
        "guard_launches": launches - plain_launches,
    }


# Proofs


def waits_for_nothing(t: Training) -> dict[str, Any]:
    """Guard.step and the hooks around optimizer.step under a mode in which waiting for the device is an error; and the
    calls that wait, counted by the profiler with and without the guard."""
    guard = Guard(t.model, t.optimizer, every=5)
    for _ in range(3):
        t.step(guard.step)
    t.idle()

    def strict(loss: torch.Tensor) -> None:
        torch.cuda.set_sync_debug_mode("error")
        guard.step(loss, batch_id=1, inputs=t.x, targets=t.y)

    for _ in range(40):
        t.step(strict)
        torch.cuda.set_sync_debug_mode("default")
    counts = {}
    for name, look in (("with", guard.step), ("without", None)):
        if look is None:
            guard.detach()
        t.idle()
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        ) as seen:
            for _ in range(3):
                t.step(look)
        keys = {e.key: e.count for e in seen.key_averages()}
        wanted = (
            "cudaStreamSynchronize",
            "cudaDeviceSynchronize",
            "cudaEventSynchronize",
            "cudaMemcpy",
            "aten::_local_scalar_dense",
            "cudaLaunchKernel",
        )
        counts[name] = {k: keys.get(k, 0) for k in wanted}
    guard.close()
    return {
        "passive": guard.passive,
        "records": len(guard.history),
        "looks": len(guard.tensors),
        "dropped": guard.dropped,
        "calls_in_3_steps": counts,
    }


def bit_identical(t: Training, steps: int = 8) -> dict[str, bool]:
    """Weights, losses and random states after the same steps: plain against plain (the control) and plain against
    guarded. On a small batch and with the plain form of attention, for the fast one is not the same twice."""
    start, whole = copy.deepcopy(t.model.state_dict()), (t.x, t.y)
    t.x, t.y = t.x[:4], t.y[:4]
    torch.use_deterministic_algorithms(True, warn_only=True)
    ends = []
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        for arm in ("plain", "plain", "guard"):
            t.model.load_state_dict(start)
            t.optimizer.state.clear()
            torch.manual_seed(1)
            guard = Guard(t.model, t.optimizer, every=4) if arm == "guard" else None
            losses = [t.step(guard.step if guard else None).detach().clone() for _ in range(steps)]
            if guard:
                guard.close()
            rng = torch.cuda.get_rng_state() if t.device.type == "cuda" else torch.get_rng_state()
            ends.append([*losses, *(v.clone() for v in t.model.state_dict().values()), rng])
    torch.use_deterministic_algorithms(False)
    t.model.load_state_dict(start)
    t.optimizer.state.clear()
    t.x, t.y = whole
    same = [all(torch.equal(a, b) for a, b in zip(ends[0], other, strict=True)) for other in ends[1:]]
    return {"plain_twice": same[0], "plain_and_guard": same[1]}


def main() -> None:
    parser = argparse.ArgumentParser(description="The cost of the guard beside what people use instead.")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--budget", type=float, default=350.0, help="seconds for everything")
    parser.add_argument("--quick", action="store_true", help="small models, no torch.compile")
    parser.add_argument("--models", default="resnet,gpt")
    parser.add_argument("--modes", default="eager,compiled")
    parser.add_argument("--alone", action="store_true", help="only the guard, without the other instruments")
    parser.add_argument("--raw", help="a file for the times of all steps")
    args = parser.parse_args()
    if hasattr(os, "sched_setaffinity") and args.device == "cuda":
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-CORES:])
    small = args.quick or args.device == "cpu"
    modes = [False] if small else [mode == "compiled" for mode in args.modes.split(",")]
    if args.device == "cpu":
        torch.set_num_threads(1)
    deadline = time.perf_counter() + args.budget
    if args.device == "cuda":
        BUILD.wait(60)  # where WHEELTAPPER_NATIVE=1 asks for it; else at once
    plans = [(name, compiled) for compiled in modes for name in args.models.split(",")]
    where = torch.cuda.get_device_name() if args.device == "cuda" else platform.processor() or platform.machine()
    results: dict[str, Any] = {"device": where, "torch": torch.__version__, "segment": SEGMENT, "configurations": {}}
    results["in C++"] = BUILD.library is not None
    raw: dict[str, Any] = {}
    weight = {False: 1.0, True: 1.6}  # compiling takes most of a minute
    for k, (name, compiled) in enumerate(plans):
        title = f"{name}, {'compiled' if compiled else 'eager'}"
        begun = time.perf_counter()
        share = (deadline - begun) * weight[compiled] / sum(weight[c] for _, c in plans[k:])
        t = Training(name, args.device, small)
        found: dict[str, Any] = {}
        try:
            if not compiled:
                found["bit_identical"] = bit_identical(t)
            else:
                t.run = torch.compile(t.model)
            for _ in range(3):
                t.step()
            t.idle()
            found["ready_s"] = time.perf_counter() - begun
            if args.device == "cuda":
                found["sync"] = waits_for_nothing(t)
                found["kernels"] = kernels(t)
            found["direct"] = direct(t)
            ready = time.perf_counter() - begun
            times: dict[str, Any] = {}
            found |= measure(t, max(4.0, (0.9 if args.alone else 0.75) * (share - ready)), not args.alone, times)
            raw[title] = times
        except Exception as error:
            found["error"] = f"{type(error).__name__}: {error}"
        results["configurations"][title] = found
        show(title, found)
        del t
        if args.device == "cuda":
            torch.cuda.empty_cache()
    print(json.dumps(results))
    if args.raw:
        with open(args.raw, "w") as file:
            json.dump(raw, file)


def verdict(low: float, high: float, goal: float) -> str:
    word = "met" if high <= goal else "NOT met" if low > goal else "cannot tell"
    return f"{100 * goal:.0f} %: {word}"


def show(title: str, found: dict[str, Any]) -> None:
    print(f"\n**{title}**", flush=True)
    for key in ("error", "ready_s", "bit_identical", "sync", "kernels", "direct", "look_ms", "passive", "failed"):
        if found.get(key):
            print(f"{key}: {found[key]}")
    if "over" not in found:
        return
    print(f"\nplain step {found['plain_ms']:.2f} ms, segments of {SEGMENT} steps\n")
    print("| arm | over plain | 95 % | goal | median | 95 % | goal |\n|---|---|---|---|---|---|---|")
    for name, value in found["over"].items():
        if "low" not in value:
            print(f"| {name} | {100 * value['mean']:+.0f} %{' |' * 6}", flush=True)
            continue
        cells = [name]
        for mid, low, high in (("mean", "low", "high"), ("median", "median_low", "median_high")):
            goal = verdict(value[low], value[high], GOALS[name]) if name in GOALS else ""
            cells += [f"{100 * value[mid]:+.2f} %", f"{100 * value[low]:+.2f} to {100 * value[high]:+.2f} %", goal]
        print(f"| {' | '.join(cells)} | ({value['pairs']} pairs)", flush=True)


if __name__ == "__main__":
    main()
