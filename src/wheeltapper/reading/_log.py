"""One way to read a text log: rows to Points, words to Events, printed configurations to ConfigTrees.

A reader of a text format is a `sniff` and an `explain`; everything else happens here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from wheeltapper.reading._bars import BAR, bar_state
from wheeltapper.reading._echo import EchoScanner
from wheeltapper.reading._events import EventScanner, is_boring
from wheeltapper.reading._lines import CHUNK_BYTES, Chunk, LineFeed
from wheeltapper.reading._phases import Phases, phase_of
from wheeltapper.reading._place import place
from wheeltapper.reading._references import WORDS, references
from wheeltapper.reading._rows import Explain, RowReader
from wheeltapper.reading._tail import Tail
from wheeltapper.reading._text import number, prefix_of
from wheeltapper.reading.record import Fact, Note, Reading

Other = Callable[[int, str], Iterable[Fact]]  # facts on a line that is not a row
After = Callable[[Reading], Reading]
UNREAD_SHOWN = 3
FEW = 0.02  # of the lines: a remark on the best so far is no loss
UNREAD_LENGTH = 400
# A line that says a result and was no row.
_RESULT_LINE = re.compile(r"(?i)\b\w*(?:loss|accuracy|acc|error|reward|perplexity|score)\b[^\n]{0,20}?\d\.\d")
PREFIXED = 140  # characters of a heading with what a logger wrote before it
NUMBERED_LINES = 3000  # by these it is told whether every line begins with a task number

_SRUN_LINE = re.compile(r"^ *(\d{1,5}): *\S")
_CONSTANT_FACTS = {
    "per_epoch": "steps_per_epoch",
    "total_steps": "total_steps",
    "total_epochs": "total_epochs",
}

# Facts that many logs print in the same words.
_FACTS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        ("steps_per_epoch",
            r"(?:\btrain(?:ing)? batches|require iter per epoch|\b(?:steps"
            r"|iters|iterations|batches)[ _]per[ _]epoch) *[:=] *([\d,]+)\b"),
        ("total_steps",
            r"(?:\btotal[ _](?:train(?:ing)?[ _])?(?:iters|iterations|steps)"
            r"|total optimization steps) *[:=] *([\d,]+)\b"),
        ("total_epochs", r"(?:\btotal[ _]epochs|\bnum[ _]epochs) *[:=] *([\d,]+)\b|starting training for (\d+) epochs"),
        ("world_size", r"(?:world[ _]size(?: \(gpu number\))?|using world size) *[:=]? *(\d+)\b"),
        ("n_params",
            r"(?:number of (?:trainable )?param(?:eter)?s(?: in \w+)?|\bn_?params"
            r"|total param(?:eter)?s|model params|trainable params) *(?:\([^)]*\))? *[:=]? *"
            r"([\d,]*\.?\d+ ?[KMB]?)\b"),
        ("n_params", r"\b([\d,]{5,}) (?:total )?(?:trainable )?param(?:eter)?s\b"),
        ("n_train",
            r"(?:number of train(?:ing)? (?:images?|image pairs|samples|examples)"
            r"|\bnum images|num examples|train(?:ing)? samples) *[:=] *([\d,]+)\b"),
        ("n_train",
            r"\btrain on ([\d,]+) samples|\b([\d,]+) train(?:ing)? (?:images|samples|rows|windows|pairs|sequences|sentences|examples|graphs|items)"
            r"|\btrain(?:ing)?(?: (?:set|size))? *[:=] *([\d,]{2,7})(?![\d.]).{0,12}\b(?:val|valid|dev|test|holdout)\w* *[:=]? *[\d,]+(?![\d.])"),
        ("vocab_size", r"\bvocab(?:ulary)?(?:[ _]size)?\b *[:=]? *([\d,]+)\b(?!\.\d)|\bvocab(?:ulary)? of (?:size )?([\d,]+)\b"),
        ("classes", r"\b(?:n_|num_|number of )?classes *[:=] *(\d+)\b(?!\.\d)|\b(\d+) classes\b"),
        ("batch_size", r"(?:effective|total|global) batch[ _]size *[:=] *([\d,]+)\b"),
        ("batch_size_per_device", r"batch size per (?:gpu|device) *[:=] *([\d,]+)\b"),
        ("accumulation", r"(?:accumulate iterations|gradient accumulation(?: steps)?) *[:=] *(\d+)\b"),
    )
)  # fmt: skip
_FACT_WORDS = ("batch", "epoch", "total", "world", "param", "number of", "images", "examples", "accumul", "samples", "train", "vocab", "classes")
_SIZE = {"K": 1e3, "M": 1e6, "B": 1e9}


def read_log(
    path: Path,
    format_name: str,
    explain: Explain,
    *,
    first_epoch: int | None = None,
    numbered: bool | None = None,
    other: Other | None = None,
    after: After | None = None,
    tail: Tail | None = None,
) -> Reading:
    """Read a text log with one reader's `explain`. Never raises on content.

    `after` adds what `explain` gathered on the side. With `tail` the log of the last look goes on, with the `explain`,
    `other` and `after` of that look, which know what they have seen.
    """

    def begin() -> _Log:
        return _Log(path, format_name, explain, first_epoch, numbered, other, after)

    if tail is None:
        log = begin()
        log.more()
        log.end()
        return log.reading()
    log = tail.keep("log", begin)
    if not log.more():
        tail.forget("log")
        log = tail.keep("log", begin)
        log.more()
    if tail.ended:
        log.end()
    return log.reading()


class _Log:
    """A log as far as it was read."""

    def __init__(
        self,
        path: Path,
        format_name: str,
        explain: Explain,
        first_epoch: int | None,
        numbered: bool | None,
        other: Other | None,
        after: After | None,
    ) -> None:
        self.file = str(path)
        self.format = format_name
        self.first_epoch = first_epoch
        self.feed = LineFeed(path)
        self.facts: list[Fact] = []
        self._explain, self._other, self._after = explain, other, after
        self._numbered = numbered
        self._every = False
        self._start: list[str] = []  # the first lines, by which it is told whether all are numbered
        self._rows: RowReader | None = None
        self._events, self._echo = EventScanner(self.file), EchoScanner(self.file)
        self._bars, self._last_bar = 0, (0, "")
        self._phases = Phases()
        self._unread: list[tuple[int, str]] = []  # the first lines with numbers that were not understood
        self._n_unread = self._n_lines = 0

    def more(self) -> bool:
        """Take what is new; False if it shows that the lines before were read wrongly."""
        for chunk in self.feed.more():
            self._take(chunk)
            if self._numbered is None and len(self._start) < NUMBERED_LINES and self.feed.position <= CHUNK_BYTES:
                self._start += chunk.lines[: NUMBERED_LINES - len(self._start)]
                if is_numbered(self._start) != self._every:
                    return False
        return True

    def end(self) -> None:
        for chunk in self.feed.last():
            self._take(chunk)

    def _take(self, chunk: Chunk) -> None:
        if self._rows is None:
            self._every = is_numbered(chunk.lines) if self._numbered is None else self._numbered
            self._rows = RowReader(self._explain, numbered=self._every, boring=_boring)
            self._echo = EchoScanner(self.file, numbered=self._every)
            self._events = EventScanner(self.file, numbered=self._every)
        left = self._rows.take_all(chunk.numbers, chunk.lines)
        drawn = [(n, text) for n, text in left if "%|" in text and BAR.search(text)]
        if drawn:
            self._bars, self._last_bar = self._bars + len(drawn), drawn[-1]
            left = [(n, text) for n, text in left if "%|" not in text]
        for n, text in left:
            if len(text) < PREFIXED and (split := phase_of(text[prefix_of(text, numbered=self._every).end :])):
                self._phases.add(n, split)
        self._n_lines += len(chunk.lines)
        unread = [(n, text) for n, text in left if _RESULT_LINE.search(text[:UNREAD_LENGTH])]
        self._n_unread += len(unread)
        self._unread += unread[: UNREAD_SHOWN - len(self._unread)]
        self._events.feed(left)
        self._echo.feed(left)
        _find_facts(left, self.file, self.facts)
        if self._other is not None:
            for n, text in left:
                self.facts.extend(self._other(n, text))

    def reading(self) -> Reading:
        """Everything told so far. More may be taken afterwards."""
        file, rows, notes, facts = self.file, self._rows, self.feed.notes(), list(self.facts)
        if rows is None:
            return Reading(file, self.format, notes=(*notes, Note("the file is empty", file)))
        if rows.lost:
            notes.append(
                Note(f"{rows.lost} rows hold something that is no number and were left out", file, level="lost")
            )
        if self._last_bar[0] > max((t.lines[-1] for t in rows.tables.values() if len(t.lines)), default=0):
            state = bar_state(self._last_bar[1])
            facts.append(Fact("progress", state, f"{file}:{self._last_bar[0]}, the last progress bar"))
            text = f"{self._bars} progress-bar states without values; the last: {state}"
            notes.append(Note(text, file, self._last_bar[0]))
        for index, (role, value, line) in enumerate(rows.constants):
            near = any(r == role and abs(v - value) <= 0.02 * v for r, v, _ in rows.constants[:index])
            if role in _CONSTANT_FACTS and not near:  # a loader may print 187 and 188 in turn
                facts.append(Fact(_CONSTANT_FACTS[role], _whole(value), f"{file}:{line}"))
        if self._n_unread:
            shown = "; ".join(f"line {n}: {text.strip()[:60]}" for n, text in self._unread)
            share = self._n_unread / max(self._n_lines, 1)
            text = f"{self._n_unread} lines ({share:.0%}) with a loss or a score were not understood: {shown}"
            notes.append(Note(text, file, self._unread[0][0], level="lost" if share > FEW else "info"))
            facts.append(Fact("lines_not_understood", self._n_unread, file))
        known = next((f.value for f in reversed(facts) if f.name == "steps_per_epoch"), None)
        placed = place(rows.tables.values(), file, first_epoch=self.first_epoch, steps_per_epoch=known, phases=self._phases)
        events, marks = self._events.finish(placed.anchors)
        if not placed.points:
            notes.append(Note("it holds no rows of numbers, or too few to tell their shape", file))
        reading = Reading(
            file=file,
            format=self.format,
            points=placed.points,
            configs=self._echo.finish(),
            facts=_distinct((*facts, *placed.facts)),
            events=events,
            checkpoints=marks,
            notes=(*notes, *placed.notes),
        )
        return self._after(reading) if self._after else reading


def _boring(text: str) -> bool:
    return is_boring(text) and not (len(text) < PREFIXED and phase_of(text[prefix_of(text).end :]))


def is_numbered(lines: list[str]) -> bool:
    """Whether lines begin with a task number, as `srun -l` writes: most do, and few numbers repeat often."""
    tasks = [found[1] for text in lines[:NUMBERED_LINES] if (found := _SRUN_LINE.match(text))]
    return len(tasks) > 0.3 * min(len(lines), NUMBERED_LINES) and len(set(tasks)) * 2 <= len(tasks)


def _find_facts(lines: list[tuple[int, str]], file: str, facts: list[Fact]) -> None:
    for n, text in lines:
        low = text.lower()
        if any(word in low for word in WORDS):
            facts.extend(references(n, text, file))
        if len(text) > 1000 or not any(word in low for word in _FACT_WORDS):
            continue
        for name, pattern in _FACTS:
            found = pattern.search(text)
            if found and (value := _sized(found[found.lastindex or 1])) is not None:
                facts.append(Fact(name, _whole(value), f"{file}:{n}"))


def _sized(text: str) -> float | None:
    text = text.strip()
    scale = _SIZE.get(text[-1:].upper(), 1.0)
    value = number(text[:-1] if scale > 1 else text)
    return None if value is None else value * scale


def _whole(value: float) -> float | int:
    return int(value) if value == value and abs(value) < 1e18 and value == int(value) else value


def _distinct(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Each value of a fact once, where it was first told; a later launch's other value stays, after it."""
    out: dict[tuple[str, object], Fact] = {}
    for fact in facts:
        out.setdefault((fact.name, fact.value), fact)
    return tuple(out.values())
