"""The files that Hydra composes a configuration from. The run's own `.hydra/config.yaml` only records the result: an edit
belongs into the files that `@hydra.main(config_path=..., config_name=...)` names."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from wheeltapper.program.options import literal
from wheeltapper.program.program import argument
from wheeltapper.remedy.dumped import parsed_script
from wheeltapper.settings.parse import parse_file
from wheeltapper.settings.tree import ConfigTree

MOST_FILES = 200  # of one folder of configurations


def hydra_sources(scripts: Sequence[str]) -> tuple[ConfigTree, ...]:
    """The primary configuration that each script names, and the groups beside it that its defaults name."""
    out: dict[str, ConfigTree] = {}
    for path in scripts:
        module = parsed_script(path)
        for folder, name in _mains(module) if module is not None else ():
            base = (Path(path).parent / folder).resolve()
            for file in _composed(base, name):
                tree = parse_file(file)
                if tree is not None and str(file) not in out:
                    out[str(file)] = tree
    return tuple(out.values())


def _mains(module: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(module):
        for call in getattr(node, "decorator_list", ()):
            if isinstance(call, ast.Call) and ast.unparse(call.func) in ("hydra.main", "main"):
                folder = literal(argument(call, "config_path", 0))
                name = literal(argument(call, "config_name", 1))
                if isinstance(folder, str) and isinstance(name, str):
                    yield folder, name


def _composed(base: Path, name: str) -> Iterator[Path]:
    primary = base / (name if name.endswith((".yaml", ".yml")) else f"{name}.yaml")
    if not primary.is_file():
        return
    yield primary
    tree = parse_file(primary)
    chosen = {} if tree is None else {leaf.path[-1]: leaf.value for leaf in tree if leaf.path[:1] == ("defaults",)}
    for count, (group, choice) in enumerate(chosen.items()):
        file = base / str(group) / f"{choice}.yaml"
        if count < MOST_FILES and file.is_file() and file.resolve().is_relative_to(base):
            yield file
