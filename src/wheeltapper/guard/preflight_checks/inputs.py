"""The batch itself: values that are not finite, channels that carry nothing, targets that cannot be."""

from __future__ import annotations

import math
from typing import Any

import torch

from wheeltapper.finding import Answer, Clear, Finding, Grade, Severity, Unknown
from wheeltapper.guard.preflight_checks.bench import Batch, named_tensors, parts_of

SHOWN = 4  # names in one sentence
IGNORED = -100  # what torch and Hugging Face leave out of a cross-entropy
CHANCE = 1e-3  # a batch of one class is worth a word where chance gives it less often


def found(name: str, text: str, severity: Severity, grade: Grade = "is", **numbers: float) -> tuple[str, Finding]:
    return name, Finding(name, text, severity, grade, numbers={k: float(v) for k, v in numbers.items()})


def check_inputs(batch: Batch) -> list[tuple[str, Answer]]:
    """Every tensor of the batch, targets too: finite, not constant, in a usual range."""
    tensors = list(named_tensors(batch))
    if not tensors:
        return [("inputs", Unknown("the batch holds no tensor", ("a batch as the model receives it",)))]
    _, target = parts_of(batch)
    out: list[tuple[str, Answer]] = []
    bad = [(name, int((~torch.isfinite(t)).sum())) for name, t in tensors if t.is_floating_point()]
    bad = [(name, n) for name, n in bad if n]
    if bad:
        what = ", ".join(f"{name} ({n:,} values)" for name, n in bad[:SHOWN])
        out.append(found("inputs-not-finite", f"the batch holds NaN or infinite values: {what}", "ill"))
    inputs = [(name, t) for name, t in tensors if t is not target and t.numel() > 1]
    for name, t in inputs:
        out += _constant(name, t)
    ranges = ", ".join(
        f"{name} {tuple(t.shape)} in [{float(t.min()):.4g}, {float(t.max()):.4g}]"
        for name, t in inputs[:SHOWN]
        if not t.is_complex()
    )
    out += [item for name, t in inputs for item in _range(name, t)]
    return out or [("inputs", Clear(f"finite, no dead channel: {ranges}"))]


def _constant(name: str, t: Any) -> list[tuple[str, Answer]]:
    if t.dtype == torch.bool or t.is_complex():
        return []
    low, high = t.amin(), t.amax()
    if bool(low == high):
        # A mask of ones is constant and fine: whole numbers that are all one carry no blame.
        if not t.is_floating_point():
            return []
        return [
            found("dead-input", f"{name} has the same value everywhere ({float(low):.4g})", "ill", value=float(low))
        ]
    if not t.is_floating_point() or t.ndim < 2:
        return []
    out: list[tuple[str, Answer]] = []
    # Channels are dimension 1 of images and the last one of tables.
    channel = 1 if t.ndim >= 4 else t.ndim - 1
    rest = [d for d in range(t.ndim) if d != channel]
    if math.prod(t.shape[d] for d in rest) >= 4:
        flat = t.amax(rest) == t.amin(rest)
        n = int(flat.sum())
        if n:
            which = [int(i) for i in torch.nonzero(flat).flatten()[:SHOWN]]
            few = "" if n <= SHOWN else ", …"
            text = f"{n} of {t.shape[channel]} channels of {name} are constant in this batch ({', '.join(map(str, which))}{few})"
            out.append(found("dead-input", text, "watch", channels=n))
    if t.shape[0] >= 2 and bool((t == t[:1]).all()):
        out.append(found("same-samples", f"all {t.shape[0]} samples of {name} are the same", "ill", samples=t.shape[0]))
    return out


def _range(name: str, t: Any) -> list[tuple[str, Answer]]:
    """Pixels from 0 to 255 in a float tensor: someone forgot to divide. A layer that normalises first is fine."""
    if not t.is_floating_point() or t.ndim < 4 or not bool(torch.isfinite(t).all()):
        return []
    low, high = float(t.min()), float(t.max())
    if low >= 0 and 100 < high <= 255 and bool((t == t.round()).all()):
        text = f"{name} holds whole numbers from {low:.0f} to {high:.0f}: pixels that were not scaled, unless the model does it"
        return [found("input-range", text, "watch", "suspected", low=low, high=high)]
    return []


def check_targets(batch: Batch, output: Any) -> list[tuple[str, Answer]]:
    """The targets against the output: range, shape, and whether there is more than one."""
    _, target = parts_of(batch)
    if not isinstance(target, torch.Tensor):
        return [
            ("targets", Unknown("the batch does not say which part is the target", ("a batch of (inputs, targets)",)))
        ]
    if target.numel() == 0:
        return [found("targets", "the target is empty", "ill")]
    if target.is_floating_point():
        return _real_targets(target)
    if target.dtype == torch.bool:
        return [("targets", Clear("true and false"))]
    kept = target[target != IGNORED]
    if kept.numel() == 0:
        return [found("all-labels-masked", f"every target is {IGNORED}, which the loss leaves out", "ill")]
    classes = classes_of(output, target)
    low, high = int(kept.min()), int(kept.max())
    if classes is not None and (low < 0 or high >= classes):
        text = f"targets run from {low} to {high}; the output has {classes} classes (0 to {classes - 1})"
        return [found("targets-out-of-range", text, "ill")]
    n = kept.numel()
    if low == high and classes and n >= 2 and classes ** -(n - 1.0) < CHANCE:
        text = f"all {n} targets are class {low}: the data may be sorted, or the labels lost"
        return [found("one-class-batch", text, "watch", "is-p", samples=n)]
    some = int(kept.unique().numel())
    left_out = target.numel() - n
    words = f", {left_out:,} of {target.numel():,} left out ({IGNORED})" if left_out else ""
    return [("targets", Clear(f"{some} of {classes or '?'} classes in {n:,} targets{words}"))]


def _real_targets(target: Any) -> list[tuple[str, Answer]]:
    low, high = float(target.min()), float(target.max())
    if low == high:
        return [found("constant-target", f"every target is {low:.4g}", "watch", value=low)]
    return [("targets", Clear(f"real numbers in [{low:.4g}, {high:.4g}], mean {float(target.float().mean()):.4g}"))]


def classes_of(output: Any, target: Any) -> int | None:
    """The number of classes, where output and target fit a classification: (N, C) or (N, C, d…) against (N, …),
    or (…, C) against (…)."""
    if not isinstance(output, torch.Tensor) or target is None or target.is_floating_point() or output.ndim < 2:
        return None
    if output.ndim == target.ndim + 1:
        if output.shape[:-1] == target.shape:
            return int(output.shape[-1])
        if output.shape[0] == target.shape[0] and output.shape[2:] == target.shape[1:]:
            return int(output.shape[1])
    if output.ndim == 2 and target.ndim == 1 and output.shape[0] == target.shape[0]:
        return int(output.shape[1])
    return None
