"""A score function is highest for the worst model.

What it sees
------------
ignite's EarlyStopping or Checkpoint with a score_function that returns a loss as it is, or a score with a minus.

Why it matters
--------------
The handlers keep what has the highest score: the worst model is kept, and training stops while it improves.

How it decides
--------------
The function is played; the metric that it reads is followed to what was attached to the engine under that name. A
loss or an error must come with a minus, a share of right answers without.

When it is wrong
----------------
A metric of the program's own whose name misleads.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import direction_by_name
from wheeltapper.program.play.story import Story
from wheeltapper.program.play.value import Val, text_of
from wheeltapper.program.reading import Code

ID = "score-of-the-worst"
CAUSE: str | None = "early-stop-wrong-mode"
DECIDES = True

LOW = {"Loss", "MeanSquaredError", "MeanAbsoluteError", "RootMeanSquaredError", "RunningAverage"}
HIGH = {"Accuracy", "Precision", "Recall", "Fbeta", "TopKCategoricalAccuracy", "mIoU", "IoU", "DiceCoefficient", "Bleu", "Rouge", "SSIM", "PSNR"}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for call in list(story.calls):
        given = call.kwargs.get("score_function")
        if call.op != "call" or given is None or given.op not in ("func", "bound") or given.node is None:
            continue
        before = len(story.player.calls)
        value = story.player.apply(given, (Val("free", "engine", node=given.node),), {}, given.node)
        del story.player.calls[before:]
        negative = value.op == "unary" and value.name == "USub"
        metric = value.args[0] if negative else value
        better = _better(story, metric)
        if better is not None and negative != (better == "low"):
            what = "a loss without a minus" if better == "low" else "a score with a minus"
            yield code.seen(ID, f"The score function returns {what}: the worst model counts as the best.", value, call)
            return


def _better(story: Story, metric: Val) -> str | None:
    name = metric.data if metric.op == "item" and isinstance(metric.data, str) else None
    if name is None:
        return None
    for attached in story.named("attach"):
        if len(attached.args) > 2 and text_of(attached.args[2]) == name:
            kind = attached.args[0].name
            return "low" if kind in LOW else "high" if kind in HIGH else None
    return direction_by_name(name)
