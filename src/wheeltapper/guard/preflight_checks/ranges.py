"""How large and how small activations and gradients are, against what half precision can hold; and the pace."""

from __future__ import annotations

import math
import statistics
import time
from typing import Any

import torch

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.guard.preflight_checks.bench import Bench, tensors_of
from wheeltapper.guard.preflight_checks.gradients import names
from wheeltapper.guard.preflight_checks.inputs import found

FP16_MAX, FP16_TINY = 65504.0, 2.0**-24  # the largest number, and the smallest above zero
HEADROOM = 8.0  # activations grow while training; an eighth of the limit is close


def check_precision(bench: Bench, graded: Any) -> list[tuple[str, Answer]]:
    """`graded`: the model with the gradients of one step, from check_gradients.

    Measured as the model is. In float32 this says what fp16 would do to it; bf16 has the range of float32.
    """
    largest = _largest_activations(bench)
    half = bench.autocast == torch.float16 or any(p.dtype == torch.float16 for p in bench.pristine.parameters())
    if not half and not all(map(math.isfinite, largest.values())):
        return [("precision", Unknown("activations are not finite in the precision they have"))]
    out: list[tuple[str, Answer]] = []
    over = [(name, size) for name, size in largest.items() if not size <= FP16_MAX / HEADROOM]
    if over:
        worst = max(over, key=lambda item: item[1] if item[1] == item[1] else float("inf"))
        text = f"activations reach {worst[1]:.3g} in {names([n for n, _ in over])}; fp16 ends at 65504"
        out.append(found("fp16-overflow", text, "watch" if half else "note", largest=worst[1]))
    tiny = total = 0
    top = 0.0
    for p in graded.parameters():
        if p.grad is not None:
            g = p.grad.detach().abs().float()
            total += int((g > 0).sum())
            tiny += int(((g > 0) & (g < FP16_TINY)).sum())
            top = max(top, float(g.max()) if g.numel() else 0.0)
    lost = tiny / total if total else 0.0
    if lost > 0.05:
        # A scale of 2^16 lifts gradients by five decades; what it still does not hold is lost.
        text = f"{lost:.0%} of the gradients are below 6e-8 and become zero in fp16 without a loss scale"
        out.append(found("fp16-underflow", text, "watch" if half else "note", share=lost))
    peak = max(largest.values(), default=0.0)
    words = f"activations up to {peak:.3g}, gradients up to {top:.3g}, {lost:.1%} of them below fp16's smallest number"
    return out or [("precision", Clear(words))]


def _largest_activations(bench: Bench) -> dict[str, float]:
    model, _ = bench.fresh()
    model.train()
    sizes: dict[str, Any] = {}
    handles = []
    for name, module in model.named_modules():
        if next(module.children(), None) is None:

            def look(_m: Any, _a: Any, out: Any, name: str = name) -> None:
                tops = [t.detach().abs().amax().float() for t in tensors_of(out) if t.is_floating_point() and t.numel()]
                if tops:
                    top = torch.stack(tops).amax()
                    sizes[name] = torch.maximum(sizes[name], top) if name in sizes else top

            handles.append(module.register_forward_hook(look))
    try:
        with torch.no_grad():
            bench.run(model)
    finally:
        for handle in handles:
            handle.remove()
    return {name or "the model": float(size) for name, size in sizes.items()}


def check_pace(bench: Bench, *, seconds: float, samples: int | None) -> list[tuple[str, Answer]]:
    """Forward and backward on the copy, without the data loader."""
    model, optimizers = bench.fresh()
    model.train()
    times: list[float] = []
    end = time.perf_counter() + seconds
    on_gpu = bench.device.type == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats(bench.device)
    while len(times) < 20 and (len(times) < 2 or time.perf_counter() < end):
        began = time.perf_counter()
        loss = bench.run(model).loss
        if not loss.requires_grad:
            return []
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        model.zero_grad()
        if on_gpu:
            torch.cuda.synchronize(bench.device)
        times.append(time.perf_counter() - began)
    one = statistics.median(times[1:])
    first = next((t for t in tensors_of(bench.batch) if t.ndim), None)
    size = int(first.shape[0]) if first is not None else 1
    words = f"{1000 * one:.3g} ms for a step of {size} samples ({size / one:,.3g} a second), data loading and compilation not counted"
    if samples:
        words += f"; an epoch of {samples:,} takes {_duration(one * samples / size)}"
    if on_gpu:
        words += f"; {torch.cuda.max_memory_allocated(bench.device) / 2**30:.3g} GiB at the peak, with the copies"
    return [("pace", Clear(words))]


def _duration(seconds: float) -> str:
    """
    >>> _duration(5), _duration(400), _duration(90000)
    ('5 s', '6.67 min', '25 h')
    """
    if seconds < 100:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 6000 else f"{seconds / 3600:.3g} h"
