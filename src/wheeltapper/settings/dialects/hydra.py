"""Hydra: a composed config (.hydra/config.yaml) and what the user changed (.hydra/overrides.yaml).

The keys are the program's own, so meanings come from spellings and from `_target_`. OmegaConf's loader reads
1e-6 as a number, unlike PyYAML.
"""

from __future__ import annotations

from pathlib import PurePath

from wheeltapper.settings.dialects.generic import fill
from wheeltapper.settings.dialects.schema import Key, Layout, Policy, View, share
from wheeltapper.settings.knobs import Found
from wheeltapper.settings.tree import ConfigTree

NAME = "hydra"
TITLE = "Hydra"
UNKNOWN: Policy = "unknown"
REQUIRED: tuple[str, ...] = ()
KEYS: dict[str, Key] = {}
YAML_NUMBERS = "1.2"
LAYOUT = Layout(
    config=(".hydra/config.yaml", ".hydra/overrides.yaml"),
    metrics=("*.log",),
    note="interpolations such as ${data.size} may be unresolved in config.yaml",
)
FORMATS: tuple[str, ...] = ()


def recognise(tree: ConfigTree) -> float:
    if ".hydra" in PurePath(tree.file).parts:
        return 0.6
    composed = share(tree, ("hydra.run", "hydra.sweep", "hydra.job", "defaults"), 1)
    targets = sum(leaf.path[-1:] == ("_target_",) for leaf in tree if tree.format == "yaml")
    return max(0.55 * composed, 0.55 if targets >= 2 else 0.0)


def knobs(view: View, found: Found) -> None:
    for path, leaf in view.plain():
        if path[-1] != "_target_" or len(path) < 2 or not isinstance(leaf.value, str):
            continue
        name, section = leaf.value.rsplit(".", 1)[-1], path[-2].lower()
        if "sched" in section and "noise" not in section:
            found.give("schedule.name", name, leaf)
        elif "optim" in section:
            found.give("optimizer.name", name, leaf)
        elif section in ("model", "net", "network") and len(path) == 2:
            found.give("model.name", name, leaf)
    fill(view, found)
