"""A skeleton for a new observation, sign or cause: `python scripts/new.py sign val-below-train`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "wheeltapper"

SIGN = '''"""One sentence that says what is seen.

## What it sees

## Why it matters

## How it decides

## When it is wrong

## References
"""

from __future__ import annotations

from wheeltapper.finding import Answer, Clear
from wheeltapper.run.model import Series

ID = "{name}"
LIVE = True


def look(judged: tuple[Series, ...]) -> Answer:
    """Parameters name parts of the study; one that is absent makes the answer Unknown before this is called."""
    return Clear("nothing was looked at yet")


CASES = {{
    "finding": {{"train/loss": []}},
    "clear": {{"train/loss": []}},
    "unknown": {{}},
}}
'''

CAUSE = '''"""One sentence that names the defect.

## What happens

## How it shows

## What else looks like this

## When this is wrong

## Fix

## Trial

## References
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "{name}"
AREA = "learning rate"
ABOUT = "learning"  # or evaluation, efficiency, crash
EXPLAINS = ("barely-learned",)  # ids of the signs it can bring about
SHOWS = {{"skill": "low"}}  # what nearly every run with it shows, by its definition: low, high, out, in; of a sign: seen, clear
FORBIDS = {{"diverged": "seen"}}  # what excludes it; leave it out where nothing does
PROVED_BY = ()  # ids of findings of settings and code that speak for it
TRIAL = "the shortest run that would decide"
REMEDY = Remedy("What to change.", safety="try", predicts="what must then be seen")
'''

OBSERVATION = '''"""One sentence that says what the number is.

## Definition

## Derivation

## Healthy band

## When it misleads
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.outcome import Curve

ABOUT = "learning"  # or evaluation, efficiency, crash: what kind of trouble it tells of
EDGES = (0.1, 0.5)  # cut the number into states; bits are fitted for each
BAND = (0.1, None)  # where healthy runs lie; None on a side that is open


def observe(held_out: Curve) -> Reading | Unknown:
    """Parameters name parts of the study; one that is absent makes the answer Unknown before this is called."""
    return Unknown("nothing is measured yet")
'''

# kind -> (its folder in the package, the skeleton)
KINDS = {
    "observation": ("observations", OBSERVATION),
    "sign": ("rules/signs", SIGN),
    "cause": ("rules/causes", CAUSE),
}


def main() -> int:
    if len(sys.argv) != 3 or sys.argv[1] not in KINDS:
        print("usage: python scripts/new.py observation|sign|cause NAME", file=sys.stderr)
        return 2
    kind, name = sys.argv[1], sys.argv[2]
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        print(
            f"{name!r}: a name is words in lower case joined by dashes; a sign or a cause names the defect",
            file=sys.stderr,
        )
        return 2
    folder, skeleton = KINDS[kind]
    path = PACKAGE / folder / f"{name.replace('-', '_')}.py"
    if path.exists():
        print(f"{path} exists", file=sys.stderr)
        return 2
    path.write_text(skeleton.format(name=name), encoding="utf-8")
    print(f"written: {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
