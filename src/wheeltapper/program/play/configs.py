"""Configuration files in the play: the values that a program loads from the file that lies beside it, each with its place."""

from __future__ import annotations

import ast
from typing import Any

from wheeltapper.finding import Place
from wheeltapper.program.play.value import Val, const, text_of
from wheeltapper.settings.tree import ConfigTree

LOADERS = {"yaml", "json", "toml", "tomllib", "tomli", "omegaconf", "ruamel"}
PLACE = "@place"  # the field of a value that says where in a configuration it stands


def config_value(tree: ConfigTree, node: ast.AST) -> Val:
    """A whole configuration as one nested value."""
    root = Val("dict", "config", node=node)
    for leaf in tree.leaves:
        _put(root, list(leaf.path), _leaf(leaf.value, Place(leaf.file, leaf.line, leaf.column), node), node)
    return root


def place_of(value: Val) -> Place | None:
    """Where in a configuration a value stands."""
    found = value.fields.get(PLACE)
    return found.data if found is not None else None


def _leaf(value: Any, place: Place, node: ast.AST) -> Val:
    made = Val("list", items=[], node=node) if value == [] else Val("dict", node=node) if value == {} else const(value, node)
    made.fields = {PLACE: Val("const", data=place)}
    return made


def _put(holder: Val, path: list[str | int], leaf: Val, node: ast.AST) -> None:
    for step, following in zip(path, [*path[1:], None], strict=True):
        inner = leaf if following is None else Val("list", items=[], node=node) if isinstance(following, int) else Val("dict", "config", node=node)
        if isinstance(step, int) and holder.items is not None:
            if step >= len(holder.items):
                holder.items.append(inner)
            holder = holder.items[-1]
        else:
            holder = holder.fields.setdefault(str(step), inner)


def loaded(config: ConfigTree | None, origin: str, node: ast.AST) -> Val | None:
    """What `yaml.safe_load(...)` and its like return, if the file is known."""
    head = origin.split(".")[0]
    return config_value(config, node) if config is not None and head in LOADERS else None


def named_fields(config: ConfigTree, names: set[str], node: ast.AST) -> dict[str, Val]:
    """The top-level settings of a configuration that have one of these names; all of them where no name is given."""
    fields = config_value(config, node).fields
    return {k: v for k, v in fields.items() if not names or k in names}


def class_of(section: Val) -> str | None:
    """`{"class_path": "torch.optim.AdamW", "init_args": {...}}`: the class that a configuration names."""
    return text_of(section.fields.get("class_path") or section.fields.get("_target_"))
