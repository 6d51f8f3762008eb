"""Settings that make no sense, that nothing reads, or that hardly anybody runs. Never certain: each is worth a look."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from types import ModuleType
from typing import Any

from wheeltapper.finding import Place
from wheeltapper.settings.dialects._nearest import EVAL
from wheeltapper.settings.dialects.generic import known_names
from wheeltapper.settings.dialects.schema import ASIDE, Problem, View, as_number, place_of, unresolved
from wheeltapper.settings.knob_table import KNOBS
from wheeltapper.settings.tree import ConfigTree, Leaf
from wheeltapper.settings.understand import guess_of, near_miss, themes_in
from wheeltapper.settings.vocabulary import meaning_of_path, misspelt
from wheeltapper.settings.words import word_set

MOST_KEYS = 5_000  # looked at in one file
MOST = 50  # problems of one kind
SHORTEST = 7  # letters; a shorter name has too many neighbours
# Numbers that cannot be below zero, and those that must lie between 0 and 1.
NEVER_NEGATIVE = word_set("""optimizer.lr optimizer.lr_d optimizer.lr_g optimizer.weight_decay optimizer.momentum optimizer.eps
    schedule.min_lr schedule.max_lr schedule.gamma batch.accumulation loss.temperature
    loss.label_smoothing augment.dropout ema.decay mask.rate lora.alpha lora.dropout dpo.beta rl.gamma
    rl.tau diffusion.sigma_min diffusion.sigma_max""")
SHARES = word_set("augment.dropout lora.dropout ema.decay mask.rate loss.label_smoothing rl.gamma rl.gae_lambda rl.tau")
# Words that stand for a number where a program works it out, or for nothing at all.
_STANDINS = word_set("auto none null default inf linear cosine constant all true false max min off on")
_CORE = word_set("optimizer.lr run.epochs optimizer.weight_decay optimizer.momentum run.total_steps")


def sense_problems(trees: Sequence[ConfigTree], module: ModuleType) -> list[Problem]:
    """Nonsense values and keys that only nearly have the name of a setting."""
    view = View(trees)
    themes = themes_in(view)
    out = []
    for path, leaf in islice(view.plain(), MOST_KEYS):
        if path[0] in ASIDE or unresolved(leaf) or any(EVAL.match(part.lower()) for part in path[:-1]):
            continue
        missed = _nearly(module, view, path, leaf)
        if missed is not None:
            out.append(missed)
            continue
        meant = meaning_of_path(tuple(part for part in path if not part.isdigit()) or path, themes)
        told = _nonsense(meant.knob, path, leaf) if meant is not None else None
        if told is not None:
            out.append(told)
    return out[:MOST]


def _nearly(module: ModuleType, view: View, path: tuple[str, ...], leaf: Leaf) -> Problem | None:
    dotted = ".".join(path)
    if leaf.value is None or isinstance(leaf.value, bool):
        return None
    if misspelt(path[-1]) and (knob := guess_of(path[-1])) is not None:
        hint = f"Did you mean `{path[-1].rstrip('_')}`? It would set {KNOBS[knob].meaning}."
        return Problem("near-miss", f"nothing is known to read `{dotted}`", place_of(leaf), "suspected", hint, dotted)
    meant = meaning_of_path(path)
    if meant is None:
        usual = slips(path)
        if usual is None or view.has(".".join((*path[:-1], usual))):
            return None
        text = f"`{dotted}` is no usual key: a program that looks for `{usual}` does not find it"
        return Problem("near-miss", text, place_of(leaf), "suspected", f"Did you mean `{usual}`?", dotted)
    own = near_miss(module, view, path, meant.knob)
    if own is None:
        return None
    text = f"{module.TITLE} has no key `{dotted}`: it is not applied"
    return Problem("near-miss", text, place_of(leaf), "suspected", f"Did you mean `{own}`?", dotted)


def _nonsense(knob: str, path: tuple[str, ...], leaf: Leaf) -> Problem | None:
    """A value that no program can mean for this knob."""
    kind = KNOBS[knob].kind
    if kind not in ("number", "count"):
        return None
    dotted, value = ".".join(path), leaf.value
    if path[-1].isdigit():
        if knob in _CORE and path[-1] == "0":
            text = f"`{dotted.rsplit('.', 1)[0]}` is a list where one number is usual ({KNOBS[knob].meaning})"
            return Problem("list-for-number", text, place_of(leaf), "suspected", None, dotted)
        return None
    number = as_number(value)
    if number is None:
        return _not_a_number(knob, dotted, leaf)
    if math.isnan(number) or math.isinf(number):
        text = f"`{dotted}` is {leaf.raw[:40]}, which is no finite number ({KNOBS[knob].meaning})"
        return Problem("nonsense-value", text, place_of(leaf), "suspected", None, dotted)
    if knob in NEVER_NEGATIVE and number < 0 and number != -1:
        text = f"`{dotted}` is {number:g}: below zero makes no sense for {KNOBS[knob].meaning}"
        return Problem("nonsense-value", text, place_of(leaf), "suspected", None, dotted)
    if knob in SHARES and number > 1:
        text = f"`{dotted}` is {number:g}: more than 1 makes no sense for {KNOBS[knob].meaning}"
        return Problem("nonsense-value", text, place_of(leaf), "suspected", None, dotted)
    return None


def _not_a_number(knob: str, dotted: str, leaf: Leaf) -> Problem | None:
    value = leaf.value
    if knob not in _CORE or not isinstance(value, str) or not value.strip():
        return None
    if value.strip().lower() in _STANDINS or any(mark in value for mark in "${}()<>[]@!") or "\n" in value:
        return None
    text = f"`{dotted}` is the text {value[:40]!r}, not a number ({KNOBS[knob].meaning})"
    return Problem("text-for-number", text, place_of(leaf), "suspected", None, dotted)


def practice_problems(trees: Sequence[ConfigTree], knobs: Mapping[str, Any]) -> Iterator[Problem]:
    """Settings beyond what public runs of the kind have. A rare setting alone makes no run ill."""
    from wheeltapper.settings.practice import beyond_practice, family_of, mode_of  # loaded only when asked

    texts = [tree.file for tree in trees]
    for tree in trees:
        texts += [str(leaf.path[-1]) for leaf in tree.leaves[:400] if leaf.path]
        texts += [leaf.value for leaf in tree.leaves[:400] if isinstance(leaf.value, str) and len(leaf.value) < 60]
    for id_, value, rank in beyond_practice(knobs, family_of(texts), mode_of(texts, knobs)):
        found = knobs.get(id_)
        place = place_of(found.leaf) if found is not None and found.leaf is not None else Place(trees[0].file)
        key = found.leaf.dotted if found is not None and found.leaf is not None else id_
        yield Problem("beyond-practice", rank.sentence(value), place, "suspected", None, key)


def doubt_problems(trees: Sequence[ConfigTree]) -> Iterator[Problem]:
    """Settings that cannot be meant or that contradict each other, as the judge weighs them."""
    from wheeltapper.settings.sanity import doubts_of  # loaded only when asked

    for doubt in doubts_of(trees):
        first = doubt.settings[0]
        yield Problem("doubtful-setting", doubt.text, place_of(first.leaf), "suspected", None, first.name)


def slips(path: tuple[str, ...]) -> str | None:
    """A usual key that this one differs from by one letter.

    >>> slips(("learing_rate",))
    'learning_rate'
    """
    return None if len(path[-1]) < SHORTEST or meaning_of_path(path) is not None else _usual(path[-1])


@lru_cache(maxsize=20_000)
def _usual(name: str) -> str | None:
    plain = name.lower().replace("-", "_")
    return next((known for known in _names_near(len(plain)) if _one_letter(plain, known)), None)


@lru_cache(maxsize=200)
def _names_near(length: int) -> tuple[str, ...]:
    return tuple(known for known in known_names() if len(known) >= SHORTEST and abs(len(known) - length) <= 1)


def _one_letter(a: str, b: str) -> bool:
    if a == b or a.rstrip("s") == b.rstrip("s") or (a[:2] != b[:2] and a[-2:] != b[-2:]):
        return False
    if len(a) == len(b):
        differ = [i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y]
        swapped = len(differ) == 2 and a[differ[0]] == b[differ[1]] and a[differ[1]] == b[differ[0]]
        return swapped or (len(differ) == 1 and a[differ[0]].isalpha() and b[differ[0]].isalpha())
    short, long = sorted((a, b), key=len)
    return any(long[:i] + long[i + 1 :] == short for i in range(len(long)))
