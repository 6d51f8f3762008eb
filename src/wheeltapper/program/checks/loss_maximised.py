"""The optimizer makes the loss grow.

What it sees
------------
A term of the training loss that has the wrong sign: minus a cross-entropy, plus a log-probability times an advantage,
plus the logarithm of a preference, plus an overlap.

Why it matters
--------------
Every step makes the model worse at what it is for. The curve falls without end, and the score with it.

How it decides
--------------
The value that the backward pass starts from is taken apart into its terms with their signs, through helpers, sums,
means and known factors. Losses of torch count with minus; `log_prob(a) * advantage`, the clipped ratio of PPO,
`logsigmoid(margin)` and an overlap ratio count with plus; an entropy bonus counts with plus where a policy is
trained.

When it is wrong
----------------
If the optimizer maximises (that is asked), or the term is the game of a second network (such terms are left out).
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import bootstrap, is_log_prob, is_overlap, learns_through
from wheeltapper.program.play.story import LOSSES, Story, Term
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "loss-maximised"
CAUSE: str | None = "wrong-loss-sign"
DECIDES = True

MIN = {"min", "minimum"}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    if any("maximize" in o.kwargs for o in story.optimizers):
        return
    for call, loss in story.backwards:
        terms = story.terms(loss)
        for term in terms:
            told = _wrong(story, term, terms)
            if told is not None:
                yield code.seen(ID, told, term.value, call)
                return


def _wrong(story: Story, term: Term, terms: list[Term]) -> str | None:
    value = term.value
    if term.sign < 0:
        known = value if value.op == "call" and value.name in LOSSES else story.squared(value)
        if (
            known is not None
            and known.args
            and not _is_game(story, value)
            and not (known is not value and _also_plus(story, terms))
        ):
            return f"{known.name} goes into the loss with a minus: the optimizer makes it grow."
        return None
    if value.op == "call" and value.name == "logsigmoid" and learns_through(story, value):
        return "The log of the preferred side's probability is minimised: it should go into the loss with a minus."
    if _is_policy_term(value):
        return "Log-probability times advantage goes into the loss with a plus: actions that did well are made rarer."
    if value.op == "call" and value.name == "entropy" and any(_is_policy_term(t.value) for t in terms):
        return "The entropy of the policy goes into the loss with a plus: exploration is punished."
    if is_log_prob(value) and len(terms) == 1 and learns_through(story, value):
        return "The log-likelihood is minimised: it should go into the loss with a minus."
    if (
        is_overlap(value)
        and learns_through(story, value)
        and all(t is term or (t.sign > 0 and t.value.name in LOSSES) for t in terms)
    ):
        return "An overlap is minimised: the loss should be one minus it."
    if value.op == "net" and len(terms) == 1 and _judges(story, value):
        return "The value of the policy's own actions is minimised: it should go into the loss with a minus."
    return None


def _also_plus(story: Story, terms: list[Term]) -> bool:
    """Whether another distance is made small: then this one is kept large on purpose."""
    return any(t.sign > 0 and (t.value.name in LOSSES or story.squared(t.value) is not None) for t in terms)


def _judges(story: Story, value: Val) -> bool:
    """A network trained on bootstrapped targets judges what another network does, and the other learns from it."""
    critics = [
        n.args[0] for loss in story.losses if any(True for _ in bootstrap(loss)) for n in learns_through(story, loss)
    ]
    nets = learns_through(story, value)
    mine = any(any(story.holds(c, value.args[0]) for c in critics) for _ in (0,))
    others = [n for n in nets if not any(story.holds(c, n.args[0]) for c in critics)]
    return bool(mine and others) and len(story.optimizers) > 1


def _is_policy_term(value: Val) -> bool:
    if value.op == "call" and value.name in MIN and len(value.args) >= 2:
        return all(_ratio_times(a) for a in value.args[:2])
    if (
        value.op != "bin"
        or value.name != "Mult"
        or len(logs := [_logs(a) for a in value.args]) != 2
        or logs.count(True) != 1
    ):
        return False
    return _is_return(value.args[logs.index(False)])


def _is_return(value: Val) -> bool:
    """What a policy is judged by: made of rewards or of a network's values; a bare coefficient is not."""
    return any(
        v.op == "net"
        or (v.op == "item" and v.args[0].op == "call" and v.args[0].name == "step")
        or (v.op == "bin" and v.name == "Sub")
        for v in made_of(value)
    )


def _logs(value: Val) -> bool:
    """A log-probability itself, or a sum or mean of such."""
    while value.op == "call" and value.name in ("sum", "mean", "squeeze", "stack") and value.args:
        value = value.args[0]
    if value.op in ("phi", "list") and (several := value.args or tuple(value.items or ())):
        return all(_logs(v) for v in several)
    return is_log_prob(value)


def _ratio_times(value: Val) -> bool:
    return (
        value.op == "bin"
        and value.name == "Mult"
        and any(v.op == "call" and v.name == "exp" and any(is_log_prob(p) for p in made_of(v)) for v in made_of(value))
    )


def _is_game(story: Story, value: Val) -> bool:
    """What the loss judges goes through two networks of two optimizers: one plays against the other."""
    owners = {
        i
        for net in made_of(value)
        if net.op == "net"
        for i, o in enumerate(story.optimizers)
        if any(story.holds(n, net.args[0]) for n in story.moved_by(o))
    }
    return len(owners) > 1 and len(story.backwards) > 1
