"""Training was done; what comes after it crashed.

## What happens
The last evaluation, the export, an upload to a logger or a cleaning step fails after the training itself. Such code
is tried last and least.

## How it shows
The traceback comes when nearly all planned steps are done, and the curves are sound up to there.

## What else looks like this
A schedule that is stepped past its end (it dies inside the last epoch), a time limit of the scheduler.

## When this is wrong
A good part of the plan was still ahead, or the curves are ill before it.

## Fix
Keep the last checkpoint; mend the step that failed, and run it at the start of the next run to see it pass.

## Trial
Run only the final step on the last checkpoint: minutes.

## References
- arghyaiitb/assignment_9, TRAINING_ISSUES_RESOLVED.md, its train.py and the 80-epoch log that dies in the
  last epoch.
- PyTorch, torch/optim/lr_scheduler.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from wheeltapper.causes import Case, Excluded
from wheeltapper.finding import Evidence, Remedy

ID = "crash-at-end"
AREA = "loop"
EXPLAINS = ("crashed",)
PRIOR = -1.5
TRIAL = "run only the final step on the last checkpoint: minutes"

DONE = 0.95  # of the plan: what fails later than this fails in the last epoch of twenty or after it
AFTER = re.compile(
    r"wandb|mlflow|tensorboard|upload|push_to_hub|export|onnx|plot|savefig|hub|strip_optimizer", re.IGNORECASE
)


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    crashed = case.found("crashed")
    progress = case.get("progress")
    if not crashed or progress is None:
        return Excluded("the program did not die")
    text = crashed[0].summary
    if progress.crash is not None:
        text = f"{text} {progress.crash.text}"
    if "tried to step" in text.lower():
        return Excluded("the schedule was stepped past its end")
    if any(f.severity == "ill" and f.id != "crashed" for f in case.findings):
        return Excluded("the training was ill before it")
    if any(e.kind == "oom" for e in case.run.events):
        return Excluded("it ran out of memory")
    out = []
    if progress.share is not None:
        if progress.share < DONE:
            return Excluded(f"{1 - progress.share:.0%} of the plan was still ahead")
        out.append(
            Evidence(4.0, f"{progress.share:.0%} of the plan was done when it died", "timing", crashed[0].places)
        )
    if AFTER.search(text):
        out.append(
            Evidence(2.0, f"what failed is no training: {crashed[0].summary[-120:]}", "where", crashed[0].places)
        )
    return out


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy("Keep the last checkpoint; mend the final step and run it alone.", (), "safe", "the final step passes"),
    )  # fmt: skip
