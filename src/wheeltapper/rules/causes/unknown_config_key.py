"""The configuration holds a key that this version of the framework does not know.

## What happens
A strict loader (traiNNer, pydantic, hydra with a schema) refuses the whole file; a lenient one ignores the key. Either way
the setting that was meant does not act.

## How it shows
The program ends before the first training row with the name of the key in its last words; or nothing at all happens.

## What else looks like this
A value of the wrong type, a missing file, a package of another version.

## When this is wrong
The key belongs to a fork or a newer version: the message of the program decides.

## Fix
Remove the key, or spell it as this version does.

## Trial
Load the file with the framework's own loader: seconds.

## References
msgspec and pydantic (`forbid_unknown_fields`, `extra="forbid"`); traiNNer-redux `utils/redux_options.py`.
"""

from __future__ import annotations

import re

from wheeltapper.finding import Edit, Finding, Remedy
from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._settings import settings_at

ID = "unknown-config-key"
AREA = "config"
ABOUT = "crash"
EXPLAINS = ("crashed",)
SHOWS = {"crashed": "seen"}
FORBIDS = {"crashed": "clear", "train-gain": "in", "skill": "in"}
PROVED_BY = ("unknown-key",)
TRIAL = "load the file with the framework's own loader: seconds"


def _named(case: Case, crash: str) -> list[Finding]:
    """The keys of the audit that the last words of the program name, in full or by their last part."""
    known = case.audited("unknown-key")
    whole = [f for f in known if any(word in crash for word in re.findall(r"`([^`]+)`", f.summary))]
    return whole or [f for f in known if any(part in crash for part in _last_words(f.summary))]


def _last_words(summary: str) -> list[str]:
    """The last parts of the dotted keys: a loader names the field, not its path."""
    return [key.rsplit(".", 1)[-1] for key in re.findall(r"`([^`]+)`", summary)]


def remedies(case: Case) -> tuple[Remedy, ...]:
    crash = next((e.text for e in reversed(case.run.events) if e.kind == "crash"), "")
    leaves = settings_at(case, _named(case, crash)[:1])
    edits = tuple(Edit(leaf.dotted, leaf.value, None, "this version does not know it") for leaf in leaves)
    text = "Remove the key, or spell it as this version does."
    return (Remedy(text, edits, "safe", "the file loads and training begins"),)
