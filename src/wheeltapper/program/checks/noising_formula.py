"""The noised sample is not what the method says.

What it sees
------------
A diffusion or a flow: the shares of data and noise that do not fit each other, the table of one step where that of
all steps so far is meant, a velocity that is not the derivative of the path.

Why it matters
--------------
The network is trained for another process than the one it is sampled with.

How it decides
--------------
`x = a * data + b * noise` is worked out with numbers. Of shares that both hang on one table, either the squares add
up to one (diffusion) or the shares themselves do (flow). If a cumulative product is made of the table that is used
here, the product is the one to use. Where the path is a straight line between two ends and the target is made of the
same ends, the target is the derivative of the path.

When it is wrong
----------------
With another parametrisation that scales both shares.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import is_random
from wheeltapper.program.play.formula import ends, slope_at, worth_at
from wheeltapper.program.play.story import Story
from wheeltapper.program.play.value import Val, made_of, number, plain
from wheeltapper.program.reading import Code

POINTS = (0.2, 0.6)
CLOSE = 1e-3
NORMAL = {"randn", "randn_like", "normal", "standard_normal"}

ID = "noising-formula"
CAUSE: str | None = "objective-mismatch"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for path, net, loss in _paths(story):
        first, second = path.args
        shares = [_share(first), _share(second)]
        if any(s is None for s in shares):
            continue
        (a, data), (b, noise) = (s for s in shares if s is not None)
        tables = [t for t in ends(a) if not is_random(plain(t)) or t.name in ("rand", "randint", "uniform")]
        same = {id(t) for t in ends(a)} == {id(t) for t in ends(b)} and len(ends(a)) == 1
        if same and not _fit(a, b, ends(a)[0]):
            yield code.seen(ID, "The shares of data and noise do not fit: neither they nor their squares add up to one.", path, net)
            return
        if same and (product := _product_of(story, tables)) is not None:
            yield code.seen(ID, "The table of single steps is used; the one of all steps so far is made of it and meant here.", a, path, product)
            return
        if same:
            target = _target(loss, net)
            if target is not None and _is_another_velocity(path, target, data, noise, ends(a)[0]):
                yield code.seen(ID, "The target is not the derivative of the path between the two ends.", path, target, loss)
                return


def _paths(story: Story) -> Iterator[tuple[Val, Val, Val]]:
    """Sums of a scaled sample and scaled normal noise that a trained network is given, with the loss on its answer."""
    for loss in story.loss_calls:
        for net in made_of(*loss.args[:2], deep=False):
            if net.op != "net" or not story.is_trained(net.args[0]) or len(net.args) < 2 or net.no_grad:
                continue
            path = plain(net.args[1])
            if path.op == "bin" and path.name == "Add" and any(_is_noise(v) for a in path.args for v in _factors(a)):
                yield path, net, loss


def _is_noise(value: Val) -> bool:
    value = plain(value)
    return value.op == "call" and value.name in NORMAL


def _factors(value: Val) -> tuple[Val, ...]:
    return value.args if value.op == "bin" and value.name == "Mult" else ()


def _share(product: Val) -> tuple[Val, Val] | None:
    """The share and what it is a share of: the factor that is a formula of a table or a time, and the other one."""
    parts = _factors(product)
    if len(parts) != 2:
        return None
    for share, what in (parts, tuple(reversed(parts))):
        if _is_noise(what) or (not _is_noise(share) and len(ends(share)) == 1 and _is_index(share)):
            return share, what
    return None


def _is_index(share: Val) -> bool:
    """A formula of a table that is looked up, or of a random time."""
    return any(
        (v.op == "item" and len(v.args) > 1 and any(is_random(w) for w in made_of(v.args[1]))) or (v.op == "call" and v.name in ("rand", "uniform", "gather", "rand_like"))
        for v in made_of(share)
    )


def _fit(a: Val, b: Val, table: Val) -> bool:
    for point in POINTS:
        one, other = (worth_at(x, {id(table): point}) for x in (a, b))
        if one is None or other is None:
            return True
        sums = (one + other, one * one + other * other)
        if not any(abs(s - 1) < CLOSE for s in sums) and abs(one - 1) > CLOSE:
            return False
    return True


def _product_of(story: Story, tables: list[Val]) -> Val | None:
    """The cumulative product that is made of these tables, where they are not made of one themselves."""
    wanted = {id(t) for t in tables}
    if any(v.op == "call" and v.name == "cumprod" for t in tables for v in made_of(t)):
        return None
    for call in story.named("cumprod"):
        if call.args and {id(e) for e in ends(call.args[0])} & wanted:
            return call
    return None


def _target(loss: Val, net: Val) -> Val | None:
    sides = [a for a in loss.args[:2] if not any(v is net for v in made_of(a, deep=False))]
    return sides[0] if len(sides) == 1 else None


def _is_another_velocity(path: Val, target: Val, data: Val, noise: Val, time: Val) -> bool:
    target = plain(target)
    if target.op != "bin" or target.name != "Sub" or number(target) is not None:
        return False
    mine = {id(v) for v in made_of(target, deep=False)}
    if id(data) not in mine and id(noise) not in mine:
        return False
    for x, n, t in ((1.3, -0.4, 0.3), (-0.7, 0.9, 0.6)):
        given = {id(data): x, id(noise): n, id(time): t}
        line = worth_at(path, given)
        wanted, told = slope_at(path, time, given), worth_at(target, given)
        if line is None or wanted is None or told is None:
            return False
        if abs(wanted - told) < 1e-2:
            return False
    return _is_straight(path, data, noise, time)


def _is_straight(path: Val, data: Val, noise: Val, time: Val) -> bool:
    slopes = [slope_at(path, time, {id(data): 1.0, id(noise): -0.5, id(time): t}) for t in POINTS]
    return slopes[0] is not None and slopes[1] is not None and abs(slopes[0] - slopes[1]) < CLOSE
