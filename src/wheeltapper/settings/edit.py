"""Edits of settings, spliced into the author's own text. Nothing is written here (see write.py).

An edit names a knob (or a dotted key), the value that must stand there now, and the new one. Each splice is
proved before it counts: the new text is parsed again, nothing but that setting differs, and the knob reads as
asked. What cannot be proved is refused with the reason.

>>> from wheeltapper.settings.parse import parse_text
>>> tree = parse_text("lr: 1e-3  # peak\\nepochs: 90\\n", "a.yml", "yaml")
>>> print(plan_edits([tree], [Edit("optimizer.lr", 1e-3, 5e-4)])[0].after, end="")
lr: 5.0e-4  # peak
epochs: 90
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from types import ModuleType
from typing import Any

from wheeltapper.errors import RefusedEdit
from wheeltapper.finding import Edit
from wheeltapper.settings.dialects.schema import as_number, rank
from wheeltapper.settings.edited import (
    Change,
    Edited,
    differing,
    goes_along,
    list_items,
    same,
    text_under,
    without_copies,
)
from wheeltapper.settings.insert import insertions, removals
from wheeltapper.settings.keys import NewKey, new_keys
from wheeltapper.settings.knobs import KNOBS, Knobs, KnobValue, cast_value, read_knobs
from wheeltapper.settings.parse import FORMATS, parse_text
from wheeltapper.settings.records import is_record
from wheeltapper.settings.spell import Unspellable
from wheeltapper.settings.splice import Splice, not_a_literal, replacements
from wheeltapper.settings.tree import ConfigTree, Leaf, Path
from wheeltapper.settings.units import Scale, convert

__all__ = ["Change", "Edited", "RefusedEdit", "editable", "plan_edits", "same"]


def editable(tree: ConfigTree) -> bool:
    """A file its author wrote, and not what a run or its framework printed or saved."""
    kept = tree.text is not None and tree.format in FORMATS and tree.format != "namespace"
    return kept and rank(tree) < 2 and tree.kind != "W&B config" and not is_record(tree)


def plan_edits(
    configs: Sequence[ConfigTree],
    edits: Sequence[Edit],
    *,
    dialect: ModuleType | str | None = None,
    run_formats: Sequence[str] = (),
    version: str | None = None,
    options: Mapping[str, str] | None = None,
    scale: Scale | None = None,
) -> list[Edited]:
    """The files with all edits made, or RefusedEdit. `configs` and `run_formats` are those of a Run.

    `options` are the settings that the program's code declares, name to flag (`--amp/--no-amp` for a switch with
    two names); `scale` converts units.
    """
    work = _Work(configs, dialect, run_formats, version, options or {}, scale or Scale())
    agreed = _agreed(edits)
    for edit in agreed:
        work.apply(edit)
    for edit in agreed:
        work.still_holds(edit)
    return work.result()


def _agreed(edits: Sequence[Edit]) -> list[Edit]:
    out: dict[str, Edit] = {}
    for edit in edits:
        known = out.setdefault(edit.knob, edit)
        if not same(known.new, edit.new) or known.unit != edit.unit:
            raise RefusedEdit(
                f"two edits contradict each other: {edit.knob} to {known.new!r} and to {edit.new!r}",
                do="Keep one of them.",
            )
    return list(out.values())


class _Work:
    """The trees as they stand after the edits made so far."""

    def __init__(
        self,
        configs: Sequence[ConfigTree],
        dialect: ModuleType | str | None,
        formats: Sequence[str],
        version: str | None,
        options: Mapping[str, str],
        scale: Scale,
    ) -> None:
        self.trees = without_copies(configs)
        self.first = {tree.file: tree for tree in self.trees if editable(tree)}
        self.all = read_knobs(configs, dialect=dialect, run_formats=formats)
        self.dialect = self.all.dialect
        self.version = version
        self.options = options
        self.scale = scale
        self.changes: dict[str, list[Change]] = {}
        self.wanted: dict[str, Any] = {}
        if not self.first:
            raise RefusedEdit(
                "there is no configuration file to edit, only what the run printed",
                do="Give the folder that holds the config file or the launch script, too.",
            )

    def own(self) -> list[ConfigTree]:
        return [tree for tree in self.trees if editable(tree)]

    def knobs(self) -> Knobs:
        return read_knobs(self.own(), dialect=self.dialect)

    def apply(self, edit: Edit) -> None:
        if edit.knob in KNOBS:
            shown, mine = self.all.get(edit.knob), self.knobs().get(edit.knob)
            if shown is not None or mine is not None or not self._leaf(edit.knob):
                self._knob(edit, shown, mine)
                return
        self._key(edit)

    # -- by knob --------------------------------------------------------------------------------------

    def _knob(self, edit: Edit, shown: KnobValue | None, mine: KnobValue | None) -> None:
        now = shown or mine
        self._old_stands(edit, None if now is None else now.value, now)
        if mine is not None and mine.leaf is not None:
            self._agrees(edit, shown, mine)
            new = self._converted(edit, mine.unit)
            self.wanted[edit.knob] = new
            if edit.new is not None and self._is_a_record(mine.leaf) and self._insert_knob(edit, shown, new, mine.unit):
                return
            self._replace(edit, mine.leaf, mine, new)
            return
        if edit.new is None:
            raise self._not_here(edit, shown)
        if not self._insert_knob(edit, shown, None, None):
            raise self._not_here(edit, shown)

    def _old_stands(self, edit: Edit, value: Any, now: KnobValue | None) -> None:
        leaf = now.leaf if now is not None else None
        where = None if leaf is None else f"{leaf.file}:{leaf.line}"
        unset = now is None or now.default
        if not same(edit.old, value) and not (edit.old is None and unset):
            held = "not set" if value is None else f"{value!r}"
            was = "not to be set" if edit.old is None else f"to be {edit.old!r}"
            raise RefusedEdit(
                f"{edit.knob} is {held} here; the edit takes it {was}",
                where=where,
                do="Read the run again: the file or the diagnosis is of another time.",
            )
        unit = now.unit if now is not None else None
        if value is not None and same(edit.new, value) and edit.unit in (None, unit):
            raise RefusedEdit(f"{edit.knob} is {value!r} already: nothing would change", where=where)

    def _agrees(self, edit: Edit, shown: KnobValue | None, mine: KnobValue) -> None:
        """The value that was in force is the one in the file, or an edit of the file changes nothing."""
        assert mine.leaf is not None
        if shown is None or shown.default or same(shown.value, mine.value) or edit.knob in self.wanted:
            return
        said = shown.leaf
        told = f" ({said.file}:{said.line})" if said is not None else ""
        raise RefusedEdit(
            f"{edit.knob} is {mine.value!r} in this file, and the run used {shown.value!r}{told}: another place sets it",
            where=f"{mine.leaf.file}:{mine.leaf.line}",
            do="Change it where it is set (a command line, an override), or give that file.",
        )

    def _converted(self, edit: Edit, unit: str | None) -> Any:
        if edit.unit is None or unit is None or edit.unit == unit or edit.new is None:
            return edit.new
        new = convert(edit.new, edit.unit, unit, self.scale)
        if new is None:
            raise RefusedEdit(
                f"{edit.knob} is counted in {unit} here, and how many {edit.unit} that is cannot be told from the run",
                do=f"Give the new value in {unit}.",
            )
        return new

    def _is_a_record(self, leaf: Leaf) -> bool:
        """A file that the launch script does not name, of a setting that the script's options have: a dump."""
        tree = self._tree_of(leaf)
        if rank(tree) > 0 or str(leaf.path[-1]) not in self.options:
            return False
        commands = [one for one in self.own() if one.kind == "command"]
        name = PurePath(tree.file).name
        return bool(commands) and not any(name in (one.text or "") for one in commands)

    def _insert_knob(self, edit: Edit, shown: KnobValue | None, new: Any, unit: str | None) -> bool:
        """Add the setting where its framework, or the program's code, says that it is read."""
        tried = False
        for key in new_keys(edit, shown, self.own(), self.dialect, self.version, self.options):
            try:
                value = new if new is not None and key.unit in (None, unit) else self._converted(edit, key.unit)
            except RefusedEdit:
                tried = True
                continue
            self.wanted[edit.knob] = value
            if self._insert(edit, key, value):
                return True
            tried = True
        if tried and shown is None:
            raise RefusedEdit(
                f"{edit.knob} is not set, and no place for it could be found that this program certainly reads",
                do="Add it by hand.",
            )
        return False

    def _not_here(self, edit: Edit, shown: KnobValue | None) -> RefusedEdit:
        leaf = shown.leaf if shown is not None else None
        if leaf is not None:
            return RefusedEdit(
                f"{edit.knob} is known only from what the run printed or saved; no file to edit sets it",
                where=f"{leaf.file}:{leaf.line}",
                do="Give the config file or the launch script that the run was started with.",
            )
        since = f" of {self.version}" if self.version else ""
        return RefusedEdit(
            f"{self.dialect.TITLE}{since} has no key for {edit.knob} that we know of",
            where=self.own()[0].file,
            do="Change it in the code, or name the key itself.",
        )

    # -- by dotted key ---------------------------------------------------------------------------------

    def _leaf(self, dotted: str) -> Leaf | None:
        for tree in sorted(self.own(), key=rank, reverse=True):
            leaf = tree.leaf(dotted) or tree.leaf(f"{dotted}.0")
            if leaf is not None:
                return leaf
        return None

    def _key(self, edit: Edit) -> None:
        leaf = self._leaf(edit.knob)
        if leaf is None:
            if edit.old is not None or edit.new is None:
                raise RefusedEdit(f"no file to edit has the key {edit.knob}", where=self.own()[0].file)
            for key in new_keys(edit, None, self.own(), self.dialect, self.version, self.options):
                if self._insert(edit, key, edit.new):
                    return
            raise self._not_here(edit, None)
        tree = self._tree_of(leaf)
        items = list_items(tree, leaf) if leaf.dotted != edit.knob else []
        value = [item.value for item in items] if items else leaf.value
        number = as_number(value) if isinstance(edit.old, (int, float)) and not isinstance(edit.old, bool) else None
        now = value if number is None else number
        self._old_stands(edit, now, KnobValue(edit.knob, now, None, leaf))
        self.wanted[edit.knob] = edit.new
        self._replace(edit, leaf, None, edit.new)

    # -- splices ---------------------------------------------------------------------------------------

    def _tree_of(self, leaf: Leaf) -> ConfigTree:
        return next(tree for tree in self.own() if tree.file == leaf.file and leaf in tree.leaves)

    def _replace(self, edit: Edit, leaf: Leaf, mine: KnobValue | None, new: Any) -> None:
        tree = self._tree_of(leaf)
        where = f"{leaf.file}:{leaf.line}"
        reason = not_a_literal(leaf)
        if reason:
            raise RefusedEdit(f"{edit.knob} is {reason}", where=where, do="Change it by hand in the code that sets it.")
        if leaf.note and "by <<" in leaf.note and new is not None:
            key = NewKey(tree, leaf.path, mine.unit if mine else None)
            if self._insert(edit, key, new):  # the merged block is shared: only this section is to change
                return
        splices = removals(tree, leaf) if new is None else replacements(tree, leaf, edit.knob, mine, new, self.options)
        try:
            for splice in splices:
                if self._try(edit, tree, splice):
                    return
        except Unspellable as error:
            raise RefusedEdit(f"{edit.knob} cannot become {new!r}: {error}", where=where) from None
        raise RefusedEdit(
            f"{edit.knob} cannot be changed to {new!r} by this value alone",
            where=where,
            do="More than one key decides it, or another setting shares the text. Change it by hand.",
        )

    def _insert(self, edit: Edit, key: NewKey, value: Any) -> bool:
        try:
            return any(self._try(edit, key.tree, splice) for splice in insertions(key, value, self.dialect.NAME))
        except Unspellable as error:
            raise RefusedEdit(f"{edit.knob} cannot be set to {value!r}: {error}", where=key.tree.file) from None

    def _try(self, edit: Edit, tree: ConfigTree, splice: Splice) -> bool:
        """Make the splice if it changes what it says, nothing else, and the knob then reads as asked."""
        assert tree.text is not None
        text = splice.apply(tree.text)
        made = replace(parse_text(text, tree.file, tree.format), kind=tree.kind)
        moved = differing(tree, made)
        if not moved or len(made.problems) > len(tree.problems):
            return False
        extra = [path for path in moved if not any(path[: len(p)] == p for p in splice.paths)]
        for path in extra:
            if not goes_along(path, moved, splice.paths, tree):
                return False
        keep = self.trees
        self.trees = [made if one is tree else one for one in self.trees]
        if not self._reads_as_asked(edit):
            self.trees = keep
            return False
        self._record(edit, tree, made, splice, [path for path in extra if path[:1] != ("var",)])
        return True

    def _reads_as_asked(self, edit: Edit) -> bool:
        want = self.wanted.get(edit.knob, edit.new)
        if edit.knob in KNOBS and (edit.knob in self.all or not self._leaf(edit.knob)):
            found = self.knobs().get(edit.knob)
            if want is None:
                return found is None or found.leaf is None or not same(found.value, edit.old)
            return found is not None and same(cast_value(KNOBS[edit.knob].kind, want), found.value)
        leaf = self._leaf(edit.knob)
        if want is None or leaf is None:
            return leaf is None and not want  # a switch that is not there is off
        tree = self._tree_of(leaf)
        items = list_items(tree, leaf) if leaf.dotted != edit.knob else []
        value = [item.value for item in items] if items else leaf.value
        number = as_number(value) if isinstance(want, (int, float)) and not isinstance(want, bool) else None
        return same(want, value) or (number is not None and same(want, number))

    def _record(self, edit: Edit, tree: ConfigTree, made: ConfigTree, splice: Splice, extra: list[Path]) -> None:
        for path in splice.paths:
            old, new = text_under(tree, path), text_under(made, path)
            if old == new:
                continue
            at = made if new else tree
            leaf = next(leaf for leaf in at if leaf.path[: len(path)] == path)
            also = tuple(".".join(map(str, one)) for one in extra)
            change = Change(edit.knob, ".".join(map(str, path)), old, new, leaf.line, also)
            self.changes.setdefault(tree.file, []).append(change)

    def still_holds(self, edit: Edit) -> None:
        if not self._reads_as_asked(edit):
            raise RefusedEdit(
                f"the edit of {edit.knob} to {edit.new!r} is undone by another edit of the same text",
                do="Keep one of them.",
            )

    def result(self) -> list[Edited]:
        out = []
        for tree in self.own():
            if tree.file in self.changes:
                before, after = self.first[tree.file].text or "", tree.text or ""
                out.append(Edited(tree.file, before, after, tuple(self.changes[tree.file])))
        return out
