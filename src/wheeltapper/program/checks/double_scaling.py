"""Inputs are scaled down twice.

What it sees
------------
Pictures that a transform has already brought to 0..1 (or normalised), divided by 255 once more; or normalised twice.

Why it matters
--------------
The inputs are nearly zero: the network sees grey.

How it decides
--------------
On the way of a batch from the dataset to the network there is a transform with `ToTensor` and a division by 255, or
two such divisions.

When it is wrong
----------------
If the dataset holds larger numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.lineage import dataset_of, lineage
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

ID = "double-scaling"
CAUSE: str | None = "eval-normalisation-mismatch"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for net in story.applications:
        if not story.in_training(net) or len(net.args) < 2:
            continue
        way = lineage(net.args[1])
        divided = [v for v in way if v.op == "bin" and v.name == "Div" and number(v.args[1]) in (255, 255.0, 256)]
        if any(v.op == "bin" and v.name == "Mult" and 255 in (number(a) for a in v.args) for v in way):
            continue  # brought back to 0..255 in between: rounded to whole grey levels
        dataset = next((d for t in reversed(net.loops) if (d := dataset_of(t.over)) is not None), None)
        scaled = dataset is not None and any(
            _to_tensor(v) for k in ("transform",) if k in dataset.kwargs for v in made_of(dataset.kwargs[k])
        )
        scaled = scaled or any(_to_tensor(v) for v in way)
        if divided and (len(divided) > 1 or scaled):
            yield code.seen(
                ID, "The pictures are divided by 255 after they were brought to 0..1 already.", divided[0], net
            )
            return


def _to_tensor(value: Val) -> bool:
    return value.op in ("call", "net") and value.name in ("ToTensor", "Normalize", "to_tensor")
