"""What a log says its own result must be held against: "naive-24h MAE 2.907", "majority class acc 0.61", "teacher: top1 75.53".

Facts named `floor.<quantity>` (what needs no learning) and `goal.<quantity>` (what the model should come near).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from wheeltapper.reading._text import number
from wheeltapper.reading.record import Fact

_FLOORS = r"naive[\w-]*|persistence|majority(?:[ -]class)?|chance|random(?:[ -](?:guess|policy|order|features|init|baseline))?|untrained|baseline|dummy|constant(?:[ -]predict\w+)?|bicubic|copy[\w-]*|noisy input|mean[ -]predictor|before training|zero-?shot"
_GOALS = r"teacher|ensemble|oracle|upper bound|best possible"
_LINE = re.compile(
    rf"(?i)(?<![\w-])(?:(?P<floor>{_FLOORS})|(?P<goal>{_GOALS}))\b[^\n\d]{{0,30}}?(?:\d{{1,3}}\b(?!\.)[^\n\d]{{0,12}})?"
    r"\b(?P<metric>acc(?:uracy)?|top-?1|mae|rmse|mse|nll|loss|psnr|auc|f1|iou|miou|r2|ndcg(?:@\d+)?|recall(?:@\d+)?|hit(?:@\d+)?|mrr|wer|cer|bleu|perplexity|ppl|return|reward)"
    r"\b[ \t]*(?:\([^)\n]{0,20}\))?[ \t]*(?:[:=]|is|of)?[ \t]*(?P<value>-?\d+(?:\.\d+)?(?:e-?\d+)?)(?P<percent>[ \t]*%)?"
)
WORDS = ("naive", "persist", "majority", "chance", "random", "untrained", "baseline", "dummy", "constant", "bicubic", "copy", "noisy input", "mean", "before training", "shot", "teacher", "ensemble", "oracle", "bound", "possible")  # fmt: skip
LONGEST = 300  # characters of a line


def references(line: int, text: str, file: str) -> Iterator[Fact]:
    """The results on one line that others must beat or reach."""
    if len(text) > LONGEST:
        return
    for found in _LINE.finditer(text):
        value = number(found["value"])
        if value is not None:
            kind = "floor" if found["floor"] else "goal"
            yield Fact(f"{kind}.{found['metric'].lower()}", value, f"{file}:{line}")
