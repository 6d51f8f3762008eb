"""A loss that rises with the difficulty is expected here.

## What happens
A curriculum, a growing resolution or length, or a rising weight makes the task harder while the model learns: the
loss may rise though the model improves.

## How it shows
The training loss rises or jumps with the logged difficulty or at an announced stage.

## What else looks like this
Divergence at the same time; a curriculum that outruns the model.

## When this is wrong
At fixed difficulty the score gets worse.

## Fix
Nothing to mend. Evaluate at fixed difficulty, and judge by that.

## Trial
The checkpoint before a stage on the data after it: the same jump decides that it is the data.

## References
- architvasan/protein_lig_sedd, TRAINING_LOSS_ANALYSIS_SUMMARY.md and its curriculum code.
- A loss averaged over groups changes by their shares as well as by the model (Kitagawa's decomposition).
"""

from __future__ import annotations

from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._look import fell

ID = "normal-curriculum-rise"
AREA = "curriculum"
NORMAL = True


def expect(case: Case) -> str:
    why = case.get("shifting")
    if not why:
        return ""
    drop = fell(case.get("train_loss"))
    risen = case.found("diverged", "spiked", "slow-rise") or (drop is not None and drop < -0.05)
    if not risen or case.found("diverged", "spiked", "slow-rise", "collapsed", severity="ill"):
        return ""
    return f"a training loss that rises is expected here because {why}; only a score at fixed difficulty can tell more"
