"""Numbers as people write them: 1,700, 25K, 1e-4, 2^21, ~0.8, 40.9 %, 1e3-1e4; and positions: step 160, @ 1,000 iter."""

from __future__ import annotations

import re
from dataclasses import dataclass

from wheeltapper.review.model import ClaimClock

NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+−]?\d+)?|\.\d+"
_ONE = rf"[-+−]?(?:{NUMBER})"
_POWER = r"(?P<base>2|10)\s*(?:\^|\*\*)\s*(?P<exponent>[-−]?\d+)"
_QUANTITY = re.compile(
    rf"(?<![\w.^/#])(?<![A-Za-z]-)(?P<about>~|≈|<|>|≤|≥)?\s*(?:{_POWER}|(?P<low>{_ONE}))(?P<k>[kKM](?![\w]))?"
    rf"(?:\s*(?:-|–|—)\s*(?P<high>{NUMBER})(?P<k2>[kKM](?!\w))?(?=\s*(?:%|dB|[kKM]\b|range|iter|step|epoch|batches|$|[),.;\s])))?"
    r"(?:\s*(?P<unit>%|dB\b|MB\b|MiB\b|GB\b|GiB\b|ms\b|it/s\b|s\b(?!\w)|percent\b|×|x\b))?"
)
_CLOCK = r"(?P<clock>steps?|iterations?|iters?|its?|updates?|epochs?)"
_POSITION = re.compile(
    rf"\b{_CLOCK}\s*#?:?\s*(?P<n>{NUMBER})(?P<k>[kK](?!\w))?(?:\s*[-–]\s*(?P<n2>{NUMBER})(?P<k2>[kK](?!\w))?)?", re.I
)
_AFTER_NUMBER = re.compile(rf"(?P<n>{NUMBER})(?P<k>[kK](?!\w))?\s*-?\s*{_CLOCK}\b(?!\s*(?:per|/|of\b))", re.I)
_ABOUT = re.compile(
    r"(?:about|around|roughly|nearly|near|close to|approximately|some|almost|circa|up to|over|under|just)\s*$", re.I
)
MOST_EXPONENT = 300


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number or a range, where it stands, and how exactly it is meant."""

    low: float
    high: float
    start: int
    end: int
    unit: str = ""
    slack: float = 0.0  # half of the last digit written, or a tenth where it is only about
    about: bool = False

    @property
    def percent(self) -> bool:
        return self.unit in ("%", "percent")


@dataclass(frozen=True, slots=True)
class Position:
    """A place on a clock of the run."""

    at: float
    clock: ClaimClock
    start: int
    end: int
    until: float | None = None  # of a stretch


def number_of(text: str) -> float:
    """
    >>> number_of("1,700"), number_of("−3.5e-4")
    (1700.0, -0.00035)
    """
    return float(text.replace(",", "").replace("−", "-"))


def _thousands(mark: str | None) -> float:
    return {"k": 1e3, "M": 1e6}.get((mark or "").replace("K", "k"), 1.0)


def _half_digit(text: str) -> float:
    """
    >>> _half_digit("2.53"), _half_digit("1e-4"), _half_digit("471")
    (0.005, 5e-05, 0.5)
    """
    mantissa, _, exponent = text.replace(",", "").replace("−", "-").lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    power = int(exponent) if exponent and abs(int(exponent)) < MOST_EXPONENT else 0
    return float(f"5e{power - decimals - 1}")


def quantities(text: str) -> list[Quantity]:
    """The numbers of a sentence, without those that are positions or parts of names.

    >>> [(q.low, q.high, q.unit) for q in quantities("from 11.5 dB to ~0.8, 1e3-1e4 and 2^21 or 40.9 %")]
    [(11.5, 11.5, 'dB'), (0.8, 0.8, ''), (1000.0, 10000.0, ''), (2097152.0, 2097152.0, ''), (40.9, 40.9, '%')]
    """
    taken = [(p.start, p.end) for p in positions(text)]
    out = []
    for match in _QUANTITY.finditer(text):
        if any(a < match.end() and match.start("low" if match["low"] else "base") < b for a, b in taken):
            continue
        found = _quantity(match, text)
        if found is not None:
            out.append(found)
    return out


def _quantity(match: re.Match[str], text: str) -> Quantity | None:
    start = match.start("low") if match["low"] else match.start("base")
    if re.match(r"[A-Za-z_]", text[match.end() : match.end() + 1]) and not match["unit"]:
        return None  # 3D, 64x64, p4d
    about = bool(match["about"]) or bool(_ABOUT.search(text[:start]))
    if match["base"]:
        if abs(int(match["exponent"].replace("−", "-"))) > MOST_EXPONENT:
            return None
        value = float(match["base"]) ** int(match["exponent"].replace("−", "-"))
        return Quantity(value, value, start, match.end(), match["unit"] or "", value * 1e-3, about)
    try:
        low = number_of(match["low"])
        high = number_of(match["high"]) if match["high"] else low
    except (OverflowError, ValueError):
        return None
    scale, scale2 = _thousands(match["k"]), _thousands(match["k2"])
    if match["high"] and scale == 1.0:
        scale = scale2
    slack = _half_digit(match["low"]) * scale
    return Quantity(
        low * scale, high * (scale2 if match["high"] else scale), start, match.end(), match["unit"] or "", slack, about
    )


def positions(text: str) -> list[Position]:
    """
    >>> [(p.at, p.clock) for p in positions("best at step 1,000, 25k iterations, epoch 3 and @ 1,000 iterations")]
    [(1000.0, 'step'), (25000.0, 'step'), (3.0, 'epoch'), (1000.0, 'step')]
    """
    out: list[Position] = []
    for pattern in (_POSITION, _AFTER_NUMBER):
        for match in pattern.finditer(text):
            if any(p.start < match.end() and match.start() < p.end for p in out):
                continue
            clock: ClaimClock = "epoch" if match["clock"].lower().startswith("epoch") else "step"
            until = None
            scale = _thousands(match["k"])
            if pattern is _POSITION and match["n2"]:
                until = number_of(match["n2"]) * _thousands(match["k2"])
                scale = max(scale, _thousands(match["k2"])) if not match["k"] else scale
            out.append(Position(number_of(match["n"]) * scale, clock, match.start(), match.end(), until))
    return sorted(out, key=lambda p: p.start)
