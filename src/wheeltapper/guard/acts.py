"""What the guard may do, and how often: skip a step, cut the learning rate, go back to the last good state, stop.

Every action is bounded in number, written to the journal before it is done, and counted over restarts of the run.
"""

from __future__ import annotations

import logging
import math
import threading
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from wheeltapper.guard import disk, snapshot
from wheeltapper.guard.disk import Journal
from wheeltapper.guard.judge import Alarm
from wheeltapper.guard.measure import Gradients
from wheeltapper.guard.ranks import Ranks
from wheeltapper.guard.record import StepRecord
from wheeltapper.guard.row import Row
from wheeltapper.guard.sample import local
from wheeltapper.guard.snapshot import Parts, Snapshot

log = logging.getLogger("wheeltapper.guard")

# A snapshot counts as good when this many steps after it were sound: twice the longest measured lead of a precursor
# over the visible spike (1 to 8 steps, KNOWLEDGE LR-11); OPT and BLOOM failed again from states closer than that.
SETTLE = 16
RECOVERIES = {"watch": 0, "skip": 20, "cut": 3, "rollback": 3, "stop": 1}
TRIGGERS = {
    "watch": frozenset[str](),
    "skip": frozenset[str](),  # decided before the step, on the gradients themselves
    "cut": frozenset({"nonfinite", "nonfinite-loss", "precursor", "loss-left-band"}),
    "rollback": frozenset({"nonfinite", "nonfinite-loss", "loss-left-band", "weights", "scale"}),
    "stop": frozenset({"nonfinite", "nonfinite-loss", "loss-left-band", "weights", "scale"}),
}
SCALED_KEYS = ("lr", "initial_lr", "max_lr", "min_lr")


@dataclass(frozen=True, slots=True)
class Want:
    """A wish to act, since a tick."""

    onset: int
    reason: str


class Actor:
    """Holds the budget and the snapshots; told of alarms, called at step boundaries."""

    def __init__(
        self,
        policy: str,
        parts: Parts,
        journal: Journal,
        ranks: Ranks,
        *,
        recoveries: int | None,
        snapshot_every: int,
        snapshots: int,
        cut: float,
        replay: bool,
        early: bool = False,
    ) -> None:
        self.policy, self.parts, self.journal, self.ranks = policy, parts, journal, ranks
        self.limit = RECOVERIES[policy] if recoveries is None else recoveries
        self.used = min(journal.used(), self.limit)
        self.triggers = TRIGGERS[policy] | ({"early"} if early and policy in ("cut", "rollback", "stop") else set())
        self.spent = self.limit <= self.used and policy != "watch"
        self.want: Want | None = None
        self.snapshot_every, self.cut, self.replay = snapshot_every, cut, replay
        self.keeps = policy in ("rollback", "stop")
        self.snapshots: deque[Snapshot] = deque(maxlen=max(snapshots, 2))
        self.saved: set[int] = set()  # ticks of snapshots that are on disk
        self.skips: Any = None  # on the device: steps skipped so far
        self.met = False  # the ranks have met before this step
        self.hopeless = False  # the weights are not finite, and this policy cannot mend that
        self._buffers: list[Any] = []
        self._hidden: list[tuple[Any, Any]] = []  # gradients taken away for a step that is skipped
        self._flagged = False  # optimizer.found_inf is ours to take away
        self._quiet_from = 0
        self._writer: threading.Thread | None = None

    # Skip

    def skip_flag(self, gradients: Gradients, limit: float, scaler: bool) -> Any:
        """A device scalar: 1 if this step must not be made. Nothing is read back. Under a scaler overflows are the
        scaler's to skip, and only outliers are ours."""
        bad, total = gradients.bad(), gradients.total()
        used: Any = float(self.used)
        absent: Any = 0.0
        if self.ranks.group is not None:
            self.met = True
            # Each rank knows the band of its own shards only: theirs together is the band of the whole.
            rest = (total.new_full((), v) for v in (limit * limit, used, 0.0))
            mine = torch.stack([bad, total.square().nan_to_num(nan=math.inf), *rest])
            bad, square, limits, used, absent = self.ranks.before_step(mine)
            total, limit = square.sqrt(), limits.sqrt()
        if self.skips is None:
            self.skips = torch.zeros_like(total) + used
        outlier = torch.isfinite(total) & (total > limit)
        flag = (outlier if scaler else outlier | (bad > 0)) & (self.skips < self.limit)
        if self.ranks.group is not None:
            flag = flag & (absent == 0)  # a rank whose guard has failed would make the step, alone
        self.skips = self.skips + flag
        return flag.float()

    def hold(self, row: Row, params: list[Any], limit: float) -> None:
        """Make this optimizer step do nothing if its gradients are not finite or a proven outlier. A fused optimizer
        is told on the device, as GradScaler does; for others the flag is read, which waits for the device."""
        assert row.gradients is not None
        optimizer = self.parts.optimizer
        row.skip = self.skip_flag(row.gradients, limit, self.parts.scaler is not None)
        self.protect_buffers(row.skip)
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            theirs = getattr(optimizer, "found_inf", None)
            optimizer.found_inf = row.skip if theirs is None else torch.maximum(theirs, row.skip)
            self._flagged = theirs is None
        elif bool(row.skip):
            self._hidden = [(p, p.grad) for p in params]
            for p in params:
                p.grad = None

    def release(self) -> None:
        """Put back what `hold` took away."""
        for p, grad in self._hidden:
            p.grad = grad
        self._hidden = []
        if self._flagged:
            del self.parts.optimizer.found_inf
            self._flagged = False

    def protect_buffers(self, skip: Any) -> None:
        """A batch of nan also spoils the running statistics of normalisation layers, which no skipped step mends. So
        under this policy the buffers of the last sound step are held, and put back when `skip` (a device flag) is set;
        with None the present ones are held."""
        if self.policy != "skip" or self.spent:
            return
        live = [b for b in self.parts.model.buffers() if b.is_floating_point()]
        if skip is None:
            if len(self._buffers) == len(live):  # a step that GradScaler skipped by itself may have left nan in them
                for b, sound in zip(live, self._buffers, strict=True):
                    b.copy_(torch.where(torch.isnan(b), sound, b))
            self._buffers = [b.clone() for b in live]
        elif len(self._buffers) == len(live):
            for b, sound in zip(live, self._buffers, strict=True):
                b.copy_(torch.where(skip > 0, sound, b))

    def skipped(self, record: StepRecord) -> None:
        """A skip that was made, once it is known."""
        self.used += 1
        self.journal.write(
            "recovery",
            policy="skip",
            step=record.step,
            tick=record.tick,
            number=self.used,
            batch=record.batch_id,
            norm=record.grad_norm,
        )
        self.spent = self.used >= self.limit

    # Alarms

    def consider(self, alarm: Alarm, tick: int) -> None:
        """Take an alarm about the step at `tick` as a reason to act at the next boundary."""
        if self.spent or self.want is not None or alarm.kind not in self.triggers or tick < self._quiet_from:
            return
        self.want = Want(tick, alarm.text)

    def due(self) -> bool:
        return self.want is not None

    # Snapshots

    def keep(self, step: int, tick: int, calm: bool) -> None:
        """At a boundary: copy the state if it is time and nothing is wrong, and write out what has proved good."""
        if not self.keeps or self.spent:
            return
        last = self.snapshots[-1].tick if self.snapshots else None
        if last is None or (calm and tick - last >= self.snapshot_every):
            self.snapshots.append(snapshot.take(self.parts, step, tick))
        if self.journal.usable():
            for snap in self.snapshots:
                if snap.tick not in self.saved and snap.small and calm and tick - snap.tick >= SETTLE and self._idle():
                    self.saved.add(snap.tick)
                    self._writer = threading.Thread(target=self._save, args=(snap,), daemon=True)
                    self._writer.start()
                    break

    def end_of_iteration(self) -> None:
        """The loop has moved scheduler, scaler and EMA on: what a checkpoint for a fresh process must hold."""
        if self.snapshots and not self.snapshots[-1].small:
            self.snapshots[-1].small = snapshot.small_state(self.parts)

    def _idle(self) -> bool:
        return self._writer is None or not self._writer.is_alive()

    def finish(self) -> None:
        if self._writer is not None:
            self._writer.join()

    def _save(self, snap: Snapshot, kind: str = "good") -> Path | None:
        """Write a snapshot; in a thread, so training does not wait. Under DDP one rank writes the weights."""
        folder = self.journal.folder
        if folder is None or not self.journal.usable():
            return None
        state = {**snap.state, **snap.small}
        if self.ranks.rank and not self.ranks.sharded:
            state = {"step": snap.step, "tick": snap.tick, "rng": snap.state["rng"], "model": {}, "optimizer": {}}
        try:
            snap.ready(wait=True)
            path, digest = disk.save(state, folder, self.ranks.rank, kind)
        except OSError as error:
            with self.journal.kept("a checkpoint"):
                raise error
            return None
        except Exception as error:  # not finite, not loadable: then it is not called good, and training goes on
            log.warning("a snapshot of step %d was not kept: %s", snap.step, error)
            return None
        self.journal.write("checkpoint", kind=kind, file=path.name, step=snap.step, sha256=digest)
        disk.prune(folder, self.ranks.rank)
        return path

    # Acting. Each returns what was done, for the incident, or None.

    def act(self, want: Want, step: int, tick: int) -> tuple[str, dict[str, Any]] | None:
        self.want = None
        if self.used >= self.limit:
            self.spent = True
            return None
        if self.policy == "cut" and not self._all(self._finite()):
            self.spent = self.hopeless = True
            return None
        self.used += 1
        self.spent = self.used >= self.limit and self.policy == "stop"
        self._quiet_from = tick
        self.journal.write(
            "recovery", policy=self.policy, step=step, tick=tick, onset=want.onset, number=self.used, reason=want.reason
        )
        if self.policy == "cut":
            self._quiet_from = tick + SETTLE  # let it work before cutting again
            return "cut", cut_rates(self.parts, self.cut)
        if self.policy == "rollback":
            back = self._back(want, tick)
            self.spent = self.hopeless = back is None  # no later step is sound, so no sound state will come
            return back
        return self._stop(step, tick)

    def _back(self, want: Want, tick: int) -> tuple[str, dict[str, Any]] | None:
        for snap in reversed(self.snapshots):
            oldest = snap is self.snapshots[0]
            if (snap.tick + SETTLE <= want.onset or oldest) and self._all(snap.finite()):
                break
        else:
            return None
        snapshot.put_back(self.parts, snap, replay=self.replay)
        while self.snapshots[-1] is not snap:  # what came after belongs to the branch that failed
            self.snapshots.pop()
        facts = {"to_step": snap.step, "steps_lost": tick - snap.tick}
        # The same state again, from now on: a failure soon after it goes to an older one.
        snap.tick = tick
        return "rollback", facts

    def _stop(self, step: int, tick: int) -> tuple[str, dict[str, Any]]:
        self.finish()
        facts: dict[str, Any] = {}
        now = snapshot.take(self.parts, step, tick)
        good = next((s for s in reversed(self.snapshots) if s.tick + SETTLE <= tick and self._all(s.finite())), None)
        if self._all(now.finite()):
            now.small = snapshot.small_state(self.parts)
            facts["stopped_at"] = str(self._save(now, "stopped") or "")
        if good is not None:
            facts["good_step"] = good.step
            if good.tick not in self.saved:
                facts["good"] = str(self._save(good) or "")
        return "stop", facts

    def _finite(self) -> bool:
        """Whether the weights are; waits for the device, once, when there is a reason to act."""
        return not float(snapshot.nonfinite([local(p.detach()) for p in self.parts.model.parameters()]))

    def _all(self, mine: bool) -> bool:
        """Whether it is so on every rank."""
        if self.ranks.group is None:
            return mine
        flag = torch.tensor([float(mine)], device=self.ranks.meeting_device(self.device()))
        return bool(self.ranks.reduce(flag, "min").item() > 0)

    def device(self) -> torch.device:
        found: torch.device = next(iter(self.parts.model.parameters())).device
        return found


def cut_rates(parts: Parts, factor: float) -> dict[str, Any]:
    """Multiply the learning rate of every group, and what its schedule computes from, so that the cut stays."""
    before = [g["lr"] for g in parts.optimizer.param_groups]
    rates = [float(v) if not isinstance(v, torch.Tensor) or v.device.type == "cpu" else None for v in before]
    for group in parts.optimizer.param_groups:
        for key in SCALED_KEYS:
            if isinstance(group.get(key), torch.Tensor):
                group[key].mul_(factor)
            elif isinstance(group.get(key), int | float):
                group[key] = group[key] * factor
    scale_schedule(parts.scheduler, factor)
    return {"factor": factor, "lr_before": rates}


def scale_schedule(scheduler: Any, factor: float) -> None:
    if scheduler is None:
        return
    for inner in (*getattr(scheduler, "_schedulers", ()), getattr(scheduler, "scheduler", None)):
        scale_schedule(inner, factor)  # of a sequence, or inside accelerate's wrapper
    base = getattr(scheduler, "base_lrs", None)
    if isinstance(base, list):
        scheduler.base_lrs = [b * factor for b in base]
