"""Rows that are held out are trained on.

What it sees
------------
The rows that the network is evaluated on are among those it is trained on: the whole array is trained on and a slice of
it evaluated, two slices or two conditions on the same column (a fold, a date, a place from the end) hold at once.

Why it matters
--------------
The score is that of rows known by heart. Overfitting cannot be seen.

How it decides
--------------
The inputs of the network are followed back to the data, in the loss and in the evaluation, with every pick of rows on
the way. A pick that is not understood ends the comparison.

When it is wrong
----------------
If the score on known rows is wanted, beside one on others.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.checks.input_of_another_size import same_network, training_applications
from wheeltapper.program.play.rows import pairs
from wheeltapper.program.reading import Code

ID = "held-out-rows-trained"
CAUSE: str | None = "train-val-leak"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for train in training_applications(story):
        held = [c for c in story.evaluations if len(c.args) > 1 and same_network(c.args[0], train.args[0])]
        hits = {id(c): next(pairs([train.args[1]], [c.args[1]]), None) for c in held}
        during = [c for c in held if set(map(id, c.loops)) & set(map(id, train.loops))]
        for group in (during, [c for c in held if c not in during]):
            found = [h for c in group if (h := hits[id(c)]) is not None]
            if not found or len(found) < len(group):
                continue  # beside a score on other rows, one on those trained on is no mistake
            a, b = found[0]
            text = "The rows that the network is evaluated on are among those it is trained on."
            scored = any(c.order in story.scored for c in group)
            yield code.seen(ID, text, b.at, a.at, group[0], train, grade="is" if scored else "suspected")
            return
