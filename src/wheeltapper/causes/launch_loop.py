"""A script was launched again and again into the same log.

## What happens
A sweep, a crash loop or a scheduler that restarts the job appends every launch to one file.

## How it shows
The step falls back to the start ten times or more; the launches are short.

## What else looks like this
A long run with many resumes continues where it stopped; this one begins again.

## When this is wrong
It is a deliberate sweep: then read the launches apart.

## Fix
One folder per launch; find out why the launches end.

## Trial
Look at the last lines before each restart: the same error each time decides.

## References
- Bekman, Machine Learning Engineering Open Book (stas00/ml-engineering), debugging and performance.
"""

from __future__ import annotations

from collections.abc import Iterable

from wheeltapper.causes import Case, Excluded
from wheeltapper.finding import Evidence, Remedy

ID = "launch-loop"
AREA = "run"
EXPLAINS = ("many-launches",)
PRIOR = 0.0
TRIAL = "look at the last lines before each restart: the same error each time decides"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    found = case.found("many-launches")
    if not found:
        return Excluded("the record is one launch")
    return [Evidence(4.0, found[0].summary, "launches", found[0].places)]


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy("Give each launch its own folder, and judge them apart.", (), "safe", "each folder reads as one run"),
    )
