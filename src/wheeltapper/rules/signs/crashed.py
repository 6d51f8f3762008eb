"""The program died: the log ends in a traceback, or says that it was killed or ran out of memory.

## What it sees
A traceback, an out-of-memory error or a kill at the end of the log, with its last line.

## Why it matters
The run did not end by itself; the last checkpoint may be older than the last log line.

## How it decides
Exact: the log says so, no value is logged more than a few lines after it, and no later file goes on
from there. Dying is no illness of the
training (a watch), unless the training itself raised the error: a schedule stepped past its end, a loss
that is not finite, a loss scale at its floor; or that it died within its first 500 lines, before any row, epoch or step. A job that was cancelled was stopped by hand.
The verdict is about what was learned, so such a run may be sound; the first screen then says "Sound, but
crashed", with what ended it and how to go on.

## When it is wrong
A traceback that was caught and logged while training went on (values follow it): that is left alone.

## References
- arghyaiitb/assignment_9, TRAINING_ISSUES_RESOLVED.md, its train.py and the 80-epoch log that dies in the
  last epoch.
- PyTorch, torch/optim/lr_scheduler.py.
"""

from __future__ import annotations

import re

from wheeltapper.finding import Answer, Clear, Finding, Place
from wheeltapper.rules.signs import last_words
from wheeltapper.run.model import Run
from wheeltapper.study.progress import by_hand, last_crash

ID = "crashed"
LIVE = True
# Errors that the training itself raised: a schedule stepped past its end, a loss that is not finite, a scaler at its floor.
FAILED = re.compile(
    r"Tried to step \d+ times|(NaN|Inf|nan|inf)[^\n]{0,20}(loss|grad)|loss scale already at minimum|FloatingPointError|gradient explo"
)
BEGINNING = 500  # lines: an echo of the settings and of the model; a log that goes on much longer had rows


def look(run: Run) -> Answer:
    if not any(e.kind in ("crash", "oom") for e in run.events):
        return Clear("the log holds no traceback")
    last = last_crash(run)
    if last is None:
        return Clear("a traceback was logged, and training went on after it")
    words = last_words(last.text, 200) or last.kind
    own = FAILED.search(last.text)
    what = "ran out of memory" if last.kind == "oom" else "crashed"
    if by_hand(last):
        what = "was stopped by hand"
    if "TIME LIMIT" in last.text:
        what = "was stopped at its time limit"
    trained = any(len(s) for s in run.series.values() if s.better in ("up", "down"))
    # Rows that were not understood: the log goes on for long, or stands at an epoch or a step.
    trained = trained or last.line > BEGINNING or (last.at or 0.0) > 1
    when = "" if trained else " before the first training row"
    return Finding(
        id=ID,
        summary=f"the program {what}{when}: {words}",
        severity="ill" if own or (what == "crashed" and not trained) else "watch",
        grade="is",
        clock=last.clock,
        onset=last.at,
        numbers={"by_hand": float(by_hand(last))},
        places=(Place(last.file, last.line),),
    )


CASES = {
    "finding": {"train/loss": [1.0, 0.9, 0.8], "events": [("crash", "ValueError: Tried to step 37501 times", 3)]},
    "clear": {"train/loss": [1.0, 0.9, 0.8]},
    "near miss": {"train/loss": [1.0] * 30, "events": [("crash", "caught", 3)], "expect": "clear"},
    "before any row": {"lr": [0.1, 0.1], "events": [("crash", "OSError: [Errno 2] no such file", 2)], "expect": "ill"},
    "a score is a row": {
        "val/accuracy": [0.1, 0.2, 0.3],
        "events": [("crash", "ValueError: shape 3 is not 4", 3)],
        "expect": "watch",
    },
}
