"""The software or the machine changed between two launches.

## What happens
Another version of a library, a driver, a precision flag or another kind of machine takes over at a resume. The
same settings then mean something else.

## How it shows
Level, noise or speed change exactly at a resume; the versions printed by the launches differ.

## What else looks like this
A resume that lost a state (optimizer, schedule, data order): much more common. A changed config.

## When this is wrong
The record is one launch: an environment does not change inside it.

## Fix
Record versions with every launch; go back to the old environment or repeat the old part in the new one.

## Trial
The same fifty steps from one checkpoint in both environments: different losses decide.

## References
- OPT-175B logbook (facebookresearch/metaseq, projects/OPT/chronicles).
- Bekman, Machine Learning Engineering Open Book (stas00/ml-engineering), debugging and performance.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from wheeltapper.causes import Case, Excluded
from wheeltapper.finding import Evidence, Remedy
from wheeltapper.run.model import Run

ID = "environment-changed"
AREA = "system"
EXPLAINS = ("throughput-fall", "restart-jump", "spiked", "diverged", "declined-after-peak")
PRIOR = -4.0
TRIAL = "the same fifty steps from one checkpoint in both environments: different losses decide"

NAMED = re.compile(
    r"\b(torch|pytorch|cuda|cudnn|transformers|python|deepspeed|numpy)(?:[ _]version)?\s*[:=]{1,2}\s*v?(\d+\.\d[\w.+]*)",
    re.IGNORECASE,
)


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    later = [s for s in case.run.segments if s.kind in ("resume", "relaunch")]
    if not later:
        return Excluded("the record is one launch")
    versions = _versions(case.run)
    changed = {name: seen for name, seen in versions.items() if len(seen) > 1}
    out = []
    if changed:
        name, seen = next(iter(changed.items()))
        out.append(Evidence(4.0, f"{name} differs between launches: {', '.join(seen)}", "versions"))
    elif versions:
        out.append(Evidence(-2.0, f"every launch prints the same {', '.join(versions)}", "versions"))
    begun = [(s.start, at) for s in later if (at := case.since(s.clock)) is not None]
    if begun:
        if not any(abs(start - at) <= 0.02 * max(abs(at), 1.0) for start, at in begun):
            return Excluded("the trouble did not begin at a resume")
        out.append(Evidence(1.0, "the trouble began at a resume", "timing"))
    return out


def _versions(run: Run) -> dict[str, list[str]]:
    """Versions by library, in order of appearance, from what the launches printed and from their settings."""
    out: dict[str, list[str]] = {}
    told = [event.text for event in run.events]
    told += [f"{leaf.path[-1]}: {leaf.value}" for tree in run.configs for leaf in tree.leaves if leaf.path]
    for text in told:
        for name, number in NAMED.findall(text[:4000]):
            seen = out.setdefault(name.lower(), [])
            if number not in seen:
                seen.append(number)
    return out


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy("Run fifty steps from one checkpoint in both environments before going on.", (), "advice",
               "the losses agree to the noise of two equal runs"),
    )  # fmt: skip
