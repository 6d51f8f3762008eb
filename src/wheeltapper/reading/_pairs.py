"""Loose `key: value`, `key=value` and `key value` pairs, for logs whose author invented the line."""

from __future__ import annotations

import re
from dataclasses import replace

from wheeltapper.reading._fields import field_of
from wheeltapper.reading._rows import Field, Role
from wheeltapper.reading._split_words import split_of
from wheeltapper.reading._text import NUMBER
from wheeltapper.reading.record import Window

_UNIT = r"%|it/s|s/it|ms|sec|GB|MB|GiB|MiB|G|M|dB|tok/s|samples/s(?:ec)?|images/s|img/s|s|h|m|K"
# "D 1.620 G 0.710": what a number follows is a name and no unit.
_MEASURED = rf"(?:\s?(?P<unit>{_UNIT})(?!\s+[-+]?\d))?"
_VALUE = rf"(?:tensor\()?(?P<value>{NUMBER}){_MEASURED}"
_END = r"(?=[\s,;|)\]}'\">]|:\s*$|\.?\s*$|\.\s|, )"
# A name may own another ("valid_0's l2") and carry a remark: "time (sec)", "loss (last 100 iters)".
_NAME = r"[^\W\d][\w./@#-]*(?:'s)?(?:\s?\((?:\d+ )?[A-Za-z_][\w .=]{0,30}\))?"
_IS = r"(?:[:=]+>?|->|→)"
_MARKED = re.compile(rf"(?<![\w./])(?P<name>{_NAME}(?: {_NAME}){{0,2}}?)['\"]?\s*{_IS}\s*(?:['\"(]|\[\s*)?{_VALUE}{_END}")
_SPACED = re.compile(
    rf"(?<![\w./])(?P<name>{_NAME}(?: {_NAME}){{0,2}}?)(?: so far)?(?: (?:is|was))?\s+(?P<value>[-+]?(?:\d+\.\d+"
    rf"(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|(?i:nan|inf)\b)){_MEASURED}{_END}"
)
# "Accuracy: 9833/10000 (98%)": how many were right, and the share.
_SHARE = re.compile(rf"(?<![\w./])(?P<name>{_NAME}(?: {_NAME}){{0,2}}?)\s*[:=]\s*\d+\s*/\s*\d+\s*\(\s*(?P<value>{NUMBER})(?P<unit>%)\s*\)")
# "loss0.035": nothing between the name and the number.
_GLUED = re.compile(
    rf"(?<![\w./])(?P<name>(?:[A-Za-z]+[_ ])?(?i:loss|acc|accuracy|error|lr|ppl|iou|dice|psnr|auc|f1_?score))(?P<value>\d+\.\d+(?:e-?\d+)?)(?P<unit>%)?{_END}"
)
# "losses [0.21, 0.54, 0.98]", "D(G(z)): 0.60 / 0.63", "D: 0.11, 0.10, 0.13 |": several values of one name.
_EACH = r"[-+]?(?:\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|(?i:nan|inf)\b)"
SEVERAL = re.compile(
    rf"(?<![\w./])(?P<name>{_NAME}|D\(G\(z\)\))\s*(?:[:=]\s*)?(?:\[\s*(?P<listed>{_EACH}(?:(?:\s*,\s*|\s+){_EACH}){{1,15}})\s*\]"
    rf"|(?<=[:=])\s*(?P<bare>{_EACH}(?:, {_EACH}){{1,15}})(?=\s*(?:\||$))|(?<=[:=])\s*(?P<pair>{_EACH} / {_EACH})(?=[\s,]|$))"
)
# "Loss after 100 iterations: 0.52": the place stands inside.
_AFTER = re.compile(
    rf"(?<![\w./])(?P<name>{_NAME}(?: {_NAME}){{0,2}}?) (?:after|at|on) (?P<word>(?i:iteration|iter|step|epoch|update)s?)? ?(?P<place>[\d,]*\d)"
    rf"(?: (?P<behind>(?i:iteration|iter|step|epoch|update)s?))?\s*(?:[:=]|is|was)+\s*{_VALUE}{_END}"
)
_MMENGINE = re.compile(
    r"(?P<kind>Epoch|Iter)\((?P<split>train|val|test)\)\s*(?:\[\s*(?P<epoch>\d+)\])?\s*\[\s*(?P<inner>\d+)\s*/\s*(?P<per>\d+)\]"
)
_TOTAL = re.compile(r"\s*(?:/|of|out of)\s*(?P<total>[\d,]*\d)")
_PLACE = re.compile(
    r"(?<![\w./])(?P<word>(?:global[ _]?)?steps?|iter(?:ation)?|iters|itr|it|num_updates"
    r"|update|upd|up\.|gs|epoch|epo|ep\.?|(?:comm(?:unication)?[ _])?round|pass|batch(?:_idx)?|minibatch|训练次数|迭代次数|步数|轮次)"
    r"['\"]?\s*(?:[:=#]\s*)?[\[(]?\s*['\"]?(?P<value>[\d,]*\d(?:\.\d+)?)(?!\.?\w|%|\.\.)",
    re.IGNORECASE,
)
# What stands behind the epoch without a word: "Epoch: [11][1383/10000]", "Epoch  6,   200/  725;".
_INNER = re.compile(
    r"\s*(?:[\]),]\s*\[?\s*(?P<value>\d+)\s*/\s*(?P<total>\d+)(?![\d.%])"
    r"|\[\s*(?P<images>\d+)\s*/\s*(?P<set>\d+)\s*\(\s*[\d.]+%\s*\)\s*\]"  # "Train Epoch: 1 [640/60000 (1%)]" of torch/examples
    r"|\|\s*(?P<batch>\d+)\s*/\s*(?P<batches>\d+) batches)"
)
_INNER_NEXT = re.compile(r"\]\s*\[\s*(?P<value>\d+)\s*/\s*(?P<total>\d+)\s*\]")  # "Epoch: [0/100]  [ 10/1251]"
# Places without a word: "[0/25][50/1583]" (DCGAN), "[1,  2000] loss: 2.1" and "loss: 2.3  [ 6400/60000]" (torch's tutorials),
# "3/16, train_loss: 0.65" (MONAI).
_BARE = re.compile(
    r"\s*(?:\[\s*(?P<epoch>\d+)\s*/\s*(?P<epochs>\d+)\]\s*\[\s*(?P<inner>\d+)\s*/\s*(?P<per>\d+)\]"
    r"|\[(?P<epoch2>\d+),\s*(?P<inner2>\d+)\](?=:? *(?:\w+ )?loss\b)"
    r"|(?P<inner3>\d+)\s*/\s*(?P<per3>\d+)\s*, (?=[A-Za-z_ ]+[:=])"
    r"|\[(?P<step>\d+)\](?=\s+[A-Za-z][\w'@-]*(?: \w+)?:)"  # XGBoost, LightGBM: "[10]	valid_0's auc: 0.8"
    r"|(?P<step2>\d+):(?=\s+learn:)"  # CatBoost
    r"|\[\s*(?P<inner4>\d+)\s*/\s*(?P<all4>\d+)\s*\](?=:?\s+[A-Za-z]\S*(?:\s?[:=])?\s+[-+]?\d)"  # "[100/2500] D 1.620 G 0.710"
    r"|(?P<inner5>\d+)\s*/\s*(?P<all5>\d+)(?=\s+[A-Za-z]\S*\s+[-+]?\d+\.\d))"  # "10/400  ce 22.7165  lr 1.25e-03"
)
_BEHIND = re.compile(r"\s\[\s*(?P<images>\d+)\s*/\s*(?P<set>\d+)\]\s*$")
_ESPNET = re.compile(r"(?P<epoch>\d+)epoch:(?P<split>train|valid):\d+-(?P<inner>\d+)batch:")
_EPOCHS = ("ep", "轮次", "round", "comm", "pass")
_INNERS = ("batch", "minibatch")
# A heading says of which split the numbers behind it are: "- Eval metrics: loss: 0.3 ; acc: 0.8", "[valid] loss=2.1".
_HEADING = re.compile(
    r"^\W*(?P<split>(?i:train(?:ing)?|val(?:id(?:ation)?)?|eval(?:uation)?|test(?:ing)?|dev|held[-_ ]?out|hold[-_ ]?out|oof))"
    r"(?: (?i:metrics?|results?|stats|scores?|set))*\s*[-:>|]+\s+(?=[A-Za-z_])"
    r"|\[ ?(?P<boxed>(?i:train(?:ing)?|val(?:id(?:ation)?)?|test(?:ing)?|eval(?:uation)?)) ?\](?= +[A-Za-z_])"
    r"|(?i:evaluat(?:ing|ion|ed)|eval|results?|metrics?|scores?)(?: (?i:on|of|for))?(?: (?i:the))? "
    r"(?P<on>(?i:train(?:ing)?|val(?:id(?:ation)?)?|test(?:ing)?|dev))(?: (?i:set|split|data))?\s*[:|-]+\s+"
    r"|Saving dict for global step \d+:\s+(?P<saved>)"  # an Estimator's evaluation
    r"|(?P<net>Train|Test) net output #\d+:\s+"  # Caffe
    r"|(?:Epoch|Iter)\((?P<mm>train|val|test)\)\s*(?:\[[\d/ ]+\]\s*){1,2}"  # mmengine
)
# "TEST in epoch 24, loss = 3.64", "Validation epoch 3: acc 0.5": the word before the epoch says whose values follow.
_IN_EPOCH = re.compile(r"^\W*(?P<split>(?i:train(?:ing)?|val(?:id(?:ation)?)?|eval(?:uation)?|test(?:ing)?|dev|held-?out|holdout))(?: (?i:in|after|at|results?|metrics?|set))? (?:[-–|] )?(?i:epoch|ep)(?=[\s:#=\d\[(])")
_TRAIN_FIRST = re.compile(r"\W*(?i:train(?:ing)?)\b")
SCORE = re.compile(r"(?:^|[_ /])(?:m?iou|dice|f1|precision|recall|auc|psnr|ssim|acc|accuracy|top\d|ppl|perplexity)(?:$|[_ /])", re.I)
_DAYS = re.compile(r"\s*(?:days?\b|:\d)")
_VERBS = ("is", "was", "of", "at")
_ANOTHER = (" from", " to", " than", " by", " over")
_FILLER = ("at", "the", "and", "with", "for", "of", "in", "on", "to", "is", "after", "from", "current", "info")


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
    if bare := _BARE.match(body, start):
        return _without_words(bare)
    if mm := _MMENGINE.search(body, start):
        return _of_mmengine(mm)
    if after := _AFTER.search(body, start):
        word = (after["word"] or after["behind"] or "").lower()
        return [field_of(after, "place", word, "epoch" if word.startswith("epoch") else "step")] if word else []
    found: dict[str, list[Field]] = {}
    for hit in _PLACE.finditer(body, start):
        word = hit["word"].lower()
        if word.startswith("global") and len(found.get("step", ())) > 1:  # "STEP: 50/100 -- GLOBAL_STEP: 1250"
            found["step"] = []
        role: Role = "epoch" if word.startswith(_EPOCHS) else "inner" if word.startswith(_INNERS) else "step"
        if found.get(role):
            continue
        fields = [field_of(hit, "value", word, role)]
        total = _TOTAL.match(body, hit.end())
        if total and role != "epoch" and "." not in hit["value"]:
            fields.append(field_of(total, "total", word, "per_epoch" if role == "inner" else "total_steps"))
        elif total and role == "epoch":
            fields.append(field_of(total, "total", word, "total_epochs"))
            if "inner" not in found and (inner := _INNER_NEXT.match(body, total.end())):
                found["inner"] = _inside(inner)
        elif role == "epoch" and "inner" not in found and (inner := _INNER.match(body, hit.end())):
            found["inner"] = _inside(inner)
        found[role] = fields
    if "epoch" in found and "step" in found and len(found["step"]) > 1 and "inner" not in found:
        # "Epoch [1/5], Step [100/600]": a step with a total inside an epoch counts batches of the epoch.
        place, length = found.pop("step")
        found["inner"] = [replace(place, role="inner"), replace(length, role="per_epoch")]
    if "epoch" not in found and len(found.get("inner", ())) < 2:
        found.pop("inner", None)
    if "inner" not in found and "step" not in found and (behind := _BEHIND.search(body)):
        found["inner"] = _inside(behind)
    return sorted((f for fields in found.values() for f in fields), key=lambda f: f.start)


def _of_mmengine(hit: re.Match[str]) -> list[Field]:
    """ "Epoch(train) [1][50/100]": a batch of an epoch. The batches of an evaluation are no place in training."""
    if hit["kind"] == "Iter":
        if hit["split"] != "train":
            return []
        return [field_of(hit, "inner", "iter", "step"), field_of(hit, "per", "iter", "total_steps")]
    epoch = [field_of(hit, "epoch", "epoch", "epoch")] if hit["epoch"] else []
    if hit["split"] != "train":
        return epoch
    return [*epoch, field_of(hit, "inner", "batch", "inner"), field_of(hit, "per", "batch", "per_epoch")]


def _inside(hit: re.Match[str]) -> list[Field]:
    """The batch, or the images so far, of an epoch and how many it has."""
    said = {name: text for name, text in hit.groupdict().items() if text}
    if "images" in said:
        return [field_of(hit, "images", "images", "inner_sample"), field_of(hit, "set", "images", "per_epoch")]
    place, total = ("value", "total") if "value" in said else ("batch", "batches")
    return [field_of(hit, place, "batch", "inner"), field_of(hit, total, "batch", "per_epoch")]


def _without_words(hit: re.Match[str]) -> list[Field]:
    roles: tuple[tuple[str, Role], ...] = (
        ("epoch", "epoch"), ("epochs", "total_epochs"), ("inner", "inner"), ("per", "per_epoch"),
        ("epoch2", "epoch"), ("inner2", "inner"), ("inner3", "inner"), ("per3", "per_epoch"),
        ("step", "step"), ("step2", "step"), ("inner4", "inner"), ("all4", "bar_total"), ("inner5", "inner"), ("all5", "bar_total"),
    )  # fmt: skip
    return [field_of(hit, group, role, role) for group, role in roles if hit[group]]


def loose_pairs(body: str, start: int, taken: list[Field], *, spaced: bool = True) -> list[Field]:
    """Named numbers that are not places, with the split their name states."""
    used = [(f.start, f.end) for f in taken]
    out: list[Field] = []
    section: str | None = None
    heads = [(hit.end(), split_of(hit["split"] or hit["boxed"] or hit["on"] or hit["net"] or hit["mm"] or "val")) for hit in _HEADING.finditer(body)]
    if not heads and (lead := _IN_EPOCH.match(body)):
        heads = [(lead.end(), split_of(lead["split"]))]
    if espnet := _ESPNET.match(body):
        heads = [(espnet.end(), split_of(espnet["split"]))]
    if "[" in body or "|" in body or " / " in body:
        for hit in SEVERAL.finditer(body, start):
            out += several(hit, used)
    patterns = [_SHARE] if "%)" in body else []
    patterns += [_AFTER] if "after" in body or " at " in body or " on " in body else []
    for pattern in (*patterns, _MARKED, *([_SPACED, _GLUED] if spaced else [])):
        for hit in pattern.finditer(body, start):
            a, b = hit.span("value")
            name = _trim(hit["name"])
            if not name or any(x < b and a < y for x, y in used) or _PLACE.fullmatch(f"{name} 1"):
                continue
            if name.lower().endswith(_ANOTHER):  # "val_loss improved from 0.31 to 0.29"
                continue
            if name.lower() == "eta" and _DAYS.match(body, b):  # "ETA: 2 days, 3:10:05" is no number
                continue
            used.append((a, b))
            split: str | None = split_of(name)
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
    if len(told) == 1 and (told <= {"val", "test"} or _TRAIN_FIRST.match(body, start)):
        # As in: Validation Loss: 0.31  Accuracy: 0.95; or: train Loss: 0.52 Acc: 0.81
        first = next(i for i, f in enumerate(out) if f.split)
        held: Window | None = "eval" if told <= {"val", "test"} else None
        alike = [replace(f, split=out[first].split, window=held) if _scores(f) else f for f in out[first:]]
        out[first:] = alike
    return out


def several(hit: re.Match[str], used: list[tuple[int, int]]) -> list[Field]:
    """The values of a list by their number; of "D(G(z)): 0.60 / 0.63" the first as the name says. `used` are the spans of
    the line that are taken."""
    group = next(name for name in ("listed", "bare", "pair") if hit[name])
    begin = hit.start(group)
    spans = [(begin + found.start(), begin + found.end()) for found in re.finditer(_EACH, hit[group])]
    if any(a < y and x < b for a, b in spans for x, y in used) or _PLACE.fullmatch(f"{hit['name']} 1"):
        return []
    used.extend(spans)
    name = _trim(hit["name"])
    names = [name if i == 0 and group == "pair" else f"{name}[{i}]" for i in range(len(spans))]
    split = split_of(name)
    return [Field(names[i], a, b, "value", split=split) for i, (a, b) in enumerate(spans)]


def of_batches(fields: list[Field]) -> list[Field]:
    """Scores without a split on the row of a batch are of training: batches of a validation are named as such."""
    return [replace(f, split="train") if _scores(f) else f for f in fields]


def says_split(body: str) -> bool:
    """Does the line begin by saying of which data its numbers are?"""
    return _HEADING.match(body) is not None


def _scores(spec: Field) -> bool:
    return spec.split is None and SCORE.search(spec.name) is not None


def _trim(name: str) -> str:
    words = name.split(" ")
    while words and words[0].lower().strip("-") in _FILLER:
        words = words[1:]
    while len(words) > 1 and words[-1].lower() in _VERBS:  # "Loss is 0.3"
        words = words[:-1]
    return " ".join(words)
