"""A copy of the model, its optimizer and one batch, on which anything may be tried.

The user's own model is never called: a hook on it raises before its first layer runs, which catches a `step`
that uses the model of its surroundings instead of the one that it is given.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from wheeltapper.errors import InputError
from wheeltapper.guard import rng

Batch = Any
Step = Callable[[Any, Batch], Any]
Criterion = Callable[[Any, Any], Any]
DROPS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)
NORMS = (nn.modules.batchnorm._BatchNorm,)


@dataclass
class Seen:
    """One pass: the loss and what went into and came out of the whole model."""

    loss: Any
    inputs: tuple[Any, ...] = ()  # tensors among the arguments of the model's forward
    output: Any = None  # the first tensor that came out (or its logits)
    calls: int = 0


@dataclass
class Bench:
    """Everything a check needs. `fresh()` gives another copy, so that checks do not disturb each other."""

    pristine: Any  # never trained
    optimizers: tuple[Any, ...]  # of `pristine`
    batch: Batch
    step: Step
    autocast: Any  # a dtype, or None
    draws: rng.State
    owner: Any  # the user's model; never called
    device: Any = field(init=False)

    def __post_init__(self) -> None:
        first = next(iter(self.pristine.parameters()), None)
        self.device = torch.device("cpu") if first is None else first.device

    def fresh(self) -> tuple[Any, tuple[Any, ...]]:
        """A new copy of the model and of its optimizers, with the ties between them kept."""
        return copy.deepcopy((self.pristine, self.optimizers))

    def run(self, model: Any, *, draws: rng.State | None = None) -> Seen:
        """One forward pass over the batch. The same `draws` (default: those at the start) give the same noise."""
        seen = Seen(None)

        def look(_module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
            seen.calls += 1
            if seen.calls == 1:
                seen.inputs = tuple(tensors_of((args, kwargs)))
                seen.output = first_output(out)

        rng.restore(self.draws if draws is None else draws)
        handle = model.register_forward_hook(look, with_kwargs=True)
        try:
            with self._cast():
                seen.loss = scalar(self.step(model, cloned(self.batch)))
        finally:
            handle.remove()
        return seen

    def _cast(self) -> Any:
        return torch.autocast(self.device.type, dtype=self.autocast) if self.autocast is not None else nullcontext()


def make_bench(
    model: Any,
    batch: Batch,
    *,
    loss_fn: Criterion | None,
    step: Step | None,
    optimizers: Sequence[Any],
    autocast: Any,
) -> Bench:
    """Copy what was given. Raises InputError where it cannot be copied."""
    inner = unwrapped(model)
    if not isinstance(inner, nn.Module):
        raise InputError(
            f"model is a {type(inner).__name__}, not a torch.nn.Module.", do="Call preflight(model, batch)."
        )
    for wrong in [o for o in optimizers if not hasattr(o, "param_groups")]:
        raise InputError(f"optimizer is a {type(wrong).__name__}, not a torch.optim.Optimizer.")
    # Gradients are not part of what is tried, and a non-leaf one could not be copied.
    try:
        pristine, opts = copy.deepcopy((inner, tuple(optimizers)))
    except Exception as error:
        raise InputError(
            f"preflight works on a copy of the model, and this one cannot be copied: {type(error).__name__}: {error}",
            do="Call it before the model is wrapped or compiled, or give a freshly built one.",
        ) from error
    for parameter in pristine.parameters():
        parameter.grad = None
    return Bench(pristine, opts, cloned(batch), step or step_of(loss_fn), autocast, rng.capture(), inner)


def step_of(loss_fn: Criterion | None) -> Step:
    """How to get a loss out of a model and a batch, where no `step` says it.

    With a criterion the batch is (inputs, targets) and the loss is criterion(model(inputs), targets). Without one the
    model must return its loss itself, as Hugging Face models do when the batch holds labels.
    """
    criterion = copy.deepcopy(loss_fn) if isinstance(loss_fn, nn.Module) else loss_fn

    def own_loss(model: Any, batch: Batch) -> Any:
        try:
            out = called(model, batch)
        except TypeError as error:
            raise InputError(
                f"without loss_fn the model is called with the whole batch, to return its loss; it raises TypeError: {error}",
                do="Give loss_fn (called as loss_fn(model(inputs), targets)) or step (called as step(model, batch)).",
            ) from error
        loss = out.get("loss") if isinstance(out, Mapping) else getattr(out, "loss", None)
        if loss is None and isinstance(out, torch.Tensor) and out.ndim == 0:
            loss = out
        if loss is None:
            raise InputError(
                "the model does not return a loss.",
                do="Give loss_fn (called as loss_fn(model(inputs), targets)) or step (called as step(model, batch)).",
            )
        return loss

    def with_criterion(model: Any, batch: Batch) -> Any:
        inputs, targets = parts_of(batch)
        if targets is None:
            raise InputError(
                "the batch does not say which part is the target.",
                do="Give (inputs, targets), or step (called as step(model, batch), returns the loss).",
            )
        out = called(model, inputs)
        assert criterion is not None
        return criterion(getattr(out, "logits", out), targets)

    return own_loss if loss_fn is None else with_criterion


TARGETS = ("labels", "label", "targets", "target", "y")


def parts_of(batch: Batch) -> tuple[Any, Any]:
    """The inputs and the targets of a batch; None where it does not tell them apart."""
    if isinstance(batch, Mapping):
        name = next((key for key in TARGETS if key in batch), None)
        return {k: v for k, v in batch.items() if k != name}, None if name is None else batch[name]
    if _pair(batch):
        return (batch[0] if len(batch) == 2 else tuple(batch[:-1])), batch[-1]
    return batch, None


def called(model: Any, inputs: Any) -> Any:
    if isinstance(inputs, Mapping):
        return model(**inputs)
    return model(*inputs) if _pair(inputs) else model(inputs)


def _pair(batch: Batch) -> bool:
    return isinstance(batch, Sequence) and not isinstance(batch, str) and len(batch) >= 2


@contextmanager
def untouched(model: Any) -> Iterator[None]:
    """Refuse any call of the user's own model while preflight runs."""

    def refuse(_module: Any, _args: Any) -> None:
        raise InputError(
            "the step called the original model, not the one that it was given.",
            do="Write step(model, batch) so that it uses its argument `model`; preflight gives it a copy.",
        )

    handle = model.register_forward_pre_hook(refuse)
    try:
        yield
    finally:
        handle.remove()


def unwrapped(model: Any) -> Any:
    """The module inside DataParallel, DistributedDataParallel and torch.compile."""
    while True:
        inner = getattr(model, "_orig_mod", None)
        if inner is None and type(model).__name__ in ("DataParallel", "DistributedDataParallel"):
            inner = model.module
        if inner is None:
            return model
        model = inner


def tensors_of(value: Any) -> Iterator[Any]:
    """Every tensor in a nest of tuples, lists, dicts and objects that are dicts."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors_of(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_of(item)


def named_tensors(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The same with the place of each: "[0]", "input_ids"."""
    if isinstance(value, torch.Tensor):
        yield name or "batch", value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from named_tensors(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from named_tensors(item, f"{name}[{index}]")


def first_output(out: Any) -> Any:
    logits = out.get("logits") if isinstance(out, Mapping) else getattr(out, "logits", None)
    if isinstance(logits, torch.Tensor):
        return logits.detach()
    found = next((t for t in tensors_of(out) if t.is_floating_point() and t.ndim > 0), None)
    return None if found is None else found.detach()


def cloned(value: Any) -> Any:
    """A deep copy whose tensors share nothing with the original; a model may write into its input."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(cloned(item) for item in value))
    if isinstance(value, list | tuple):
        return type(value)(cloned(item) for item in value)
    if isinstance(value, dict):
        return {key: cloned(item) for key, item in value.items()}
    return copy.deepcopy(value)


def scalar(loss: Any) -> Any:
    if isinstance(loss, torch.Tensor) and loss.numel() == 1:
        return loss.reshape(())
    raise InputError(
        f"the loss must be one number, and is {describe(loss)}.",
        do="Let loss_fn or step return the mean over the batch.",
    )


def describe(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    return f"a {type(value).__name__}"
