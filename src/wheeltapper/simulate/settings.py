"""Settings as a schedule needs them: knobs, with lengths turned into updates; what is not said is named."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wheeltapper.finding import Unknown
from wheeltapper.settings.knobs import Knobs
from wheeltapper.settings.tree import ConfigTree
from wheeltapper.simulate.plan import MOST_TICKS


class Undetermined(Exception):  # noqa: N818 - it is an answer, not an error
    """The settings do not determine the plan."""

    def __init__(self, why: str, *needs: str) -> None:
        super().__init__(why)
        self.unknown = Unknown(why, needs)


@dataclass(frozen=True, slots=True)
class Settings:
    """Knobs, and what turns their units into ticks."""

    knobs: Knobs
    trees: Sequence[ConfigTree]
    per_epoch: int | None
    given_total: int | None

    def get(self, id: str, default: Any = None) -> Any:
        return self.knobs.value(id, default)

    def need(self, id: str) -> Any:
        if id not in self.knobs:
            raise Undetermined(f"{id} is not known", id)
        return self.knobs.value(id)

    def other(self, name: str, default: Any = None) -> Any:
        """A setting that is no knob, by the framework's own key."""
        for tree in self.trees:
            leaf = tree.leaf(name) or tree.leaf(name.replace("_", "-"))
            if leaf is not None and leaf.value is not None:
                return leaf.value
        return default

    def block(self, name: str) -> Any:
        """A whole section as written, or None."""
        for tree in self.trees:
            nested = tree.nested()
            if isinstance(nested, dict) and nested.get(name) is not None:
                return nested[name]
        return None

    @property
    def n(self) -> int:
        """Updates to plan for."""
        n = self.given_total or self.total()
        if n > MOST_TICKS:
            raise Undetermined(f"{n:,} updates are more than can be drawn one by one", "run.total_steps")
        return n

    @property
    def lr(self) -> float:
        lr = float(self.need("optimizer.lr"))
        if not lr > 0:
            raise Undetermined("the learning rate is not positive", "optimizer.lr")
        return lr

    @property
    def epoch(self) -> int:
        if self.per_epoch is None:
            raise Undetermined("updates per epoch are not known", "steps_per_epoch")
        return self.per_epoch

    @property
    def accumulation(self) -> float:
        return float(self.get("batch.accumulation", 1) or 1)

    @property
    def global_batch(self) -> float:
        if "batch.global" in self.knobs:
            return float(self.need("batch.global"))
        each, world = self.need("batch.per_device"), self.need("world_size")
        return float(each) * float(world) * self.accumulation

    def total(self) -> int:
        """Optimizer updates that the run is laid out for."""
        if "run.total_steps" in self.knobs:
            return round(self.length("run.total_steps"))
        if "run.total_samples" in self.knobs:
            return round(self.length("run.total_samples"))
        if "run.epochs" in self.knobs and self.per_epoch is not None:
            return math.ceil(float(self.need("run.epochs")) * self.per_epoch)
        if self.given_total is not None:
            return self.given_total
        raise Undetermined("the length of the run in updates is not known", "run.total_steps", "steps_per_epoch")

    def length(self, id: str, default: float | None = None) -> float:
        """A length knob in optimizer updates."""
        if id not in self.knobs and default is not None:
            return default
        value = float(self.need(id))
        return self.in_steps(value, self.knobs[id].unit, id)

    def in_steps(self, value: float, unit: str | None, id: str) -> float:
        if value == 0 or unit == "steps":
            return value
        if unit == "micro_steps":
            return value / self.accumulation
        if unit == "epochs":
            return value * self.epoch
        if unit == "samples":
            return value / self.global_batch
        if unit == "fraction":
            return value * self.total()
        raise Undetermined(f"the unit of {id} is not known", id)

    def lengths(self, id: str) -> list[int]:
        values = self.need(id)
        return [round(self.in_steps(float(v), self.knobs[id].unit, id)) for v in values]
