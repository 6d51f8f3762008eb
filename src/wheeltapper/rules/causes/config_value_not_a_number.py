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

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._settings import settings_at
from wheeltapper.settings.dialects.schema import as_number

ID = "config-value-not-a-number"
AREA = "config"
ABOUT = "crash"
EXPLAINS = ("crashed",)
SHOWS = {"crashed": "seen", "stopped-early": "seen"}
FORBIDS = {"crashed": "clear"}
PROVED_BY = ("string-number",)
TRIAL = "load the file and print the type of the value: seconds"


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
