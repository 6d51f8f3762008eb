"""How many of the modes, codes, units or experts are in use.

## Definition
What is in use at the end over what there is: modes covered by a generator, codes of a codebook, active latent units, experts that get
tokens. What there is comes from the settings, else from the largest value of the record. Of shares that are logged member by member
("load[0]", "load[1]", ...) and add up to one, the effective number, exp(entropy), counts.

## Derivation
A generator that makes one mode, a codebook of which a tenth is used and a router that sends all tokens to two experts have one sign
in common: a count that stays far below what there is to cover, while the losses look well.

## Healthy band
Above 0.4.

## When it misleads
More codes, units or experts than the data needs; counts that were still rising.
"""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading, number
from wheeltapper.run.model import Run, Series

ABOUT = "learning"
EDGES = (0.15, 0.4, 0.7)
BAND = (0.4, None)
FEWEST = 4
_COVERED = re.compile(
    r"(?i)(^|[/_. @])(n_?|num_?)?(modes?|codes?|codebook|experts?|units|clusters|prototypes)"
    r"(_?(covered|found|used|active|hit|usage|in_use|alive|captured))?$|(active|used|live|alive|unique)_(units|codes|experts|modes)$"
)
_MEMBER = re.compile(r"^(.*?)[\[/_.]?(\d{1,4})\]?$")
_LOAD = re.compile(r"(?i)load|usage|expert|code|mode|gate|router|share|frac|assign")
_HOW_MANY = re.compile(r"(?i)(^|[/_. -])(n|num|number)?_?(of_)?(modes?|codes|codebook_?size|experts|units|gaussians|centers|latent_?dim|z_?dim|latent)s?$")


def observe(run: Run) -> Reading | Unknown:
    shared = _of_shares(run)
    if shared is not None:
        return shared
    found = [s for s in run.series.values() if _counts(s)]
    if not found:
        return Unknown("no count of modes, codes, units or experts in use is logged", ("modes covered",))
    s = max(found, key=len)
    x = s.values[s.finite]
    there = _there(run, float(x.max()))
    if there < 2:
        return Unknown(f"how many there are to cover is not known for {s.name}", ("the number of modes",))
    level = float(np.median(x[-max(1, len(x) // 5) :]))
    return Reading(level / there, f"{s.name} ends at {level:g} of {there:g}", series=s.name, clock=s.clock)


def _of_shares(run: Run) -> Reading | None:
    """The effective number of members among which the last rows are shared out."""
    members: dict[str, list[Series]] = defaultdict(list)
    for s in run.series.values():
        if found := _MEMBER.match(s.raw.strip()):
            members[found[1]].append(s)
    for name, series in members.items():
        if not 3 <= len(series) <= 4096 or not _LOAD.search(name) or min(int(s.finite.sum()) for s in series) < FEWEST:
            continue
        last = np.asarray([float(np.median(s.values[s.finite][-FEWEST:])) for s in series])
        if last.min() >= 0 and last.sum() > 0:
            p = last / last.sum()
            used = float(np.exp(-(p[p > 0] * np.log(p[p > 0])).sum()))
            return Reading(used / len(p), f"{name} is shared by {used:.1f} of {len(p)}", series=series[0].name, clock=series[0].clock)
    return None


def _counts(s: Series) -> bool:
    if s.quantity is not None or not _COVERED.search(s.raw.strip()) or int(s.finite.sum()) < FEWEST:
        return False
    x = s.values[s.finite]
    return bool(np.all(x >= 0) and np.all(x == np.round(x)) and x.max() <= 65536)


def _there(run: Run, top: float) -> float:
    """As set, where that fits what was counted; else as many as were ever counted."""
    told = [number(leaf.value) for tree in run.configs for leaf in tree.leaves if _HOW_MANY.search(leaf.dotted)]
    fits = [value for value in told if value is not None and max(top, 2) <= value <= 65536]
    return min(fits) if fits else top
