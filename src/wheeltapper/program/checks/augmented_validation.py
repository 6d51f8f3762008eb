"""Validation pictures are augmented at random.

What it sees
------------
The evaluation reads its data through random crops, flips or noise, the same as training.

Why it matters
--------------
The score is that of harder pictures, and jumps from one evaluation to the next.

How it decides
--------------
The transform of the evaluated dataset holds a random one; or its records are changed under a fresh random number.

When it is wrong
----------------
Averaging over several random views on purpose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import is_random
from wheeltapper.program.play.lineage import evaluated_on, key, trained_on
from wheeltapper.program.play.preparation import random_steps
from wheeltapper.program.play.roles import TRAIN, uses, written
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "augmented-validation"
CAUSE: str | None = None
DECIDES = True
RANDOMLY = re.compile(
    r"Random(?!State|Sampler|\w*Split)|ColorJitter|AutoAugment|TrivialAugment|RandAugment|(Horizontal|Vertical)Flip|ShiftScaleRotate|GaussNoise|ElasticTransform"
)


def _is_length(value: Val) -> bool:
    """How many rows there are says nothing about how they are read."""
    return value.op == "call" and value.name == "len"


def check(code: Code) -> Iterator[Finding]:
    yield from list(_by_loops(code))[:1] or _by_roles(code)


def _by_roles(code: Code) -> Iterator[Finding]:
    """Data that a framework is given to evaluate on."""
    for use in uses(code.story):
        found = random_steps(use.data) if use.role != TRAIN else []
        if found:
            yield code.seen(ID, f"What is evaluated is changed at random by {found[0].name}.", written(use), use.data, found[0])
            return


def _by_loops(code: Code) -> Iterator[Finding]:
    learned = {key(t) for t in trained_on(code.story)}
    for call, source in evaluated_on(code.story):
        if key(source) in learned:
            continue  # a look at the training data, which is augmented rightly
        given = source.fields.get("@args")
        for transform in (
            *source.kwargs.values(),
            *((given.items or []) if given is not None else source.args if source.op == "call" else []),
        ):
            found = [v for v in made_of(transform, stop=_is_length) if v.op == "call" and RANDOMLY.match(v.name)]
            if found and source.op in ("call", "obj"):
                yield code.seen(
                    ID, f"The evaluation reads its pictures through {found[0].name}.", source, transform, call, found[0]
                )
                return
        switch = next(
            (
                k
                for k in ("augment", "augmentation", "aug", "random_flip", "flip")
                if (v := source.kwargs.get(k)) is not None and v.data is True
            ),
            None,
        )
        if switch is not None and source.op in ("call", "obj"):
            yield code.seen(ID, f"The data of the evaluation is read with {switch}=True.", source, call)
            return
        for value in made_of(*call.args[1:2]):
            if (
                value.op == "call"
                and value.name in ("flip", "rot90", "hflip", "vflip", "fliplr", "roll", "crop")
                and any(is_random(v) for g in value.guards for v in made_of(g.test))
            ):
                yield code.seen(ID, "The records of the evaluation are changed at random.", source, value, call)
                return
