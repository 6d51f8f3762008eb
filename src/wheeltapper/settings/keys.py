"""Where a setting that is not written yet belongs: which file, which key, counted in what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType

from wheeltapper.finding import Edit
from wheeltapper.settings.dialects import SURE_ENOUGH
from wheeltapper.settings.dialects._lookup import known_key
from wheeltapper.settings.dialects.generic import meaning_and_unit
from wheeltapper.settings.dialects.schema import Key, rank
from wheeltapper.settings.knobs import KNOBS, KnobValue
from wheeltapper.settings.tree import ConfigTree, Path


@dataclass(frozen=True, slots=True)
class NewKey:
    """A place for a setting. `flag`: how the program's command line spells it, where the code tells."""

    tree: ConfigTree
    path: Path
    unit: str | None = None
    flag: str | None = None


def new_keys(
    edit: Edit,
    shown: KnobValue | None,
    trees: Sequence[ConfigTree],
    dialect: ModuleType,
    version: str | None,
    options: Mapping[str, str],
) -> Iterator[NewKey]:
    """Places that the framework's table or the program's own code knows, the surest first."""
    yield from _by_table(edit, trees, dialect, version)
    yield from _by_override(edit, shown, trees, dialect)
    yield from _by_code(edit, shown, trees, options)


def _by_table(edit: Edit, trees: Sequence[ConfigTree], dialect: ModuleType, version: str | None) -> Iterator[NewKey]:
    wanted = _keys(edit, dialect, version)
    homes = [tree for tree in trees if float(dialect.recognise(tree)) >= SURE_ENOUGH or len(trees) == 1]
    for tree in sorted(homes, key=rank):
        present = {tuple(str(p) for p in leaf.path[:depth]) for leaf in tree for depth in range(len(leaf.path))}
        for key in sorted(wanted, key=lambda key: (key.unit != _unit(edit), key.parts[:-1] not in present)):
            yield NewKey(tree, key.parts, key.unit)


def _unit(edit: Edit) -> str | None:
    return edit.unit or (KNOBS[edit.knob].unit if edit.knob in KNOBS else None)


def _keys(edit: Edit, dialect: ModuleType, version: str | None) -> list[Key]:
    table: dict[str, Key] = dialect.KEYS
    if edit.knob not in KNOBS:
        key = known_key(dialect, tuple(edit.knob.split(".")))
        found = [] if key is None else [Key(edit.knob, key.type, key.default, None, key.unit, key.since, key.until)]
        return [key for key in found if _exists(key, version)]
    known = [key for key in table.values() if key.knob == edit.knob]
    # Some dialects read a knob from several keys in code of their own; the name of the key still tells.
    known += [
        Key(key.path, key.type, key.default, edit.knob, key.unit or meant[1], key.since, key.until, key.fork)
        for key in table.values()
        if key.knob is None and (meant := meaning_and_unit(key.parts[-1])) is not None and meant[0] == edit.knob
    ]
    return [key for key in known if "*" not in key.path and _exists(key, version)]


def _exists(key: Key, version: str | None) -> bool:
    if key.fork:
        return False
    if version is None:
        return key.until is None
    return (key.since is None or key.since <= version) and (key.until is None or version <= key.until)


def _by_override(
    edit: Edit, shown: KnobValue | None, trees: Sequence[ConfigTree], dialect: ModuleType
) -> Iterator[NewKey]:
    """Hydra takes any key of its composed config on the command line: `optim.lr=0.1`."""
    leaf = shown.leaf if shown is not None else None
    if dialect.NAME != "hydra" or leaf is None or shown is None:
        return
    path = leaf.path[:-1] if isinstance(edit.new, (list, tuple)) and isinstance(leaf.path[-1], int) else leaf.path
    for tree in trees:
        if tree.kind == "command" and tree.format in ("shell", "argv"):
            yield NewKey(tree, path, shown.unit)


def _by_code(
    edit: Edit, shown: KnobValue | None, trees: Sequence[ConfigTree], options: Mapping[str, str]
) -> Iterator[NewKey]:
    """An option that the script declares, on the command line that starts it."""
    commands = [tree for tree in trees if tree.kind == "command" and tree.format in ("shell", "argv")]
    printed = str(shown.leaf.path[-1]) if shown is not None and shown.leaf is not None and shown.leaf.path else None
    for tree in commands:
        for name, flag in options.items():
            meant = meaning_and_unit(name)
            if name == edit.knob:
                yield NewKey(tree, (name,), None, flag)
            elif printed == name and shown is not None:
                yield NewKey(tree, (name,), shown.unit, flag)
            elif meant is not None and meant[0] == edit.knob:
                yield NewKey(tree, (name,), meant[1], flag)
