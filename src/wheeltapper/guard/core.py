"""The guard: one object beside a training loop that measures every step and, when told to, acts.

How it sees a step: hooks on the optimizer fire around the user's own `optimizer.step()`, wherever that is called
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
from wheeltapper.guard import look as looks
from wheeltapper.guard import scale, verdict
from wheeltapper.guard.activations import Activations, chosen, compiled
from wheeltapper.guard.acts import Actor
from wheeltapper.guard.closure import before
from wheeltapper.guard.disk import Journal
from wheeltapper.guard.early import known
from wheeltapper.guard.judge import Alarm, Judge
from wheeltapper.guard.measure import Meter, memory
from wheeltapper.guard.meeting import attend, meet, met
from wheeltapper.guard.outbox import Outbox
from wheeltapper.guard.ranks import check, find
from wheeltapper.guard.record import Incident, StepRecord, TensorRecord
from wheeltapper.guard.resume import resume
from wheeltapper.guard.row import NAN, Row, number
from wheeltapper.guard.snapshot import Parts, fit, unwrapped

log = logging.getLogger("wheeltapper.guard")

TOGETHER = 4  # steps read at a time on CUDA under policy="watch"
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
        # Look for what has come only every few steps: asking the device and judging costs a tenth as much for several
        # steps as for each, and nothing is to be done about it. `prompt`: at every step, for one who holds batches.
        self._once = self.prompt = False
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
        self._guarded("step", self._note, loss, batch_id, inputs, targets)

    def listen(
        self,
        *,
        step: Callable[[StepRecord], None] | None = None,
        tensors: Callable[[TensorRecord], None] | None = None,
        incident: Callable[[Incident], None] | None = None,
        boundary: Callable[[int], None] | None = None,
    ) -> None:
        """Be told of every record, in order. On CUDA a step is told up to six steps after it was made (docs/guard.md).
        `boundary` is called with the tick right after each optimizer step, before the next batch: the place to note
        random states. A listener that raises is reported once and not called again."""
        for kind, call in (("step", step), ("tensors", tensors), ("incident", incident), ("boundary", boundary)):
            if call is not None:
                self._listeners[kind].append(call)

    def report(self, incident: Incident) -> None:
        """Add an incident: to `incidents`, the log, the listeners."""
        self.incidents.append(incident)
        self._journal.write("incident", **incident.as_dict())
        level = {"note": logging.INFO, "early": logging.WARNING, "warning": logging.WARNING}.get(incident.severity, logging.ERROR)
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
        self._guarded("flush", self._drain, True)

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
        return before(self._enter, args, kwargs)

    def _enter(self) -> None:
        if self._open is not None and self._open.ready is not None and self._open.ready is self._meter.moves:
            return  # guard.step has done all there is to do
        self._guarded("before the step", self._before)
        if self.policy == "skip" and self._ranks.group is not None:
            attend(self)

    def _post_hook(self, *_: Any) -> None:
        if hasattr(self, "_actor"):
            self._actor.release()
        self._guarded("after the step", self._after)
        if self._ranks.group is not None:
            meet(self)  # also when passive: the other ranks are waiting

    # Start and end

    def _start(self) -> None:
        self.rank = self._ranks.rank
        self.attach()
        self._meter = self._new_meter()
        self.names = self._meter.names
        self._cuda = self._meter.device.type == "cuda"
        self._once = self._cuda and self.policy == "watch"
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

    def _new_meter(self) -> Meter:
        return Meter.of(self.optimizer, {id(p): n for n, p in unwrapped(self.model).named_parameters()})

    def _parts(self) -> Parts:
        return Parts(self.model, self.optimizer, self.scheduler, self.scaler, self.ema, self._loader)

    def resume(self) -> int | None:
        """Load the newest checkpoint of run_dir that passes every test into the training's objects, and return its
        step; None if there is none. Unlike the rest of the guard this may raise: training has not begun."""
        return resume(self)

    def _finish(self) -> None:
        self._open = None
        if self._late is not None:
            self._send(self._late)
        self._drain(True)
        self._actor.finish()
        self._journal.write("end", step=self.at, tick=self.tick, incidents=len(self.incidents))

    # One step

    def _note(self, loss: Any, batch_id: Any, inputs: Any, targets: Any) -> None:
        if not self._once:
            self._drain()
        late = self._late
        if late is not None and self._open is None:  # guard.step is called after optimizer.step
            late.add(loss, batch_id)
            self._send(late)
            return
        if self._open is not None and scale.mark(self.scaler) is not self._open.updates:
            self._close(skipped=True)  # the scaler met an overflow: the hooks were not called
            self._drain()
            if self._actor.due() and self._ranks.group is None:
                verdict.act(self, self._actor.want)
                verdict.spoil(self._meter.params)
        row = self._row()
        row.add(loss, batch_id)
        row.before_clip = verdict.noted(self, row)
        row.gradients = self._meter.gradients(scale.held(self.scaler, self.optimizer)) if row.before_clip else None
        if self._due():
            if inputs is not None or targets is not None:
                row.batch = (inputs, targets)
        elif self._once and row.before_clip and row.ready is None and self._meter.moves is not None:
            row.ready = self._meter.moves
            row.ready.before()

    def _before(self) -> None:
        if self._late is not None:
            self._send(self._late)
        row = self._row()
        if row.gradients is None:
            row.gradients = self._meter.gradients(scale.held(self.scaler, self.optimizer))
            verdict.misplaced(self, row)
        row.overflow = getattr(self.optimizer, "found_inf", None)
        row.lr = tuple(number(g["lr"]) for g in self.optimizer.param_groups)
        if self._due():
            if self._meter.moved_storage():
                self._meter.build_sample()
            row.look = looks.Look(self.at, self.tick, self._meter, self._meter.without_gradient())
            looks.before_step(row.look, row.gradients)
            row.memory = memory(self._meter.device)
            row.weights = self._meter.sample_weights()
            if self._activations is not None:
                looks.outputs(row.look, self._activations)
        if self._meter.moves is not None:
            self._meter.moves.before()
        if self.policy == "skip" and (not self._actor.spent or self._ranks.group is not None):
            self._actor.hold(row, self._meter.params, self._judge.norm_limit())

    def _after(self) -> None:
        self._actor.protect_buffers(None)
        row = self._open
        if row is not None:
            moves = self._meter.moves
            if row.ready is not None:
                row.overflow = getattr(self.optimizer, "found_inf", None)
            if moves is not None:
                row.update, row.weights_first = moves.after(), moves.weights_first
            if row.look is not None and row.weights is not None:
                looks.after_step(row.look, row.weights, self.model, self.optimizer, self.ema)
            if self._once and (self.prompt or len(self._outbox) >= TOGETHER):
                self._drain()
            self._close(skipped=False)
            if not self._once:
                self._drain()
        if self._activations is not None:
            self._activations.attach() if self._due() else self._activations.detach()
        if self.policy != "watch":
            self._actor.parts = self._parts()
            if self._ranks.group is None:  # else all ranks keep and act together, when they meet
                self._actor.keep(self.at, self.tick, calm=self._judge.calm() and not self._actor.due())
                verdict.act(self, self._actor.want)
        self._tell("boundary", self.tick)

    def _row(self) -> Row:
        if self._open is None:
            if sum(len(g["params"]) for g in self.optimizer.param_groups) != len(self._meter.params):
                self._meter = self._new_meter()  # a group was added, as when layers are unfrozen
                self.names = self._judge.names = self._meter.names
                self._outbox.resize(len(self._meter.row))
            self._open = Row(self.tick, scale.mark(self.scaler))
            self._actor.end_of_iteration()
        return self._open

    def _due(self) -> bool:
        return self.tick % self.every == 0

    def _close(self, skipped: bool) -> None:
        row, self._open = self._open, None
        self._last = row
        if row is None:
            return
        now = time.perf_counter()
        row.step, row.skipped, row.time = self.at, skipped, time.time()
        row.step_s, row.data_s = now - self._ended, self._data_s
        self._ended, self._data_s = now, NAN
        row.lr = row.lr or tuple(number(g["lr"]) for g in self.optimizer.param_groups)
        row.scale, row.weights = scale.value(self.scaler), None
        self.tick += 1
        if not skipped:
            self.at += 1
        if row.micro == 0:
            self._late = row
        else:
            self._send(row)

    def _send(self, row: Row) -> None:
        if row is self._late:
            self._late = None
        row.send(self._meter, self._outbox)
        look = row.look
        if look is not None:
            for kind, batch in zip(("inputs", "targets"), row.batch, strict=True):
                if batch is not None:
                    looks.batch_part(look, kind, batch)
            self._outbox.send(look.tensor(), look)
            row.look, row.batch = None, (None, None)

    def _drain(self, wait: bool = False) -> None:
        wait = wait or (self._outbox.kind == "other" and self._due())
        for numbers, what in self._outbox.arrived(wait):
            if isinstance(what, Row):
                verdict.take(self, what.record(numbers, self.clip_norm))
            elif isinstance(what, looks.Look):
                verdict.look(self, what.record(numbers))
            else:
                met(self, what, numbers)
