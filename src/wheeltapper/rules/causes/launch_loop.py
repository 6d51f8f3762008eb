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

from wheeltapper.finding import Remedy

ID = "launch-loop"
AREA = "run"
ABOUT = "efficiency"
EXPLAINS = ("many-launches",)
SHOWS = {"many-launches": "seen"}
FORBIDS = {"many-launches": "clear"}
TRIAL = "look at the last lines before each restart: the same error each time decides"
REMEDY = Remedy("Give each launch its own folder, and judge them apart.", (), "safe", "each folder reads as one run")
