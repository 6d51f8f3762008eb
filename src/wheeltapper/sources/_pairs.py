"""Loose `key: value`, `key=value` and `key value` pairs, for logs whose author invented the line."""

from __future__ import annotations

import re
from dataclasses import replace

from wheeltapper.sources._fields import field_of
from wheeltapper.sources._rows import Field, Role
from wheeltapper.sources._text import NUMBER
from wheeltapper.sources.record import Window

_UNIT = r"%|it/s|s/it|ms|sec|GB|MB|GiB|MiB|G|M|dB|tok/s|samples/s(?:ec)?|images/s|img/s|s|h|m|K"
_VALUE = rf"(?:tensor\()?(?P<value>{NUMBER})(?:\s?(?P<unit>{_UNIT}))?"
_END = r"(?=[\s,;|)\]}'\">]|:\s*$|\.?\s*$|, )"
_NAME = r"[A-Za-z_][\w./@#-]*(?:\s?\([A-Za-z_]\w*\))?"
_MARKED = re.compile(rf"(?<![\w./])(?P<name>{_NAME}(?: {_NAME}){{0,2}}?)['\"]?\s*[:=]+\s*(?:['\"(]|\[\s*)?{_VALUE}{_END}")
_SPACED = re.compile(
    rf"(?<![\w./])(?P<name>{_NAME}(?: {_NAME}){{0,2}}?)(?: so far)?(?: (?:is|was))?\s+(?P<value>[-+]?(?:\d+\.\d+"
    rf"(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|(?i:nan|inf)\b))(?:\s?(?P<unit>{_UNIT}))?{_END}"
)
_TOTAL = re.compile(r"\s*(?:/|of|out of)\s*(?P<total>[\d,]*\d)")
_PLACE = re.compile(
    r"(?<![\w./])(?P<word>(?:global[ _]?)?step|iter(?:ation)?|iters|itr|it|num_updates"
    r"|update|epoch|ep|batch(?:_idx)?|minibatch|训练次数|迭代次数|步数|轮次)"
    r"['\"]?\s*(?:[:=#]\s*)?[\[(]?\s*(?P<value>[\d,]*\d(?:\.\d+)?)(?![\w.%])",
    re.IGNORECASE,
)
# What stands behind the epoch without a word: "Epoch: [11][1383/10000]", "Epoch  6,   200/  725;".
_INNER = re.compile(r"\s*[\]),]\s*\[?\s*(?P<value>\d+)\s*/\s*(?P<total>\d+)(?![\d.%])")
_ESPNET = re.compile(r"(?P<epoch>\d+)epoch:(?P<split>train|valid):\d+-(?P<inner>\d+)batch:")
_EPOCHS = ("epoch", "ep", "轮次")
_INNERS = ("batch", "minibatch")
# A heading says of which split the numbers behind it are: "- Eval metrics: loss: 0.3 ; acc: 0.8", "[valid] loss=2.1".
_HEADING = re.compile(
    r"^\W*(?P<split>(?i:train(?:ing)?|val(?:id(?:ation)?)?|eval(?:uation)?|test(?:ing)?|dev))"
    r"(?: (?i:metrics?|results?|stats|scores?|set))*\s*[-:>|]+\s+(?=[A-Za-z_])"
    r"|\[(?P<boxed>(?i:train|valid|val|test|eval))\](?= [A-Za-z_])"
)
SCORE = re.compile(r"(?:^|[_ /])(?:m?iou|dice|f1|precision|recall|auc|psnr|ssim|acc|accuracy|top\d|ppl|perplexity)(?:$|[_ /])", re.I)
_VERBS = ("is", "was", "of", "at")
_FILLER = ("at", "the", "and", "with", "for", "of", "in", "on", "to", "is", "after", "from", "current", "avg", "info")


# Chinese and Japanese punctuation, sign for sign, so that no position moves.
_WIDE = str.maketrans("：，；（）＝", ":,;()=")


def plain(body: str) -> str:
    """The line with its full-width punctuation as ASCII.

    >>> plain("训练次数：100, Loss：1.9817")
    '训练次数:100, Loss:1.9817'
    """
    return body if body.isascii() else body.translate(_WIDE)


def place_of(body: str, start: int = 0) -> list[Field]:
    """Epoch, step and batch numbers on a line with their totals. A batch is a place only inside an epoch."""
    if espnet := _ESPNET.match(body, start):
        return [field_of(espnet, "epoch", role="epoch"), field_of(espnet, "inner", role="inner")]
    found: dict[str, list[Field]] = {}
    for hit in _PLACE.finditer(body, start):
        word = hit["word"].lower()
        role: Role = "epoch" if word.startswith(_EPOCHS) else "inner" if word.startswith(_INNERS) else "step"
        if role in found:
            continue
        fields = [field_of(hit, "value", word, role)]
        total = _TOTAL.match(body, hit.end())
        if total and role != "epoch" and "." not in hit["value"]:
            fields.append(field_of(total, "total", word, "per_epoch" if role == "inner" else "total_steps"))
        elif total and role == "epoch":
            fields.append(field_of(total, "total", word, "total_epochs"))
        elif role == "epoch" and "inner" not in found and (inner := _INNER.match(body, hit.end())):
            found["inner"] = [field_of(inner, "value", "batch", "inner"), field_of(inner, "total", "batch", "per_epoch")]
        found[role] = fields
    if "epoch" in found and "step" in found and len(found["step"]) > 1 and "inner" not in found:
        # "Epoch [1/5], Step [100/600]": a step with a total inside an epoch counts batches of the epoch.
        place, length = found.pop("step")
        found["inner"] = [replace(place, role="inner"), replace(length, role="per_epoch")]
    if "epoch" not in found:
        found.pop("inner", None)
    return sorted((f for fields in found.values() for f in fields), key=lambda f: f.start)


def loose_pairs(body: str, start: int, taken: list[Field], *, spaced: bool = True) -> list[Field]:
    """Named numbers that are not places, with the split their name states."""
    used = [(f.start, f.end) for f in taken]
    out: list[Field] = []
    section: str | None = None
    heads = [(hit.end(), split_of(hit["split"] or hit["boxed"])) for hit in _HEADING.finditer(body)]
    if espnet := _ESPNET.match(body):
        heads = [(espnet.end(), split_of(espnet["split"]))]
    patterns = (_MARKED, _SPACED) if spaced else (_MARKED,)
    for pattern in patterns:
        for hit in pattern.finditer(body, start):
            a, b = hit.span("value")
            name = _trim(hit["name"])
            if not name or any(x < b and a < y for x, y in used) or _PLACE.fullmatch(f"{name} 1"):
                continue
            used.append((a, b))
            split = split_of(name)
            # "Train: 41.43% (loss: 3.97)": what stands in parentheses belongs to the word before it.
            if split is None and body[: hit.start("name")].rstrip().endswith("("):
                split = section
            elif body[: hit.start("name")].rstrip()[-1:] != "(":
                section = split
            if split is None and heads:
                split = next((told for at, told in reversed(heads) if at <= hit.start("name")), None)
            window: Window | None = "eval" if split in ("val", "test") else None
            out.append(field_of(hit, "value", name, unit=hit["unit"], split=split, window=window))
    out.sort(key=lambda f: f.start)
    told = {f.split for f in out if f.split}
    if len(told) == 1 and told <= {"val", "test"}:  # "Validation Loss: 0.31  Accuracy: 0.95"
        first = next(i for i, f in enumerate(out) if f.split)
        alike = [replace(f, split=out[first].split, window="eval") if _scores(f) else f for f in out[first:]]
        out[first:] = alike
    return out


def of_batches(fields: list[Field]) -> list[Field]:
    """Scores without a split on the row of a batch are of training: batches of a validation are named as such."""
    return [replace(f, split="train") if _scores(f) else f for f in fields]


def _scores(spec: Field) -> bool:
    return spec.split is None and SCORE.search(spec.name) is not None


def split_of(name: str) -> str | None:
    """The split a name begins with, if it states one.

    >>> split_of("Val Acc"), split_of("train_loss"), split_of("value_loss"), split_of("validation")
    ('val', 'train', None, 'val')
    """
    found = re.match(r"(?i)(train|training|val|valid|validation|test|testing|eval|evaluation|dev)(?=[\W_]|$)", name)
    if found is None:
        return None
    word = found[1].lower()
    return "train" if word.startswith("train") else "test" if word.startswith("test") else "val"


def _trim(name: str) -> str:
    words = name.split(" ")
    while words and words[0].lower().strip("-") in _FILLER:
        words = words[1:]
    while len(words) > 1 and words[-1].lower() in _VERBS:  # "Loss is 0.3"
        words = words[:-1]
    return " ".join(words)
