"""The evaluation applies the network with its training flag.

What it sees
------------
A network that is given a flag (train=True, training=True, deterministic=False) in the evaluation as in the training.

Why it matters
--------------
Dropout and batch statistics are on: the score is that of another, noisy network.

How it decides
--------------
Among the applications of one network outside of any gradient, the flag by which training differs has the value that
it has in the loss.

When it is wrong
----------------
Monte-Carlo dropout on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.story import Story
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "training-flag-in-evaluation"
CAUSE: str | None = "eval-in-train-mode"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    story = code.story
    used = {v.order for loss in story.losses for v in made_of(loss) if v.op == "net"}
    trained = [c for c in story.applications if c.order in used]
    for call in story.evaluations:
        for mine in trained:
            if mine.args[0] is not call.args[0]:
                continue
            for name, flag in mine.kwargs.items():
                here = call.kwargs.get(name)
                if isinstance(flag.data, bool) and here is not None and here.data is flag.data and _is_switch(story, name, flag):
                    yield code.seen(ID, f"The network is evaluated with {name}={flag.data}, as it is trained.", call, mine)
                    return


def _is_switch(story: Story, name: str, flag: Val) -> bool:
    """Whether this value of a flag means training: by its name, or because dropout or batch norm is switched on with it."""
    low = name.lower()
    if any(word in low for word in ("deterministic", "use_running", "eval")):
        return flag.data is False
    if flag.data is True and (low.startswith("train") or low in ("is_train", "is_training")):
        return True
    return any(
        isinstance(given, Val) and any(v is flag for v in made_of(given))
        for call in story.calls
        for key, given in call.kwargs.items()
        if key in ("deterministic", "use_running_average", "training", "train") and call.name[:1].isupper() and call.op == "call"
    )
