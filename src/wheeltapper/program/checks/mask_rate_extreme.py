"""Nearly everything, or nearly nothing, is masked.

What it sees
------------
A masked language model that hides more than 60 % or less than 2 % of its tokens.

Why it matters
--------------
With nearly all hidden there is no context to predict from; with nearly none there is hardly any signal.

How it decides
--------------
The number that fresh random numbers are compared with to choose what is hidden, or `mlm_probability`.

When it is wrong
----------------
Masked diffusion and masked autoencoders hide more on purpose; a rate that is drawn anew each time is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import made_of, number
from wheeltapper.program.reading import Code

ID = "mask-rate-extreme"
CAUSE: str | None = None
DECIDES = False


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for call in story.calls:
        rate = number(call.kwargs.get("mlm_probability"))
        if rate is not None and _odd(rate):
            yield code.seen(ID, f"{rate:.0%} of the tokens are masked.", call.kwargs["mlm_probability"], call)
            return
    for call in story.named("append"):  # built token by token: what is not chosen is ignored
        ignored = len(call.args) > 1 and number(call.args[1]) == -100
        for guard in call.guards if ignored else ():
            for test in made_of(guard.test):
                rate = (
                    number(test.args[1])
                    if test.op == "cmp"
                    and test.name in ("Lt", "LtE")
                    and test.args[0].name in ("random", "rand", "uniform")
                    else None
                )
                if rate is not None and not guard.taken and _odd(rate):
                    yield code.seen(ID, f"{rate:.0%} of the tokens are masked.", test.args[1], call)
                    return
    for loss in story.loss_calls:
        if loss.name != "cross_entropy" or len(loss.args) < 2:
            continue
        for value in made_of(loss.args[1]):
            if (
                value.op == "cmp"
                and value.name in ("Lt", "LtE")
                and value.args[0].op == "call"
                and value.args[0].name in ("rand", "rand_like")
            ):
                rate = number(value.args[1])
                if rate is not None and _odd(rate):
                    yield code.seen(ID, f"{rate:.0%} of the tokens are masked.", value.args[1], value)
                    return


def _odd(rate: float) -> bool:
    return rate > 0.6 or rate < 0.02
