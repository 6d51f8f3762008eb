"""One step under way: what has been noted and measured so far, and how it becomes a StepRecord."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from wheeltapper.guard.look import Look
from wheeltapper.guard.measure import Gradients, Meter
from wheeltapper.guard.record import StepRecord

NAN = float("nan")
HEAD = 6  # loss, scale, change, size, skip, overflow; then the gradient norm of every parameter
# clip_grad_norm_ divides by (norm + 1e-6), so a clipped gradient has a norm a hair under the limit.
AT_LIMIT = 0.999


class Row:
    """Filled by Guard between the first micro-batch and the end of optimizer.step()."""

    def __init__(self, tick: int, updates: Any) -> None:
        self.tick, self.step = tick, 0
        self.updates = updates  # the scaler's mark when the step was opened
        self.loss: Any = None
        self.micro = 0
        self.batch_ids: list[Any] = []
        self.gradients: Gradients | None = None
        self.before_clip = False
        self.lr: tuple[float, ...] = ()
        self.weights: Any = None  # the sample before the step
        self.update: tuple[Any, Any] | None = None
        self.scale: Any = None
        self.skip: Any = None  # the guard's own skip, decided on the device
        self.overflow: Any = None  # the scaler's verdict, where a fused optimizer reads it on the device
        self.skipped = False
        self.action: str | None = None
        self.time = self.step_s = self.data_s = NAN
        self.memory = -1
        self.look: Look | None = None
        self.batch: tuple[Any, Any] = (None, None)

    def add(self, loss: Any, batch_id: Any) -> None:
        """One more micro-batch. The loss is held, not read: reading it would wait for the device."""
        if loss is not None:
            value = one_number(loss)
            self.loss = value if self.loss is None else self.loss + value
        self.micro += 1
        if batch_id is not None:
            self.batch_ids.append(batch_id)

    def tensor(self, meter: Meter) -> Any:
        """All numbers of the step as one device tensor."""
        g, nan = self.gradients, meter.nan
        change, size = self.update or (None, None)
        loss = self.loss if isinstance(self.loss, torch.Tensor) else None
        head = [loss, self.scale, change, size, self.skip, self.overflow]
        flat = torch.stack([nan if h is None else meter.scalar(h) for h in head])
        return flat if g is None else torch.cat([flat, g.each])

    def record(self, numbers: NDArray[np.float32], group_of: NDArray[np.int64], clip_norm: float | None) -> StepRecord:
        """The step with its numbers, once they have come."""
        loss, scale, change, size, skip, overflow = numbers[:HEAD].tolist()
        each = numbers[HEAD:].astype(np.float64)
        groups: tuple[float, ...] = ()
        norm = NAN
        if len(each) == len(group_of) > 0:
            squares = np.bincount(group_of, weights=each * each)
            groups, norm = tuple(np.sqrt(squares).tolist()), float(np.sqrt(squares.sum()))
        broken = np.flatnonzero(~np.isfinite(each))
        if isinstance(self.loss, int | float):
            loss = float(self.loss)
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
            worst=int(broken[0]) if len(broken) else -1,
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
