"""From a record to a verdict: what is told, and what is done about it."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from wheeltapper.guard.acts import Want
from wheeltapper.guard.judge import Alarm, listed
from wheeltapper.guard.record import Incident, StepRecord, TensorRecord
from wheeltapper.guard.snapshot import unwrapped

if TYPE_CHECKING:
    from wheeltapper.guard.core import Guard
    from wheeltapper.guard.row import Row

AGAIN = 100  # steps before an alarm of the same kind is told again
UNSTEPPED = 1000  # micro-batches without a step: several times the longest accumulation we know of (some hundreds)
OPTIMIZERS: WeakSet[Any] = WeakSet()  # of all guards: a model trained by two optimizers has two guards


@dataclass(frozen=True, slots=True)
class Told:
    """When an alarm of a kind was last told and last seen, and the steps until it is told again if it goes on."""

    told: int
    seen: int
    wait: int


def begin(guard: Guard) -> None:
    """What is known before the first step: recoveries that are used up, an optimizer of another model."""
    if guard._actor.spent:
        text = f"All {guard._actor.limit} recoveries of this run were used before; the guard only watches."
        if guard._actor.limit <= 0:
            text = f"recoveries={guard._actor.limit} lets the policy do nothing; the guard only watches."
        alarm(guard, Alarm("limit", text, "warning", guard.at, {"used": guard._actor.used}), guard.tick)
    OPTIMIZERS.add(guard.optimizer)
    mine = {id(p) for p in guard._meter.params}
    if not any(id(p) in mine for p in guard.model.parameters()):
        text = "The optimizer has no parameter of this model: was it made for another one, or before the model was replaced?"
        alarm(guard, Alarm("not-optimized", text, "warning", guard.at, {}), guard.tick)


def not_optimized(guard: Guard) -> None:
    """At the first step, when the guards of all optimizers are there: parameters that none of them has."""
    owned = {id(p) for optimizer in OPTIMIZERS for group in optimizer.param_groups for p in group["params"]}
    missing = [n for n, p in unwrapped(guard.model).named_parameters() if p.requires_grad and id(p) not in owned]
    if missing:
        text = (
            f"{listed(missing, range(len(missing)))}: they ask for a gradient and are in no optimizer that has a guard."
        )
        alarm(guard, Alarm("not-optimized", text, "warning", guard.at, {"names": missing[:64]}), guard.tick)


def noted(guard: Guard, row: Row) -> bool:
    """After a call of guard.step: whether there are gradients to look at."""
    if row.micro == UNSTEPPED:
        name = type(guard.optimizer).__name__
        text = f"guard.step was called {row.micro} times and the optimizer ({name}) made no step: is it the one that the loop steps?"
        alarm(guard, Alarm("no-step", text, "warning", guard.at, {}), guard.tick)
    return any(p.grad is not None for p in guard._meter.params)


def misplaced(guard: Guard, row: Row) -> None:
    """At optimizer.step(), of gradients that were not there when guard.step was called; told once."""
    if row.micro and "misplaced warning" not in guard._told and any(p.grad is not None for p in guard._meter.params):
        text = (
            "guard.step(loss) was called before backward(), when there were no gradients; they are measured at "
            "optimizer.step() instead. Call it right after backward()."
        )
        alarm(guard, Alarm("misplaced", text, "warning", guard.at, {}), guard.tick)


def spoil(params: list[Any]) -> None:
    """After going back in the middle of an iteration: the gradients at hand belong to the state that was left. One
    infinite gradient makes the scaler skip them, which it does without a trace."""
    next(p for p in params if p.grad is not None).grad.fill_(float("inf"))


def take(guard: Guard, record: StepRecord) -> None:
    if not guard.history:
        not_optimized(guard)
    guard.history.append(record)
    guard._tell("step", record)
    for seen in guard._judge.step(record):
        alarm(guard, seen, record.tick)
    if record.action == "skip":
        guard._actor.skipped(record)
        facts = {"norm": record.grad_norm, "nonfinite": record.nonfinite, "batch": record.batch_id}
        text = f"The step was skipped ({guard._actor.used} of {guard._actor.limit})."
        guard.report(
            Incident("skipped", record.step, record.tick, record.time, text, "warning", None, "skip", facts, guard.rank)
        )


def alarm(guard: Guard, seen: Alarm, tick: int) -> None:
    """Tell of an alarm, at most once in AGAIN steps for each kind and severity, and let the policy consider it. One that
    goes on and on is told at growing distances: a run that died in the night must not send a thousand messages."""
    guard._actor.consider(seen, tick)
    key = f"{seen.kind} {seen.severity}"
    before = guard._told.get(key)
    goes_on = before is not None and tick - before.seen <= max(AGAIN, guard.every)
    if before is not None and goes_on and tick - before.told < before.wait:
        guard._told[key] = replace(before, seen=tick)
        return
    guard._told[key] = Told(tick, tick, 2 * before.wait if before is not None and goes_on else AGAIN)
    step = max(seen.onset, guard.history[-1].step if guard.history else 0)
    onset = seen.onset if seen.onset < step else None
    guard.report(
        Incident(seen.kind, step, tick, time.time(), seen.text, seen.severity, onset, None, seen.facts, guard.rank)
    )


def act(guard: Guard, want: Want | None) -> None:
    """Do what the policy says, at this boundary."""
    if want is None:
        return
    step = guard.at
    done = guard._actor.act(want, step, guard.tick)
    if done is None:
        text = f"No recovery is left ({guard._actor.used} of {guard._actor.limit}); the guard only watches from here. {want.reason}"
        if guard._actor.hopeless and guard.policy == "cut":
            text = f'The weights are not finite, and no lower rate mends them: go back to a checkpoint, or use policy="rollback". {want.reason}'
        elif guard._actor.hopeless:
            text = (
                f"There is no sound state to go back to. The guard only watches from here: start again. {want.reason}"
            )
        guard._journal.write("limit", step=step, reason=want.reason)
        guard.report(
            Incident(
                "limit",
                step,
                guard.tick,
                time.time(),
                text,
                "error",
                facts={"used": guard._actor.used},
                rank=guard.rank,
            )
        )
        return
    action, facts = done
    if action == "rollback":
        guard.at = facts["to_step"]
    if action == "stop":
        guard.stopping = f"{want.reason} {kept(guard, facts)}"
    text = {
        "cut": f"The learning rates were multiplied by {guard._actor.cut:g}.",
        "rollback": f"Went back to step {guard.at}.",
        "stop": f"Training is asked to stop. {kept(guard, facts)}",
    }[action]
    text = f"{text} {want.reason} ({guard._actor.used} of {guard._actor.limit} recoveries)"
    facts = {**facts, "onset_tick": want.onset}
    guard.report(Incident(action, step, guard.tick, time.time(), text, "warning", None, action, facts, guard.rank))


def kept(guard: Guard, facts: dict[str, Any]) -> str:
    """Where the last good state is, for one who stops."""
    if guard._journal.lost is not None:
        return f"No state was written ({guard._journal.lost})."
    if "good_step" not in facts:
        return "No state had proved good yet, so none was written."
    return f"The last good state, of step {facts['good_step']}, is in {guard.run_dir}; guard.resume() loads it."


def look(guard: Guard, seen: TensorRecord) -> None:
    """Every tensor has been looked at."""
    guard.tensors.append(seen)
    guard._tell("tensors", seen)
    lr = guard.history[-1].lr if guard.history else ()
    for found in guard._judge.tensors(seen, lr, guard._meter.group_of):
        alarm(guard, found, seen.tick)
