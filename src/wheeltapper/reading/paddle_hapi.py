"""What `paddle.Model.fit` prints: steps of training, then the same lines after "Eval begin..." for the validation.

The loss is of the last batch, the scores are means since the epoch began; of a validation only its last line counts.
"""

from __future__ import annotations

import re
from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._fields import field_of
from wheeltapper.reading._log import read_log
from wheeltapper.reading._rows import Row
from wheeltapper.reading._tail import Tail
from wheeltapper.reading._text import NUMBER, head_text
from wheeltapper.reading.record import Reading

FORMAT = "Paddle Model.fit console"

_EPOCH = re.compile(r"^Epoch (?P<epoch>\d+)/(?P<epochs>\d+)\s*$")
_STEP = re.compile(r"^step\s+(?P<inner>\d+)/(?P<per>\d+)\s+(?:\[[=>.]*\]\s+)?(?=- \w+: )")
_PAIR = re.compile(rf"- (?P<name>[A-Za-z_][\w./]*): \[?(?P<value>{NUMBER})\]?(?=\s|$)")
_SNIFF = re.compile(r"^step\s+\d+/\d+\s+(?:\[[=>.]*\]\s+)?- loss: .* - \d+m?s/step", re.M)


def sniff(head: Head) -> float:
    return 0.9 if _SNIFF.search(head_text(head)) else 0.0


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    evaluating = False

    def explain(body: str, _line: int) -> Row | None:
        nonlocal evaluating
        if found := _EPOCH.match(body):
            evaluating = False
            fields = (field_of(found, "epoch", role="epoch"), field_of(found, "epochs", role="total_epochs"))
            return Row(fields, learn=False)
        if body.startswith("Eval begin"):
            evaluating = True
            return Row((), learn=False)
        found = _STEP.match(body)
        if found is None:
            return None
        pairs = list(_PAIR.finditer(body, found.end()))
        if evaluating:
            if found["inner"] != found["per"]:
                return Row((), learn=False)
            values = tuple(field_of(p, "value", p["name"], split="val", window="eval") for p in pairs)
            return Row(values, learn=False)
        place = (field_of(found, "inner", role="inner"), field_of(found, "per", role="per_epoch"))
        values = tuple(
            field_of(p, "value", p["name"], split="train", window="batch" if p["name"] == "loss" else "running")
            for p in pairs
        )
        return Row((*place, *values), learn=False)

    return [read_log(path, FORMAT, explain, tail=tail)]
