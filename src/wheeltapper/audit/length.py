"""How long the run is, from its settings and what its log says; None where it is not known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wheeltapper.reading.record import Fact
from wheeltapper.settings.knobs import Knobs
from wheeltapper.simulate.arithmetic import RunLength

# A slope of steps against epochs, which are printed as whole numbers on few lines: so far off it may be, and no farther.
ROUGH = 0.2


@dataclass(frozen=True, slots=True)
class Length:
    """Batch, steps and epochs of a run. Lengths are in optimizer updates."""

    batch: float | None  # per device and micro-step
    accumulation: float
    world: float
    samples: float | None
    steps_per_epoch: float | None
    epochs: float | None
    total: float | None
    how: str
    declared_accumulation: float | None = None  # set where the code shows that it is not done

    @property
    def effective_batch(self) -> float | None:
        return None if self.batch is None else self.batch * self.accumulation * self.world

    def updates(self, value: float, unit: str | None) -> float | None:
        """A length in optimizer updates, or None where the conversion is not known."""
        if unit in (None, "steps"):
            return value
        if unit == "micro_steps":
            return value / self.accumulation
        if unit == "epochs":
            return None if self.steps_per_epoch is None else value * self.steps_per_epoch
        if unit == "fraction":
            return None if self.total is None else value * self.total
        if unit == "samples":
            return None if self.effective_batch is None else value / self.effective_batch
        return None


UNKNOWN = Length(None, 1.0, 1.0, None, None, None, None, "not known")


def length_of(knobs: Knobs, facts: Mapping[str, Fact] | None = None, *, accumulates: bool = True) -> Length:
    """`accumulates=False`: the code shows that the accumulation declared is not done, so every micro-batch is an update."""
    known = facts or {}

    def number(knob: str, fact: str | None = None) -> float | None:
        told: Any = known[fact].value if fact is not None and fact in known else knobs.value(knob)
        return float(told) if isinstance(told, (int, float)) and not isinstance(told, bool) and told > 0 else None

    batch, declared_accumulation = number("batch.per_device"), number("batch.accumulation") or 1.0
    accumulation = declared_accumulation if accumulates else 1.0
    world = number("world_size", "world_size") or 1.0
    declared = knobs.get("batch.per_device")
    if world > 1 and declared is not None and declared.note is not None:
        batch = None  # a bare "batch_size" does not say whether it is per device or in all
    whole = number("batch.global")
    if batch is None and whole is not None:
        batch = whole / accumulation / world
    samples, epochs = number("data.train_size", "n_train"), number("run.epochs", "total_epochs")
    per_epoch, how = number("", "steps_per_epoch"), "the log"
    limit = number("run.total_steps", "total_steps")
    declared_length = knobs.get("run.total_steps")
    if declared_length is not None and declared_length.unit == "micro_steps":
        # This loop counts micro-batches, in its settings and in its log alike.
        limit = None if limit is None else limit / accumulation
        per_epoch = None if per_epoch is None else per_epoch / accumulation
    if samples is not None and batch is not None:
        run = RunLength(
            int(samples),
            max(1, int(batch)),
            int(accumulation),
            int(world),
            drop_last=bool(knobs.value("data.drop_last")),
        )
        counted = float(run.steps_per_epoch or 0) or None
        rough = "steps_per_epoch" in known and known["steps_per_epoch"].derived
        if counted is not None and (per_epoch is None or (rough and abs(per_epoch / counted - 1) < ROUGH)):
            per_epoch, how = counted, f"{samples:g} samples over a batch of {batch * accumulation * world:g}"
    by_batches = None if epochs is None or per_epoch is None or accumulation == 1 else epochs * per_epoch
    if (
        limit is not None
        and per_epoch is not None
        and by_batches is not None
        and abs(by_batches / accumulation / limit - 1) < 0.02
    ):
        # The log counts the batches of an epoch and the updates of the run: the two differ by the accumulation.
        per_epoch = per_epoch / accumulation
    by_epochs = epochs * per_epoch if epochs is not None and per_epoch is not None else None
    # A limit of steps and a number of epochs: the run ends at whichever comes first.
    totals = [t for t in (limit, by_epochs) if t is not None]
    not_done = None if accumulates else declared_accumulation
    total = min(totals) if totals else None
    return Length(batch, accumulation, world, samples, per_epoch, epochs, total, how, not_done)
