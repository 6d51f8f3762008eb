"""The systems of the lab. Each is a folder with a `train.py` in the manner of its original and a
`system.py` that says what it is called, which settings each size has and how it is launched and judged.

`system.py` holds

    NAME, DESCRIPTION, CASES
    SCRIPT                                          # the path of train.py
    UNIT = "epoch" | "step"                         # what onset and length are counted in
    RESULT                                          # what score() measures, in words
    RECIPES: dict[Size, Settings]                   # healthy settings
    EXPECTED: dict[Size, float]                     # the score that a healthy run reaches
    NOISE: float                                    # the spread of the score over seeds, healthy, size test
    def vary(settings, rng) -> Settings             # other settings that are still healthy
    def length(settings) -> int                     # the length of a run, in UNIT
    def launch(module, settings, folder) -> object  # writes config files, runs train.main, gives the weights
    def score(weights, settings) -> float           # clean quality, higher is better; not the script's own
    def reported(folder) -> float | None            # what the log says of the same quality at the end

and can be imported without torch; only `launch` and `score` need it.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any, Literal

from wheeltapper.errors import InputError

Settings = dict[str, Any]
Size = Literal["test", "tiny", "full"]
SIZES: tuple[Size, ...] = ("test", "tiny", "full")
NAMES = ("resnet-ddp", "sr-nano", "sedd-protein", "edm-prior")


def system(name: str) -> ModuleType:
    if name not in NAMES:
        raise InputError(f"the lab has no system called {name!r}", do=f"Choose one of: {', '.join(NAMES)}")
    return importlib.import_module(f"{__name__}.{name.replace('-', '_')}.system")
