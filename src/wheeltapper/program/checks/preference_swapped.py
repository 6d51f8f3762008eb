"""The rejected side is preferred.

What it sees
------------
A pairwise loss in which the preferred answer (or item) has the minus sign, or the reference counts the wrong way; a
dataset that gives the good answer as rejected.

Why it matters
--------------
The model learns to prefer what people rejected.

How it decides
--------------
The argument of `logsigmoid` is taken apart into its terms with their signs; the words on the way of each from the
data (chosen, rejected, pos, neg, win, lose, good, bad) say which side it is. The terms of the reference network must
have the opposite signs. Where the program counts how often one side is above the other, the margin of the loss must
have the same sign.

When it is wrong
----------------
If the fields mean the opposite of their names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import words_on
from wheeltapper.program.play.story import Story
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "preference-swapped"
CAUSE: str | None = "wrong-loss-sign"
DECIDES = True

GOOD = re.compile(
    r"chosen|prefer(?!ences?$)|(^|_)win|(^|_)pos(itive)?s?(_|$)|(^|_)better|(^|_)good|(^|_)w$|(^|_)accepted", re.I
)
BAD = re.compile(
    r"reject|dispref|(^|_)los(e|er|ing)(_|$)|(^|_)neg(ative)?s?(_|$)|(^|_)worse|(^|_)bad(_|$)|(^|_)l$", re.I
)


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for _, loss in story.backwards:
        for value in made_of(loss):
            if value.op == "call" and value.name == "logsigmoid" and value.args:
                told = _wrong(story, value) or _against_the_score(story, value.args[0])
                if told is not None:
                    yield code.seen(ID, told, value.args[0], value, *_sums(value.args[0]))
                    return
    yield from _in_data(code)


def _sums(value: Val) -> list[Val]:
    """Where the sides are put together."""
    return [v for v in made_of(value, deep=False) if v.op == "bin" and v.name in ("Sub", "Add")][:2]


def _wrong(story: Story, value: Val) -> str | None:
    policy: dict[str, list[int]] = {"good": [], "bad": []}
    reference: dict[str, list[int]] = {"good": [], "bad": []}
    for term in story.terms(value.args[0]):
        side = _side(term.value)
        if side is None:
            continue
        nets = [v for v in made_of(term.value) if v.op == "net"]
        mine = bool(nets) and any(not n.no_grad and story.is_trained(n.args[0]) for n in nets)
        (policy if mine else reference)[side].append(term.sign)
    if policy["bad"] and not policy["good"] and len(policy["bad"]) > 1 and len(set(policy["bad"])) > 1:
        return "Both sides of the comparison are the rejected one."
    if any(s < 0 for s in policy["good"]) and not any(s > 0 for s in policy["good"]):
        return "The preferred side has the minus sign: the rejected one is made more likely."
    if any(s > 0 for s in policy["bad"]) and not any(s < 0 for s in policy["bad"]):
        return "The rejected side has the plus sign: it is made more likely."
    if policy["good"] and any(s > 0 for s in reference["good"]) and any(s < 0 for s in reference["bad"]):
        return "The reference's margin is added and not subtracted."
    return None


def _against_the_score(story: Story, margin: Val) -> str | None:
    """The program counts an answer as right (`a > b`) when the margin that the loss makes large is negative."""
    wanted = _signs(story, margin)
    for call in story.named("mean", "sum", "float", "item"):
        for cmp in made_of(call, deep=False, stop=lambda v: v.op == "net"):
            if cmp.op != "cmp" or cmp.name not in ("Gt", "GtE", "Lt", "LtE") or len(cmp.args) != 2:
                continue
            sides = cmp.args if cmp.name[0] == "G" else tuple(reversed(cmp.args))
            counted = _signs(story, Val("bin", "Sub", sides))
            shared = set(wanted) & set(counted)
            if len(shared) > 1 and all(wanted[k] == -counted[k] for k in shared):
                return "The loss makes large what the program's own score counts as wrong: the sides are swapped."
    return None


def _signs(story: Story, value: Val, sign: int = 1, depth: int = 0) -> dict[int, int]:
    """The outputs that a margin is made of, with their signs; detached or not."""
    out: dict[int, int] = {}
    for term in story.terms(value):
        one = term.value
        if one.op == "bin" and one.name == "Mult" and depth < 4:
            inner = [a for a in one.args if any(v.op == "net" for v in made_of(a))]
            if len(inner) == 1:
                out.update(_signs(story, inner[0], sign * term.sign, depth + 1))
        elif one.op == "call" and one.name == "detach" and one.args and depth < 4:
            out.update(_signs(story, one.args[0], sign * term.sign, depth + 1))
        elif any(v.op == "net" for v in made_of(one)):
            out[id(one)] = sign * term.sign
    return out


def _side(value: Val) -> str | None:
    near = _told(_names(value))
    if near is not None:
        return near
    words = words_on(value) | {
        w for v in made_of(value, deep=True) if v.op == "net" for a in v.args[1:] for w in words_on(a)
    }
    return _told(words)


def _names(value: Val) -> set[str]:
    return {value.node.id} if isinstance(value.node, ast.Name) else set()


def _told(words: set[str]) -> str | None:
    good, bad = any(GOOD.search(w) and not BAD.search(w) for w in words), any(BAD.search(w) for w in words)
    return "good" if good and not bad else "bad" if bad and not good else None


def _in_data(code: Code) -> Iterator[Finding]:
    """`{"chosen": row["bad"], "rejected": row["good"]}`"""
    for value in code.story.dicts:
        chosen, rejected = value.fields.get("chosen"), value.fields.get("rejected")
        if chosen is not None and rejected is not None and _side(chosen) == "bad" and _side(rejected) == "good":
            yield code.seen(ID, "The preferred answer is given as the rejected one.", value)
            return
