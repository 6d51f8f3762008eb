"""What a log says in words: crashes, warnings, resumes, skipped steps, the end, stages, saved checkpoints.

Only lines that are not rows come here. A chunk is searched for a few key words first (plain substring
search, a gigabyte per second), and only the lines that hold one are looked at.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from copy import copy
from dataclasses import replace
from itertools import accumulate

from wheeltapper.reading._place import Anchors
from wheeltapper.reading._text import number, prefix_of
from wheeltapper.reading.record import Checkpoint, Event, EventKind

TEXT_LIMIT = 400  # characters kept of a message
MAX_EVENTS = 5000
MAX_CHECKPOINTS = 20000

_WORDS = (
    "traceback", "error", "exception", "out of memory", "resource_exhausted", "killed", "killing", "sigterm",
    "sigkill", "cancelled", "segmentation fault", "core dumped", "watchdog", "warning", "warn", "before `optimizer",
    "resum", "loaded checkpoint", "loading checkpoint", "checkpoint", "saving", "saved", "overflow", "skip",
    "loss scale", "nan", "inf ", "non-finite", "finish", "complete", "end of training", "training stopped",
    "early stop", "training done", "stage", "image size", "mosaic", "unfreez", "learning rate of group", "phase",
    "start training", "starting training", "training started", "start_training", "run_stop", "interrupt",
    "initialized logger", "trial 1 of", "timing run", "curriculum", "load_state", "stopped",
)  # fmt: skip


def is_boring(text: str) -> bool:
    """Whether a line holds none of the words that events, tracebacks and progress bars are made of."""
    low = text.lower()
    return 'file "' not in low and "%|" not in low and not any(word in low for word in _WORDS)


# First match wins. Words of configurations ("resume: None", "nan_check=True") must not match.
_PATTERNS: tuple[tuple[EventKind, tuple[str, ...]], ...] = (
    ("oom", (
        r"CUDA out of memory",
        r"\bOutOfMemory(?:Error)?\b",
        r"out[- ]of[- ]memory",
        r"\boom[-_ ]kill",
        r"RESOURCE_EXHAUSTED",
    )),
    ("crash", (
        r"^\s*Killed\b",
        r"\bSIG(?:TERM|KILL|SEGV|ABRT|BUS)\b",
        r"Killed by signal",
        r"\bCANCELLED AT\b",
        r"DUE TO TIME LIMIT",
        r"Segmentation fault",
        r"core dumped",
        r"Watchdog caught collective",
        r"KeyboardInterrupt\b",
    )),
    ("overflow", (
        r"\boverflow\b.*(?:skip|scale|detected|reduc)",
        r"skipp(?:ing|ed) (?:the )?(?:this )?(?:optimizer )?(?:step|update|batch|iteration)",
        r"(?:reducing|decreas\w+|lowering) (?:the )?(?:dynamic )?loss scale",
        r"setting loss scale to",
        r"^\s*(?:\[.*?\])?\s*OVERFLOW!",
    )),
    ("nan", (
        r"NaN/Inf (?:found|detected)",
        r"\bloss is (?:nan|inf)",
        r"(?:nan|inf|non-finite)\w* (?:loss|grad\w*|value\w*|norm)\b.{0,40}(?:detect|found|encounter|at |in |skip)",
        r"(?:found|detected|encountered|got|contains?) (?:an? )?(?:nan|inf|non-finite)\b",
        r"non-finite (?:loss|grad|value)",
        r"returned nan values",
    )),
    ("warning", (
        r"lr_scheduler\.step\(\)`? before",
        r"(?:User|Future|Runtime|Deprecation|Resource|Import|Pending\w*)Warning:",
    )),
    ("resume", (
        r"\bresum(?:ing|ed)\b(?! *[:=])",
        r"\bauto[-_ ]?resum(?:e|ing)\b(?!['\"]? *[:=]).*(?:from|found|check)",
        r"\b(?:loaded|restored) (?:\w+ )?checkpoint\b(?!.*not found)",
        r"loading checkpoint from",
        r"successfully loaded checkpoint",
        r"\bload(?:ed|ing) training state",
        r"start(?:ing)? training from epoch: *\d*[1-9]",
    )),
    ("checkpoint", (
        r"\b(?:sav(?:ed|ing|e)|wrote|writing|stor(?:ed|ing))\b.{0,60}\b(?:checkpoints?"
        r"|ckpt|models?|weights|state(?:_dict|s)?|snapshot)\b",
        r"\b(?:checkpoint|model|snapshot)s? (?:was |were |is )?(?:successfully )?(?:saved|written)\b",
        r"saving (?:best|latest|final)\b",
        r"best model",
    )),
    ("end", (
        r"\btraining (?:has )?(?:finished|complete[d]?|done|ended|stopped)\b",
        r"\bfinished training\b",
        r"\bend of training\b",
        r"\btraining (?:was )?finished",
        r"\bepochs completed in\b",
        r"\bdone training\b",
        r"\bearly stopp?(?:ing|ed)\b.*(?:trigger|stop|at |after)",
        r"\btraining run (?:is )?complete",
        r"run_stop",
    )),
    ("stage", (
        r"(?:updat|chang|switch|set|increas|mov)\w* .{0,30}(?:image|input|crop|patch) ?(?:size|resolution)",
        r"mosaic",
        r"unfreez\w+",
        r"\bstage[ :#-]*\d",
        r"\bphase[ :#-]*\d",
        r"(?:reducing|adjusting|decay\w*) learning rate",
        r"learning rate of group",
        r"curriculum.{0,20}(?:step|advance|stage|level|difficulty)",
        r"\bswitch(?:ed|ing)? (?:to|off|on)\b",
    )),
    ("start", (
        r"\bstart(?:ing|ed)? training\b",
        r"\btraining started\b",
        r"begin(?:ning)? (?:training|trial)",
        r"initialized logger",
        r"STARTING TIMING RUN",
    )),
    ("crash", (
        r"^\s*(?:[\w.]+\.)?\w*(?:Error|Exception)\b(?::|$)",
    )),
)  # fmt: skip
_KINDS: tuple[tuple[EventKind, re.Pattern[str]], ...] = tuple(
    (kind, re.compile("|".join(patterns), re.IGNORECASE))
    for kind, patterns in _PATTERNS
)
_NOT_EVENTS = re.compile(
    r"Namespace\(|^\s*[\[{(]?\s*['\"]\w+['\"]\s*:|^\s*#|^\+ |^\s*[\w.]+ *=|^\s*[\w.-]+ *\.{3,} "
    r"|(?:\w+=\S+,? ){5}|\bprint\w*\(|\braise \w|^\s*(?:def|class|import|from"
    r"|if|for|while|return|assert|elif|with)\b.*[:)]$"
    r"|\btokenizer\b|\bvocab\w*\b|validation images")
_KEY_VALUE = re.compile(r"^\s*[\w./-]+\s*: *[\w.\-+'\"\[~/]*\s*$")

_FRAME = re.compile(r'^\s*File "(?P<file>[^"]*)", line (?P<line>\d+)(?:, in (?P<where>.*))?')
_RAISED = re.compile(r"^(?:[\w.]+\.)?[A-Z]\w*(?::\s|\s*$)|^(?:[\w.]+\.)?\w*(?:Error|Exception|Interrupt|Exit)\b")

_PATH = re.compile(
    r"(?:[\w~.\-]*/)+[\w.\-=,]+|[\w.\-=]+\.(?:pth|pt|ckpt|tar|safetensors|pkl|h5|params|pdparams|state|bin|weights)\b"
)
_STEP = re.compile(
    r"(?:step|iter(?:ation)?s?|global[_ ]step|kimg)[ _=:#-]*(?:number )?([\d,]+)(?![\d.]*\s*[kKmM%]?/)", re.I
)
_EPOCH = re.compile(r"epoch[ _=:#-]*(\d+)", re.I)
_SCORE = re.compile(
    r"\b(?P<name>acc(?:uracy)?|loss|val[_ ]?loss|psnr|ssim|mAP|mIoU|FID|F1"
    r"|BLEU|metric|score|Dice)\b\s*(?:of|is|:|=|->)?\s*"
    r"(?P<value>[-+]?\d[\d.,]*(?:[eE][-+]?\d+)?)",
    re.I,
)
_AT_EPOCH = re.compile(r"\b(?:at|from) epoch:? (\d+)", re.I)
_DIGITS = re.compile(r"\d+(?:\.\d+)?")
_ONCE_EACH: set[EventKind] = {"resume", "start", "end", "crash", "oom", "stage"}  # each occurrence is a fact


class EventScanner:
    """Collects events and the checkpoints a log says were written; `finish` places them."""

    def __init__(self, file: str, *, numbered: bool = False) -> None:
        self.file = file
        self._numbered = numbered
        self._events: dict[tuple[str, str], Event] = {}
        self._last_line: dict[tuple[str, str], int] = {}
        self._checkpoints: list[tuple[int, Checkpoint]] = []
        self._trace: list[str] | None = None
        self._trace_line = 0
        self._frame = ""

    def feed(self, lines: list[tuple[int, str]]) -> None:
        if not lines:
            return
        blob = "\n".join(text for _, text in lines).lower()
        ends = list(accumulate(len(text.lower()) + 1 for _, text in lines))
        wanted: set[int] = set()
        for word in _WORDS:
            at = blob.find(word)
            while at >= 0:
                index = bisect_right(ends, at)
                wanted.add(index)
                at = blob.find(word, ends[index] if index < len(ends) else len(blob))
        if not wanted and self._trace is None:
            return
        open_until = 0
        for index in range(len(lines)) if self._trace is not None else sorted(wanted):
            if index < open_until:
                continue
            n, text = lines[index]
            if self._trace is not None or "Traceback (most recent call last)" in text:
                open_until = self._follow(lines, index)
            elif index in wanted:
                self._classify(n, text)

    def _follow(self, lines: list[tuple[int, str]], index: int) -> int:
        """Read a traceback from `index`; returns the first index after it."""
        if self._trace is None:
            self._trace, self._trace_line, self._frame = [], lines[index][0], ""
            index += 1
        while index < len(lines):
            n, text = lines[index]
            body = text[prefix_of(text, numbered=self._numbered).end :] if text[:1] in "[0123456789" else text
            index += 1
            if frame := _FRAME.match(body):
                self._frame = f"{frame['file']}:{frame['line']}"
            elif "Traceback (most recent call last)" in body:
                self._close("", n)
                self._trace, self._trace_line, self._frame = [], n, ""
            elif not body[:1].isspace() and _RAISED.match(body):
                self._close(body, n)
                return index
            elif not body[:1].isspace() and len(self._trace or ()) > 2 and not self._frame:
                self._close("", n)  # not a Python traceback after all
                return index
            elif self._trace is not None:
                self._trace.append(body)
                if len(self._trace) > 400:
                    self._close("", n)
                    return index
        return index

    def _close(self, message: str, line: int) -> None:
        self._trace = None
        if not message and not self._frame:
            return
        text = message.strip() or "a traceback without its last line"
        oom = _KINDS[0][1].search(text) is not None
        where = f" (at {self._frame})" if self._frame else ""
        self._add("oom" if oom else "crash", text[:TEXT_LIMIT] + where, line if message else self._trace_line)

    def _classify(self, n: int, text: str) -> None:
        if len(text) > 4000:
            return
        prefix = prefix_of(text, numbered=self._numbered)
        body = text[prefix.end :].strip()
        if not body or _NOT_EVENTS.search(body):
            return
        for kind, pattern in _KINDS:
            if pattern.search(body):
                if kind == "checkpoint":
                    self._checkpoint(n, body)
                elif not _KEY_VALUE.match(body):
                    self._add(kind, body, n)
                return
        if prefix.level in ("WARNING", "WARN", "ERROR", "CRITICAL", "FATAL"):
            self._add("warning", body, n)

    def _add(self, kind: EventKind, text: str, line: int) -> None:
        text = text.strip()[:TEXT_LIMIT]
        key = (kind, text if kind in _ONCE_EACH else _DIGITS.sub("#", text))
        known = self._events.get(key)
        # The same words from every rank are one event; the same words much later are another launch.
        if known is not None and (kind not in _ONCE_EACH or line - self._last_line[key] < 200):
            self._events[key] = replace(known, count=known.count + 1)
            self._last_line[key] = line
            return
        if known is not None:
            key = (kind, f"{text}\n{line}")
        if len(self._events) < MAX_EVENTS:
            self._events[key] = Event(kind, text, self.file, line)
        self._last_line[(kind, text)] = line
        self._last_line[key] = line

    def _checkpoint(self, n: int, body: str) -> None:
        if len(self._checkpoints) >= MAX_CHECKPOINTS:
            return
        path = _PATH.search(body)
        step, epoch, score = _STEP.search(body), _EPOCH.search(body), _SCORE.search(body)
        value = number(score["value"].rstrip(".,")) if score else None
        mark = Checkpoint(
            path=path[0].rstrip(".,") if path else "",
            step=number(step[1].strip(",")) if step else None,
            epoch=number(epoch[1]) if epoch else None,
            exists=False,
            metric=(score["name"], value) if score and value is not None else None,
            note=f"{self.file}:{n}: {body[:160]}",
        )
        self._checkpoints.append((n, mark))

    def finish(self, anchors: Anchors) -> tuple[tuple[Event, ...], tuple[Checkpoint, ...]]:
        """Events and checkpoints so far, placed by the rows around them. More lines may be fed afterwards."""
        told = self
        if self._trace is not None:  # closed in a copy only: its last line may still be written
            told = copy(self)
            told._events, told._last_line = dict(self._events), dict(self._last_line)
            told._close("", self._trace_line)
        events = []
        for event in sorted(told._events.values(), key=lambda e: e.line):
            at, clock = anchors.one(event.line)
            said = _AT_EPOCH.search(event.text) if event.kind in ("stage", "resume") else None
            if said and clock in ("epoch", None):
                at, clock = float(said[1]), "epoch"
            events.append(replace(event, at=at, clock=clock))
        marks = []
        for line, mark in self._checkpoints:
            at, clock = anchors.one(line)
            if mark.step is None and clock == "step":
                mark = replace(mark, step=at)
            if mark.epoch is None and mark.step is None and clock == "epoch":
                mark = replace(mark, epoch=at)
            marks.append(mark)
        return tuple(events), tuple(marks)
