"""Positions in training carry their clock; mixing two clocks needs a stated conversion.

>>> At(4000, "step") > At(3, "epoch")
Traceback (most recent call last):
...
wheeltapper.run.clock.ClockError: cannot compare 4000 steps with 3 epochs: different clocks.
State the conversion, e.g. Conversion("step", "epoch", 1 / steps_per_epoch, "625 steps per epoch, train.log:12").
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import total_ordering

from wheeltapper.errors import WheeltapperError
from wheeltapper.reading.record import CLOCKS, ClockName

PLURAL = {name: name.replace("_", "-") + "s" for name in CLOCKS}


class ClockError(WheeltapperError):
    """Two clocks were mixed without a conversion."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """1 `source` tick = `factor` `target` ticks, and why we believe it."""

    source: ClockName
    target: ClockName
    factor: float
    why: str

    def inverse(self) -> Conversion:
        return Conversion(self.target, self.source, 1.0 / self.factor, self.why)


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class At:
    """A position on a clock."""

    value: float
    clock: ClockName

    def _same(self, other: At, verb: str) -> None:
        if self.clock != other.clock:
            raise ClockError(
                f"cannot {verb} {self} with {other}: different clocks.",
                do=f'State the conversion, e.g. Conversion("{self.clock}", "{other.clock}", '
                f'1 / {self.clock}s_per_{other.clock}, "625 {self.clock}s per {other.clock}, train.log:12").',
            )

    def __lt__(self, other: At) -> bool:
        self._same(other, "compare")
        return self.value < other.value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, At):
            return NotImplemented
        self._same(other, "compare")
        return self.value == other.value

    def __hash__(self) -> int:
        return hash((self.value, self.clock))

    def __sub__(self, other: At) -> float:
        self._same(other, "subtract")
        return self.value - other.value

    def to(self, conversion: Conversion) -> At:
        if conversion.source == self.clock:
            return At(self.value * conversion.factor, conversion.target)
        if conversion.target == self.clock:
            return At(self.value / conversion.factor, conversion.source)
        raise ClockError(
            f"cannot convert {self} with {PLURAL[conversion.source]} to {PLURAL[conversion.target]}.",
            do="Give a conversion that starts or ends on this clock.",
        )

    def __str__(self) -> str:
        return f"{self.value:g} {PLURAL[self.clock]}"
