"""What can go wrong, as a table: each fault changes settings or the text of the script, and says so in words.

`kind` is `setting` (the config shows it), `code` (a line of the script is wrong) or `data` (neither shows it).
`measure` says how harm is measured against the twin: `score`, `claim` (the reported score is false in either
direction), `speed` or `memory`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from wheeltapper.lab.worlds.draw import Draw

Change = Callable[[Draw, random.Random], None]
LOOP = "loop"  # every family with the shared loop


@dataclass(frozen=True)
class Fault:
    id: str
    cause: str
    kind: str
    group: str
    apply: Change
    story: str
    fix: str
    families: tuple[str, ...] = (LOOP,)
    want: dict[str, Any] = field(default_factory=dict)
    also: tuple[str, ...] = ()
    measure: str = "score"
    script: str = "maybe"


FAULTS: list[Fault] = []


def fault(id: str, kind: str, group: str, story: str, fix: str, apply: Change, *families: str, **more: Any) -> None:
    cause = more.pop("cause", id)
    FAULTS.append(Fault(id, cause, kind, group, apply, story, fix, families or (LOOP,), **more))


def edit(*pairs: tuple[str, str]) -> Change:
    """Replace lines of the script; the run is not made where a line is not there."""

    def change(draw: Draw, _r: random.Random) -> None:
        draw.edits.extend(pairs)

    return change


def scale(key: str, *factors: float) -> Change:
    def change(draw: Draw, r: random.Random) -> None:
        draw.cfg[key] = float(f"{draw.cfg[key] * r.choice(factors):.3g}")

    return change


def put(**values: Any) -> Change:
    """Set keys to a value, or to one drawn from a list."""

    def change(draw: Draw, r: random.Random) -> None:
        for key, value in values.items():
            draw.cfg[key] = r.choice(value) if isinstance(value, list) else value

    return change


def share_of_total(key: str, *shares: float) -> Change:
    def change(draw: Draw, r: random.Random) -> None:
        draw.cfg[key] = max(1, int(draw.total_steps * r.choice(shares)))

    return change


def both(*changes: Change) -> Change:
    def change(draw: Draw, r: random.Random) -> None:
        for each in changes:
            each(draw, r)

    return change


def later(old: str, new: str, low: float = 0.3, high: float = 0.6) -> Change:
    """An edit with a step in it from which the fault acts; `AT` in the text is that step."""

    def change(draw: Draw, r: random.Random) -> None:
        at = int(draw.total_steps * r.uniform(low, high))
        draw.notes["cause_step"] = at
        draw.edits.append((old, new.replace("AT", str(at))))

    return change


SGD = {"optimizer": "sgd", "ema": False}
SGD_FAMILIES = ("tab", "cls", "seg", "det", "forecast", "distill")


def tiny_data(draw: Draw, r: random.Random) -> None:
    draw.cfg["n_val"] += draw.cfg["n_train"]
    draw.cfg["n_train"] = r.choice([24, 48, 80])
    draw.cfg["n_val"] -= draw.cfg["n_train"]
    draw.cfg["batch_size"] = min(draw.cfg["batch_size"], draw.cfg["n_train"] // 2)
