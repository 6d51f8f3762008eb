"""Follow a value from where it is read to what is done with it, by names, without running anything.

`Flow.trace` starts at expressions and climbs: into assignments, fields, parameters and returns of the
program's own functions, until each path ends in something that *shows* the value (print, log, a saved
file), something that *acts* on it, or nothing. Whatever is not understood acts. So "never acts" is a
proof within the program, and every gap in our understanding costs a finding instead of inventing one.

The climbing itself is in climb.py, what calls do with a value in handing.py.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from wheeltapper.program import vocabulary as words
from wheeltapper.program.climb import Walk
from wheeltapper.program.program import Func, Program, Rest, callee, dotted_name
from wheeltapper.program.trace import Form, Trace, base_of


@dataclass(eq=False)
class Flow:
    """The question and its memory. `aliases` are parameters fed by `f(**box)`: the field of that name flows into them."""

    program: Program
    aliases: dict[str, set[Rest]] = field(default_factory=lambda: defaultdict(set))
    boxes: set[Rest] = field(default_factory=set)  # everywhere a configuration rests, from the first pass
    _box_traces: dict[Rest, Trace] = field(default_factory=dict)
    _dicts: dict[str, ast.Dict] = field(default_factory=dict)
    _owners: dict[str, set[Rest]] = field(default_factory=dict)
    _tracing: set[str] = field(default_factory=set)
    _held: dict[str, set[Rest]] = field(default_factory=dict)  # (kind, name) of everything an owner rests in
    _targets: dict[ast.Call, tuple[list[Func], bool]] = field(default_factory=dict)
    _classes: dict[ast.expr, str | None] = field(default_factory=dict)  # of the thing whose field is read
    _lines: dict[str, frozenset[str]] = field(default_factory=dict)  # a class of ours with all it is built on
    _kin: dict[tuple[str, str], bool] = field(default_factory=dict)
    _holds: dict[tuple[ast.expr, str], bool] = field(default_factory=dict)
    _loads: dict[Rest, bool] = field(default_factory=dict)
    _box_fields: tuple[int, set[str]] = field(
        default_factory=lambda: (0, set())
    )  # names of fields that are boxes, at that number of boxes

    def __post_init__(self) -> None:
        self.starts_programs = any(name in self.program.calls for name in words.STARTS_PROGRAMS) or any(
            "subprocess" in table.values() or "deepspeed" in table.values() for table in self.program.imported.values()
        )

    @cached_property
    def annotations(self) -> list[tuple[Rest, str]]:
        """Every parameter that says what it takes, and what it says."""
        return [
            (("v", func.scope, p.arg), ast.unparse(p.annotation))
            for funcs in self.program.functions.values()
            for func in funcs
            for p in (*func.node.args.args, *func.node.args.kwonlyargs)
            if p.annotation is not None
        ]

    # -- asking ---------------------------------------------------------------------------------

    def trace(
        self,
        starts: Sequence[tuple[ast.expr, Form]],
        rests: Sequence[tuple[Rest, Form]] = (),
        inert: frozenset[str] = frozenset(),
        *,
        to_first_act: bool = False,
    ) -> Trace:
        """Follow expressions (and everything read from `rests`) to their ends.

        `inert` names methods that neither change nor use the thing they are called on. `to_first_act`: whether it acts
        is all that is asked, so a trace that has acted (beyond deciding what runs) goes no further.
        """
        return Walk(self, inert, to_first_act=to_first_act).run(starts, rests)

    def box_trace(self, rest: Rest) -> Trace:
        """Where a box resting in `rest` goes; the same for every field in it, so computed once."""
        if rest not in self._box_traces:
            self._box_traces[rest] = Walk(self, frozenset(), whole=True).run([], [(rest, "box")])
        return self._box_traces[rest]

    def owned(self, name: str, holder: ast.Dict) -> Rest:
        """The rest of a key of one dictionary literal."""
        key = f"dict:{self.program.script_of[holder].name}:{holder.lineno}:{holder.col_offset}"
        self._dicts[key] = holder
        return ("o", name, key)

    def is_box(self, rest: Rest) -> bool:
        """Whether a configuration rests here, as far as the first pass saw."""
        if rest in self.boxes:
            return True
        if self._box_fields[0] != len(self.boxes):
            self._box_fields = len(self.boxes), {b[1] for b in self.boxes if b[0] == "o"}
        return rest[0] == "f" and rest[1] in self._box_fields[1]

    def targets(self, call: ast.Call) -> tuple[list[Func], bool]:
        """`Program.targets`, remembered: every option asks about the same calls."""
        if call not in self._targets:
            self._targets[call] = self.program.targets(call)
        return self._targets[call]

    def may_hold(self, node: ast.expr, owner: str) -> bool:
        """Whether a read of a field can be of the given owner: a class, or a dictionary literal."""
        if owner not in self._dicts:
            other = self._class_read(node)
            return other is None or self._related(other, owner)
        base = base_of(node)
        if base is None:
            return True
        if owner in self._tracing:
            return True
        self._tracing.add(owner)
        holder = self._dicts[owner]
        if owner not in self._owners:
            self._owners[owner] = Walk(self, frozenset(), whole=True).run([(holder, "box")], []).rests
            self._held[owner] = {r[:2] for r in self._owners[owner]}
        self._tracing.discard(owner)
        if (node, owner) not in self._holds:
            self._holds[node, owner] = self._may_hold(base, owner)
        return self._holds[node, owner]

    def _may_hold(self, base: ast.expr, owner: str) -> bool:
        rests = self._owners[owner]
        rest = self.program.rest_of(base)
        if rest is None:
            name = callee(base) if isinstance(base, ast.Call) else ""
            return not (isinstance(base, ast.Call) and self.program.functions.get(name)) or ("r", name) in rests
        owner_class = self.program.class_of(base)
        held = self._held[owner]
        if rest in rests or rest in held or ("i", owner_class) in rests or (rest[0] == "f" and ("o", rest[1]) in held):
            return True
        if rest not in self._loads:
            self._loads[rest] = any("load" in dotted_name(v) for v in self.program.writes.get(rest, []))
        return self._loads[rest]

    def _class_read(self, node: ast.expr) -> str | None:
        """The class of the thing whose field is read, if it is known. Asked for every read and every owner: remembered."""
        if node not in self._classes:
            base = base_of(node)
            self._classes[node] = None if base is None else self.program.class_of(base)
        return self._classes[node]

    def _related(self, a: str, b: str) -> bool:
        if a == b:
            return True
        if (a, b) not in self._kin:
            mine, theirs = self._ancestors(a), self._ancestors(b)
            self._kin[a, b] = a in theirs or b in mine or not mine.isdisjoint(theirs)
        return self._kin[a, b]

    def _ancestors(self, name: str) -> frozenset[str]:
        if name not in self._lines:
            found: set[str] = set()
            queue = [name]
            while queue:
                cls = self.program.classes.get(queue.pop())
                for base in cls.bases if cls else ():
                    if base in self.program.classes and base not in found:
                        found.add(base)
                        queue.append(base)
            self._lines[name] = frozenset(found)
        return self._lines[name]

    def field_trace(self, name: str) -> Trace:
        """Where whatever is read under this attribute or key goes."""
        return self.trace([], [(("f", name), "value")])
