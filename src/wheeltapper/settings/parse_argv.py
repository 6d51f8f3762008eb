"""The arguments of one command: which program, through which launcher, with which options."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from wheeltapper.settings.parse_repr import printed_value
from wheeltapper.settings.position import Source, number, word_value
from wheeltapper.settings.tree import Leaf, Path

# Programs that start another program, which they are given as a .py file or after -m.
_LAUNCHERS = {"torchrun", "accelerate", "deepspeed", "horovodrun", "mpirun", "mpiexec", "srun", "ray", "colossalai"}
_PYTHON = re.compile(r"(?:.*/)?(?:python|pypy)[\d.]*(?:\.exe)?\Z")
_LAUNCH_MODULES = re.compile(r"torch\.distributed\.|accelerate\.commands|deepspeed\.launcher|pdb|debugpy|cProfile")
# Commands that are training programs themselves.
_TRAINERS = {
    "yolo",
    "composer",
    "fairseq-train",
    "fairseq-hydra-train",
    "llamafactory-cli",
    "swift",
    "axolotl",
    "litgpt",
    "tune",
    "xtuner",
    "trl",
    "nnUNetv2_train",
    "lightning",
    "autotrain",
    "nemo",
}
_YACS_KEY = re.compile(r"[A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)+\Z")
_OVERRIDE_OPTIONS = {"cfg_options", "options", "opts", "config_override", "override", "overrides", "set"}


@dataclass(frozen=True, slots=True)
class Field:
    """One argument after expansion. `key` is set for `--name=value` and `name=value`: text is the value."""

    text: str
    start: int
    end: int
    note: str | None = None
    key: str | None = None
    key_start: int | None = None


@dataclass(slots=True)
class Launch:
    """One command that starts a program."""

    leaves: list[Leaf]
    score: int  # how likely this is the training command, among several of a script
    problems: list[str] = field(default_factory=list)


def launch_of(source: Source, fields: list[Field], *, anything: bool = False) -> Launch | None:
    """The launch that these arguments are, or None when they start no program we know (cd, mkdir, echo)."""
    head = next((i for i, f in enumerate(fields) if f.key is None and _is_program(f.text)), None)
    echoed = any(f.text in ("echo", "printf") for f in fields[: (head or 0) + 1])
    if head is None or echoed:
        if not anything or not fields:
            return None
        head = 0
    target = _target(fields, head)
    reader = _Options(source)
    if target is None:
        first = fields[head]
        overrides = any(f.key is not None for f in fields[head:])
        if not anything and not overrides and _base(first.text) not in _TRAINERS:
            return None
        plain = first.key is None and not first.text.startswith("-")
        if plain:
            reader.add(("program",), first)
        reader.read(fields[head + 1 if plain else head :], ())
        name = first.text
    else:
        at, named = target
        reader.add(("launcher", "program"), fields[head]) if at > head else None
        reader.read(fields[head + 1 : at], ("launcher",))
        reader.add((named,), fields[at])
        reader.read(fields[at + 1 :], ())
        name = fields[at].text
    train = bool(re.search(r"train|finetune|fine_tune|main|run|sft|dpo", name.lower()))
    other = bool(re.search(r"eval|test|infer|predict|preprocess|prepare|convert|export|download|setup", name.lower()))
    return Launch(reader.leaves, len(reader.leaves) + 1000 * train - 2000 * other, reader.problems)


def override_leaves(source: Source, text: str, start: int) -> list[Leaf]:
    """Leaves of one Hydra override such as `+optim.lr=1e-3` that stands at `start`."""
    match = re.match(r"(\+{0,2}|~)([A-Za-z_][\w./@\-]*)=?", text)
    if match is None:
        return []
    end = start + len(text)
    reader = _Options(source)
    at = match.end()
    reader.read([Field(text[at:], start + at, end, None, text[:at].rstrip("="), start)], ())
    return reader.leaves


def _base(text: str) -> str:
    return text.rsplit("/", 1)[-1]


def _is_program(text: str) -> bool:
    return bool(_PYTHON.match(text)) or _base(text) in _LAUNCHERS | _TRAINERS or _is_script(text)


def _is_script(text: str) -> bool:
    return text.endswith(".py") and not text.startswith("-")


def _target(fields: list[Field], head: int) -> tuple[int, str] | None:
    """Where the training program is named: a .py file, or a module after -m."""
    if _base(fields[head].text) in _TRAINERS:
        return None
    for at in range(head, len(fields)):
        item = fields[at]
        if item.key is None and _is_script(item.text):
            return at, "script"
        before = fields[at - 1] if at > head else None
        after_m = before is not None and before.key is None and before.text in ("-m", "--module")
        if after_m and not _LAUNCH_MODULES.match(item.text):
            return at, "module"
    return None


class _Options:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.leaves: list[Leaf] = []
        self.problems: list[str] = []
        self.given: dict[Path, int] = {}

    def add(self, path: Path, item: Field) -> None:
        value = word_value(item.text) if path[-1] not in ("script", "module", "program") else item.text
        self.leaves.append(self.source.leaf(path, value, item.start, item.end, item.note))

    def read(self, fields: list[Field], prefix: Path) -> None:
        """Options, `a.b=c` overrides and positional arguments."""
        at, positional = 0, 0
        while at < len(fields):
            item = fields[at]
            at += 1
            if item.key is not None:
                self._keyed(item, prefix)
                continue
            if _is_option(item.text):
                values = []
                while at < len(fields) and fields[at].key is None and not _is_option(fields[at].text):
                    values.append(fields[at])
                    at += 1
                self._option(item, values, prefix, followed_by_override=at < len(fields) and _bare_key(fields[at]))
                continue
            if _YACS_KEY.match(item.text) and at < len(fields) and fields[at].key is None:
                self._put((*prefix, *item.text.split(".")), [fields[at]], item)
                at += 1
                continue
            self.add((*prefix, "positional", positional), item)
            positional += 1

    def _keyed(self, item: Field, prefix: Path) -> None:
        key = item.key or ""
        if key.startswith("-"):
            self._put((*prefix, *_option_path(key)), [item], item)
            return
        bare = key.lstrip("+~")
        note = {"+": "added by +", "~": "taken out by ~"}.get(key[:1])
        path = (*prefix, *re.split(r"[./]", bare.split("@")[0]))
        raw = self.source.text[item.start : item.end]
        if raw[:1] in ("[", "{") and raw == item.text:
            leaves = printed_value(self.source, path, item.start, item.end)
            self._again(path, item)
            self.leaves += leaves
            return
        self._put(path, [item], item, note)

    def _option(self, item: Field, values: list[Field], prefix: Path, *, followed_by_override: bool) -> None:
        path = (*prefix, *_option_path(item.text))
        if not values and followed_by_override and path[-1] in _OVERRIDE_OPTIONS:
            return
        if path[-1] in _OVERRIDE_OPTIONS and len(values) % 2 == 0 and values:
            pairs = list(zip(values[::2], values[1::2], strict=True))
            if all(re.match(r"[A-Za-z_][\w.]*\Z", key.text) and "." in key.text for key, _ in pairs):
                for key, value in pairs:
                    self._put((*prefix, *key.text.split(".")), [value], key)
                return
        self._put(path, values, item)

    def _put(self, path: Path, values: list[Field], option: Field, note: str | None = None) -> None:
        self._again(path, option)
        if not values:
            self.leaves.append(self.source.leaf(path, True, option.start, option.end, option.note))
        for index, value in enumerate(values):
            where = path if len(values) == 1 else (*path, index)
            told = "; ".join(filter(None, (note, value.note))) or None
            self.leaves.append(self.source.leaf(where, word_value(value.text), value.start, value.end, told))

    def _again(self, path: Path, option: Field) -> None:
        """A repeated option: the last one counts, as in argparse."""
        start = option.key_start if option.key_start is not None else option.start
        if path in self.given:
            name = ".".join(str(part) for part in path)
            self.problems.append(f"{self.source.spot(start)}: the option {name} is given twice; the last one counts")
            self.leaves = [leaf for leaf in self.leaves if leaf.path[: len(path)] != path]
        self.given[path] = start


def _bare_key(item: Field) -> bool:
    return item.key is not None and not item.key.startswith("-")


def _is_option(text: str) -> bool:
    return len(text) > 1 and text[0] == "-" and text != "--" and number(text) is None and not text[1].isdecimal()


def _option_path(option: str) -> tuple[str, ...]:
    """`--optimizer.weight-decay` is stored by the program as optimizer.weight_decay."""
    return tuple(part.replace("-", "_") for part in option.lstrip("-").split("."))
