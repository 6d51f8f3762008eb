"""One line per epoch, as people write it, and the Keras console.

`Epoch 10/80 | Train: 41.43% (loss: 3.97) | Val: 40.47% (loss: 3.27) | LR: 0.79`,
`Epoch 3: train loss 0.2, val loss 0.3`, `Epoch [1/5], Step [100/600], Loss: 0.3`, and blocks of
`Train Loss: 6.65 | Train Acc: 1.23%` under an epoch line.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._bars import bar_row
from wheeltapper.reading._fields import field_of, has_rows
from wheeltapper.reading._log import read_log
from wheeltapper.reading._pairs import loose_pairs, of_batches, place_of, says_split
from wheeltapper.reading._rows import Row
from wheeltapper.reading._split_words import split_of
from wheeltapper.reading._tail import Tail
from wheeltapper.reading._text import NUMBER, head_text
from wheeltapper.reading.record import Reading

FORMAT = "epoch summary lines"
LOOSE = True

_EPOCH = re.compile(
    r"^\W*(?:\[?[A-Z][A-Z ]{2,20}\]\s*)?(?:[\w-]+(?: [Rr]esults?| [Mm]etrics?)? (?:[-–|] )?|end of )?(?:(?:Epoch|EPOCH|epoch|[Ee]p)s?\s*[:#]?|(?:[Ee]poch|[Ee]p)=)\s*[\[(]?\s*(?P<epoch>\d+)\s*"
    r"(?:(?:/|of)\s*(?P<epochs>\d+))?\s*[\])]?"
)
_KERAS = re.compile(
    r"^\s*(?P<done>\d+)/(?P<per>\d+)\s*(?:\[[=>.]*\]|[━─╸╺\s]+|[^\w\s]+)\s*(?:-\s*)?(?:ETA|\d+[a-zµ]+)\b.*?(?= - [\w./]+: )"
)
_KERAS_PACE = re.compile(r"\b(?P<pace>\d+)ms/(?:step|batch)\b")
_KERAS_PAIR = re.compile(rf" - (?P<name>[A-Za-z_][\w./]*): (?P<value>{NUMBER})(?=\s|$)")
_BLOCK = re.compile(
    r"^\W{0,40}(?!.*\b(?:batches|samples|images|set(?! (?:loss|acc|error))|size|steps|examples)\b)"
    rf"(?:Train(?:ing)?|Val(?:id(?:ation)?)?|Test|Learning [Rr]ate|LR)\b[\w ]*\s*[:=]\s*{NUMBER}%?(?:\s*[|,;].*|\s+[-–]\s.*)?$"
)
# "3/16, train_loss: 0.65", "  Batch 100/500, Loss: 0.3" under the line of the epoch
_BATCH = re.compile(r"^\s*(?:Batch\s*[:\[]?\s*)?\d+\s*/\s*\d+\]?\s*[,:|]", re.I)
_RESULT = re.compile(r"loss|acc|error", re.I)
_SURE = re.compile(
    r"^.{0,60}?Epoch \d+/\d+ \| .*(?:loss|acc|%)|^[ \t]*\d+/\d+ (?:\[=+|━+).* - loss: "
    r"|^.{0,60}?Epoch\s*\[\d+/\d+\].*[Ll]oss",
    re.M | re.I,
)
_LIKELY = re.compile(
    r"^.{0,60}?\bEpochs?\s*[:#]?\s*[\[(]?\d+(?:\s*(?:/|of)\s*\d+)?[\])]?\s*[:|,;\-–]?\s+\S*.*"
    r"(?:loss|acc|err|lr)\w*\s*\S{0,3}\s*[\d.]"
    r"|^.{0,60}?Train(?:ing)? Loss: [\d.]+ \| Train(?:ing)? Acc",
    re.M | re.I,
)


def sniff(head: Head) -> float:
    text = head_text(head)
    if has_rows(text, _SURE):
        return 0.8
    return 0.6 if has_rows(text, _LIKELY, 2) else 0.45 if has_rows(text, _LIKELY) else 0.0


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    own = False  # has a row of this make come? The results of a test stand in logs of any

    def noted(body: str, line: int) -> Row | None:
        nonlocal own
        row = explain(body, line)
        own = own or (row is not None and any(f.role == "value" for f in row.fields))
        return row or _results(body)

    def after(reading: Reading) -> Reading:
        return reading if own else replace(reading, points=())

    return [read_log(path, FORMAT, noted, after=after, tail=tail)]


def explain(body: str, _line: int) -> Row | None:
    if row := _KERAS.match(body):
        fields = []
        for pair in _KERAS_PAIR.finditer(body, row.end()):
            name = pair["name"]
            own = None if name in ("lr", "learning_rate") else split_of(name) or "train"
            window = "eval" if own in ("val", "test") else "epoch" if own else None
            fields.append(field_of(pair, "value", name, split=own, window=window))  # type: ignore[arg-type]
        done = field_of(row, "per", role="per_epoch")
        if fields and (pace := _KERAS_PACE.search(body, row.end("per"), row.end())):
            fields.insert(0, field_of(pace, "pace", "ms_per_step"))
        return Row((done, *fields), last=True) if fields else None
    if head := _EPOCH.match(body):
        if "%|" in body and (bar := bar_row(body)):
            return bar
        place = place_of(body, head.start("epoch") - 12 if head.start("epoch") > 12 else 0)
        place = [f for f in place if f.role != "value"]
        if not any(f.role == "epoch" for f in place):
            place = [field_of(head, "epoch", role="epoch")]
            if head["epochs"]:
                place.append(field_of(head, "epochs", role="total_epochs"))
        fields = loose_pairs(body, head.end(), place)
        inside = any(f.role in ("inner", "inner_sample", "step") for f in place)
        if any(f.role in ("inner", "inner_sample") for f in place):
            fields = of_batches(fields)
        fields = [replace(f, window=f.window or (None if inside or f.split is None else "epoch")) for f in fields]
        if fields or len(body) < 60:
            return Row(tuple(sorted((*place, *fields), key=lambda f: f.start)))
        return None
    if "%|" in body and (bar := bar_row(body)):
        return bar
    if _BATCH.match(body) and (batch := _batch(body)):
        return batch
    if _BLOCK.match(body):
        fields = loose_pairs(body, 0, [], spaced=False)
        fields = [replace(f, window=f.window or ("epoch" if f.split == "train" else None)) for f in fields]
        return Row(tuple(fields)) if fields else None
    return None


def _results(body: str) -> Row | None:
    """ "Test set: Average loss: 0.0505, Accuracy: 9833/10000 (98%)": a line that begins with the data it is about."""
    if not says_split(body) or place_of(body):
        return None
    fields = loose_pairs(body, 0, [])
    return Row(tuple(fields)) if any(_RESULT.search(f.name) for f in fields) else None


def _batch(body: str) -> Row | None:
    place = place_of(body)
    fields = loose_pairs(body, 0, place, spaced=False)
    if not any(f.role == "inner" for f in place) or not any(_RESULT.search(f.name) for f in fields):
        return None
    if any(f.split in ("val", "test") for f in fields):  # batches of a validation are no place in training
        return None
    return Row(tuple(sorted((*place, *of_batches(fields)), key=lambda f: f.start)))
