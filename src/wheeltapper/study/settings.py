"""What the settings say by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from wheeltapper.finding import Place
from wheeltapper.run.model import Run
from wheeltapper.run.names import meaning_of
from wheeltapper.settings.knobs import Knobs
from wheeltapper.settings.parse import configs_among
from wheeltapper.settings.ranges import Beyond, settings_beyond
from wheeltapper.settings.sanity import Doubt, Sheet, doubts_of
from wheeltapper.settings.sanity.context import is_noam, is_tuned, optimizer_near
from wheeltapper.settings.sanity.sheet import places
from wheeltapper.study import derived

Grade = Literal["hint", "range", "edge"]
RATES = ("optimizer.lr", "optimizer.lr_g", "optimizer.lr_d")
MONITORS = ("monitor", "metric", "watch", "on", "quantity", "key", "metric_for_best_model")
ENDS = {"max": "up", "min": "down"}


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two settings, or a setting and what it is about, that cannot both be meant."""

    cause: str
    text: str
    places: tuple[Place, ...]
    grade: Grade = "range"


@derived
def doubts(run: Run) -> tuple[Doubt, ...]:
    """Settings that cannot be meant, and settings that contradict each other."""
    trees = (*run.configs, *configs_among(run.scripts))
    return tuple(doubts_of(trees)) if trees else ()


@derived
def out_of_range(run: Run, knobs: Knobs, doubts: tuple[Doubt, ...]) -> tuple[Beyond, ...]:
    """Settings outside their working range, farthest first; without those that are doubted already."""
    trees = (*run.configs, *configs_among(run.scripts))
    sheet = Sheet(trees)
    told = {(s.leaf.file, s.leaf.line) for doubt in doubts for s in doubt.settings[:1]}
    rates = {place for found in (knobs.get(id_) for id_ in RATES) if found and found.leaf for place in [(found.leaf.file, found.leaf.line)]}
    rate = next((s for s in sheet.settings if s.knob == "optimizer.lr"), None)
    found = settings_beyond(
        knobs, tuned=is_tuned(sheet), factor=rate is not None and is_noam(sheet, rate), optimizer=None if rate is None else optimizer_near(sheet, rate),
    )  # fmt: skip
    return tuple(b for b in found if not (_spot(knobs, b.range.knob) in told or (b.range.knob in RATES and rates & told)))


def _spot(knobs: Knobs, id_: str) -> tuple[str | None, int | None]:
    place = knobs.place(id_)
    return place.file, place.line


@derived
def contradictions(run: Run, knobs: Knobs | None = None, doubts: tuple[Doubt, ...] = ()) -> tuple[Contradiction, ...]:
    """Settings that cannot be meant, or that contradict each other or what they are about."""
    out = [Contradiction(doubt.cause, doubt.text, places(doubt), doubt.grade) for doubt in doubts]
    told = {(place.file, place.line) for one in out for place in one.places}
    ends = _wrong_ends(run, knobs) if knobs is not None else ()
    return (*out, *(one for one in ends if not {(p.file, p.line) for p in one.places} & told))


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
