"""One step, from the first micro-batch to the record that is judged: the way that fits every loop, device and policy."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from wheeltapper.guard import look as looks
from wheeltapper.guard import scale, verdict
from wheeltapper.guard.judge import Alarm
from wheeltapper.guard.measure import memory
from wheeltapper.guard.meeting import met
from wheeltapper.guard.row import NAN, Row, number

if TYPE_CHECKING:
    from wheeltapper.guard.core import Guard

# Steps read at a time on CUDA under policy="watch", and seconds that one waits to be read. Reading and judging sixteen
# costs the host a fifth of what it costs one by one, for then nothing is in its caches; and nothing is to be done about
# what is read.
TOGETHER, SECONDS = 16, 0.5


def note(guard: Guard, loss: Any, batch_id: Any, inputs: Any, targets: Any) -> None:
    """guard.step(): one micro-batch."""
    guard._leave()
    if not guard._once:
        drain(guard)
    late = guard._late
    if late is not None and guard._open is None:  # guard.step is called after optimizer.step
        late.add(loss, batch_id)
        send(guard, late)
        return
    if guard._open is not None and scale.mark(guard.scaler) is not guard._open.updates:
        close(guard, skipped=True)  # the scaler met an overflow: the hooks were not called
        drain(guard)
        if guard._actor.due() and guard._ranks.group is None:
            verdict.act(guard, guard._actor.want)
            verdict.spoil(guard._meter.params)
    row = opened(guard)
    row.add(loss, batch_id)
    row.before_clip = verdict.noted(guard, row)
    row.gradients = guard._meter.gradients(scale.held(guard.scaler, guard.optimizer)) if row.before_clip else None
    if due(guard):
        if inputs is not None or targets is not None:
            row.batch = (inputs, targets)
    elif guard._once and row.before_clip and row.ready is None and guard._meter.moves is not None:
        row.ready = guard._meter.moves
        row.ready.before()


def before(guard: Guard) -> None:
    """Right before optimizer.step()."""
    guard._leave()
    if guard._late is not None:
        send(guard, guard._late)
    row = opened(guard)
    row.overflow = getattr(guard.optimizer, "found_inf", None)
    if guard.scaler is None and (due(guard) or not guard.history or row.overflow is not None):
        found_scaler(guard, row)
    if row.gradients is None:
        row.gradients = guard._meter.gradients(scale.held(guard.scaler, guard.optimizer))
        verdict.misplaced(guard, row)
    row.lr = tuple(number(g["lr"]) for g in guard.optimizer.param_groups)
    if due(guard):
        if guard._meter.moved_storage():
            guard._meter.build_sample()
        row.look = looks.Look(guard.at, guard.tick, guard._meter, guard._meter.without_gradient())
        looks.before_step(row.look, row.gradients)
        row.memory = memory(guard._meter.device)
        row.weights = guard._meter.sample_weights()
        if guard._activations is not None:
            looks.outputs(row.look, guard._activations)
    if guard._meter.moves is not None:
        guard._meter.moves.before()
    if guard.policy == "skip" and (not guard._actor.spent or guard._ranks.group is not None):
        guard._actor.hold(row, guard._meter.params, guard._judge.norm_limit())


def found_scaler(guard: Guard, row: Row) -> None:
    """A GradScaler that steps this optimizer and was not handed to the guard is taken up, and that is told."""
    scaler = scale.calling()
    if scaler is None:
        return
    guard.scaler, row.updates = scaler, scale.mark(scaler)
    guard._actor.parts = guard._parts()
    # At guard.step nobody knew what was in them.
    row.gradients, row.before_clip = guard._meter.gradients(scale.held(scaler, guard.optimizer)), False
    text = "A GradScaler makes the steps, and the guard was not told: pass scaler=. It is taken up from here."
    verdict.alarm(guard, Alarm("scaler", text, "note", guard.at, {}), guard.tick)


def after(guard: Guard) -> None:
    """Right after optimizer.step()."""
    guard._actor.protect_buffers(None)
    row = guard._open
    if row is not None:
        moves = guard._meter.moves
        if row.ready is not None:
            row.overflow = getattr(guard.optimizer, "found_inf", None)
        if moves is not None:
            row.update, row.weights_first = moves.after(), moves.weights_first
        if row.look is not None and row.weights is not None:
            looks.after_step(row.look, row.weights, guard.model, guard.optimizer, guard.ema)
        if guard._once and (
            guard.prompt or len(guard._outbox) >= TOGETHER or time.perf_counter() - guard._read > SECONDS
        ):
            drain(guard)
        close(guard, skipped=False)
        if not guard._once:
            drain(guard)
    if guard._activations is not None:
        guard._activations.attach() if due(guard) else guard._activations.detach()
    if guard.policy != "watch":
        guard._actor.parts = guard._parts()
        if guard._ranks.group is None:  # else all ranks keep and act together, when they meet
            guard._actor.keep(guard.at, guard.tick, calm=guard._judge.calm() and not guard._actor.due())
            verdict.act(guard, guard._actor.want)
    guard._tell("boundary", guard.tick)


def opened(guard: Guard) -> Row:
    """The step under way."""
    if guard._open is None:
        if sum(len(g["params"]) for g in guard.optimizer.param_groups) != len(guard._meter.params):
            # A group was added, as when layers are unfrozen. What is on its way is of the old ones.
            drain(guard, wait=True)
            guard._measure()
            guard._outbox.resize(len(guard._meter.row))
            guard._judge.names = guard.names
        guard._open = Row(guard.tick, scale.mark(guard.scaler))
        guard._actor.end_of_iteration()
    return guard._open


def due(guard: Guard) -> bool:
    """Whether every tensor is looked at in this step."""
    return guard.tick % guard.every == 0


def close(guard: Guard, skipped: bool) -> None:
    row, guard._open = guard._open, None
    guard._last = row
    if row is None:
        return
    now = time.perf_counter()
    row.step, row.skipped, row.time = guard.at, skipped, time.time()
    row.step_s, row.data_s = now - guard._ended, guard._data_s
    guard._ended, guard._data_s = now, NAN
    row.lr = row.lr or tuple(number(g["lr"]) for g in guard.optimizer.param_groups)
    row.scale, row.weights = scale.value(guard.scaler), None
    guard.tick += 1
    if not skipped:
        guard.at += 1
    if guard._straight is not None:
        guard._straight.single = row.micro == 1
    if row.micro == 0:
        guard._late = row
    else:
        send(guard, row)


def send(guard: Guard, row: Row) -> None:
    """Send the numbers of a step on their way to the host."""
    if row is guard._late:
        guard._late = None
    row.send(guard._meter, guard._outbox)
    look = row.look
    if look is not None:
        for kind, batch in zip(("inputs", "targets"), row.batch, strict=True):
            if batch is not None:
                looks.batch_part(look, kind, batch)
        guard._outbox.send(look.tensor(), look)
        row.look, row.batch = None, (None, None)


def drain(guard: Guard, wait: bool = False) -> None:
    """Read and judge what has come."""
    guard._read = time.perf_counter()
    wait = wait or (guard._outbox.kind == "other" and due(guard))
    for numbers, what in guard._outbox.arrived(wait):
        if isinstance(what, Row):
            if not what.void:
                verdict.take(guard, what.record(numbers, guard.clip_norm))
        elif isinstance(what, looks.Look):
            verdict.look(guard, what.record(numbers))
        else:
            met(guard, what, numbers)
