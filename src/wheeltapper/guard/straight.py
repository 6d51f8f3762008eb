"""The short way of an ordinary step on CUDA under policy="watch": one launch, and next to nothing beside it.

The launch of a step, at guard.step, sums its gradients and takes the sample of the weights, which is also the sample after
the step before: how far that one moved them goes into its row, and the row is done. So a step is complete when the next
one begins. Whatever is not ordinary (a look, several micro-batches, a scaler, a loss of another kind, no call of
guard.step) goes the long way of `steps`, which gives the same numbers; `settle` closes what the short way has open.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import torch

from wheeltapper.guard.fused import Fused
from wheeltapper.guard.measure import Meter
from wheeltapper.guard.row import NAN, Row, number
from wheeltapper.guard.steps import SECONDS, TOGETHER, drain

if TYPE_CHECKING:
    from wheeltapper.guard.core import Guard

LOSS_ONLY = (True, False, False, False, False, False, False)
LOSS_AND_MOVE = (True, False, False, False, False, True, True)


class Straight:
    """Belongs to one meter. `note` and `stepped` return whether the step was theirs."""

    def __init__(self, guard: Guard, meter: Meter, fused: Fused) -> None:
        self._guard, self._meter, self._fused = guard, meter, fused
        self._params, self._count = meter.params, len(meter.params)
        self._index = meter.device.index if meter.device.type == "cuda" else -1
        self._pending: Row | None = None  # the step before: how far it moved the weights is not known yet
        self._stepped: list[int] = []  # the versions of the weights after it
        self._apart = False  # somebody writes to the weights between steps
        self.single = True  # a step has one micro-batch

    def note(self, loss: Any, batch_id: Any) -> bool:
        """guard.step(loss) of an ordinary step."""
        guard, fused = self._guard, self._fused
        outbox, moves = guard._outbox, fused.moves
        if (
            guard._open is not None
            or guard._late is not None
            or not self.single
            or guard.tick % guard.every == 0
            or guard.scaler is not None
            or self._meter.fused is not fused
            or type(loss) is not torch.Tensor
            or loss.dtype is not torch.float32
            or loss.numel() != 1
            or loss.get_device() != self._index
            or sum([len(g["params"]) for g in guard.optimizer.param_groups]) != self._count
            or outbox.full
            or torch.compiler.is_compiling()
            or (guard._cuda and torch._C._cuda_isCurrentStreamCapturing())
        ):
            return False
        grads = [p.grad for p in self._params]
        if grads[0] is None and not any(g is not None for g in grads):
            return False
        try:
            fused.place(grads)
        except Exception:  # the long way finds out what it is, and says so
            return False
        if not moves.there():
            return False
        versions, before = moves.read(), self._pending
        back, mark = before.place if before is not None and before.place is not None else (0, 0.0)
        if before is not None:
            self._known(before, versions)
        row = Row(guard.tick)
        at = outbox.take(row)
        assert at is not None
        row.place = (fused.slot(outbox, at[0]), at[1])
        fused.go(True, True, row.place[0], (loss, None, None, None, None), back, mark)
        moves.versions, self._pending = versions, None
        row.loss, row.micro, row.before_clip, row.weights_first = loss, 1, True, True
        row.gradients, row.meter, row.sent = self._meter.found, self._meter, LOSS_ONLY
        if batch_id is not None:
            row.batch_ids.append(batch_id)
        guard._open = row
        return True

    def _known(self, row: Row, versions: list[int]) -> None:
        """Whether the weights are as the step of this row left them, so that their move is its own."""
        if versions == self._stepped:
            row.sent = LOSS_AND_MOVE
        else:
            self._apart = True

    def stepped(self) -> bool:
        """After optimizer.step()."""
        guard = self._guard
        row = guard._open
        if row is None or row.place is None:
            return False
        now = time.perf_counter()
        row.step, row.time, row.step_s, row.data_s = guard.at, time.time(), now - guard._ended, guard._data_s
        row.lr = tuple([number(g["lr"]) for g in guard.optimizer.param_groups])
        row.loss = True  # it is in the row; its graph is not to be kept
        guard._ended, guard._data_s = now, NAN
        guard._open, guard._last, self._pending = None, row, row
        guard.tick += 1
        guard.at += 1
        self._stepped = self._fused.moves.read()
        if self._apart or guard.prompt:
            guard._guarded("after the step", self.settle)
        if guard.prompt or len(guard._outbox) > TOGETHER or now - guard._read > SECONDS:
            guard._guarded("after the step", drain, guard)
        if guard._activations is not None and guard.tick % guard.every == 0:
            guard._guarded("after the step", guard._activations.attach)
        if guard._listeners["boundary"]:
            guard._tell("boundary", guard.tick)
        return True

    def settle(self) -> None:
        """Find out now how far the last step moved the weights."""
        row, self._pending = self._pending, None
        if row is None or row.place is None:
            return
        moves = self._fused.moves
        there = moves.there()
        if there:
            moves.versions = moves.read()
            self._known(row, moves.versions)
        self._fused.go(False, there, back=row.place[0], mark=row.place[1])

    def leave(self) -> None:
        """What was begun the short way goes on the long one: what has been launched for it is not read."""
        self.settle()
        row = self._guard._open
        if row is not None and row.place is not None:
            other = self._guard._open = Row(row.tick)
            other.loss, other.micro, other.batch_ids = row.loss.detach(), row.micro, row.batch_ids
            other.before_clip, other.gradients = row.before_clip, row.gradients
            other.ready = self._fused.moves
            row.void = True
