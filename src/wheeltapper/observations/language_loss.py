"""The loss of a language model against what text allows.

## Definition
log10 of the best held-out loss in nats a token, for models of text.

## Derivation
English carries about 0.6 to 1 nat a character (Shannon 1951; about 0.7 bits for the best models) and 2 to 4 nats a token of a
large vocabulary. A loss far below that has seen the answers.

## Healthy band
Above −0.35 (0.45 nats).

## When it misleads
Formal languages, tiny data sets that are known by heart.
"""

from __future__ import annotations

import math

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.run.model import Run
from wheeltapper.study.outcome import Curve

ABOUT = "evaluation"
EDGES = (-1.3, -0.7, -0.35)
BAND = (-0.35, None)
WORDS = ("vocab", "block_size", "n_head", "num_attention_heads", "tokenizer")


def observe(run: Run, val_curve: Curve) -> Reading | Unknown:
    keys = " ".join(leaf.dotted.lower() for tree in run.configs for leaf in tree.leaves)
    text_model = (
        "vocab_size" in run.facts
        or any(s.quantity in ("perplexity", "bits") for s in run.series.values())
        or any(w in keys for w in WORDS)
    )
    scored = any(s.quantity == "accuracy" for s in run.series.values())
    if not text_model or scored or val_curve.series.quantity not in ("loss", "nll") or val_curve.best <= 0:
        return Unknown("no held-out loss of a language model", ("val/loss of a language model",))
    return Reading(
        math.log10(val_curve.best),
        f"{val_curve.series.name} reached {val_curve.best:.3g} nats a token",
        series=val_curve.series.name,
        clock=val_curve.series.clock,
    )
