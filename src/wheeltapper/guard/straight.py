"""The short way of an ordinary step on CUDA under policy="watch": one launch, and next to nothing beside it.

The launch of a step, at guard.step, sums its gradients and takes the sample of the weights, which is also the sample after
the step before: how far that one moved them goes into its row, and the row is done. So a step is complete when the next
one begins. Whatever is not ordinary (a look, several micro-batches, a scaler, a loss of another kind, no call of
guard.step) goes the long way of `steps`, which gives the same numbers; `settle` closes what the short way has open.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

import torch

from wheeltapper.guard.fused import Fused
from wheeltapper.guard.measure import Meter
from wheeltapper.guard.native import BUILD, Native
from wheeltapper.guard.row import NAN, Row, number
from wheeltapper.guard.steps import SECONDS, TOGETHER, drain

if TYPE_CHECKING:
    from wheeltapper.guard.core import Guard

log = logging.getLogger("wheeltapper.guard")

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
        self._native: Native | None = None
        self._wanted = BUILD.ask() is not None  # it can be had
        self._never = False  # it was tried, and does not fit
        self.single = True  # a step has one micro-batch

    def note(self, loss: Any, batch_id: Any) -> bool:
        """guard.step(loss) of an ordinary step."""
        guard = self._guard
        if (
            guard._open is not None
            or guard._late is not None
            or not self.single
            or guard.tick % guard.every == 0
            or guard.scaler is not None
            or self._meter.fused is not self._fused
            or guard._outbox.full
            or sum([len(g["params"]) for g in guard.optimizer.param_groups]) != self._count
            or (guard._cuda and torch._C._cuda_isCurrentStreamCapturing())
        ):
            return False
        row = Row(guard.tick)
        if not (self._go(row, loss) if self._native is None else self._go_native(self._native, row, loss)):
            return False
        self._pending = None
        row.loss, row.micro, row.before_clip, row.weights_first = loss, 1, True, True
        row.gradients, row.meter, row.sent = self._meter.found, self._meter, LOSS_ONLY
        if batch_id is not None:
            row.batch_ids.append(batch_id)
        guard._open = row
        return True

    def _go(self, row: Row, loss: Any) -> bool:
        """Launch; False where it cannot be done this way."""
        fused = self._fused
        if (
            type(loss) is not torch.Tensor
            or loss.dtype is not torch.float32
            or loss.numel() != 1
            or loss.get_device() != self._index
        ):
            return False
        grads = [p.grad for p in self._params]
        if grads[0] is None and not any(g is not None for g in grads):
            return False
        try:
            fused.place(grads)
        except Exception:  # the long way finds out what it is, and says so
            return False
        if not fused.moves.there():
            return False
        versions = fused.moves.read()
        before = self._known(versions == self._stepped)
        fused.go(True, True, self._take(row)[0], (loss, None, None, None, None), *before)
        fused.moves.versions = versions
        if self._wanted:
            self._wanted, self._native = False, self._adopt()
            self._never = self._native is None
        return True

    def _take(self, row: Row) -> tuple[int, float]:
        """A place for the row among those that the device writes to."""
        outbox = self._guard._outbox
        at = outbox.take(row)
        assert at is not None
        row.place = (self._fused.slot(outbox, at[0]), at[1])
        return row.place

    def _known(self, untouched: bool) -> tuple[int, float]:
        """Of the step before: whether the weights are as it left them, so that their move is its own; its row and mark."""
        before = self._pending
        if before is None or before.place is None:
            return 0, 0.0
        if untouched:
            before.sent = LOSS_AND_MOVE
        else:
            self._apart = True
        return before.place

    # The same in C++

    def _adopt(self) -> Native | None:
        """In a step whose gradients Python has placed, so that the two can be compared."""
        fused, launches = self._fused, self._fused.launches
        library = BUILD.ask()
        if library is None or len(launches) != 1:
            return None
        try:
            native = Native(library, self._params, fused.moves.params, fused.moves.at, launches[0])
            if native.agrees(fused.now):
                native.ready(launches[0].call, fused.loss, launches[0].args[4].value + len(fused.moves))
                return native
        except Exception as error:
            log.info("the guard goes without its part in C++: %s", error)
        return None

    def _go_native(self, native: Native, row: Row, loss: Any) -> bool:
        fused, stream = self._fused, self._fused.stream()
        if native.at is not fused.moves.at or stream is None:
            # The sample is another one, and is to be bound anew; or it is not the current device's, and Python sees to that.
            self._stepped, self._native = native.versions(), None
            self._wanted, self._never = stream is not None, stream is None
            return self._go(row, loss)
        before = self._pending
        fused.aim(self._take(row)[0], *(before.place if before is not None and before.place is not None else (0, 0.0)))
        code = native.go(loss, stream)
        if not code:
            self._guard._outbox.untake()
            fused.moves.there()  # if it was that, let it be known
            return False
        self._known(code == 3)
        return True

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
        if self._native is None:
            self._stepped = self._fused.moves.read()
        else:
            self._native.stepped()
        if self._apart or guard.prompt or row.step_s > SECONDS:
            guard._guarded("after the step", self.settle)
        if guard.prompt or len(guard._outbox) > TOGETHER or now - guard._read > SECONDS:
            guard._guarded("after the step", drain, guard)
            if self._native is None and not self._never and not BUILD.over:
                self._wanted = BUILD.ask() is not None
        if guard._activations is not None and guard.tick % guard.every == 0:
            guard._guarded("after the step", guard._activations.attach)
        if guard._listeners["boundary"]:
            guard._tell("boundary", guard.tick)
        return True

    def settle(self) -> None:
        """Find out now how far the last step moved the weights."""
        if self._pending is None:
            return
        moves = self._fused.moves
        there = moves.there()
        if there:
            moves.versions = moves.read()
        stepped = self._stepped if self._native is None else self._native.versions()
        back, mark = self._known(there and moves.versions == stepped)
        self._pending = None
        self._fused.go(False, there, back=back, mark=mark)

    def leave(self) -> None:
        """What was begun the short way goes on the long one: what has been launched for it is not read."""
        self.settle()
        row = self._guard._open
        if row is not None and row.place is not None:
            other = self._guard._open = Row(row.tick)
            other.loss, other.micro, other.batch_ids = row.loss.detach(), row.micro, row.batch_ids
            other.before_clip, other.gradients = row.before_clip, row.gradients
            other.ready = self._fused.moves
            self._fused.moves.versions = self._fused.moves.read()
            row.void = True
