"""A class loss of exactly zero is expected with one class.

## What happens
With a single class there is nothing to tell apart, so the class term of a detector is zero by definition.

## How it shows
The class loss is exactly 0 on every row, the other terms fall and the score is good.

## What else looks like this
Labels that never match: then terms that need targets are zero as well, and the score is zero.

## When this is wrong
There is more than one class, or the score is at zero.

## Fix
Nothing to mend.

## Trial
None needed: count the classes.

## References
- ultralytics/ultralytics: the class loss of single-class training.
"""

from __future__ import annotations

import re

from wheeltapper.rules.causes import Case

ID = "normal-single-class-loss"
AREA = "objective"
NORMAL = True


def expect(case: Case) -> str:
    zero = [f for f in case.found("loss-exactly-zero") if re.search(r"cls|class", f.series or "")]
    if not zero or any(f.severity == "ill" for f in case.found("loss-exactly-zero")):
        return ""
    classes = case.knob("model.classes")
    if isinstance(classes, (int, float)) and classes > 1:
        return ""
    single = case.knobs is not None and classes == 1
    text = f"{zero[0].series} of exactly 0 is expected "
    return text + ("here because there is one class" if single else "with one class, and the other terms are alive")
