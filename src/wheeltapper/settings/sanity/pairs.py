"""Two settings of which one bounds the other: least and most, start and end, positive and negative, teacher and student."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wheeltapper.settings.sanity.sheet import Doubt, Setting, Sheet

BOUNDS = (("min", "max"), ("low", "high"), ("lower", "upper"), ("minimum", "maximum"), ("lo", "hi"), ("near", "far"))
_RISES = re.compile(r"sigma|beta(?!s?_?\d)|freq|scale|size|len|snr")
_LISTS = re.compile(r"range|clamp|bound|limit|scale(?!s)|interval|clip(?!_?grad)")


def least_above_most(sheet: Sheet) -> Iterator[Doubt]:
    """min_x above max_x."""
    for s in sheet.settings:
        if s.number is None or isinstance(s.value, bool):
            continue
        for low, high in BOUNDS:
            wanted = re.sub(rf"(?<![a-z]){low}(?![a-z])", high, s.key)
            if wanted == s.key:
                continue
            other = next((o for o in sheet.settings if o.key == wanted and o.path[:-1] == s.path[:-1] and o.leaf.file == s.leaf.file), None)
            if other is not None and other.number is not None and not isinstance(other.value, bool) and s.number > other.number > 0 and "lr" not in s.own:
                yield Doubt("setting-beyond-practice", f"`{s.name}` is {s.number:g} and `{other.name}` is {other.number:g}: the least is above the most", (s, other))
        if (s.own & {"init", "initial"} and (most := next((o for o in sheet.settings if o.path[:-1] == s.path[:-1] and o.key == re.sub(r"init(?:ial)?", "max", s.key) and o.number is not None), None))) and (s.number > (most.number or 0) and "lr" not in s.own):
            yield Doubt("setting-beyond-practice", f"`{s.name}` is {s.number:g}, above its most of {most.number:g} (`{most.name}`)", (most, s))


def falling_lists(sheet: Sheet) -> Iterator[Doubt]:
    """A range whose end lies before its start, or which is one point."""
    for s in sheet.settings:
        if len(s.numbers) != 2 or not _LISTS.search(s.key) or s.own & {"size", "sizes", "img", "image", "lr"}:
            continue
        one, two = s.numbers
        if one > two and not s.own & {"anchor", "anchors"} and not (_of_pictures(s)):
            yield Doubt("setting-beyond-practice", f"`{s.name}` goes from {one:g} to {two:g}: the start lies above the end", (s,))
        elif one == two and s.own & {"clamp", "logvar"} and one != 0:
            yield Doubt("setting-beyond-practice", f"`{s.name}` is {one:g} at both ends: the value is pinned", (s,))
        elif one == two == 1 and s.own & {"crop", "crops", "resized"} and sheet.themes & {"contrast"}:
            yield Doubt("setting-beyond-practice", f"`{s.name}` is 1 at both ends: all views of a picture are alike", (s,), "range")


def _of_pictures(s: Setting) -> bool:
    """`scale=(2048, 512)`: width and height."""
    return all(n >= 32 and float(n).is_integer() for n in s.numbers)


def gaps(sheet: Sheet) -> Iterator[Doubt]:
    """A stride longer than the window leaves out what lies between."""
    for s in sheet.settings:
        if s.key not in ("stride", "window_stride", "window_step", "doc_stride", "step_size") or not s.number:
            continue
        window = next((o for o in sheet.settings if o.path[:-1] == s.path[:-1] and o.key in ("window", "window_size", "window_length", "max_seq_length", "win_length") and o.number), None)
        if window is not None and s.number > (window.number or 0):
            yield Doubt("setting-beyond-practice", f"a stride of {s.number:g} (`{s.name}`) with a window of {window.number:g} (`{window.name}`) leaves gaps", (s, window))


def global_and_local(sheet: Sheet) -> Iterator[Doubt]:
    """Global crops that are smaller than the local ones."""
    for s in sheet.settings:
        other = next((o for o in sheet.settings if o.key == s.key.replace("global", "local") and o is not s), None)
        if "global" not in s.key or other is None:
            continue
        mine, theirs = (x.numbers[-1] if x.numbers else x.number for x in (s, other))
        if mine is not None and theirs is not None and mine < theirs and s.own & {"crop", "crops"}:
            yield Doubt("setting-beyond-practice", f"`{s.name}` is {s.value} and `{other.name}` is {other.value}: the global views see less than the local ones", (s, other))


def thresholds(sheet: Sheet) -> Iterator[Doubt]:
    """What counts as positive lies below what counts as negative."""
    for s in sheet.settings:
        wanted = re.sub(r"(?<![a-z])(pos|positive|fg|foreground|matched)(?![a-z])", lambda m: {"pos": "neg", "positive": "negative", "fg": "bg", "foreground": "background", "matched": "unmatched"}[m[1]], s.key)
        other = next((o for o in sheet.settings if o.key == wanted and o.path[:-1] == s.path[:-1] and o is not s), None)
        if other is None or wanted == s.key or not s.own & {"iou", "thr", "thresh", "threshold", "overlap"} or s.own & {"weight", "distance"}:
            continue
        if s.number is not None and other.number is not None and s.number < other.number:
            yield Doubt("setting-beyond-practice", f"`{s.name}` is {s.number:g} and `{other.name}` is {other.number:g}: what is positive would be negative", (s, other))


def teachers(sheet: Sheet) -> Iterator[Doubt]:
    """A teacher softer than its student."""
    student = next((s for s in sheet.settings if s.has("student temp/temperature") and s.number), None)
    for s in sheet.settings:
        if student is not None and s.has("teacher temp/temperature", "n epoch epochs step") and s.number and s.number >= (student.number or 0):
            yield Doubt("temperature-too-high", f"the teacher's temperature is {s.number:g} (`{s.name}`), the student's {student.number:g} (`{student.name}`): nothing is sharpened", (s, student))


def equal_labels(sheet: Sheet) -> Iterator[Doubt]:
    """Real and generated samples get the same label."""
    real, fake = (next((s for s in sheet.settings if s.has(f"{word} label/target/value") and s.number is not None), None) for word in ("real", "fake"))
    if real is not None and fake is not None and abs((real.number or 0) - (fake.number or 0)) < 0.2:
        yield Doubt("objective-mismatch", f"`{real.name}` is {real.number:g} and `{fake.name}` is {fake.number:g}: the discriminator has nothing to tell apart", (fake, real))


def shares_above_one(sheet: Sheet) -> Iterator[Doubt]:
    """Shares of one whole that sum to more than it."""
    groups: dict[tuple[str, ...], list[Setting]] = {}
    for s in sheet.settings:
        named = s.own & {"replace", "keep", "rand", "random", "mask", "same"} and (s.own & {"word", "replace", "prob", "with", "token"}) and not s.own & {"masked", "lm", "mlm", "prop", "seed", "crop", "n", "erase", "channel", "time", "feature", "length", "other", "selection", "no"}
        if named and s.number is not None and not isinstance(s.value, bool) and 0 <= s.number <= 1:
            groups.setdefault(s.path[:-1], []).append(s)
    for group in groups.values():
        total = sum(s.number or 0 for s in group)
        kinds = {word for s in group for word in s.own & {"mask", "keep", "rand", "random", "same"}}
        if len(group) in (2, 3) and len(kinds) > 1 and total > 1.0001:
            worst = sorted(group, key=lambda s: -(s.number or 0))
            yield Doubt("setting-beyond-practice", f"{', '.join(f'`{s.name}`' for s in group)} sum to {total:g}: shares of one whole", tuple(worst[1:2] + worst[:1] + worst[2:]))


CHECKS = (gaps, least_above_most, falling_lists, global_and_local, thresholds, teachers, equal_labels, shares_above_one)
