"""How far the rarest setting lies beyond what people run.

## Definition
The largest surprise among the settings, in bits: −log2 of twice the share of public runs of the same kind that go as far.

## Derivation
The distribution of each setting over thousands of public configurations, by optimizer and kind of training, ships with the
package (`wheeltapper practice`). A setting that one run in a thousand has carries nine bits.

## Healthy band
Below 7 bits: among the dozens of settings of a run the rarest is often a one-in-fifty one.

## When it misleads
Small experiments and unusual data have settings of their own; a rare setting alone never makes a run ill.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.settings.knobs import Knobs
from wheeltapper.settings.practice import place_in_practice
from wheeltapper.settings.practice.features import numbers_of

ABOUT = "learning"
SETTING = True
EDGES = (7.0, 8.5)
BAND = (None, 7.0)
ENOUGH = 100  # public runs
# Sizes of the task itself: small ones are no fault.
TASK = frozenset(
    ["run.epochs", "run.total_steps", "data.train_size", "seq_len", "model.classes", "vocab_size", "model.image_size"]
)


def observe(knobs: Knobs) -> Reading | Unknown:
    name = knobs.value("optimizer.name")
    optimizer = name if isinstance(name, str) else None
    ranks = [
        (rank.bits, id_, value, rank)
        for id_, value in numbers_of(knobs).items()
        if id_ not in TASK
        and (rank := place_in_practice(id_, value, optimizer=optimizer)) is not None
        and rank.n >= ENOUGH
    ]
    if not ranks:
        return Unknown("no setting that public runs have, too", ("the settings",))
    bits, id_, value, rank = max(ranks, key=lambda item: item[0])
    return Reading(bits, rank.sentence(value), places=(knobs.place(id_),))
