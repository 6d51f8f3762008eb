"""A skeleton for a new sign or cause: `python scripts/new.py sign val-below-train`."""

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
from wheeltapper.signs import seen, where

ID = "{name}"
LIVE = True


def look(judged: tuple[Series, ...]) -> Answer:
    """Parameters name signals; a signal that is absent makes the answer Unknown before this is called."""
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

from collections.abc import Iterable

from wheeltapper.causes import Case, Excluded
from wheeltapper.finding import Evidence, Remedy

ID = "{name}"
AREA = ""
EXPLAINS: tuple[str, ...] = ()
PRIOR = -3.0
TRIAL = ""


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    return []


def remedies(case: Case) -> tuple[Remedy, ...]:
    return ()
'''


def main() -> int:
    if len(sys.argv) != 3 or sys.argv[1] not in ("sign", "cause"):
        print("usage: python scripts/new.py sign|cause NAME", file=sys.stderr)
        return 2
    kind, name = sys.argv[1], sys.argv[2]
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        print(f"{name!r}: a name is words in lower case joined by dashes, and names the defect", file=sys.stderr)
        return 2
    path = PACKAGE / f"{kind}s" / f"{name.replace('-', '_')}.py"
    if path.exists():
        print(f"{path} exists", file=sys.stderr)
        return 2
    path.write_text((SIGN if kind == "sign" else CAUSE).format(name=name), encoding="utf-8")
    print(f"written: {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
