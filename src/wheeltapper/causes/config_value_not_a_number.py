"""A number in the configuration is read as text.

## What happens
YAML 1.1 takes `1e-6` for a string: it wants a dot and a signed exponent (`1.0e-6`). The first arithmetic with it fails, or
a comparison silently goes wrong.

## How it shows
The program ends before or at the first step with a TypeError about `str`, or a setting has no effect.

## What else looks like this
An unknown key; a value in quotes.

## When this is wrong
Frameworks that convert strings themselves (OmegaConf, pydantic in lax mode).

## Fix
Write 1.0e-6.

## Trial
Load the file and print the type: seconds.

## References
YAML 1.1, float type (yaml.org/type/float.html); PyYAML issue 173.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._settings import settings_at
from wheeltapper.config.dialects.schema import as_number
from wheeltapper.finding import Edit, Evidence, Remedy

ID = "config-value-not-a-number"
AREA = "config"
EXPLAINS = ("crashed",)
PRIOR = -3.0
TRIAL = "load the file and print the type of the value: seconds"

WORDS = re.compile(
    r"TypeError[^\n]*\bstr\b|must be real number, not str|could not convert string to float", re.IGNORECASE
)


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    crash = next((e for e in reversed(case.run.events) if e.kind == "crash"), None)
    found = case.audited("string-number")
    if crash is None or not found:
        return Excluded("no number of the settings is text" if not found else "the program did not end in an error")
    if not WORDS.search(crash.text):
        return Excluded("the last words of the program are about something else")
    return [Evidence(7.0, found[0].summary, "proof", found[0].places)]


def remedies(case: Case) -> tuple[Remedy, ...]:
    texts = [leaf for leaf in settings_at(case, case.audited("string-number")) if isinstance(leaf.value, str)]
    edits = tuple(
        Edit(leaf.dotted, leaf.value, value, "a number, not text")
        for leaf in texts
        if (value := as_number(leaf.value)) is not None
    )
    return (
        Remedy(
            "Write the number with a dot and a sign: 1.0e-6.",
            edits,
            "safe",
            "the file loads as numbers and training begins",
        ),
    )
