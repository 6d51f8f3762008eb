"""What the settings say by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wheeltapper.finding import Place
from wheeltapper.run.model import Run
from wheeltapper.run.names import meaning_of
from wheeltapper.settings.knobs import Knobs
from wheeltapper.settings.ranges import Beyond, settings_beyond
from wheeltapper.study import derived

MONITORS = ("monitor", "metric", "watch", "on", "quantity", "key", "metric_for_best_model")
ENDS = {"max": "up", "min": "down"}


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two settings, or a setting and what it is about, that cannot both be meant."""

    cause: str
    text: str
    places: tuple[Place, ...]


@derived
def out_of_range(knobs: Knobs) -> tuple[Beyond, ...]:
    """Settings outside their working range, farthest first."""
    return tuple(settings_beyond(knobs))


@derived
def contradictions(run: Run, knobs: Knobs) -> tuple[Contradiction, ...]:
    """Settings that contradict each other."""
    return tuple(_wrong_ends(run, knobs))


def _wrong_ends(run: Run, knobs: Knobs) -> Iterator[Contradiction]:
    """Early stopping or a plateau schedule that waits for the larger loss or the smaller score."""
    for id_, what in (("run.early_stop_mode", "early stopping"), ("schedule.plateau_mode", "the plateau schedule")):
        found = knobs.get(id_)
        mode = str(found.value).lower() if found is not None and not found.default else ""
        if found is None or mode not in ENDS:
            continue
        watched = _monitored(run, found.leaf.path if found.leaf is not None else ())
        better = meaning_of(watched).better if watched else _only_direction(run)
        if better in ("up", "down") and better != ENDS[mode]:
            text = f"{what} waits for a {mode}imum of {watched or 'the held-out score'}, which is better when it goes {better}"
            yield Contradiction("early-stop-wrong-mode", text, (knobs.place(id_),))


def _monitored(run: Run, path: tuple[str | int, ...]) -> str:
    """What a setting beside the mode says is watched."""
    for tree in run.configs:
        for leaf in tree.leaves:
            name = str(leaf.path[-1]).lower() if leaf.path else ""
            if leaf.path[:-1] == path[:-1] and isinstance(leaf.value, str) and {*name.split("_"), name} & set(MONITORS):
                return leaf.value
    return ""


def _only_direction(run: Run) -> str:
    """Which way is better, where everything that is held out agrees."""
    ways = {s.better for s in run.series.values() if s.split in ("val", "test") and s.better in ("up", "down")}
    return ways.pop() if len(ways) == 1 else ""
