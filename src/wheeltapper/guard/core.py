"""The guard: one object beside a training loop that measures every step and, when told to, acts.

How it sees a step (`steps`, and `straight` where it must be quick): hooks on the optimizer fire around the user's own `optimizer.step()`, wherever that is called
from (a loop, GradScaler.step, a framework). `guard.step(loss)` after `backward()` adds the loss and looks at the
gradients before they are clipped. Everything that the guard does in training goes through `_guarded`: an error
inside is reported once and the guard goes passive; training never sees it.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from wheeltapper.errors import InputError
from wheeltapper.guard import steps, verdict
from wheeltapper.guard.activations import Activations, chosen, compiled
from wheeltapper.guard.acts import Actor
from wheeltapper.guard.closure import before
from wheeltapper.guard.disk import Journal
from wheeltapper.guard.early import known
from wheeltapper.guard.judge import Alarm, Judge
from wheeltapper.guard.measure import Meter
from wheeltapper.guard.meeting import attend, meet
from wheeltapper.guard.outbox import Outbox
from wheeltapper.guard.ranks import check, find
from wheeltapper.guard.record import Incident, StepRecord, TensorRecord
from wheeltapper.guard.resume import resume
from wheeltapper.guard.row import NAN, Row
from wheeltapper.guard.snapshot import Parts, fit, unwrapped
from wheeltapper.guard.straight import Straight

log = logging.getLogger("wheeltapper.guard")

POLICIES = ("watch", "skip", "cut", "rollback", "stop")


class Stop(Exception):  # noqa: N818
    """Raised by guard.step at a step boundary, under policy="stop" only, after a checkpoint has been written."""


class Guard:
    """Watch a training loop; see docs/guard.md for where to call what.

    model, optimizer, scheduler, scaler, ema: the training's own objects; only model and optimizer are needed.
    policy: "watch" changes nothing. run_dir: where incidents, recoveries and checkpoints go; None keeps all in memory.
    every: steps between looks at every tensor. clip_norm: the norm the loop clips at, so that clipped steps are known.
    recoveries: how often a policy may act, over all restarts of the run (skip 20, cut 3, rollback 3, stop 1).
    snapshot_every, snapshots: how often the state is copied for rollback and stop, and how many copies are held.
    cut: what a cut multiplies the rates by. replay: a rollback also moves the loader back to the same batches.
    process_group: the ranks that train together, where the model's wrapping does not tell; False: this one alone.
    early: also warn when the gradient norm grows erratic; "act": cut, rollback and stop take it as a reason.
    activations: also measure what the modules put out, at the looks: True for all, or their names or patterns.
    """

    def __init__(
        self,
        model: Any,
        optimizer: Any,
        scheduler: Any = None,
        scaler: Any = None,
        ema: Any = None,
        policy: str = "watch",
        run_dir: str | Path | None = None,
        every: int = 100,
        *,
        clip_norm: float | None = None,
        recoveries: int | None = None,
        snapshot_every: int = 100,
        snapshots: int = 3,
        cut: float = 0.5,
        replay: bool = False,
        process_group: Any = None,
        activations: bool | str | Iterable[str] = False,
        early: bool | str = True,
        history: int = 4096,
        start_step: int = 0,
    ) -> None:
        if policy not in POLICIES:
            raise InputError(f"policy {policy!r} is not known", do=f"Use one of: {', '.join(POLICIES)}")
        if not 0 < cut < 1:
            raise InputError(f"cut={cut} is not between 0 and 1")
        fit(model, optimizer, scaler, scheduler, ema)
        self._ranks = find(model, process_group)
        check(policy, self._ranks)
        self.model, self.optimizer, self.scheduler, self.scaler, self.ema = model, optimizer, scheduler, scaler, ema
        self.policy = policy
        self.run_dir = Path(run_dir) if run_dir is not None else None
        self.every = max(1, every)
        self.clip_norm, self.early = clip_norm, early
        self.history: deque[StepRecord] = deque(maxlen=history)
        self.tensors: deque[TensorRecord] = deque(maxlen=64)
        self.incidents: list[Incident] = []
        self.passive: str | None = None  # why the guard has stopped looking
        self.stopping: str | None = None  # why training should stop, for loops that ask instead of catching Stop
        self.names: tuple[str, ...] = ()
        self.at = start_step  # optimizer steps made so far; goes back on a rollback
        self.tick = 0
        self.rank = 0
        self.ranks_agree: bool | None = None  # weights equal on all ranks at the last look; None: not asked
        self.global_norm = NAN  # gradient norm over all ranks' shards at the last look
        self._listeners: dict[str, list[Callable[..., None]]] = {
            k: [] for k in ("step", "tensors", "incident", "boundary")
        }
        self._hooks: list[Any] = []
        self._open: Row | None = None
        self._late: Row | None = None  # closed without a loss: guard.step may be called after optimizer.step
        self._told: dict[str, verdict.Told] = {}
        self._ended = time.perf_counter()
        self._data_s = NAN
        self._loader: Any = None
        self._last: Row | None = None  # the last step, for the meeting of the ranks
        self._cuda = False
        # Whether what has come is read several steps at a time; `prompt`: at every step, for one who holds batches.
        self._once = self.prompt = False
        self._read = self._ended  # when it was read last
        self._straight: Straight | None = None
        self._meetings = 0
        self._journal = Journal(None)
        self._options: dict[str, Any] = {
            "recoveries": recoveries,
            "snapshot_every": max(1, snapshot_every),
            "snapshots": snapshots,
            "cut": cut,
            "replay": replay,
            "early": known(early) == "act",
        }
        self._activations = Activations(chosen(model, activations)) if activations else None
        self._guarded("starting", self._start)

    # What the user calls

    def step(self, loss: Any = None, batch_id: Any = None, inputs: Any = None, targets: Any = None) -> None:
        """After backward(), before clipping and optimizer.step(); once for every micro-batch."""
        if self.stopping is not None and self.policy == "stop":
            raise Stop(self.stopping)
        if self._straight is not None and not torch.compiler.is_compiling():
            try:
                if self._straight.note(loss, batch_id):
                    return
            except Exception as error:
                self._fail("step", error)
        self._guarded("step", steps.note, self, loss, batch_id, inputs, targets)

    def listen(
        self,
        *,
        step: Callable[[StepRecord], None] | None = None,
        tensors: Callable[[TensorRecord], None] | None = None,
        incident: Callable[[Incident], None] | None = None,
        boundary: Callable[[int], None] | None = None,
    ) -> None:
        """Be told of every record, in order. On CUDA a step is told some steps after it was made (docs/guard.md).
        `boundary` is called with the tick right after each optimizer step, before the next batch: the place to note
        random states. A listener that raises is reported once and not called again."""
        for kind, call in (("step", step), ("tensors", tensors), ("incident", incident), ("boundary", boundary)):
            if call is not None:
                self._listeners[kind].append(call)

    def report(self, incident: Incident) -> None:
        """Add an incident: to `incidents`, the log, the listeners."""
        self.incidents.append(incident)
        self._journal.write("incident", **incident.as_dict())
        level = {"note": logging.INFO, "early": logging.WARNING, "warning": logging.WARNING}.get(
            incident.severity, logging.ERROR
        )
        log.log(level, "step %d: %s", incident.step, incident.text)
        self._tell("incident", incident)

    def batches(self, loader: Iterable[Any]) -> Iterator[Any]:
        """The loader's batches, with the time spent waiting for each. A loader with state_dict has its place kept in
        snapshots."""
        self._loader = loader
        source = iter(loader)
        while True:
            asked = time.perf_counter()
            try:
                batch = next(source)
            except StopIteration:
                return
            self._data_s = time.perf_counter() - asked
            yield batch

    def flush(self) -> None:
        """Wait for the device and read everything sent so far. For the end of training and for tests."""
        self._guarded("flush", self._drain)

    def close(self) -> None:
        """Read what is on its way and take the hooks off."""
        self._guarded("close", self._finish)
        self.detach()

    def attach(self) -> None:
        """Put the hooks on the optimizer; done when the guard is made."""
        if not self._hooks:
            self._hooks = [
                self.optimizer.register_step_pre_hook(self._pre_hook),
                self.optimizer.register_step_post_hook(self._post_hook),
            ]

    def detach(self) -> None:
        if self._activations is not None:
            self._activations.detach()
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    @property
    def dropped(self) -> int:
        """Records lost because the device was too far behind; 0 in any loop we have seen."""
        return self._outbox.dropped if self.passive is None else 0

    def __enter__(self) -> Guard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # The frame that keeps training safe

    def _guarded(self, where: str, call: Callable[..., None], *args: Any) -> None:
        if self.passive is not None or torch.compiler.is_compiling():
            return
        graded = torch.is_grad_enabled()
        try:
            if self._cuda and torch._C._cuda_isCurrentStreamCapturing():
                return  # a graph under capture holds what it holds; a look would become part of it
            torch._C._set_grad_enabled(False)  # what torch.no_grad() does, at a third of its time
            call(*args)
        except Exception as error:
            self._fail(where, error)
        finally:
            torch._C._set_grad_enabled(graded)

    def _fail(self, where: str, error: BaseException) -> None:
        self.passive = f"{type(error).__name__} in {where}: {error}"
        self._straight = None
        log.warning("the guard has stopped looking; training goes on. %s", self.passive, exc_info=error)
        self.incidents.append(
            Incident(
                "guard", self.at, self.tick, time.time(), f"The guard has stopped looking: {self.passive}", "error"
            )
        )

    def _tell(self, kind: str, what: Any) -> None:
        for call in list(self._listeners[kind]):
            try:
                call(what)
            except Exception as error:
                self._listeners[kind].remove(call)
                name = getattr(call, "__qualname__", repr(call))
                log.warning("%s raised and is not called again; training goes on", name, exc_info=error)
                text = f"{name} raised {type(error).__name__}: {error}. It is not called again."
                self.incidents.append(Incident("guard", self.at, self.tick, time.time(), text))

    def _pre_hook(self, _: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        row = self._open
        if row is not None and row.place is not None and getattr(self.optimizer, "found_inf", None) is None:
            return None  # guard.step has done all there is to do
        return before(self._enter, args, kwargs)

    def _enter(self) -> None:
        row = self._open
        if row is not None and row.ready is not None and row.ready is self._meter.moves:
            return  # guard.step has done all there is to do
        self._guarded("before the step", steps.before, self)
        if self.policy == "skip" and self._ranks.group is not None:
            attend(self)

    def _post_hook(self, *_: Any) -> None:
        if not self._went_straight():
            if hasattr(self, "_actor"):
                self._actor.release()
            self._guarded("after the step", steps.after, self)
        if self._ranks.group is not None:
            meet(self)  # also when passive: the other ranks are waiting

    def _went_straight(self) -> bool:
        try:
            return self._straight is not None and not torch.compiler.is_compiling() and self._straight.stepped()
        except Exception as error:
            self._fail("after the step", error)
            return True

    def _leave(self) -> None:
        """From here on the long way: what the short one has open is closed."""
        if self._straight is not None:
            self._straight.leave()

    # Start and end

    def _start(self) -> None:
        self.rank = self._ranks.rank
        self.attach()
        self._measure()
        self._outbox = Outbox(self._meter.device, len(self._meter.row))
        self._judge = Judge(self.names, early=bool(self.early))
        self._journal = Journal(self.run_dir, self.rank)
        self._actor = Actor(self.policy, self._parts(), self._journal, self._ranks, **self._options)
        if self._activations is not None:
            self._request(self._activations)
        self._journal.write(
            "start", policy=self.policy, step=self.at, rank=self.rank, world=self._ranks.world, used=self._actor.used
        )
        verdict.begin(self)

    def _request(self, wanted: Activations) -> None:
        """Activations are to be measured: from the first step on, unless the model is compiled."""
        if not compiled(self.model):
            wanted.attach()
            return
        self._activations = None
        text = "Activations are not measured: the model is compiled, and hooks put on it are not called."
        verdict.alarm(self, Alarm("activations", text, "note", self.at), self.tick)

    def _measure(self) -> None:
        """Measure the parameters that the optimizer has now."""
        meter = Meter.of(self.optimizer, {id(p): n for n, p in unwrapped(self.model).named_parameters()})
        self._meter, self.names = meter, meter.names
        self._cuda = meter.device.type == "cuda"
        self._once = self._cuda and self.policy == "watch"
        ready = self._once and meter.fused is not None and meter.moves is not None
        self._straight = Straight(self, meter, meter.fused) if ready and meter.fused else None

    def _parts(self) -> Parts:
        return Parts(self.model, self.optimizer, self.scheduler, self.scaler, self.ema, self._loader)

    def resume(self) -> int | None:
        """Load the newest checkpoint of run_dir that passes every test into the training's objects, and return its
        step; None if there is none. Unlike the rest of the guard this may raise: training has not begun."""
        return resume(self)

    def _finish(self) -> None:
        self._leave()
        self._open = None
        if self._late is not None:
            steps.send(self, self._late)
        self._drain()
        self._actor.finish()
        self._journal.write("end", step=self.at, tick=self.tick, incidents=len(self.incidents))

    def _drain(self) -> None:
        self._leave()
        steps.drain(self, True)
