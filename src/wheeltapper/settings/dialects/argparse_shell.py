"""A program of one's own, started from a command line or a launch script: options by their spellings."""

from __future__ import annotations

from wheeltapper.settings.dialects.generic import fill
from wheeltapper.settings.dialects.schema import Key, Layout, Policy, View
from wheeltapper.settings.knobs import Found
from wheeltapper.settings.tree import ConfigTree

NAME = "argparse"
TITLE = "a program's own options"
UNKNOWN: Policy = "unknown"  # argparse refuses what the program did not declare; the program says which
REQUIRED: tuple[str, ...] = ()
KEYS: dict[str, Key] = {}
LAYOUT = Layout(config=("*.sh", "args.txt", "args.json", "opt.txt"))
FORMATS: tuple[str, ...] = ()


def recognise(tree: ConfigTree) -> float:
    """At the threshold: any framework that knows its options comes first."""
    return 0.5 if tree.kind == "command" and tree.format in ("argv", "shell") else 0.0


def knobs(view: View, found: Found) -> None:
    fill(view, found)
