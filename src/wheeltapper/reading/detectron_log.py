"""detectron2's text log: rows of `d2.utils.events`, and the scores that an evaluation prints for copying.

    [07/08 10:12:06 d2.utils.events]:  eta: 0:14:21  iter: 19  total_loss: 2.9  loss_cls: 1.1  lr: 0.0002  max_mem: 3911M
    [07/08 10:20:11 d2.evaluation.testing]: copypaste: Task: bbox
    [07/08 10:20:11 d2.evaluation.testing]: copypaste: AP,AP50,AP75,APs,APm,APl
    [07/08 10:20:11 d2.evaluation.testing]: copypaste: 36.7012,57.1,39.9,21.1,40.2,47.9

The scores have their names two lines before, and are in percent. An evaluation is placed at the last row before it.
"""

from __future__ import annotations

import re
from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._fields import field_of, has_rows, pairs_of
from wheeltapper.reading._log import read_log
from wheeltapper.reading._rows import Explain, Field, Row
from wheeltapper.reading._tail import Tail
from wheeltapper.reading._text import NUMBER, head_text
from wheeltapper.reading.record import Reading

FORMAT = "detectron2 log"

_EVENTS = re.compile(rf"^(?:eta: [\d:, a-z]+?\s+)?iter: (?P<step>\d+)\s+(?=[\w/]+: {NUMBER})")
_PAIR = re.compile(rf"(?P<name>[A-Za-z_][\w./-]*): (?P<value>{NUMBER})(?P<unit>M\b)?(?=\s|$)")
_COPY = re.compile(r"^copypaste: (?P<rest>.+)$")
_SET = re.compile(r"^Evaluation results for (?P<set>\S+) in csv format")
_SCORES = re.compile(rf"(?<![\w.]){NUMBER}(?=,|\s*$)")
_NAMES = re.compile(r"^[A-Za-z][\w@.-]*(?:,[A-Za-z][\w@.-]*)*$")
_SNIFF = re.compile(r"\bd2\.(?:utils\.events|evaluation\.\w+|engine\.\w+|checkpoint\.\w+|data\.\w+)\b")
_PLAIN = {"time", "data_time", "last_time", "last_data_time", "lr", "max_mem", "eta_seconds", "rank_data_time"}


def sniff(head: Head) -> float:
    return 0.92 if has_rows(head_text(head), _SNIFF) else 0.0


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    return [read_log(path, FORMAT, _explainer(), tail=tail)]


def _explainer() -> Explain:
    """It remembers the task, the names and the data set that the lines before an evaluation's scores gave."""
    state: dict[str, str] = {}

    def explain(body: str, _line: int) -> Row | None:
        if head := _EVENTS.match(body):
            pairs = [_trained(f) for f in pairs_of(_PAIR, body, head.end())]
            return Row((field_of(head, "step", role="step"), *pairs)) if pairs else None
        if found := _SET.match(body):
            # A second data set is told apart by its name; of one alone the name would only be in the way.
            state.setdefault("first", found["set"])
            state["set"] = found["set"]
            return Row(())
        if found := _COPY.match(body):
            return _copied(found["rest"].strip(), found.start("rest"), state)
        return None

    return explain


def _trained(field: Field) -> Field:
    # Losses and the accuracies of the heads are of the batches that are trained on; "validation_loss" names its split.
    own = None if field.name in _PLAIN or field.name.startswith(("val", "test")) else "train"
    return Field(field.name, field.start, field.end, unit=field.unit, split=own, window="window" if own else None)


def _copied(text: str, start: int, state: dict[str, str]) -> Row | None:
    if text.startswith("Task: "):
        state["task"] = text.removeprefix("Task: ").strip()
        return Row(())
    if _NAMES.match(text) and not _SCORES.match(text):
        state["names"] = text
        return Row(())
    names = state.get("names", "").split(",")
    spans = [found.span() for found in _SCORES.finditer(text)]
    if len(spans) != len(names):
        return None
    other = state.get("set") if state.get("set") != state.get("first") else None
    head = "".join(f"{part}/" for part in (other, state.get("task")) if part)
    scores = (
        Field(head + name, start + a, start + b, unit="%", split="val", window="eval")
        for name, (a, b) in zip(names, spans, strict=True)
    )
    return Row(tuple(scores), learn=False, anchor=False)
