"""The policy collapsed: it lost what it had learned and did not find it again.

## What happens
One update too large, or a critic that drifted, moves the policy out of the region where its data was
useful; new data is bad, and the next updates make it worse.

## How it shows
The episode return falls from its best level back to its start and stays; or it never rises, and the policy's entropy
or its updates are zero: it no longer tries anything.

## What else looks like this
A harder stage of the environment, an exploration schedule, a few unlucky episodes.

## When this is wrong
Returns wander; only a lasting fall of most of the gain counts.

## Fix
Keep the checkpoint of the best stretch; smaller updates (learning rate, clip range), larger batches, a
limit on the divergence between old and new policy.

## Trial
Fork before the fall with half the learning rate, five seeds of each: the control must fall again.

## References
- OpenAI Spinning Up, Intro to Policy Optimization ("the loss function means nothing").
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "policy-collapse"
AREA = "reinforcement"
ABOUT = "learning"
EXPLAINS = ("collapsed", "return-never-rose")
SHOWS = {"entropy-change": "low", "collapsed": "seen"}
TRIAL = "fork before the fall with half the learning rate, five seeds each: the control must fall again"
REMEDY = Remedy(
    "Keep the checkpoint of the best stretch; halve the learning rate or the clip range.",
    (),
    "try",
    "the return does not fall after its best stretch",
)
