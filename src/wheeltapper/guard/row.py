"""One step under way: what has been noted and measured so far, and how it becomes a StepRecord."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from wheeltapper.guard.look import Look
from wheeltapper.guard.measure import HEAD, Gradients, Meter
from wheeltapper.guard.outbox import Outbox
from wheeltapper.guard.record import StepRecord

NAN = float("nan")
# clip_grad_norm_ divides by (norm + 1e-6), so a clipped gradient has a norm a hair under the limit.
AT_LIMIT = 0.999


class Row:
    """Filled between the first micro-batch and the end of optimizer.step(). What is not set is as the class has it: one
    is made at every step, and setting all of it costs more than the rest."""

    step = 0
    loss: Any = None
    micro = 0
    gradients: Gradients | None = None
    before_clip = False
    lr: tuple[float, ...] = ()
    weights: Any = None  # at a look, the sample of all weights before the step
    update: Any = None  # norms of change and weights, the weights' first or not
    weights_first = False
    ready: Any = None  # what has taken the sample before the step, where guard.step saw to it
    scale: Any = None
    skip: Any = None  # the guard's own skip, decided on the device
    overflow: Any = None  # the scaler's verdict, where a fused optimizer reads it on the device
    skipped = False
    action: str | None = None
    time = step_s = data_s = NAN
    memory = -1
    look: Look | None = None
    batch: tuple[Any, Any] = (None, None)
    sent: Sequence[bool] = ()
    place: tuple[int, float] | None = None  # of one that went the short way: where it is written, and its mark
    void = False  # nothing comes of it
    meter: Meter

    def __init__(self, tick: int, updates: Any = None) -> None:
        self.tick, self.updates = tick, updates  # the scaler's mark when the step was opened
        self.batch_ids: list[Any] = []

    def add(self, loss: Any, batch_id: Any) -> None:
        """One more micro-batch. The loss is held, not read: reading it would wait for the device."""
        if loss is not None:
            value = one_number(loss)
            self.loss = value if self.loss is None else self.loss + value
        self.micro += 1
        if batch_id is not None:
            self.batch_ids.append(batch_id)

    def send(self, meter: Meter, outbox: Outbox) -> None:
        """Send all numbers of the step as one row. `sent` says what is in it."""
        self.meter = meter
        loss = self.loss if isinstance(self.loss, torch.Tensor) else None
        held = self.gradients.divisor if self.gradients is not None else None
        head = [loss, self.scale, self.skip, self.overflow, held]
        there = meter.send(outbox, self, head, self.update, self.gradients)
        self.sent = [h is not None for h in head] + [there, there]

    def record(self, numbers: NDArray[np.float32], clip_norm: float | None) -> StepRecord:
        """The step with its numbers, once they have come."""
        meter = self.meter
        found = numbers[: meter.first].tolist()
        loss, scale, skip, overflow, held, size, change = [
            v if there else NAN for v, there in zip(found[:HEAD], self.sent, strict=True)
        ]
        if not self.weights_first:
            size, change = change, size
        groups: tuple[float, ...] = ()
        broken: list[int] = []
        norm = NAN
        if self.gradients is not None and meter.groups:
            groups = self._groups(numbers, found[HEAD:], held)
            norm = math.sqrt(sum([v * v for v in groups]))
            if not math.isfinite(norm):
                # A norm is finite where all of them are, but for numbers whose square is not.
                broken = np.flatnonzero(~np.isfinite(meter.true_norms(numbers, self.gradients, held))).tolist()
        if isinstance(self.loss, float):
            loss = self.loss
        clipped = None
        if clip_norm is not None:
            clipped = norm > clip_norm if self.before_clip else norm >= AT_LIMIT * clip_norm
        ids = self.batch_ids
        skip_now = skip > 0  # nan: no skip was asked for
        return StepRecord(
            step=self.step,
            tick=self.tick,
            time=self.time,
            loss=loss / max(self.micro, 1),
            micro=self.micro,
            grad_norm=norm,
            group_norms=groups,
            before_clip=self.before_clip,
            lr=self.lr,
            update_ratio=change / size if size else NAN,
            nonfinite=len(broken),
            worst=broken[0] if broken else -1,
            clipped=clipped,
            scale=scale,
            skipped=self.skipped or skip_now or overflow > 0,
            loss_given=self.loss is not None,
            batch_id=ids[0] if len(ids) == 1 else tuple(ids) or None,
            data_s=self.data_s,
            step_s=self.step_s,
            memory=self.memory,
            action="skip" if skip_now else self.action,
        )

    def _groups(self, numbers: NDArray[np.float32], made: list[float], divisor: float) -> tuple[float, ...]:
        """The norm of every group's gradients: as the device has made it, else put together here."""
        assert self.gradients is not None
        if self.gradients.fused is not None:
            return tuple(made) if self.gradients.divisor is None else tuple(v / (divisor or NAN) for v in made)
        each = self.meter.true_norms(numbers, self.gradients, divisor)
        return tuple(np.sqrt(np.bincount(self.meter.group_of, weights=each * each)).tolist())


def one_number(loss: Any) -> Any:
    """The loss as a number or a scalar tensor; of several (one a sample, or one a device) the mean."""
    if isinstance(loss, torch.Tensor):
        return loss.detach() if loss.numel() == 1 else loss.detach().float().mean()
    try:
        return float(loss)
    except (TypeError, ValueError):
        kind = type(loss).__name__
        raise TypeError(f"guard.step takes the loss as a tensor or a number, and was given a {kind}") from None


def number(value: Any) -> float:
    """A learning rate as a number; one that lives on a device is left alone."""
    if isinstance(value, torch.Tensor):
        return float(value) if value.device.type == "cpu" else NAN
    return float(value)
