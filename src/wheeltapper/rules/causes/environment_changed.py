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

from wheeltapper.finding import Remedy

ID = "environment-changed"
AREA = "system"
ABOUT = "learning"
EXPLAINS = ("throughput-fall", "restart-jump", "spiked", "diverged", "declined-after-peak")
SHOWS = {"restart-jump": "seen", "pace-change": "high"}
TRIAL = "the same fifty steps from one checkpoint in both environments: different losses decide"
REMEDY = Remedy(
    "Run fifty steps from one checkpoint in both environments before going on.",
    (),
    "advice",
    "the losses agree to the noise of two equal runs",
)
