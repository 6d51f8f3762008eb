"""Dialects: one file a framework. How it spells its settings, what it does with one it does not know.

A dialect is a module in this folder with

    NAME = "hf"                                   # short and stable
    TITLE = "Hugging Face TrainingArguments"
    UNKNOWN: Policy = "ignore"                    # refuse | ignore | warn | unknown
    REQUIRED = ("path", "train.total_iter")       # without these it does not load; () when none
    KEYS: dict[str, Key] = table(...)             # type, default, knob, unit, since which version
    LAYOUT = Layout(...)                          # what a run folder holds
    FORMATS = ("HF trainer_state.json",)          # readers' formats that this framework writes
    def recognise(tree: ConfigTree) -> float      # 0 (not mine) to 1 (certainly mine)
    def knobs(view: View, found: dict) -> None    # optional: knobs that take more than one key
    def check(view: View) -> list[Problem]        # optional: its own traps
    STRICT_TYPES = True                           # optional: its loader refuses a value of another type
    YAML_NUMBERS = "1.1"                          # optional: "1.2" where its loader reads 1e-6 as a number

Registration is by being in the folder; `schema` and modules starting with an underscore are not dialects.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from functools import cache
from types import ModuleType

from wheeltapper.errors import ContractError
from wheeltapper.settings.tree import ConfigTree

NEEDED = ("NAME", "TITLE", "UNKNOWN", "REQUIRED", "KEYS", "LAYOUT", "FORMATS", "recognise")
SURE_ENOUGH = 0.5  # below this a file only happens to share some key names with the framework
FORMAT_BONUS = 0.4  # the run's log is in this framework's format


@cache
def dialects() -> tuple[ModuleType, ...]:
    """Every dialect module, in name order."""
    found = []
    for info in pkgutil.iter_modules(__path__):
        if info.name.startswith("_") or info.name == "schema":
            continue
        module = importlib.import_module(f"{__name__}.{info.name}")
        for needed in NEEDED:
            if not hasattr(module, needed):
                raise ContractError(f"the dialect config/dialects/{info.name}.py has no `{needed}`")
        found.append(module)
    return tuple(found)


def dialect_named(name: str) -> ModuleType:
    for dialect in dialects():
        if name == dialect.NAME:
            return dialect
    raise ContractError(f"there is no dialect {name!r}", do=f"Known: {', '.join(d.NAME for d in dialects())}.")


def recognise_dialect(trees: Sequence[ConfigTree], run_formats: Sequence[str] = ()) -> ModuleType | None:
    """The framework these sources were written for, or None when that is not clear."""
    best: ModuleType | None = None
    highest = 0.0
    scores = [[float(dialect.recognise(tree)) for dialect in dialects()] for tree in trees]
    for i, dialect in enumerate(dialects()):
        score = max((told[i] for told in scores), default=0.0)
        if score > 0 and any(name in run for name in dialect.FORMATS for run in run_formats):
            score += FORMAT_BONUS
        if score > highest:
            best, highest = dialect, score
    return best if highest >= SURE_ENOUGH else None
