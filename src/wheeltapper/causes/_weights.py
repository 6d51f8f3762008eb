"""What the lab measured about the weights of evidence: how much an item counts, against what its cause says of it.

The bits in the causes are judgements of likelihood ratios. `wheeltapper lab fit` compares them with runs whose truth is
known and writes weights.json: a factor for each cause and group that was seen often enough (1 for all others), and the bits
of "something else". Priors are not fitted: how often a fault is put into the lab says nothing about how often people
make it. What is proved (group "proof") and what was tried (group
"trial") is not weighed down.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

FILE = "weights.json"
CERTAIN = ("proof", "trial")


@dataclass(frozen=True, slots=True)
class Weights:
    other: float = 0.0  # bits of "something else"
    unexplained: float = -2.0  # bits for each kind of ill sign a cause leaves unexplained: two faults at once are rare
    factors: dict[str, dict[str, float]] = field(default_factory=dict)  # by cause, by group

    def of(self, cause: str, group: str) -> float:
        if group in CERTAIN:
            return 1.0
        return self.factors.get(cause, {}).get(group, 1.0)


@cache
def weights() -> Weights:
    """The fitted weights; judgement alone where none were fitted."""
    place = files("wheeltapper.causes") / FILE
    if not place.is_file():
        return Weights()
    found: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    return Weights(found["other"], factors=found["factors"])
