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

from collections.abc import Iterable

from wheeltapper.causes import Case, Excluded, proofs
from wheeltapper.finding import Evidence, Remedy

ID = "resume-lost-optimizer"
AREA = "resume"
EXPLAINS = ("restart-jump", "starts-late", "spiked", "diverged", "declined-after-peak")
PRIOR = -1.5
TRIAL = "resume twice from one checkpoint, with and without the optimizer's state"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    resumes = [s for s in case.run.segments if s.kind == "resume"]
    late = case.found("starts-late")
    if not resumes and not late:
        return Excluded("the record shows no resume")
    ill = [f for f in case.findings if f.severity == "ill" and f.onset is not None]
    before = [f for f in ill if resumes and f.clock == resumes[0].clock and (f.onset or 0.0) < 0.98 * resumes[0].start]
    if before and len(before) == len(ill) and not late:
        return Excluded(f"the trouble began at {before[0].clock} {before[0].onset:,.10g}, before the first resume at {resumes[0].start:,.10g}")
    out = [e for e in proofs(case, "resume-incomplete", "resume-never-loaded") if "The ema state" not in e.text]
    jumps = case.found("restart-jump")
    bumps = [f for f in jumps if "sigmas" in f.numbers]
    if bumps:
        out.append(Evidence(2.5, bumps[0].summary, "bump", bumps[0].places))
    if any(f.numbers.get("ratio", 1.0) > 1.5 for f in jumps):
        out.append(Evidence(-2.0, "the learning rate jumped there, which explains a bump by itself", "rate"))
    if late and late[0].numbers.get("dropped"):
        out.append(Evidence(2.0, late[0].summary, "config", late[0].places))
    return out or Excluded("nothing shows that the resume lost its state")


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Resume with the optimizer's state.", (), "safe", "the loss continues within its band across the resume"
        ),
    )
