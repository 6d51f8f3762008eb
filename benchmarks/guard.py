"""What instrumenting a training step costs, side by side: `python benchmarks/guard.py [--budget SECONDS] [--quick]`.

One model and one optimizer per configuration; the arms take turns in blocks of steps on them, so that the clock,
the heat and the neighbours are the same for all. A block is timed from an idle device to an idle device. The figure
is the median over rounds of block time / the plain blocks' median in the same round; `plain again` is the control.

Arms: nothing; the guard with all its per-step statistics; the guard that also looks at every tensor once a block
(every 20 steps here, five times as often as its default); a loop of `.item()` over gradient norms; detect_anomaly;
histograms of gradients by hooks, as wandb.watch does; per-tensor norms of gradient, weight and moments read every
step, as the Lightning and Composer monitors do. Also, on a GPU: that guard.step waits for nothing
(torch.cuda.set_sync_debug_mode) and that training with the guard is bit-identical.

Needs torch and numpy only: PYTHONPATH=src python3 benchmarks/guard.py
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # so that the bit-identity test can ask for determinism

import torch
from torch import nn
from torch.nn import functional

from wheeltapper.guard import Guard

BLOCK = 20
GOALS = {"guard": 0.01, "guard + tensors every 100": 0.02}  # issue 7

# The models


class Bottleneck(nn.Module):
    def __init__(self, inner: int, outer: int, into: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(into, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU(inplace=True),
            nn.Conv2d(inner, inner, 3, stride, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU(inplace=True),
            nn.Conv2d(inner, outer, 1, bias=False), nn.BatchNorm2d(outer),
        )  # fmt: skip
        same = into == outer and stride == 1
        self.skip = (
            nn.Identity()
            if same
            else nn.Sequential(nn.Conv2d(into, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.body(x) + self.skip(x))


def resnet(depths: tuple[int, ...], width: int) -> nn.Module:
    layers: list[nn.Module] = [
        nn.Conv2d(3, width, 7, 2, 3, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
    ]
    into = width
    for stage, depth in enumerate(depths):
        inner = width * 2**stage
        for k in range(depth):
            layers.append(Bottleneck(inner, 4 * inner, into, 2 if k == 0 and stage else 1))
            into = 4 * inner
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(into, 1000))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, w = x.shape
        q, k, v = (
            z.view(b, t, self.heads, w // self.heads).transpose(1, 2) for z in self.qkv(self.norm(x)).split(w, 2)
        )
        return self.out(
            functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, w)
        )


class GPT(nn.Module):
    def __init__(self, vocabulary: int, context: int, depth: int, width: int, heads: int) -> None:
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.place = nn.Embedding(context, width)
        self.attend = nn.ModuleList(Attention(width, heads) for _ in range(depth))
        self.think = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            for _ in range(depth)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.token.weight
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.token(x) + self.place(torch.arange(x.shape[1], device=x.device))
        for attend, think in zip(self.attend, self.think, strict=True):
            h = h + attend(h)
            h = h + think(h)
        return self.head(self.norm(h))


class Training:
    """A model, its optimizer and a fixed batch; `step` is one plain step with `look` between backward and step."""

    def __init__(self, name: str, device: str, small: bool) -> None:
        torch.manual_seed(0)
        self.name, self.device = name, torch.device(device)
        if name == "resnet":
            self.model: Any = (resnet((1, 1, 1, 1), 16) if small else resnet((3, 4, 6, 3), 64)).to(device)
            if device == "cuda":
                self.model = self.model.to(memory_format=torch.channels_last)
            batch, side = (16, 64) if small else (128, 224)
            self.x = torch.randn(batch, 3, side, side, device=device)
            self.y = torch.randint(0, 1000, (batch,), device=device)
            self.optimizer: Any = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9, weight_decay=1e-4)
        else:
            sizes = (1024, 128, 4, 128, 4) if small else (50304, 1024, 12, 768, 12)
            self.model = GPT(*sizes).to(device)
            batch, length = (8, 128) if small else (12, 1024)
            self.x = torch.randint(0, sizes[0], (batch, length), device=device)
            self.y = torch.randint(0, sizes[0], (batch, length), device=device)
            self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=device == "cuda")
        self.run = self.model

    def step(self, look: Callable[[torch.Tensor], None] | None = None) -> torch.Tensor:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            out = self.run(self.x)
        loss = functional.cross_entropy(out.float().view(-1, out.shape[-1]), self.y.view(-1))
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if look is not None:
            look(loss)
        self.optimizer.step()
        return loss

    def idle(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()


# The arms: each is a context that yields what to call between backward() and step()

Look = Callable[[torch.Tensor], None] | None


@contextlib.contextmanager
def plain(_: Training) -> Iterator[Look]:
    yield None


@contextlib.contextmanager
def guarded(t: Training, every: int, guard: Guard) -> Iterator[Look]:
    guard.every, guard.tick = every, 1  # one look a block where every <= BLOCK
    guard.attach()
    yield lambda loss: guard.step(loss, batch_id=0, inputs=t.x, targets=t.y)
    guard.detach()


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


def block(t: Training, arm: Callable[[], Any]) -> float:
    with arm() as look:
        t.idle()
        # On a CPU the process's own time: it holds still on a busy machine.
        clock = time.perf_counter if t.device.type == "cuda" else time.process_time
        begun = clock()
        for _ in range(BLOCK):
            t.step(look)
        t.idle()
        return (clock() - begun) / BLOCK


def measure(t: Training, seconds: float) -> dict[str, Any]:
    """Blocks of all arms in turn until the time is up; slow arms stop after a third of it."""
    guard = Guard(t.model, t.optimizer)
    guard.detach()
    arms: dict[str, Callable[[], Any]] = {
        "plain": lambda: plain(t),
        "guard": lambda: guarded(t, 10**9, guard),
        "plain again": lambda: plain(t),
        "guard + tensors every 20": lambda: guarded(t, BLOCK, guard),
        "norm monitor": lambda: monitor(t),
        ".item() loop": lambda: item_loop(t),
        "detect_anomaly": lambda: anomaly(t),
        "histogram hooks": lambda: histograms(t),
    }
    slow = list(arms)[4:]
    times: dict[str, list[float]] = {name: [] for name in arms}
    failed: dict[str, str] = {}
    for name, arm in arms.items():  # a round that does not count: caches, allocations, autotuning
        try:
            block(t, arm)
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}"
    begun = time.perf_counter()
    rounds = 0
    while rounds < 3 or time.perf_counter() - begun < seconds:
        names = [n for n in arms if n not in failed and (n not in slow or rounds < 3)]
        turn = rounds % 4  # the four that matter change places; what comes after a slow arm is not always the same
        fast = [n for n in names if n not in slow]
        for name in fast[turn:] + fast[:turn] + [n for n in names if n in slow]:
            times[name].append(block(t, arms[name]))
        rounds += 1
        if time.perf_counter() - begun > 3 * seconds:
            break
    guard.close()
    base = statistics.median(times["plain"])
    found: dict[str, Any] = {
        "plain_ms": 1000 * base,
        "rounds": rounds,
        "failed": failed,
        "passive": guard.passive,
        "overhead": {},
        "spread": {},
    }
    for name, values in times.items():
        if name == "plain" or not values:
            continue
        ratios = sorted(v / p - 1 for v, p in zip(values, times["plain"], strict=False))
        found["overhead"][name] = statistics.median(values) / statistics.median(times["plain"][: len(values)]) - 1
        found["spread"][name] = [ratios[len(ratios) // 4], ratios[(3 * len(ratios)) // 4]]
    if not failed.keys() & {"guard", "guard + tensors every 20"}:
        each, looks = found["overhead"]["guard"], found["overhead"]["guard + tensors every 20"]
        found["overhead"]["guard + tensors every 100"] = each + (looks - each) * BLOCK / 100
    return found


def direct(t: Training) -> dict[str, float]:
    """Microseconds of host time a step inside the guard's own calls: median without and with a look at every tensor.
    On a CPU that is the whole cost; on a GPU the host's share of it, usually hidden behind the device."""
    guard = Guard(t.model, t.optimizer, every=4)
    inside, spent, inner = 0.0, [], guard._guarded
    clock = time.perf_counter if t.device.type == "cuda" else time.thread_time

    def timed(*args: Any) -> None:
        nonlocal inside
        begun = clock()
        inner(*args)
        inside += clock() - begun

    guard._guarded = timed  # type: ignore[method-assign]
    for _ in range(40):
        inside = 0.0
        t.step(lambda loss: guard.step(loss, batch_id=0, inputs=t.x, targets=t.y))
        spent.append(1e6 * inside)
    guard.close()
    plain_steps = [v for k, v in enumerate(spent) if k % 4]
    return {"step_us": statistics.median(plain_steps), "look_us": statistics.median(spent[8::4])}


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

    for _ in range(12):
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
            for _ in range(5):
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
        "calls_in_5_steps": counts,
    }


def bit_identical(t: Training, steps: int = 12) -> dict[str, bool]:
    """Weights and losses after the same steps: plain against plain (the control) and plain against guarded."""
    start = copy.deepcopy(t.model.state_dict())
    torch.use_deterministic_algorithms(True, warn_only=True)
    ends = []
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
    same = [all(torch.equal(a, b) for a, b in zip(ends[0], other, strict=True)) for other in ends[1:]]
    return {"plain_twice": same[0], "plain_and_guard": same[1]}


def main() -> None:
    parser = argparse.ArgumentParser(description="The cost of the guard beside what people use instead.")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--budget", type=float, default=270.0, help="seconds for everything")
    parser.add_argument("--quick", action="store_true", help="small models, no torch.compile")
    parser.add_argument("--models", default="resnet,gpt")
    args = parser.parse_args()
    small = args.quick or args.device == "cpu"
    modes = [False] if small else [False, True]
    if args.device == "cpu":
        torch.set_num_threads(1)
    deadline = time.perf_counter() + args.budget
    plans = [(name, compiled) for compiled in modes for name in args.models.split(",")]
    where = torch.cuda.get_device_name() if args.device == "cuda" else platform.processor() or platform.machine()
    results: dict[str, Any] = {"device": where, "torch": torch.__version__, "block": BLOCK, "configurations": {}}
    for k, (name, compiled) in enumerate(plans):
        title = f"{name}, {'compiled' if compiled else 'eager'}"
        t = Training(name, args.device, small)
        share = (deadline - time.perf_counter()) / (len(plans) - k)
        begun = time.perf_counter()
        found: dict[str, Any] = {}
        try:
            if not compiled:
                found["bit_identical"] = bit_identical(t)
            if compiled:
                t.run = torch.compile(t.model)
            t.step()
            if args.device == "cuda":
                found["sync"] = waits_for_nothing(t)
            found["direct"] = direct(t)
            used = time.perf_counter() - begun
            found |= measure(t, max(3.0, 0.6 * (share - used)))
        except Exception as error:
            found["error"] = f"{type(error).__name__}: {error}"
        results["configurations"][title] = found
        show(title, found)
        del t
        if args.device == "cuda":
            torch.cuda.empty_cache()
    print(json.dumps(results))


def verdict(value: float, goal: float, control: float) -> str:
    """A goal is met or not only where two plain arms agree better than the goal asks."""
    if abs(control) > goal:
        return f"{100 * goal:.0f} %: cannot tell, plain against plain is {100 * control:+.1f} %"
    return f"{100 * goal:.0f} %: {'met' if value <= goal else 'NOT met'}"


def show(title: str, found: dict[str, Any]) -> None:
    print(f"\n**{title}**", flush=True)
    for key in ("error", "bit_identical", "sync", "direct", "passive", "failed"):
        if found.get(key):
            print(f"{key}: {found[key]}")
    if "overhead" not in found:
        return
    print(
        f"\nplain step {found['plain_ms']:.2f} ms, {found['rounds']} rounds of {BLOCK} steps\n\n| arm | over plain | quartiles | goal |\n|---|---|---|---|"
    )
    for name, value in found["overhead"].items():
        low, high = found["spread"].get(name, (None, None))
        spread = f"{100 * low:+.1f} to {100 * high:+.1f} %" if low is not None else "from the two above"
        goal = verdict(value, GOALS[name], found["overhead"].get("plain again", 0.0)) if name in GOALS else ""
        print(f"| {name} | {100 * value:+.2f} % | {spread} | {goal} |", flush=True)


if __name__ == "__main__":
    main()
