"""What can be wrong with a lab run, and what only looks wrong.

A Fault really breaks the training: it changes settings, or the text of the training script, or both. A
Benign oddity (lab/benign) changes them too, and the run stays sound. One table a system; nothing here
imports torch. A patch is written like a diff without line numbers: lines that begin with a space or a minus
are looked for, and must be found once; `@@` stands between two places.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal

from wheeltapper.errors import ContractError, InputError
from wheeltapper.lab.systems import Settings

# What the fault should do to the run, as measured against its healthy twin (manifest.py):
#   quality  the weights are worse        metric  the log says something else than the weights are worth
#   crash    the run ends early           time    the run takes much longer     memory  it grows
#   after    training is done and sound; what comes after it breaks
#   nothing  the run does not do what its config declares, though its result may be the same
Harm = Literal["quality", "metric", "crash", "time", "memory", "after", "nothing"]
Change = Callable[[Settings, Random], Settings]


def unchanged(_settings: Settings, _rng: Random) -> Settings:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """`@AT@` in the patch becomes the onset, drawn in the share `at` of the run (epochs or steps)."""

    id: str
    system: str
    cause: str
    knob: str  # the setting or the line of code that is wrong
    harm: Harm
    text: str
    change: Change = unchanged
    patch: str = ""
    good: Any = None  # None: the value that the healthy twin has
    bad: Any = None
    at: tuple[float, float] | None = None  # None: wrong from the start
    onset: Callable[[Settings], float] | None = None  # where the harm begins, if neither start nor `at`
    also: tuple[str, ...] = ()  # causes that say the same thing in other words, and are as right
    # What can tell this cause from its like: the log with the settings; the script; only a healthy twin or the data.
    seen: Literal["log", "code", "twin"] = "log"
    crash_onset: bool = False  # the harm begins where the run breaks off
    needs: Settings = field(default_factory=dict)  # the twin has these too
    resume: bool = False  # the launch is cut off at the onset and started again
    stale: bool = False  # another run's last checkpoint lies in the folder already


@dataclass(frozen=True, slots=True, kw_only=True)
class Benign:
    """A run that looks ill to somebody and is not; `looks_like` is the cause it is mistaken for."""

    id: str
    system: str
    looks_like: str
    text: str
    change: Change = unchanged
    patch: str = ""
    at: tuple[float, float] | None = None
    needs: Settings = field(default_factory=dict)
    resume: bool = False


def times(key: str, low: float, high: float) -> Change:
    """A change that multiplies a setting by a factor drawn log-evenly between `low` and `high`."""

    def change(settings: Settings, rng: Random) -> Settings:
        factor = low * (high / low) ** rng.random()
        return {key: float(f"{settings[key] * factor:.3g}")}

    return change


def put(**settings: Any) -> Change:
    """A change to fixed values."""
    return lambda _settings, _rng: settings


def patched(script: str, patch: str, onset: float | None = None) -> str:
    """The script with the patch applied; `@AT@` in the patch becomes the onset.

    >>> patched("a = 1\\nb = 2\\n", " a = 1\\n-b = 2\\n+b = 3\\n")
    'a = 1\\nb = 3\\n'
    """
    lines = script.splitlines()
    for place in patch.split("@@\n") if patch else []:
        marked = place.replace("@AT@", f"{onset or 0:.0f}").splitlines()
        old = [line[1:] for line in marked if line[0] in " -"]
        new = [line[1:] for line in marked if line[0] in " +"]
        found = [at for at in range(len(lines)) if lines[at : at + len(old)] == old]
        if len(found) != 1:
            raise ContractError(f"a patch looks for {old} and finds it {len(found)} times in the script")
        lines[found[0] : found[0] + len(old)] = new
    return "\n".join(lines) + "\n"


def faults_of(system: str) -> tuple[Fault, ...]:
    table: tuple[Fault, ...] = importlib.import_module(f"{__name__}.{system.replace('-', '_')}").FAULTS
    return table


def benign_of(system: str) -> tuple[Benign, ...]:
    name = system.replace("-", "_")
    table: tuple[Benign, ...] = importlib.import_module(f"wheeltapper.lab.benign.{name}").BENIGN
    return table


def find(system: str, id: str) -> Fault | Benign:
    known: dict[str, Fault | Benign] = {one.id: one for one in faults_of(system)}
    known |= {one.id: one for one in benign_of(system)}
    if id in known:
        return known[id]
    raise InputError(f"{system} has no fault called {id!r}", do=f"Choose one of: {', '.join(known)}")
