"""A pickle read as data: an interpreter of the opcodes that never imports, never calls, never resolves.

A global is a `Name`, a call is a `Call` that holds its arguments, and that is all that ever happens with
them. Only containers with one meaning (OrderedDict, torch.Size, ...) become plain values. Work is bounded:
opcodes are counted, copies too, long byte strings stay in the file as a `Blob`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wheeltapper.limits import OverBudgetError, spend
from wheeltapper.reading._file_bytes import Data

MAX_OPCODES = 5_000_000  # a checkpoint of 100,000 tensors takes 4 million
_BLOB = 4096  # bytes; a longer byte string is an array, left where it is
_MAX_DIGITS = 400
_MAX_TEXT = 1 << 16  # bytes of a string that are kept; no name and no setting is longer
_IN_MEMORY = 1 << 25  # a pickle up to this size is read at once, a larger one (it holds arrays) page by page
_OBJECT = 4  # steps that a container or a call counts for: it takes as much more memory as a plain value


class PickleUnreadableError(ValueError):
    """Not a pickle, damaged, or too much work. Caught inside the readers."""


@dataclass(frozen=True, slots=True)
class Name:
    """What a pickle would import."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(slots=True, eq=False)
class Call:
    """What a pickle would call or build: an inert note of it."""

    of: Any
    args: Any
    state: Any = None
    items: list[Any] | None = None
    pairs: dict[Any, Any] | None = None
    meant: Any = None  # what _torch_objects made of it, so that it need not do so twice


@dataclass(frozen=True, slots=True)
class Persistent:
    id: Any


@dataclass(frozen=True, slots=True)
class Blob:
    """A byte string of the file: where and how long."""

    at: int
    size: int


class _Key:
    """Stands for a key that is not a plain value: nested tuples may take for ever to hash."""


_DICTS = {
    ("collections", "OrderedDict"),
    ("collections", "defaultdict"),
    ("collections", "Counter"),
    ("builtins", "dict"),
}
_LISTS = {("builtins", "list"), ("builtins", "set"), ("builtins", "frozenset"), ("builtins", "tuple")}
_PLAIN_KEYS = (str, int, float, bytes, bool, type(None), Name)
_MARK = object()


@dataclass(frozen=True, slots=True)
class Loaded:
    value: Any
    end: int  # where the pickle ends
    problem: str | None  # what went wrong, if it is not whole
    names: frozenset[Name]  # everything it would import


# Modules that a file with weights and settings has no business with.
_RISKY_MODULES = {
    "os", "posix", "nt", "subprocess", "sys", "shutil", "socket", "runpy", "importlib", "pty", "ctypes", "code",
    "pickle", "webbrowser", "commands", "popen2", "multiprocessing", "asyncio", "urllib", "requests", "http", "pip",
}  # fmt: skip
_RISKY_BUILTINS = {"eval", "exec", "compile", "__import__", "getattr", "setattr", "open", "globals", "breakpoint"}


def runs_code(name: Name) -> bool:
    """Whether what a pickle would import is a way to run anything at all."""
    if name.module in ("builtins", "__builtin__"):
        return name.name in _RISKY_BUILTINS
    return name.module.partition(".")[0] in _RISKY_MODULES


def load(data: Data, at: int, end: int) -> Loaded:
    """The pickle that starts at `at`, as far as it can be read."""
    if not isinstance(data, bytes) and end - at <= _IN_MEMORY:
        machine = _Machine(data[at:end], 0, end - at, base=at)
    else:
        machine = _Machine(data, at, end)
    problem: str | None = None
    try:
        machine.run()
    except (PickleUnreadableError, OverBudgetError) as error:
        problem = str(error)
        machine.salvage()
    except (IndexError, struct.error, ValueError, TypeError, OverflowError):
        problem = f"damaged near byte {machine.base + machine.at:,}"
        machine.salvage()
    end_at = machine.base + machine.at
    return Loaded(machine.stack[-1] if machine.stack else None, end_at, problem, frozenset(machine.names))


class _Machine:
    def __init__(self, data: Data, at: int, end: int, *, base: int = 0) -> None:
        self.data, self.at, self.end = data, at, end
        self.base = base  # where `data` starts in the file
        self.stack: list[Any] = []
        self.marks: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self.names: set[Name] = set()
        self.work = 0

    def run(self) -> None:
        table = _OPCODES
        while self.at < self.end:
            code = self.data[self.at]
            self.at += 1
            if code == 0x2E:  # STOP
                return
            action = table.get(code)
            if action is None:
                raise PickleUnreadableError(f"no opcode {code:#x} (byte {self.base + self.at - 1:,})")
            self.spend(1)
            action(self)
        raise PickleUnreadableError("cut off before its end")

    def spend(self, amount: int) -> None:
        self.work += amount
        spend(amount)
        if self.work > MAX_OPCODES:
            raise PickleUnreadableError(f"more than {MAX_OPCODES:,} steps to read")

    def salvage(self) -> None:
        """Close what was open, so that the names read before the damage are not lost."""
        while self.marks:
            items, self.stack = self.stack, self.marks.pop()
            if self.stack and isinstance(self.stack[-1], dict | Call):
                _set_items(self.stack[-1], items)
            elif self.stack and isinstance(self.stack[-1], list):
                self.stack[-1].extend(items)
        del self.stack[1:]

    # Reading
    def take(self, size: int) -> bytes:
        if size < 0 or size > self.end - self.at:
            raise PickleUnreadableError("cut off before its end")
        self.at += size
        return bytes(self.data[self.at - size : self.at])

    def number(self, form: struct.Struct) -> Any:
        return form.unpack(self.take(form.size))[0]

    def line(self) -> bytes:
        stop = self.data.find(b"\n", self.at, min(self.end, self.at + 65536))
        if stop < 0:
            raise PickleUnreadableError("cut off before its end")
        text = bytes(self.data[self.at : stop])
        self.at = stop + 1
        return text

    def text(self, size: int) -> str:
        self.spend(size >> 6)
        if size > self.end - self.at:
            raise PickleUnreadableError("cut off before its end")
        kept = self.take(min(size, _MAX_TEXT)).decode("utf-8", errors="replace")
        self.at += max(0, size - _MAX_TEXT)
        return kept

    def blob(self, size: int) -> bytes | Blob:
        if size <= _BLOB:
            return self.take(size)
        if size > self.end - self.at:
            raise PickleUnreadableError("cut off before its end")
        self.at += size
        return Blob(self.base + self.at - size, size)

    # The stack
    def push(self, value: Any) -> None:
        self.stack.append(value)

    def container(self, value: Any) -> None:
        self.spend(_OBJECT)
        self.stack.append(value)

    def pop(self) -> Any:
        return self.stack.pop()

    def mark(self) -> None:
        self.spend(_OBJECT)
        self.marks.append(self.stack)
        self.stack = []

    def to_mark(self) -> list[Any]:
        items = self.stack
        self.stack = self.marks.pop()
        return items

    def reduce(self) -> None:
        args = self.pop()
        self.push(self.call(self.pop(), args))

    def call(self, of: Any, args: Any) -> Any:
        """Plain containers become themselves; everything else stays a note."""
        self.spend(_OBJECT)
        if isinstance(of, Name) and isinstance(args, tuple):
            named = ("builtins" if of.module == "__builtin__" else of.module, of.name)  # Python 2's name
            first = args[-1] if args else None
            if named in _DICTS:
                out: dict[Any, Any] = {}
                if isinstance(first, list | tuple):
                    self.spend(len(first))
                    for pair in first:
                        if isinstance(pair, list | tuple) and len(pair) == 2:
                            out[_key(pair[0])] = pair[1]
                elif isinstance(first, dict):
                    self.spend(len(first))
                    out.update(first)
                return out
            if named in _LISTS:
                self.spend(len(first) if isinstance(first, list | tuple) else 0)
                return list(first) if isinstance(first, list | tuple) else []
            if named == ("torch", "Size") and isinstance(first, tuple):
                return first
            if named == ("builtins", "bytes") and not args:
                return b""
            if named == ("_codecs", "encode") and args and isinstance(args[0], str):
                self.spend(len(args[0]))
                return args[0].encode("latin-1", errors="replace")
        return Call(of, args)

    def build(self) -> None:
        state = self.pop()
        if isinstance(self.stack[-1], Call):
            self.stack[-1].state = state

    def instance(self) -> None:
        """INST and OBJ, the oldest ways to make an object."""
        items = self.to_mark()
        self.push(Call(items[0] if items else None, tuple(items[1:])))

    def append_items(self, items: list[Any]) -> None:
        last = self.stack[-1]
        if isinstance(last, Call):
            last.items = last.items or []
            last = last.items
        if isinstance(last, list):
            last.extend(items)


def _key(value: Any) -> Any:
    return value if isinstance(value, _PLAIN_KEYS) else _Key()


def _set_items(target: Any, items: list[Any]) -> None:
    into = target
    if isinstance(target, Call):
        target.pairs = into = target.pairs or {}
    if isinstance(into, dict):
        for i in range(0, len(items) - 1, 2):
            into[_key(items[i])] = items[i + 1]


def _dict(items: list[Any]) -> dict[Any, Any]:
    out: dict[Any, Any] = {}
    _set_items(out, items)
    return out


def _integer(text: bytes) -> Any:
    if text in (b"00", b"01"):
        return text == b"01"
    return int(text.rstrip(b"L")) if len(text) <= _MAX_DIGITS else None


def _long(machine: _Machine, size: int) -> Any:
    raw = machine.take(size)
    return int.from_bytes(raw, "little", signed=True) if size <= _MAX_DIGITS else None


def _quoted(text: bytes) -> str:
    return text.strip()[1:-1].decode("utf-8", errors="replace")


def _name(machine: _Machine, module: str, name: str) -> Name:
    found = Name(module[:200], name[:200])
    machine.names.add(found)
    return found


def _line_name(machine: _Machine) -> Name:
    module = machine.line().decode(errors="replace")
    return _name(machine, module, machine.line().decode(errors="replace"))


def _old_instance(machine: _Machine) -> None:
    of = _line_name(machine)
    machine.push(Call(of, tuple(machine.to_mark())))


def _stack_global(machine: _Machine) -> None:
    name = machine.pop()
    module = machine.pop()
    plain = isinstance(name, str) and isinstance(module, str)
    machine.push(_name(machine, module, name) if plain else Name("?", "?"))


def _new_object(machine: _Machine, *, keywords: bool) -> None:
    if keywords:
        machine.pop()
    machine.reduce()


def _build_tuple(size: int) -> Callable[[_Machine], None]:
    def act(machine: _Machine) -> None:
        items = tuple(machine.stack[-size:])
        if len(items) < size:
            raise IndexError
        del machine.stack[-size:]
        machine.push(items)

    return act


def _set_one(machine: _Machine) -> None:
    value = machine.pop()
    key = machine.pop()
    _set_items(machine.stack[-1], [key, value])


def _set_many(machine: _Machine) -> None:
    items = machine.to_mark()
    _set_items(machine.stack[-1], items)


def _append_one(machine: _Machine) -> None:
    item = machine.pop()
    machine.append_items([item])


_U1, _U2, _U4, _U8 = struct.Struct("<B"), struct.Struct("<H"), struct.Struct("<I"), struct.Struct("<Q")
_I4, _F8 = struct.Struct("<i"), struct.Struct(">d")


def _pop_mark_or_item(machine: _Machine) -> None:
    if machine.stack:
        machine.pop()
    else:
        machine.to_mark()


_OPCODES: dict[int, Callable[[_Machine], Any]] = {
    ord("("): _Machine.mark,
    ord("0"): _pop_mark_or_item,
    ord("1"): _Machine.to_mark,
    ord("2"): lambda m: m.push(m.stack[-1]),
    ord("F"): lambda m: m.push(float(m.line()[:_MAX_DIGITS])),
    ord("I"): lambda m: m.push(_integer(m.line())),
    ord("J"): lambda m: m.push(m.number(_I4)),
    ord("K"): lambda m: m.push(m.number(_U1)),
    ord("L"): lambda m: m.push(_integer(m.line())),
    ord("M"): lambda m: m.push(m.number(_U2)),
    ord("N"): lambda m: m.push(None),
    ord("P"): lambda m: m.push(Persistent(m.line().decode(errors="replace"))),
    ord("Q"): lambda m: m.push(Persistent(m.pop())),
    ord("R"): _Machine.reduce,
    ord("S"): lambda m: m.push(_quoted(m.line())),
    ord("T"): lambda m: m.push(m.blob(m.number(_U4))),
    ord("U"): lambda m: m.push(m.text(m.number(_U1))),
    ord("V"): lambda m: m.push(m.line().decode("raw-unicode-escape", errors="replace")),
    ord("X"): lambda m: m.push(m.text(m.number(_U4))),
    ord("a"): _append_one,
    ord("b"): _Machine.build,
    ord("c"): lambda m: m.push(_line_name(m)),
    ord("d"): lambda m: m.push(_dict(m.to_mark())),
    ord("}"): lambda m: m.container({}),
    ord("e"): lambda m: m.append_items(m.to_mark()),
    ord("g"): lambda m: m.push(m.memo.get(_integer(m.line()))),
    ord("h"): lambda m: m.push(m.memo.get(m.number(_U1))),
    ord("i"): _old_instance,
    ord("j"): lambda m: m.push(m.memo.get(m.number(_U4))),
    ord("l"): lambda m: m.push(m.to_mark()),
    ord("]"): lambda m: m.container([]),
    ord("o"): _Machine.instance,
    ord("p"): lambda m: m.memo.__setitem__(_integer(m.line()), m.stack[-1]),
    ord("q"): lambda m: m.memo.__setitem__(m.number(_U1), m.stack[-1]),
    ord("r"): lambda m: m.memo.__setitem__(m.number(_U4), m.stack[-1]),
    ord("s"): _set_one,
    ord("t"): lambda m: m.push(tuple(m.to_mark())),
    ord(")"): lambda m: m.push(()),
    ord("u"): _set_many,
    ord("G"): lambda m: m.push(m.number(_F8)),
    ord("B"): lambda m: m.push(m.blob(m.number(_U4))),
    ord("C"): lambda m: m.push(m.blob(m.number(_U1))),
    0x80: lambda m: m.take(1),
    0x81: lambda m: _new_object(m, keywords=False),
    0x82: lambda m: m.push(Name("copyreg", f"extension {m.number(_U1)}")),
    0x83: lambda m: m.push(Name("copyreg", f"extension {m.number(_U2)}")),
    0x84: lambda m: m.push(Name("copyreg", f"extension {m.number(_U4)}")),
    0x85: _build_tuple(1),
    0x86: _build_tuple(2),
    0x87: _build_tuple(3),
    0x88: lambda m: m.push(True),
    0x89: lambda m: m.push(False),
    0x8A: lambda m: m.push(_long(m, m.number(_U1))),
    0x8B: lambda m: m.push(_long(m, m.number(_I4))),
    0x8C: lambda m: m.push(m.text(m.number(_U1))),
    0x8D: lambda m: m.push(m.text(m.number(_U8))),
    0x8E: lambda m: m.push(m.blob(m.number(_U8))),
    0x8F: lambda m: m.container([]),
    0x90: lambda m: m.append_items(m.to_mark()),
    0x91: lambda m: m.push(m.to_mark()),
    0x92: lambda m: _new_object(m, keywords=True),
    0x93: _stack_global,
    0x94: lambda m: m.memo.__setitem__(len(m.memo), m.stack[-1]),
    0x95: lambda m: m.take(8),
    0x96: lambda m: m.push(m.blob(m.number(_U8))),
    0x97: lambda m: m.push(None),
    0x98: lambda _: None,
}
