"""The loss before any update, against what arithmetic expects of an untrained model (OUT-14).

The kind of loss is not asked for but found: the usual losses are computed from the output and the target, and the one
that equals the loss to its digits is the one in use. That also proves three common mistakes: a softmax before a
cross-entropy, a sum where a mean is meant, and shapes that broadcast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch.nn import functional

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.guard.preflight_checks.bench import Batch, Seen, parts_of
from wheeltapper.guard.preflight_checks.inputs import IGNORED, classes_of, found
from wheeltapper.simulate.baselines import cross_entropy_at_init, double_softmax_floor, initial_loss

SAME = 2e-3  # relative; a bf16 forward pass rounds at 4e-3 per value, its mean far closer
LOGITS = 3.0  # the standard deviation of logits beyond any usual initialisation (rules/signs/first_loss_odd.py)


def check_first_loss(seen: Seen, batch: Batch, *, head: str | None, classes: int | None) -> list[tuple[str, Answer]]:
    loss = float(seen.loss.detach())
    if not math.isfinite(loss):
        return [found("initial-loss", f"the first loss is {loss}", "ill", loss=loss)]
    _, target = parts_of(batch)
    out = seen.output
    wrong = _shapes(out, target, loss) + _applied_twice(out, target, loss)
    if head is not None:
        expected = initial_loss(head, classes)
        return [*wrong, _against(loss, expected, f"as {head} expects", from_zero=head in ("mse",))]
    kind = kind_of(out, target, loss)
    if kind is None:
        if classes:
            return [*wrong, _entropy(loss, classes, None)]
        needs = ("head= (cross_entropy, bce, mse, …) and classes=",)
        return [
            *wrong,
            ("initial-loss", Unknown(f"the first loss is {loss:.4g}; the kind of loss is not known", needs)),
        ]
    if kind.startswith("cross_entropy"):
        assert out is not None
        n = classes_of(out, target) or classes_of(out[..., :-1, :], target[..., 1:]) or classes or 2
        if kind == "cross_entropy_sum":
            text = f"the first loss is {loss:.4g}: the sum over {target.numel():,} targets, not their mean; the learning rate must fit that"
            return [*wrong, found("loss-summed", text, "watch", loss=loss)]
        return [*wrong, _entropy(loss, n, spread(out, n))]
    if kind == "bce":
        return [*wrong, _against(loss, initial_loss("bce"), "ln 2 for each logit")]
    mean_square = float((target.float() ** 2).mean()) if kind == "mse" else float(target.float().abs().mean())
    words = "the mean square of the targets" if kind == "mse" else "the mean size of the targets"
    return [*wrong, _against(loss, mean_square, f"{words}, for an output of zero", from_zero=True)]


def kind_of(out: Any, target: Any, loss: float) -> str | None:
    """Which usual loss equals this one."""
    for name, compute in _candidates(out, target):
        try:
            value = float(compute())
        except (RuntimeError, ValueError, IndexError):
            continue
        if math.isfinite(value) and abs(value - loss) <= SAME * max(abs(loss), 1e-6):
            return name
    return None


def _candidates(out: Any, target: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    if not isinstance(out, torch.Tensor) or not isinstance(target, torch.Tensor):
        return
    out = out.float()
    if not target.is_floating_point() and target.dtype != torch.bool:
        pairs = [(out, target)]
        if out.ndim == 3 and out.shape[:2] == target.shape:
            pairs.append((out[:, :-1], target[:, 1:]))  # a language model that shifts inside
        for logits, labels in pairs:
            flat = _flat(logits, labels)
            if flat is not None:
                yield "cross_entropy", partial(functional.cross_entropy, flat[0], flat[1], ignore_index=IGNORED)
                summed = partial(functional.cross_entropy, flat[0], flat[1], ignore_index=IGNORED, reduction="sum")
                yield "cross_entropy_sum", summed
    if out.shape == target.shape:
        real = target.float()
        if bool(((real == 0) | (real == 1)).all()):
            yield "bce", lambda: functional.binary_cross_entropy_with_logits(out, real)
            if bool(((out >= 0) & (out <= 1)).all()):
                yield "bce", lambda: functional.binary_cross_entropy(out, real)
        yield "mse", lambda: functional.mse_loss(out, real)
        yield "mae", lambda: functional.l1_loss(out, real)


def _flat(logits: Any, labels: Any) -> tuple[Any, Any] | None:
    n = classes_of(logits, labels)
    if n is None:
        return None
    if logits.shape[:-1] != labels.shape:
        logits = logits.movedim(1, -1)
    return logits.reshape(-1, n), labels.reshape(-1).long()


def spread(out: Any, classes: int) -> float:
    """The standard deviation of the logits of one prediction, which adds half its square to ln C."""
    dim = out.ndim - 1 if out.shape[-1] == classes else 1
    return float(out.float().std(dim).mean())


def _entropy(loss: float, classes: int, logit_std: float | None) -> tuple[str, Answer]:
    level = cross_entropy_at_init(classes)
    words = f"the first loss is {loss:.4g}; an untrained model of {classes:,} classes has ln {classes:,} = {level:.4g}"
    numbers = {"loss": loss, "expected": level}
    if loss > level + LOGITS**2 / 2:
        if logit_std is not None:
            words += f". The logits have a standard deviation of {logit_std:.3g} (usual: 1 or less)"
        return found(
            "initial-loss", words + ": the last layer or the inputs are scaled too large", "watch", "is", **numbers
        )
    if loss < 0.5 * level:
        words += ": right for pretrained weights; otherwise the answer leaks into the input, or targets are left out"
        return found("initial-loss", words, "watch", "suspected", **numbers)
    return "initial-loss", Clear(words)


def _against(loss: float, expected: float, words: str, *, from_zero: bool = False) -> tuple[str, Answer]:
    text = f"the first loss is {loss:.4g}; expected {expected:.4g} ({words})"
    numbers = {"loss": loss, "expected": expected}
    # A random output of the targets' own size doubles a squared error; ten times says that scales do not fit.
    if expected > 0 and loss > 10 * expected:
        why = "the output is far larger than the targets" if from_zero else "the logits are large at the start"
        return found("initial-loss", f"{text}: {why}", "watch", "is", **numbers)
    if expected > 0 and loss < 0.1 * expected:
        why = "pretrained weights, a skip connection that holds the answer, or a leak"
        return found("initial-loss", f"{text}: {why}", "note", "suspected", **numbers)
    return "initial-loss", Clear(text)


def _shapes(out: Any, target: Any, loss: float) -> list[tuple[str, Answer]]:
    """(N, 1) against (N,) broadcasts to (N, N): every output is compared with every target."""
    if not isinstance(out, torch.Tensor) or not isinstance(target, torch.Tensor):
        return []
    if out.shape == target.shape or not target.is_floating_point():
        return []
    try:
        shape = torch.broadcast_shapes(out.shape, target.shape)
        values = [
            float(f(*torch.broadcast_tensors(out.float(), target.float())))
            for f in (functional.mse_loss, functional.l1_loss)
        ]
    except RuntimeError:
        return []
    if math.prod(shape) <= max(out.numel(), target.numel()):
        return []
    if not any(abs(v - loss) <= SAME * max(abs(loss), 1e-6) for v in values):
        return []
    text = (
        f"output {tuple(out.shape)} and target {tuple(target.shape)} are broadcast to {tuple(shape)}: "
        "every output is compared with every target"
    )
    return [found("shapes-broadcast", text, "ill")]


def _applied_twice(out: Any, target: Any, loss: float) -> list[tuple[str, Answer]]:
    """Probabilities fed to a loss that takes logits."""
    if not isinstance(out, torch.Tensor) or not isinstance(target, torch.Tensor) or out.ndim < 2:
        return []
    kind = kind_of(out, target, loss)
    inside = bool(((out >= 0) & (out <= 1)).all())
    n = classes_of(out, target)
    if kind == "cross_entropy" and inside and n is not None and n > 1:
        dim = out.ndim - 1 if out.shape[:-1] == target.shape else 1
        if bool((out.float().sum(dim) - 1).abs().max() < 1e-3):
            floor = double_softmax_floor(n)
            text = f"the output is already a softmax, and the loss applies another: it cannot fall below {floor:.3g} for {n} classes"
            return [found("double-softmax", text, "ill", floor=floor)]
    if kind == "bce" and inside and out.shape == target.shape:
        real = target.float()
        logits = float(functional.binary_cross_entropy_with_logits(out.float(), real))
        if abs(logits - loss) <= 1e-5 * max(loss, 1e-6) and abs(float(out.float().mean()) - 0.5) < 0.4:
            text = "the output lies between 0 and 1, and the loss takes it for logits: a sigmoid is applied twice"
            return [found("double-sigmoid", text, "watch", "suspected")]
    return []
