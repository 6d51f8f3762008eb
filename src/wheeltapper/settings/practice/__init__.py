"""What people really run: where a setting stands among public configurations.

The reference (`reference.json`: counts of values by group, nothing else) is loaded on the first question, not before.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import accumulate
from typing import Any

from wheeltapper.settings.practice.features import (
    IDS,
    Kind,
    family_name,
    family_of,
    meaning_of,
    mode_of,
    numbers_of,
    optimizer_class,
)
from wheeltapper.settings.words import word_set

__all__ = [
    "IDS",
    "Kind",
    "Rank",
    "Spread",
    "beyond_practice",
    "family_of",
    "meaning_of",
    "mode_of",
    "numbers_of",
    "place_in_practice",
    "spread_of",
]

ENOUGH = 100  # runs; a smaller group gives way to a more general one
FEWEST = 20  # runs; below that nothing is said at all
RARE = 0.005  # share of public runs at or beyond the value
KNOWN_WELL = 200  # runs; with fewer, a share of 0.5 % cannot be told
# What is usual for one optimizer is no measure for another.
OF_OPTIMIZER = word_set(
    "optimizer.lr optimizer.weight_decay optimizer.momentum optimizer.eps schedule.min_lr schedule.max_lr"
)
# How large a project is: rare sizes are no sign of anything.
SIZES = word_set(
    """batch.per_device batch.global batch.effective batch.accumulation run.epochs run.total_steps run.early_stop seq_len
    model.classes vocab_size model.image_size data.train_size world_size rl.buffer_size rl.envs rl.learning_starts
    schedule.warmup_steps amp.init_scale amp.growth_interval contrast.queue forecast.lookback forecast.horizon"""
)
_NAMES = {"adamw": "AdamW", "sgd": "SGD", "adam": "Adam", "rmsprop": "RMSprop", "lion": "Lion", "lamb": "LAMB"}


@dataclass(frozen=True, slots=True)
class Spread:
    """The values of one setting in one group of public runs, in rising order, with their counts."""

    knob: str
    group: str
    values: tuple[float, ...]
    counts: tuple[int, ...]
    repositories: int

    @property
    def n(self) -> int:
        return sum(self.counts)

    def quantile(self, share: float) -> float:
        """The value that this share of runs does not exceed."""
        reached = list(accumulate(self.counts))
        return self.values[min(bisect_left(reached, share * reached[-1]), len(self.values) - 1)]


@dataclass(frozen=True, slots=True)
class Rank:
    """Where a value stands. `below` and `above`: shares of public runs with a smaller and with a larger value."""

    knob: str
    below: float
    above: float
    n: int
    repositories: int
    group: str

    @property
    def beyond(self) -> bool:
        """Out of the ordinary: hardly any public run goes as far, and there are enough of them to say so."""
        rare = 1 - self.below < RARE or 1 - self.above < RARE
        return rare and self.n >= KNOWN_WELL and self.knob not in SIZES

    @property
    def bits(self) -> float:
        """How surprising it is to go this far out, in bits; 0 at the middle. Never more than the counts can carry."""
        from math import log2

        tail = min(1 - self.below, 1 - self.above)
        return max(0.0, -log2(2 * max(tail, 0.5 / self.n))) if self.n else 0.0

    def sentence(self, value: float) -> str:
        """One sentence with its numbers."""
        high = self.below >= self.above
        share = self.below if high else self.above
        side = "above" if high else "below"
        if share < 0.5 or (self.below < 0.9 and self.above < 0.9):
            return f"{_subject(self.knob)} {value:g} is usual among {self.n:,} public runs ({self.group})"
        told = "all" if share == 1 else f"{_percent(share)} %"
        return f"{_subject(self.knob)} {value:g} is {side} {told} of {self.n:,} public runs ({self.group})"


def _percent(share: float) -> str:
    text = f"{100 * share:.1f}"
    return "99.9" if text == "100.0" else text.removesuffix(".0")


def _subject(knob: str) -> str:
    return f"`{knob}` at"


@cache
def _reference() -> dict[str, Any]:
    file = resources.files("wheeltapper.settings.practice") / "reference.json"
    try:
        held: dict[str, Any] = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {"knobs": {}}
    return held


def counts() -> tuple[int, int]:
    """Configurations and repositories that the reference was made from."""
    held = _reference()
    return int(held.get("configurations", 0)), int(held.get("repositories", 0))


def _groups(kind: Kind) -> list[tuple[str, str]]:
    """Keys of reference groups with their words, from the most specific to all."""
    optimizer, family = optimizer_class(kind.optimizer), family_name(kind.family)
    mode = kind.mode if kind.mode in ("adapter", "fine-tuned") else None
    name = _NAMES.get(optimizer or "", (optimizer or "").capitalize())
    out: list[tuple[str, str]] = []
    if optimizer and family and mode:
        out.append((f"{optimizer}|{family}|{mode}", f"{name}, {family}, {mode}"))
    if optimizer and family:
        out.append((f"{optimizer}|{family}|", f"{name}, {family}"))
    if optimizer and mode:
        out.append((f"{optimizer}||{mode}", f"{name}, {mode}"))
    if optimizer:
        out.append((f"{optimizer}||", name))
    # From here on no group names the optimizer: `spread_of` stops here for what depends on it.
    if family:
        out.append((f"|{family}|", family))
    if mode:
        out.append((f"||{mode}", mode))
    out.append(("||", "all kinds"))
    return out


def spread_of(knob_id: str, kind: Kind | None = None) -> Spread | None:
    """The distribution of a setting in the most specific group that is large enough; None when nothing is known."""
    groups: dict[str, Any] = _reference()["knobs"].get(knob_id, {})
    best: Spread | None = None
    kind = kind or Kind()
    alike = knob_id in OF_OPTIMIZER and optimizer_class(kind.optimizer) is not None
    for key, words in _groups(kind):
        if alike and key.startswith("|"):
            break
        held = groups.get(key)
        if held is None:
            continue
        spread = Spread(knob_id, words, tuple(held["v"]), tuple(held["c"]), int(held["r"]))
        if spread.n >= ENOUGH:
            return spread
        if best is None or spread.n > best.n:
            best = spread
    return best if best is not None and best.n >= FEWEST else None


def place_in_practice(
    knob_id: str,
    value: float,
    *,
    optimizer: str | None = None,
    family: str | None = None,
    mode: str | None = None,
    batch: float | None = None,
) -> Rank | None:
    """Where a value stands among public runs of its kind; None where too few are known."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        return None
    spread = spread_of(knob_id, Kind(optimizer, family, mode, batch))
    if spread is None:
        return None
    below = sum(spread.counts[: bisect_left(spread.values, value * (1 - 1e-9) if value > 0 else value)])
    above = sum(spread.counts[bisect_right(spread.values, value * (1 + 1e-9) if value > 0 else value) :])
    return Rank(knob_id, below / spread.n, above / spread.n, spread.n, spread.repositories, spread.group)


def beyond_practice(
    knobs: Mapping[str, Any], family: str | None = None, mode: str | None = None
) -> list[tuple[str, float, Rank]]:
    """Settings of a run that hardly any public run has, the rarest first."""
    name = knobs.get("optimizer.name")
    optimizer = str(name.value) if name is not None else None
    numbers = numbers_of(knobs)
    out = []
    for id_, value in numbers.items():
        rank = place_in_practice(
            id_, value, optimizer=optimizer, family=family, mode=mode, batch=numbers.get("batch.effective")
        )
        if rank is not None and rank.beyond:
            out.append((id_, value, rank))
    return sorted(out, key=lambda item: -item[2].bits)
