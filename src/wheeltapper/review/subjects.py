"""Which logged curves a sentence speaks of: by the names in the log, and by the words of the field."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache

from wheeltapper.run.model import Run, Series
from wheeltapper.run.names import QUANTITIES

# Words of the field for quantities that logs abbreviate; the log's own names come from quantities.toml.
_WORDS: dict[str, tuple[str, ...]] = {
    "loss": ("loss", "losses"),
    "accuracy": ("accuracy", "acc", "top-1", "top1", "knn accuracy"),
    "lr": ("learning rate", "learning_rate", "lr", "the rate"),
    "grad_norm": ("gradient norm", "gradient norms", "grad norm", "grad_norm", "gnorm", "norm of the gradients"),
    "loss_scale": (
        "loss scale",
        "scale factor",
        "gradient scaler",
        "scaler",
        "scale_g",
        "the scale",
        "scale values",
        "scale_g values",
    ),
    "memory": ("memory", "memory use"),
    "throughput": ("throughput", "it/s"),
    "duration": ("an iteration takes", "a step takes", "step time", "iteration time"),
    "nll": ("bound", "nll"),
    "kl": ("kl", "kl divergence"),
    "map50": ("map50",),
    "correlation": ("r2", "r²", "correlation"),
    "sliced_wasserstein": ("sliced wasserstein distance", "sliced wasserstein", "swd"),
}
_SPLIT_WORDS = {
    "train": r"train(?:ing)?\b",
    "val": r"(?:val(?:id(?:ation)?)?|eval(?:uation)?|dev|held-out)\b",
    "test": r"test\b",
}
_TOO_COMMON = frozenset(
    {
        "score",
        "error",
        "time",
        "size",
        "data",
        "step",
        "data time",
        "reward",
        "return",
        "train",
        "val",
        "its",
        "it",
        "it s",
        "l1",
        "l2",
        "ce",
        "d",
        "g",
        "map",
        "par",
        "rate",
        "cost",
    }
)
_SPLIT_NAMED = re.compile(
    r"(?:train|val|eval|test|dev)", re.I
)  # the split is read beside the quantity, not as part of its name
_AVERAGED = re.compile(r"\b(?:ema|averaged?|average of the weights|moving average)\b", re.I)
_NOT_AVERAGED = re.compile(r"\b(?:raw|live|regular|own)\b", re.I)
_NEAR = 28  # letters before a quantity in which its split is named


@dataclass(frozen=True, slots=True)
class Mention:
    """A stretch of a sentence that names curves; `series` are all that may be meant."""

    start: int
    end: int
    quantity: str
    series: tuple[str, ...]
    exact: bool = False  # the log's own name
    named: bool = False  # with its split, or exact


@cache
def _phrases() -> tuple[tuple[re.Pattern[str], str], ...]:
    out = []
    for quantity in QUANTITIES:
        words = {
            *(alias.replace("_", " ") for alias in quantity.aliases if len(alias) > 2),
            *_WORDS.get(quantity.name, ()),
        }
        out += [(phrase, quantity.name) for phrase in words - _TOO_COMMON if not _SPLIT_NAMED.match(phrase)]
    out.sort(key=lambda pair: -len(pair[0]))
    return tuple((re.compile(rf"(?<![\w/.]){re.escape(phrase)}(?!\w|\.\w)", re.I), name) for phrase, name in out)


@cache
def shares() -> frozenset[str]:
    """Quantities that are told in percent."""
    return frozenset(q.name for q in QUANTITIES if q.unit in ("share", "%") or (q.low == 0 and q.high == 1))


def mentions(text: str, run: Run) -> list[Mention]:
    """Every curve that is named, from left to right, longest name first."""
    out: list[Mention] = []
    for series in sorted(run.series.values(), key=lambda s: -len(s.raw)):
        for name in {series.raw, series.name, series.raw.rpartition("/")[2]}:
            out += _exact(text, name, series, run, out)
    for pattern, quantity in _phrases():
        for match in pattern.finditer(text):
            if not _taken(out, match.start(), match.end()):
                found = _meant(text, match.start(), match.end(), quantity, run)
                out.append(found)
    return sorted(out, key=lambda m: m.start)


def _exact(text: str, name: str, series: Series, run: Run, out: Iterable[Mention]) -> list[Mention]:
    if not re.search(r"[_/]", name):
        return []
    found = []
    for match in re.finditer(rf"(?<![\w/]){re.escape(name)}(?![\w/])", text, re.I):
        if not _taken(out, match.start(), match.end()):
            alike = tuple(s.name for s in run.series.values() if s.raw == series.raw)
            found.append(Mention(match.start(), match.end(), series.quantity or series.name, alike, True, True))
    return found


def _taken(out: Iterable[Mention], start: int, end: int) -> bool:
    return any(m.start < end and start < m.end for m in out)


def _meant(text: str, start: int, end: int, quantity: str, run: Run) -> Mention:
    """The curves of a quantity that fit the split and the average named beside it."""
    near = text[max(0, start - _NEAR) : start]
    split = next(
        (
            name
            for name, pattern in _SPLIT_WORDS.items()
            if re.search(rf"\b{pattern}[\s_/]*(?:set\s*)?(?:\w+\s)?$", near, re.I)
        ),
        None,
    )
    after = text[end : end + _NEAR]
    if split is None:
        split = next(
            (
                name
                for name, pattern in _SPLIT_WORDS.items()
                if re.match(rf"\s*(?:on|of|over|in)?\s*(?:the\s)?{pattern}", after, re.I)
            ),
            None,
        )
    known = [s for s in run.series.values() if s.quantity == quantity]
    if split is not None:
        known = [s for s in known if s.split == split]
    elif any(s.better == "up" for s in known):
        known = [s for s in known if s.split == "val"] or known  # a score is that on held-out data
    else:
        known = [s for s in known if s.split != "test"] or known
    known = _by_average(f"{near} {after}", known)
    whole = [s for s in known if s.part is None or "ema" in (s.part or "") or "@" in s.name] or known
    return Mention(start, end, quantity, tuple(s.name for s in whole), named=split is not None)


def _by_average(words: str, known: list[Series]) -> list[Series]:
    averaged = [s for s in known if re.search(r"ema|avg|averag", s.name, re.I)]
    if not averaged:
        return known
    if _AVERAGED.search(words) and not _NOT_AVERAGED.search(words):
        return averaged
    return [s for s in known if s not in averaged] or known


def switched(mention: Mention, words: str, run: Run) -> Mention:
    """The same quantity of the other weights: "the averaged ones end at A while the raw ones reach B"."""
    series = run.series_named(mention.series[0]) if mention.series else None
    if series is None or not (_NOT_AVERAGED.search(words) or _AVERAGED.search(words)):
        return mention
    known = [s for s in run.series.values() if s.quantity == series.quantity and s.split == series.split]
    return replace(mention, series=tuple(s.name for s in _by_average(words, known)))
