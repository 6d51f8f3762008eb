"""Every setting of a project, one by one, with its place: what the checks of this package look at.

Knobs (settings/knobs.py) hold one value for each meaning; here a setting stands for itself, so that two environments in one file,
two optimizers or two heads are each judged, beside what is nearest to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

from wheeltapper.settings.dialects.generic import meanings_of
from wheeltapper.settings.dialects.schema import ASIDE, as_bool, as_number, place_of, unresolved
from wheeltapper.settings.parse_repr import parse_namespace
from wheeltapper.settings.position import Source
from wheeltapper.settings.tree import ConfigTree, Leaf, Path
from wheeltapper.settings.understand import NAMES_SAY
from wheeltapper.settings.vocabulary import Meaning, meaning_of_path, themes_of
from wheeltapper.settings.words import word_set, words_of

Grade = Literal["hint", "range", "edge"]
MOST = 1_500  # settings that are looked at
_TOKEN = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_CALL = re.compile(r"\s*+dict\([^\n]*\)\s*+\Z")
_LIST = re.compile(r"\s*[-+.\deE]+(?:\s*,\s*[-+.\deE]+)+\s*\Z")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\Z")
GROUPS = word_set("optim optimizer optimizers model models data dataset datasets scheduler lr_scheduler loss trainer train network callbacks")
_NO_NUMBER = {"infinity", "inf", "nan"}


@dataclass(frozen=True)
class Doubt:
    """A setting that cannot be meant, or two that contradict each other. `cause`: what it would do to the run."""

    cause: str
    text: str
    settings: tuple[Setting, ...]
    grade: Grade = "hint"


@dataclass(frozen=True, eq=False)
class Setting:
    """One key with its value; a list is one setting."""

    path: tuple[str, ...]
    value: Any
    leaf: Leaf
    themes: frozenset[str] = frozenset()

    @cached_property
    def name(self) -> str:
        return ".".join(self.path)

    @cached_property
    def key(self) -> str:
        return self.path[-1].lower().replace("-", "_")

    @cached_property
    def words(self) -> tuple[str, ...]:
        return words_of(self.path[-1])

    @cached_property
    def own(self) -> frozenset[str]:
        """The words of the key, as written and in one spelling."""
        return frozenset(self.words) | frozenset(t.lower() for t in _TOKEN.findall(self.path[-1]))

    @cached_property
    def above(self) -> frozenset[str]:
        parts = [part for part in self.path[:-1] if not part.isdigit()]
        folder = self.leaf.file.replace("\\", "/").split("/")[-2:-1]
        parts += [name for name in folder if name in GROUPS]  # a part of a composed configuration: optim/adamw.yaml
        return frozenset(word for part in parts for word in (*words_of(part), *(t.lower() for t in _TOKEN.findall(part))))

    @cached_property
    def around(self) -> frozenset[str]:
        return self.own | self.above

    @cached_property
    def number(self) -> float | None:
        value = self.value[0] if isinstance(self.value, list) and len(self.value) == 1 else self.value
        if isinstance(value, list) or (isinstance(value, str) and value.strip().lower() in _NO_NUMBER):
            return None
        return as_number(value)

    @cached_property
    def numbers(self) -> list[float]:
        """The numbers of a list; empty where it is none."""
        items = self.value if isinstance(self.value, list) else []
        if not items and isinstance(self.value, str) and _LIST.match(self.value.strip("[]()")):
            items = self.value.strip("[]()").split(",")
        found = [as_number(item.strip() if isinstance(item, str) else item) for item in items]
        return [] if None in found else [n for n in found if n is not None]

    @cached_property
    def text(self) -> str:
        return self.value.strip() if isinstance(self.value, str) else ""

    @cached_property
    def on(self) -> bool | None:
        return as_bool(self.value)

    @cached_property
    def meaning(self) -> Meaning | None:
        path = tuple(part for part in self.path if not part.isdigit()) or self.path
        found = meaning_of_path(path, self.themes)
        if found is None:
            spelled = meanings_of(path)
            found = Meaning(*spelled[0]) if spelled else None
        return found

    @property
    def knob(self) -> str | None:
        return self.meaning.knob if self.meaning else None

    @property
    def line(self) -> int:
        return self.leaf.line

    def has(self, needs: str, never: str = "") -> bool:
        """Whether the key has one of each of these words (`a/b`: either; `@a`: there or in a section above) and none of those."""
        return _fits(needs, never, self.own, self.around)


@lru_cache(maxsize=100_000)
def _fits(needs: str, never: str, own: frozenset[str], around: frozenset[str]) -> bool:
    for need in needs.split():
        held = around if need.startswith("@") else own
        if not held & set(need.lstrip("@").split("/")):
            return False
    return not around & set(never.split())


class Sheet:
    """All settings of one project."""

    def __init__(self, trees: Sequence[ConfigTree], texts: Iterable[str] = ()) -> None:
        self.raw = "\n".join(tree.text or "" for tree in trees)[:200_000]
        self.memo: dict[str, Any] = {}  # what checks have worked out of it
        self.files = tuple(dict.fromkeys(tree.file for tree in trees))
        raw = [item for tree in trees for item in _of_tree(tree)][:MOST]
        said = [part for path, _, _ in raw for part in path]
        said += [v for path, v, _ in raw if isinstance(v, str) and len(v) < 60 and set(words_of(path[-1])) & NAMES_SAY]
        self.themes = themes_of(dict.fromkeys((*said, *texts)))
        self.settings = tuple(Setting(path, value, leaf, self.themes) for path, value, leaf in raw)

    def all(self, needs: str, never: str = "") -> list[Setting]:
        return [s for s in self.settings if s.has(needs, never)]

    def of_knob(self, *knobs: str) -> list[Setting]:
        return [s for s in self.settings if s.knob in knobs]

    def nearest(self, to: Setting, among: Iterable[Setting]) -> Setting | None:
        """Of several, the one in the same section, then in a section above, then in the same file, then anywhere; None where two
        are as near and differ."""
        rated = [(closeness(to, other), other) for other in among if other is not to]
        if not rated:
            return None
        best = max(rating for rating, _ in rated)
        held = [other for rating, other in rated if rating == best]
        return held[0] if len({repr(o.value) for o in held}) == 1 else None

    def mentions(self, pattern: str) -> bool:
        """Whether the text of a source holds this anywhere: a tag or a comment tells, too."""
        return re.search(pattern, self.raw) is not None

    def says(self, *words: str) -> bool:
        """Whether a key or a value that is a name holds one of these words."""
        return bool(self._told & set(words))

    @cached_property
    def _told(self) -> frozenset[str]:
        out: set[str] = set()
        for s in self.settings:
            out |= s.around
            for text in s.value if isinstance(s.value, list) else [s.value]:
                if isinstance(text, str) and len(text) < 200:
                    out |= {t.lower() for t in re.findall(r"[A-Za-z]+|\d+", text)} | set(re.findall(r"[a-z0-9]+", text.lower()))
        return frozenset(out)


def closeness(a: Setting, b: Setting) -> tuple[int, int, int]:
    """How near two settings stand: same file, shared sections, few sections beside those."""
    shared = 0
    for x, y in zip(a.path[:-1], b.path[:-1], strict=False):
        if x != y:
            break
        shared += 1
    return int(a.leaf.file == b.leaf.file), shared, -(len(b.path) - 1 - shared)


def same_section(a: Setting, b: Setting) -> bool:
    return a.leaf.file == b.leaf.file and a.path[:-1] == b.path[:-1]


def places(doubt: Doubt) -> tuple[Any, ...]:
    return tuple(place_of(s.leaf) for s in doubt.settings)


def _of_tree(tree: ConfigTree) -> Iterator[tuple[tuple[str, ...], Any, Leaf]]:
    lists: dict[tuple[str, ...], list[Leaf]] = {}
    for leaf in tree:
        path = _parts(leaf.path)
        if path and isinstance(leaf.path[-1], int) and len(path) > 1:
            lists.setdefault(path[:-1], []).append(leaf)
    done: set[tuple[str, ...]] = set()
    for leaf in tree:
        path = _parts(leaf.path)
        if not path or path[0] in ASIDE or unresolved(leaf) or leaf.value is None:
            continue
        if path[:-1] in lists and isinstance(leaf.path[-1], int):
            if path[:-1] not in done:
                done.add(path[:-1])
                yield path[:-1], [item.value for item in lists[path[:-1]][:1000]], leaf
            continue
        yield path, leaf.value, leaf
        if isinstance(leaf.value, str) and len(leaf.value) < 5_000 and _CALL.match(leaf.value):
            yield from _written_call(path, leaf)


def _parts(path: Path) -> tuple[str, ...]:
    """The sections and the key; gin and some command lines write them with dots."""
    return tuple(piece for part in path for piece in (str(part).split(".") if _DOTTED.match(str(part)) else [str(part)]))


def _written_call(path: tuple[str, ...], leaf: Leaf) -> Iterator[tuple[tuple[str, ...], Any, Leaf]]:
    """Settings inside a text that is Python: policy_kwargs: "dict(log_std_init=-2)"."""
    for inner in parse_namespace(Source(str(leaf.value), leaf.file, leaf.line)):
        names = tuple(str(part) for part in inner.path)
        if names and not unresolved(inner) and not isinstance(inner.path[-1], int):
            yield (*path, *names), inner.value, Leaf((*leaf.path, *inner.path), inner.value, inner.raw, leaf.file, inner.line)
