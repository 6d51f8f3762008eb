"""The weights are kept in bf16 and are too coarse for the updates.

## What happens
bf16 has eight significant bits: an update smaller than 1/512 of a weight is surely rounded away. With Adam an update
is at most the rate, so at 1e-4 every weight above 0.05 is frozen, and at 1e-5 almost every weight is.

## How it shows
Weights are stored in bf16 without an fp32 copy, the rate is small, and training stops moving as the rate decays.

## What else looks like this
A rate that is too low, a large epsilon, frozen parameters. bf16 autocast is not this: its weights are fp32.

## When this is wrong
The optimizer keeps fp32 master weights, rounds stochastically (or with Kahan summation), or only an adapter is
trained whose weights are near zero.

## Fix
Weights in fp32 with bf16 autocast, or stochastic rounding.

## Trial
Count the weights whose stored value changes in one step: nearly all must.

## References
- bf16 has 8 significant bits: an update below .
- w.
- /512 is surely lost (executed with torch 2.13: 1 + 0.003 stays 1.0).
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "bf16-weights-frozen"
AREA = "precision"
ABOUT = "learning"
EXPLAINS = ("stuck-from-start", "too-slow", "plateau", "at-chance", "at-prior", "worse-than-trivial")
SHOWS = {"train-gain": "low", "late-gain": "low"}
FORBIDS = {"diverged": "seen", "not-finite": "seen", "collapsed": "seen"}
TRIAL = "count the weights whose stored value changes in one step"
REMEDY = Remedy(
    "Keep the weights in fp32 and use bf16 autocast, or round stochastically.",
    (),
    "try",
    "nearly all weights change in one step",
)
