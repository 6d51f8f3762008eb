"""A transformer without a warm-up.

## Definition
0: a warm-up is there, or no transformer. 1: a transformer, no warm-up. 2: one that normalises after its layers.

## Derivation
Gradients near the output are large in a network that normalises after its layers; at the full rate from the first step it
often ends at the level of the commonest answer.

## Healthy band
Below 2.

## When it misleads
Small rates, shallow networks.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.run.model import Run
from wheeltapper.study.horizon import WarmUp
from wheeltapper.study.length import Rates

ABOUT = "learning"
SETTING = True
EDGES = (0.5, 1.5)
BAND = (None, 1.5)
HEADS = ("n_head", "num_heads", "nhead", "n_heads", "num_attention_heads", "attention_heads")


def observe(run: Run, warm_up: WarmUp | None = None, rates: Rates | None = None) -> Reading | Unknown:
    leaves = [leaf for tree in run.configs for leaf in tree.leaves]
    keys = {leaf.dotted.lower().rsplit(".", 1)[-1]: leaf.value for leaf in leaves}
    if not any(key in keys for key in HEADS):
        return Unknown("no transformer is configured", ("the architecture",))
    rises = rates is not None and rates.logged and rates.first < 0.7 * rates.peak
    declared = warm_up is not None and warm_up.updates >= 2
    if rates is not None and rates.logged and len(rates.values) > 4:
        declared = rises or (
            declared
            and rates.share[0] * (warm_up.run if warm_up else 1.0) > 0.5 * (warm_up.updates if warm_up else 1.0)
        )
    if declared or rises:
        return Reading(0.0, "the rate warms up")
    post = any(
        "norm" in key
        and (
            value in ("post", "post_norm", "postnorm")
            or ("post" in key and value is True)
            or (key == "norm_first" and value is False)
        )
        for key, value in keys.items()
    )
    return Reading(
        2.0 if post else 1.0,
        "the rate starts at its peak" + (", in a transformer that normalises after its layers" if post else ""),
    )
