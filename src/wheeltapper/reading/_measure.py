"""Files that hold numbers without names: the file's own name may say what they are, and nothing else may."""

from __future__ import annotations

import re

_WORDS = re.compile(
    r"(?:^|_)(?:loss(?:es)?|acc(?:uracy|uracies|s)?|rewards?|returns?|scores?|errors?|psnr|ssim|fid|m?iou|dice|lr|lrs|perplexity|ppl"
    r"|auc|f1|bleu|mse|mae|rmse|map)(?:_|$)"
)


def names_measure(stem: str) -> bool:
    """Does the name of a file say what the numbers in it are?

    >>> names_measure("trainLoss"), names_measure("val_acc_2"), names_measure("predictions"), names_measure("glossary")
    (True, True, False, False)
    """
    plain = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", stem).lower()
    return _WORDS.search(re.sub(r"[^a-z0-9]+", "_", plain)) is not None
