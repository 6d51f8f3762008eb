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

from wheeltapper.finding import Remedy

ID = "crash-at-end"
AREA = "loop"
ABOUT = "crash"
EXPLAINS = ("crashed",)
SHOWS = {"crashed": "seen", "skill": "in"}
FORBIDS = {"crashed": "clear", "diverged": "seen", "not-finite": "seen"}
TRIAL = "run only the final step on the last checkpoint: minutes"
REMEDY = Remedy("Keep the last checkpoint; mend the final step and run it alone.", (), "safe", "the final step passes")
