"""The optimizer's state was lost at a resume.

## What happens
Without its moments Adam's first steps are as large as the learning rate allows, whatever the gradients; momentum starts
from zero.

## How it shows
A bump of the loss at the resume that fades over tens to hundreds of steps, with the learning rate in its course.

## What else looks like this
A schedule that was planned anew (the rate jumps), repeated data (the loss is too low, then rises).

## When this is wrong
The bump is within noise, or the rate jumped as well.

## Fix
Save and load the optimizer with the model; warm up for a few hundred steps where it is lost.

## Trial
Resume twice from the same checkpoint, with and without the state: the bump must come only without.

## References
- PyTorch, torch/optim/optimizer.py (load_state_dict).
- OPT-175B logbook (facebookresearch/metaseq, projects/OPT/chronicles).
- NVIDIA/Megatron-LM issue 761; NVIDIA/apex issues 180, 250 and 480 (state lost on reload).
- Executed with torch 2.13: the first update of a fresh Adam is 1.0 of the rate, a settled one about 0.23.
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "resume-lost-optimizer"
AREA = "resume"
ABOUT = "learning"
EXPLAINS = ("restart-jump", "starts-late", "spiked", "diverged", "declined-after-peak")
SHOWS = {"restart-jump": "seen"}
PROVED_BY = ("resume-incomplete", "resume-never-loaded")
TRIAL = "resume twice from one checkpoint, with and without the optimizer's state"
REMEDY = Remedy(
    "Resume with the optimizer's state.", (), "safe", "the loss continues within its band across the resume"
)
