"""What is wrong with a configuration before it runs, by the rules of its framework.

Graded "is" only where the framework's own code decides it: a strict loader refuses the key or the type.
Where a framework silently ignores what it does not know, a near miss of a known key is "suspected".
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Literal

from wheeltapper.finding import Place
from wheeltapper.settings.dialects import SURE_ENOUGH, dialect_named, recognise_dialect
from wheeltapper.settings.dialects._lookup import first_unknown, known_key
from wheeltapper.settings.dialects._torch import string_number
from wheeltapper.settings.dialects.generic import meaning_of
from wheeltapper.settings.dialects.schema import ASIDE, Key, Problem, View, as_number, place_of, rank
from wheeltapper.settings.knobs import KNOBS, read_knobs
from wheeltapper.settings.sense import doubt_problems, practice_problems, sense_problems
from wheeltapper.settings.tree import ConfigTree, Leaf

MAX_PROBLEMS = 200

_SPOT = re.compile(r"(.*?):(\d+):(\d+): (.*)\Z", re.S)
# What a loader certainly refuses, or certainly does, when our parser words it so.
_CERTAIN = re.compile(r"not YAML:|is written twice in one block|not TOML:|is given twice|blanks after the backslash")


def check_config(
    trees: Sequence[ConfigTree], *, dialect: ModuleType | str | None = None, version: str | None = None
) -> list[Problem]:
    """Problems of these sources. `version` is the framework's version or commit date, where it is known.

    What a run printed itself was accepted by its framework, so such trees are not judged.
    """
    if isinstance(dialect, str):
        dialect = dialect_named(dialect)
    module = dialect or recognise_dialect(trees)
    declared = [tree for tree in trees if rank(tree) < 2]
    out = [problem for tree in declared for problem in _syntax(tree)]
    if module is None:
        for tree in declared:
            out += _string_numbers(tree, dialect_named("generic"), certain=False)
        return _once(out + _worth_a_look(declared, dialect_named("generic")))[:MAX_PROBLEMS]
    own = [tree for tree in declared if dialect is not None or module.recognise(tree) >= SURE_ENOUGH]
    for tree in own:
        out += _unknown_keys(tree, module, version)
        out += _wrong_types(tree, module)
        out += _string_numbers(tree, module, certain=False)
        if rank(tree) == 0:
            out += _missing(tree, module)
    if own and hasattr(module, "check"):
        out += module.check(View(declared))
    return _once(out + _worth_a_look(declared, module))[:MAX_PROBLEMS]


def _worth_a_look(trees: list[ConfigTree], module: ModuleType) -> list[Problem]:
    """What no framework decides: values that make no sense, names nothing reads, settings hardly anybody runs."""
    out = []
    for tree in trees:
        out += sense_problems([tree], module)
    knobs = read_knobs(trees, dialect=module) if trees else {}
    out += practice_problems(trees, knobs) if knobs else ()
    return [*out, *doubt_problems(trees)]


def _syntax(tree: ConfigTree) -> list[Problem]:
    out = []
    for told in tree.problems:
        match = _SPOT.match(told)
        place = Place(match.group(1), int(match.group(2)), int(match.group(3))) if match else Place(tree.file)
        text = match.group(4) if match else told
        certain = bool(_CERTAIN.search(text)) and tree.format != "python"
        kind = "duplicate-key" if "twice" in text else "syntax"
        out.append(Problem(kind, text, place, "is" if certain else "suspected"))
    return out


def _once(problems: list[Problem]) -> list[Problem]:
    """One problem per place and key, the surest of them."""
    best: dict[tuple[str, str | None, str], Problem] = {}
    for problem in problems:
        kind = "syntax" if problem.key is None else ""
        slot = (str(problem.place), problem.key, kind + (problem.text if problem.key is None else ""))
        held = best.get(slot)
        if problem.id == "doubtful-setting" and any(p.place.line == problem.place.line and p.place.file == problem.place.file for p in best.values()):
            continue  # something surer is told of this line
        if held is None or (held.grade == "suspected" and problem.grade == "is"):
            best[slot] = problem
    return list(best.values())


def _settings(tree: ConfigTree) -> list[tuple[tuple[str, ...], Leaf]]:
    skip = ASIDE | {"script", "module", "program", "positional"}
    out = []
    for leaf in tree:
        path = tuple(str(part) for part in leaf.path)
        if path and path[0] not in skip and not path[0].startswith(("document ", "_")):
            out.append((path, leaf))
    return out


def _unknown_keys(tree: ConfigTree, module: ModuleType, version: str | None) -> list[Problem]:
    if module.UNKNOWN == "unknown":
        return []
    out: dict[str, Problem] = {}
    fork_files = any(key.fork for key in _present(tree, module))
    for path, leaf in _settings(tree):
        key = known_key(module, path)
        if key is not None:
            late = version is not None and key.since is not None and not key.fork and key.since > version
            if late and module.UNKNOWN == "refuse":
                text = f"`{key.path}` exists since {key.since}; this version is of {version} and refuses to load it"
                out.setdefault(key.path, Problem("unknown-key", text, place_of(leaf), "is", None, key.path))
            continue
        at = first_unknown(module, path)
        if at == len(path):  # a section that is present and empty, such as `val:` with nothing below
            continue
        dotted = ".".join(path[: at + 1])
        if dotted in out:
            continue
        problem = _unknown(dotted, path[: at + 1], leaf, module, fork_files)
        if problem is not None:
            out[dotted] = problem
    return list(out.values())


def _present(tree: ConfigTree, module: ModuleType) -> list[Key]:
    found = (known_key(module, path) for path, _ in _settings(tree))
    return [key for key in found if key is not None]


def _unknown(dotted: str, path: tuple[str, ...], leaf: Leaf, module: ModuleType, fork: bool) -> Problem | None:
    siblings = {key.parts[len(path) - 1] for key in module.KEYS.values() if _same_level(key, path)}
    close = difflib.get_close_matches(path[-1], siblings, 1, 0.8)
    elsewhere = [key.path for key in module.KEYS.values() if key.parts[-1] == path[-1] and "*" not in key.path]
    if module.UNKNOWN == "refuse":
        grade: Literal["is", "suspected"] = "suspected" if fork else "is"
        if elsewhere:
            text = f"`{dotted}` is not read here: {module.TITLE} refuses to load the file"
            return Problem("wrong-place", text, place_of(leaf), grade, f"It belongs at `{elsewhere[0]}`.", dotted)
        meant = ".".join((*path[:-1], close[0])) if close else _by_meaning(path[-1], module)
        hint = f"Did you mean `{meant}`?" if meant else None
        text = f"{module.TITLE} has no key `{dotted}` and refuses to load the file"
        return Problem("unknown-key", text, place_of(leaf), grade, hint, dotted)
    if len(path) != 1 and not siblings:
        return None
    if close and _slip(path[-1], close[0]):
        text = f"{module.TITLE} has no key `{dotted}`: it is not applied"
        return Problem("unknown-key", text, place_of(leaf), "suspected", f"Did you mean `{close[0]}`?", dotted)
    return None


def _by_meaning(name: str, module: ModuleType) -> str | None:
    """A key of another section with nearly this name, or the key for what this name means elsewhere."""
    keys: dict[str, Key] = module.KEYS
    last = {key.parts[-1]: key.path for key in keys.values() if "*" not in key.path}
    near = difflib.get_close_matches(name, last, 1, 0.85)
    if near:
        return last[near[0]]
    knob = meaning_of(name)
    return next((key.path for key in keys.values() if knob is not None and key.knob == knob), None)


def _same_level(key: Key, path: tuple[str, ...]) -> bool:
    if len(key.parts) < len(path):
        return False
    return all(p in ("*", q) for p, q in zip(key.parts, path[:-1], strict=False))


def _slip(written: str, meant: str) -> bool:
    """A slip of the finger: one letter more, less, other or swapped, in a word long enough to be sure."""
    if min(len(written), len(meant)) < 5 or written == meant:
        return False
    if re.sub(r"[\d]", "", written) == re.sub(r"[\d]", "", meant):  # beta1 and beta3, size and size2
        return False
    if len(written) == len(meant):
        differ = [i for i, (a, b) in enumerate(zip(written, meant, strict=True)) if a != b]
        if len(differ) == 1:
            return True
        swapped = len(differ) == 2 and differ[1] == differ[0] + 1
        return swapped and written[differ[0]] == meant[differ[1]] and written[differ[1]] == meant[differ[0]]
    if abs(len(written) - len(meant)) != 1:
        return False
    short, long = sorted((written, meant), key=len)
    plural = long == short + "s"
    return not plural and any(long[:i] + long[i + 1 :] == short for i in range(len(long)))


def _wrong_types(tree: ConfigTree, module: ModuleType) -> list[Problem]:
    """Only a strict decoder makes a wrong type certain; other loaders convert in their own ways."""
    if not getattr(module, "STRICT_TYPES", False) or rank(tree) > 0:
        return []
    out = []
    for path, leaf in _settings(tree):
        key = known_key(module, path)
        if key is None:
            continue
        depth = len(key.parts)
        if len(path) > depth:
            if key.kinds == {"list"} and not path[depth].isdecimal():
                text = f"`{'.'.join(path[:depth])}` must be a list: {module.TITLE} refuses to load the file"
                out.append(Problem("wrong-type", text, place_of(leaf), "is", None, ".".join(path[:depth])))
            continue
        if _fits(leaf.value, key):
            continue
        said = "null" if leaf.value is None else f"{type(leaf.value).__name__} {leaf.value!r}"
        want = " or ".join(sorted(key.kinds))
        text = f"`{'.'.join(path)}` must be {want}, not {said}: {module.TITLE} refuses to load the file"
        if isinstance(leaf.value, str) and as_number(leaf.value) is not None and key.kinds & {"int", "float"}:
            out.append(string_number(leaf.value, ".".join(path), place_of(leaf), "is", module.TITLE))
        else:
            out.append(Problem("wrong-type", text, place_of(leaf), "is", None, ".".join(path)))
    return out


def _fits(value: Any, key: Key) -> bool:
    """Does a strict decoder take this value? An int passes for a float; nothing else passes for another."""
    kinds = key.kinds
    if "any" in kinds:
        return True
    if value is None:
        return key.nullable
    if isinstance(value, bool):
        return "bool" in kinds
    if isinstance(value, int):
        return bool(kinds & {"int", "float"})
    if isinstance(value, float):
        return "float" in kinds
    if isinstance(value, str):
        return "str" in kinds
    if isinstance(value, dict):
        return "map" in kinds
    return "list" in kinds or not isinstance(value, (list, tuple))


def _string_numbers(tree: ConfigTree, module: ModuleType, *, certain: bool) -> list[Problem]:
    """Settings that are numbers by meaning and text by YAML 1.1."""
    if tree.format != "yaml" or getattr(module, "YAML_NUMBERS", "1.1") != "1.1":
        return []
    if {"hydra", "defaults"} & {leaf.path[0] for leaf in tree if leaf.path}:
        return []  # composed by Hydra, whose loader reads 1e-6 as a number
    out = []
    for path, leaf in _settings(tree):
        trapped = leaf.note is not None and "as a string, not a number" in leaf.note
        if not trapped:
            continue
        key = known_key(module, path)
        numeric = key is not None and bool(key.kinds & {"int", "float"} or _numeric_knob(key.knob))
        who = "a program that computes with it" if not certain else module.TITLE
        if numeric or _numeric_name(path):
            out.append(string_number(str(leaf.value), ".".join(path), place_of(leaf), "suspected", who))
    return out


def _numeric_knob(id_: str | None) -> bool:
    return id_ is not None and KNOBS[id_].kind in ("number", "count")


def _numeric_name(path: tuple[str, ...]) -> bool:
    """In a framework's free blocks (optimizer, loss) any number-like text with an exponent is a number."""
    words = [part for part in path if not part.isdecimal()]
    return bool(words) and not re.search(r"(?:^|_)(?:id|name|version|hash|commit|tag|date)$", words[-1])


def _missing(tree: ConfigTree, module: ModuleType) -> list[Problem]:
    present = {path for path, _ in _settings(tree)}
    heads = {path[:depth] for path in present for depth in range(1, len(path) + 1)}
    anchor = tree.leaves[0] if tree.leaves else None
    out: list[Problem] = []
    if anchor is None:
        return out
    for required in module.REQUIRED:
        parts = tuple(required.split("."))
        for parent in _parents(parts[:-1], heads):
            path = (*parent, parts[-1])
            if path not in heads:
                dotted = ".".join(path)
                where = place_of(_nearest(tree, parent) or anchor)
                text = f"`{dotted}` is missing: {module.TITLE} refuses to load the file"
                out.append(Problem("missing", text, where, "is", f"Add `{dotted}`.", dotted))
    return out


def _parents(pattern: tuple[str, ...], heads: set[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Sections that exist and match the pattern; the file itself for a key at the top."""
    if not pattern:
        return [()]
    return sorted(
        head
        for head in heads
        if len(head) == len(pattern) and all(p in ("*", q) for p, q in zip(pattern, head, strict=True))
    )


def _nearest(tree: ConfigTree, parent: tuple[str, ...]) -> Leaf | None:
    return next((leaf for leaf in tree if tuple(str(p) for p in leaf.path)[: len(parent)] == parent), None)
