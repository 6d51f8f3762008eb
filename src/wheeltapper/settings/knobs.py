"""Settings by their meaning. One table; a dialect says which of its keys is which knob.

>>> from wheeltapper.settings.parse import parse_text
>>> knobs = read_knobs([parse_text("base_lr: 0.6\\nepochs: 400\\n", "args.txt", "keyvalue")])
>>> knobs.value("optimizer.lr"), knobs["run.epochs"].unit, str(knobs.place("optimizer.lr"))
(0.6, 'epochs', 'args.txt:1:10')
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from wheeltapper.finding import Place
from wheeltapper.settings.dialects import dialect_named, recognise_dialect
from wheeltapper.settings.dialects.schema import UNSET, Key, View, as_bool, as_number, place_of, unresolved
from wheeltapper.settings.knob_table import KNOBS, Kind, Knob
from wheeltapper.settings.tree import ConfigTree, Leaf
from wheeltapper.settings.understand import complete, foreign

__all__ = ["KNOBS", "Found", "Kind", "Knob", "KnobValue", "Knobs", "cast_value", "read_knobs"]


@dataclass(frozen=True, slots=True)
class KnobValue:
    """One knob as this run sets it, or (`default`) as its framework would."""

    id: str
    value: Any
    unit: str | None = None
    leaf: Leaf | None = None
    dialect: str = "generic"
    default: bool = False
    note: str | None = None  # e.g. that the number is written as a string


class Knobs(Mapping[str, KnobValue]):
    """Knobs by id. Absent means unknown, never "off"."""

    def __init__(self, values: Mapping[str, KnobValue], dialect: ModuleType) -> None:
        self._values = dict(values)
        self.dialect = dialect

    def __getitem__(self, id: str) -> KnobValue:
        return self._values[id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        inner = ", ".join(f"{v.id}={v.value!r}" for v in self._values.values() if not v.default)
        return f"Knobs[{self.dialect.NAME}]({inner})"

    def value(self, id: str, default: Any = None) -> Any:
        found = self._values.get(id)
        return default if found is None else found.value

    def place(self, id: str) -> Place:
        found = self._values.get(id)
        return Place() if found is None or found.leaf is None else place_of(found.leaf)

    def completed(self, other: Knobs) -> Knobs:
        """With what only the other declares; a declared value beats a default."""
        more = {v.id: v for v in other.declared() if v.id not in self._values or self._values[v.id].default}
        return Knobs({**self._values, **more}, self.dialect)

    def declared(self) -> list[KnobValue]:
        """Knobs that some source really sets."""
        return [value for value in self._values.values() if not value.default]


class Found(dict[str, KnobValue]):
    """Knobs being collected; what a dialect's `knobs()` fills."""

    def __init__(self, dialect: str) -> None:
        super().__init__()
        self.dialect = dialect

    def give(
        self,
        id: str,
        value: Any,
        leaf: Leaf | None = None,
        *,
        unit: str | None = None,
        default: bool = False,
        note: str | None = None,
    ) -> None:
        """Set a knob, cast by its kind. A value that cannot be cast is left out: unknown is not a number."""
        knob = KNOBS[id]
        cast = cast_value(knob.kind, value)
        if cast is None:
            return
        if note is None and isinstance(value, str) and knob.kind in ("number", "count"):
            note = f"written as the string {value!r}"
        self[id] = KnobValue(id, cast, unit or knob.unit, leaf, self.dialect, default, note)

    def take(self, id: str, view: View, *paths: str, unit: str | None = None) -> Leaf | None:
        """Set a knob from the first of several keys that is present; the leaf used."""
        leaf = view.first(*paths)
        if leaf is not None:
            self.give(id, leaf.value, leaf, unit=unit)
            return leaf
        for path in paths:
            items = view.items(path)
            if items:
                self.give(id, [item.value for item in items], items[0], unit=unit)
                return items[0]
        return None

    def drop(self, *ids: str) -> None:
        for id_ in ids:
            self.pop(id_, None)

    def known(self, id: str) -> Any:
        found = self.get(id)
        return None if found is None else found.value


def cast_value(kind: Kind, value: Any) -> Any:
    if value is None:
        return None
    if kind == "number":
        return as_number(value)
    if kind == "count":
        number = as_number(value)
        if number is None or number != number or number in (float("inf"), float("-inf")):
            return None
        return int(number) if float(number).is_integer() else number
    if kind == "bool":
        return as_bool(value)
    if kind == "name":
        return value if isinstance(value, str) and value else None
    if kind == "list":
        items = value if isinstance(value, (list, tuple)) else _split(value)
        numbers = [as_number(item) for item in items]
        return None if not numbers or None in numbers else numbers
    return value


def _split(value: Any) -> list[Any]:
    return value.strip("[]() ").split(",") if isinstance(value, str) else [value]


def read_knobs(
    trees: Sequence[ConfigTree],
    *,
    dialect: ModuleType | str | None = None,
    run_formats: Sequence[str] = (),
    about: frozenset[str] = frozenset(),
) -> Knobs:
    """What these sources set, by meaning. The command line overrides files; the run's own print, both. `about`: themes that the
    log shows; a `gamma` beside a return is a discount."""
    if isinstance(dialect, str):
        dialect = dialect_named(dialect)
    view = View(trees)
    module = dialect or recognise_dialect(trees, run_formats) or dialect_named("generic")
    if dialect is None and foreign(module, view):
        module = dialect_named("generic")
    found = Found(module.NAME)
    for key in module.KEYS.values():
        if key.knob is not None and "*" not in key.path:
            _read_key(key, view, found)
    if hasattr(module, "knobs"):
        module.knobs(view, found)
    complete(view, found, module, about)
    _read_launcher(view, found)
    return Knobs(found, module)


def _read_key(key: Key, view: View, found: Found) -> None:
    assert key.knob is not None
    present = view.has(key.path)
    leaf = view.leaf(key.path)
    if leaf is not None and not unresolved(leaf):
        found.give(key.knob, leaf.value, leaf, unit=key.unit)
    elif view.items(key.path):
        items = view.items(key.path)
        found.give(key.knob, [item.value for item in items], items[0], unit=key.unit)
    elif not present and key.default is not UNSET and key.knob not in found:
        found.give(key.knob, key.default, unit=key.unit, default=True)


def _read_launcher(view: View, found: Found) -> None:
    """World size as the launcher was told."""
    if "world_size" in found and not found["world_size"].default:
        return
    leaf = view.first("launcher.nproc_per_node", "launcher.num_processes", "launcher.num_gpus")
    if leaf is None:
        return
    each = as_number(leaf.value)
    if each is None:
        return
    nodes: float | None = 1.0
    if leaf.dotted != "launcher.num_processes":  # accelerate's num_processes counts all nodes already
        said = view.first("launcher.nnodes", "launcher.num_nodes")
        nodes = 1.0 if said is None else as_number(said.value)
    if nodes is not None:  # torchrun's elastic `1:4` says no number
        found.give("world_size", each * nodes, leaf)
