"""One backward pass: does a gradient reach every parameter, is every parameter trained, is the step reproducible?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.guard import rng
from wheeltapper.guard.preflight_checks.bench import Bench, first_output, parts_of
from wheeltapper.guard.preflight_checks.inputs import IGNORED, SHOWN, found

# Weights usually move by about a thousandth of their size per update; a tenth rewrites them in ten steps.
LARGE_UPDATE = 0.1


def names(items: Sequence[str]) -> str:
    shown = ", ".join(items[:SHOWN])
    return f"{shown} and {len(items) - SHOWN} more" if len(items) > SHOWN else shown


def share(model: Any, wanted: Sequence[str]) -> float:
    """The share of the trainable weights that these parameters hold."""
    sizes = {name: p.numel() for name, p in model.named_parameters() if p.requires_grad}
    return float(sum(sizes.get(name, 0) for name in wanted) / max(1, sum(sizes.values())))


def check_gradients(bench: Bench) -> tuple[list[tuple[str, Answer]], Any]:
    """The answers, and the model with its gradients, for the checks that look at their size."""
    model, _ = bench.fresh()
    model.train()
    trained = [name for name, p in model.named_parameters() if p.requires_grad]
    if not trained:
        return [found("gradients", "no parameter asks for a gradient: nothing can be learned", "ill")], model
    loss = bench.run(model).loss
    if not loss.requires_grad:
        text = "the loss has no gradient: the graph is cut (detach, no_grad, .item(), argmax) between model and loss"
        return [found("gradients", text, "ill")], model
    loss.backward()
    grads = {name: p.grad for name, p in model.named_parameters() if p.requires_grad}
    none = [name for name, g in grads.items() if g is None]
    bad = [name for name, g in grads.items() if g is not None and not bool(torch.isfinite(g).all())]
    zero = [name for name, g in grads.items() if g is not None and name not in bad and not bool(g.any())]
    out: list[tuple[str, Answer]] = []
    if bad:
        out.append(found("gradients-not-finite", f"gradients are not finite in {names(bad)}", "ill", tensors=len(bad)))
    if none:
        part = share(model, none)
        text = f"no gradient reaches {len(none)} of {len(grads)} parameters ({part:.0%} of the weights): {names(none)}"
        out.append(found("no-gradient", text, "ill" if len(none) == len(grads) else "watch", share=part))
    if zero:
        part = share(model, zero)
        text = f"the first gradient is exactly zero in {len(zero)} of {len(grads)} parameters ({part:.0%} of the weights): {names(zero)}"
        text += ". Right where a layer behind begins at zero"
        everywhere = len(zero) == len(grads)
        out.append(found("zero-gradient", text, "ill" if everywhere else "note", share=part))
    if not out:
        norm = math.sqrt(sum(float(g.double().pow(2).sum()) for g in grads.values() if g is not None))
        out.append(("gradients", Clear(f"reach all {len(grads)} parameters; the norm is {norm:.4g}")))
    return out, model


def check_optimizer(bench: Bench, given: Sequence[Any]) -> list[tuple[str, Answer]]:
    """Which parameters the user's optimizers hold. Compared by identity, so with the user's own model."""
    if not given:
        return [("optimizer", Unknown("no optimizer was given", ("optimizer=",)))]
    held = [p for o in given for group in o.param_groups for p in group["params"]]
    ids = {id(p) for p in held}
    mine = dict(bench.owner.named_parameters())
    missing = [name for name, p in mine.items() if p.requires_grad and id(p) not in ids]
    wanted = [name for name, p in mine.items() if p.requires_grad]
    known = {id(p) for p in mine.values()}
    out: list[tuple[str, Answer]] = []
    if wanted and len(missing) == len(wanted):
        text = "the optimizer holds none of the model's parameters: it was built for another model, or before this one was replaced"
        return [found("params-not-in-optimizer", text, "ill", share=1.0)]
    if missing:
        part = share(bench.owner, missing)
        text = f"{len(missing)} of {len(wanted)} trainable parameters ({part:.0%} of the weights) are in no optimizer: {names(missing)}"
        out.append(found("params-not-in-optimizer", text, "watch", share=part))
    foreign = sum(id(p) not in known for p in held)
    if foreign:
        out.append(
            found(
                "foreign-params", f"the optimizer holds {foreign} tensors that are not parameters of this model", "note"
            )
        )
    rates = [float(g["lr"]) for o in given for g in o.param_groups if "lr" in g]
    if rates and max(rates) == 0:
        out.append(
            found(
                "lr-zero", "every learning rate is 0 at the start: right only in the first step of a warm-up", "watch"
            )
        )
    half = [n for n, p in mine.items() if p.requires_grad and p.dtype == torch.float16]
    tiny = [float(g["eps"]) for o in given for g in o.param_groups if 0 < float(g.get("eps", 1.0)) < 6e-8]
    if half and tiny:
        text = (
            f"weights are kept in float16, where an eps of {tiny[0]:g} rounds to 0: the optimizer will divide by zero"
        )
        out.append(found("eps-underflows", text, "ill"))
    return out or [("optimizer", Clear(f"holds all {len(wanted)} trainable parameters"))]


def check_update(bench: Bench) -> list[tuple[str, Answer]]:
    """One step of the user's optimizer on a copy: how far the weights move, and which do not move at all."""
    if not bench.optimizers:
        return []
    model, optimizers = bench.fresh()
    model.train()
    loss = bench.run(model).loss
    if not loss.requires_grad:
        return []
    loss.backward()
    before = {name: p.detach() for name, p in bench.pristine.named_parameters()}
    if all(float(g.get("lr", 1.0)) == 0 for o in optimizers for g in o.param_groups):
        return []
    try:
        for optimizer in optimizers:
            optimizer.step()
    except Exception as error:
        return [("update", Unknown(f"the optimizer could not be stepped: {type(error).__name__}: {error}"))]
    ratios: dict[str, float] = {}
    frozen: list[str] = []
    for name, p in model.named_parameters():
        size = float(before[name].double().norm())
        if p.grad is None or not size:
            continue
        moved = p.detach().double() - before[name].double()
        ratios[name] = float(moved.norm()) / size
        coarse = p.dtype in (torch.float16, torch.bfloat16)
        if coarse and bool(p.grad.any()) and float((moved != 0)[p.grad != 0].double().mean()) < 0.5:
            frozen.append(name)
    if not ratios:
        return []
    finite = sorted(r for r in ratios.values() if math.isfinite(r))
    if len(finite) < len(ratios):
        return [found("update", "the first update makes weights that are not finite", "ill")]
    median = finite[len(finite) // 2]
    numbers = {"median": median, "largest": finite[-1]}
    out: list[tuple[str, Answer]] = []
    if frozen:
        text = f"most weights of {len(frozen)} tensors do not change in an update: they are kept in half precision, and the update is below its grain: {names(frozen)}"
        out.append(found("weights-too-coarse", text, "watch", tensors=len(frozen)))
    if median > LARGE_UPDATE:
        text = f"the first update changes the weights by {median:.2g} of their size (median over tensors); about 0.001 is usual"
        out.append(found("update-too-large", text, "watch", "suspected", **numbers))
    elif finite[-1] == 0:
        out.append(found("no-update", "a step of the optimizer changes nothing", "ill", "is", **numbers))
    return out or [
        ("update", Clear(f"the first update changes the weights by {median:.2g} of their size (median over tensors)"))
    ]


def check_determinism(bench: Bench) -> list[tuple[str, Answer]]:
    """The same batch, weights and random numbers twice."""
    seen = []
    for _ in range(2):
        model, _ = bench.fresh()
        model.train()
        loss = bench.run(model).loss
        if loss.requires_grad:
            loss.backward()
        seen.append((float(loss.detach()), [p.grad for p in model.parameters() if p.grad is not None]))
    (a, ga), (b, gb) = seen
    if not math.isfinite(a):
        return [("determinism", Unknown("the loss is not finite"))]
    if a == b and len(ga) == len(gb) and all(torch.equal(x, y) for x, y in zip(ga, gb, strict=True)):
        return [("determinism", Clear("the same step twice gives the same loss and gradients, to the bit"))]
    far = max(
        (float((x.double() - y.double()).norm() / (y.double().norm() + 1e-30)) for x, y in zip(ga, gb, strict=False)),
        default=0.0,
    )
    far = max(far, abs(a - b) / max(abs(a), 1e-30))
    text = f"the same step twice, with the same random numbers, differs by {far:.2g}"
    if far > 1e-3:
        text += ": the model or the loss keeps state, or draws from a generator of its own"
        return [found("determinism", text, "watch", "suspected", relative=far)]
    return [found("determinism", text + ": sums in another order", "note", relative=far)]


def check_mixing(bench: Bench) -> list[tuple[str, Answer]]:
    """In evaluation, does the answer for one sample depend on the others? Does a language model see ahead?"""
    model, _ = bench.fresh()
    model.eval()
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def grab(_m: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        calls.append((args, kwargs))

    handle = model.register_forward_pre_hook(grab, with_kwargs=True)
    try:
        with torch.no_grad():
            before = bench.run(model)
    finally:
        handle.remove()
    args, kwargs = calls[0] if calls else ((), {})
    x = next((t for t in before.inputs if t.ndim >= 2), None)
    if x is None or before.output is None or x.shape[0] < 3 or before.output.shape[:1] != x.shape[:1]:
        return [("mixing", Unknown("inputs and outputs do not both begin with the batch", ("a batch of 3 or more",)))]

    def output_with(changed: Any) -> Any:
        def swap(value: Any) -> Any:
            return changed if value is x else value

        rng.restore(bench.draws)
        with torch.no_grad():
            return first_output(model(*map(swap, args), **{k: swap(v) for k, v in kwargs.items()}))

    base = output_with(x)
    if torch.isnan(base).any():
        return [("mixing", Unknown("the output is not finite"))]
    other = x.clone()
    other[0] = x[1]
    after = output_with(other)
    out: list[tuple[str, Answer]] = []
    if _differs(base[2:], after[2:]):
        text = "in evaluation, the output for a sample changes with the other samples of its batch: an axis is mixed up, or normalisation runs over the batch"
        out.append(found("samples-mix", text, "watch", "suspected"))
    ahead = _looks_ahead(bench, x, base, output_with)
    if ahead:
        out.append(ahead)
    return out or [("mixing", Clear("in evaluation, each sample's output depends on that sample alone"))]


def _looks_ahead(bench: Bench, x: Any, base: Any, output_with: Any) -> tuple[str, Answer] | None:
    """Only where the targets prove that the next token is to be predicted."""
    _, target = parts_of(bench.batch)
    if (
        not isinstance(target, torch.Tensor)
        or x.is_floating_point()
        or x.ndim != 2
        or target.shape != x.shape
        or x.shape[1] < 3
    ):
        return None
    kept = target != IGNORED
    shifted = bool(((x[:, 1:] == target[:, :-1]) | ~kept[:, :-1]).all())
    same = bool(((x == target) | ~kept).all()) and float(kept.double().mean()) > 0.5
    if not (shifted or same) or base.ndim != 3 or base.shape[1] != x.shape[1]:
        return None
    changed = x.clone()
    changed[:, -1] = x[:, -1].roll(1) if bool((x[:, -1] != x[:, -1].roll(1)).any()) else x[:, 0]
    if bool((changed == x).all()):
        return None
    if _differs(base[:, :-1], output_with(changed)[:, :-1]):
        return found(
            "looks-ahead",
            "the output at earlier positions changes with the last token: the model sees what it must predict",
            "ill",
        )
    return None


def _differs(a: Any, b: Any) -> bool:
    """By more than rounding: kernels may sum in another order."""
    scale = float(a.double().abs().max()) if a.numel() else 0.0
    return bool(a.numel()) and float((a.double() - b.double()).abs().max()) > 1e-3 * max(scale, 1e-12)
