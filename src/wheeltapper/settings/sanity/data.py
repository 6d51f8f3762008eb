"""What is trained on, what is tested on, and how it is prepared."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wheeltapper.settings.sanity.sheet import Doubt, Setting, Sheet
from wheeltapper.settings.words import word_set

TRAIN, HELD = frozenset({"train", "training", "trn"}), frozenset({"val", "valid", "validation", "eval", "dev", "test", "testing", "evaluation"})
_TOKEN = re.compile(r"[a-z]+")
_DATA = word_set("data dataset datasets file files path paths dir folder split splits list root image images index list set corpus src tgt manifest csv json source url shards name")
_SHUFFLED = word_set("shuffle use do is train training data dataset datasets loader dataloader files file samples sample")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_ORDER = {"train": 0, "val": 1, "valid": 1, "validation": 1, "dev": 1, "test": 2}


def _split_of(setting: Setting) -> str:
    """Which part of the data a setting is about, by its key or the section above it."""
    for part in (setting.path[-1], *reversed(setting.path[:-1])):
        words = set(_TOKEN.findall(part.lower()))
        if words & TRAIN and not words & HELD:
            return "train"
        if words & HELD and not words & TRAIN:
            return "held"
    return ""


def _rest(setting: Setting) -> tuple[str, ...]:
    """The path without the words that name the split: what a training and a validation key have in common."""
    out = []
    for part in setting.path:
        words = [w for w in _TOKEN.findall(part.lower()) if w not in TRAIN | HELD]
        out.append("_".join(words))
    return tuple(part for part in out if part)


def _texts(setting: Setting) -> list[str]:
    values = setting.value if isinstance(setting.value, list) else [setting.value]
    return [v.strip() for v in values if isinstance(v, str) and v.strip()]


def _of_data(setting: Setting) -> bool:
    bare = set(_TOKEN.findall(setting.key)) <= TRAIN | HELD
    return (bare or bool(setting.own & _DATA)) and not setting.own & {"batch", "output", "out", "log", "save", "transform", "transforms", "vocab", "tokenizer", "bpe", "spm", "dict", "type", "class", "format", "metric", "sampler", "strategy", "target", "pipeline"} and not setting.above & {"gallery", "query", "memory", "knn", "bank"}


def same_data(sheet: Sheet) -> Iterator[Doubt]:
    """Training and validation read the same file or split."""
    if "gan" in sheet.themes:
        return  # samples are held against what is trained on
    found = [(s, _split_of(s), _texts(s)) for s in sheet.settings if s.text or isinstance(s.value, list)]
    train = [(s, t) for s, split, t in found if split == "train" and t and _of_data(s)]
    held = [(s, t) for s, split, t in found if split == "held" and t and _of_data(s)]
    for a, mine in train:
        for b, theirs in held:
            if (mine == theirs and _says_which(mine[0]) and (_rest(a) == _rest(b) or _rest(a)[-1:] == _rest(b)[-1:] or _file(mine[0]))) and not _told_apart(sheet, a, b):
                yield Doubt("train-val-leak", f"`{b.name}` and `{a.name}` are both {mine[0]}: what is trained on is tested on", (b, a))


def _says_which(text: str) -> bool:
    """Not the root or the name of a whole data set, which both parts share."""
    return bool(set(_TOKEN.findall(text.lower())) & (TRAIN | HELD)) and "path to" not in text


def _file(text: str) -> bool:
    return bool(re.search(r"\.(?:csv|tsv|jsonl?|txt|parquet|pkl|npz?|h5|hdf5|bin|lst|list|tfrecords?|record|lmdb|zip|tar|xml|arrow|cleaned|svm|libsvm|train|valid|test|spacy)$", text.strip().lower()))


def _told_apart(sheet: Sheet, a: Setting, b: Setting) -> bool:
    """Another setting beside them tells the parts apart: a split, a fold, an index."""
    def others(s: Setting) -> dict[str, object]:
        return {o.key: str(o.value) for o in sheet.settings if o.path[:-1] == s.path[:-1] and len(s.path) > 1 and o is not s}
    one, two = others(a), others(b)
    return a.path[:-1] != b.path[:-1] and any(one[k] != two[k] for k in one.keys() & two.keys() if k in ("split", "fold", "subset", "phase", "mode", "ann_file", "annotations", "list", "csv"))


def other_part(sheet: Sheet) -> Iterator[Doubt]:
    """Training reads a file that is called test; validation one that is called train."""
    for s in sheet.settings:
        split, texts = _split_of(s), _texts(s)
        if not split or not texts or not _of_data(s) or len(texts) > 20 or s.own & {"name"} - {"split"} or s.around & {"prefix"} or (s.own & {"img", "image"} and len(s.own) > 1):
            continue
        for text in texts:
            told = _told_by(text)
            if "[" in text or "%" in text:
                continue  # a part of a part
            if split == "train" and told == {"held"} and all(_told_by(t) == {"held"} for t in texts):
                yield Doubt("train-val-leak", f"`{s.name}` is {text}: it trains on what is kept for testing", (s,))
                break
            if split == "held" and text.lower() in TRAIN and not any(_split_of(o) == "train" and o.text == text for o in sheet.settings):
                continue  # a part of the training data that nothing else says is trained on
            if split == "held" and told == {"train"} and not any(_told_by(t) == {"held"} for t in texts):
                yield Doubt("train-val-leak", f"`{s.name}` is {text}: it is tested on what is trained on", (s,))
                break
            if split == "train" and "+" in text and re.search(r"\btest\b", text):
                yield Doubt("train-val-leak", f"`{s.name}` is {text}: it trains on the test data, too", (s,))
                break
    held = {s.text for s in sheet.settings if s.key == "split" and _split_of(s) == "held"}
    for s in sheet.settings:
        if s.key == "split" and _split_of(s) == "train" and "+" in s.text and held & set(s.text.split("+")):
            yield Doubt("train-val-leak", f"`{s.name}` is {s.text}, and {', '.join(sorted(held))} is tested on", (s,))
        if s.own & {"split", "splits"} and isinstance(s.value, list) and len(s.value) > 1 and all(isinstance(v, str) for v in s.value) and len(set(s.value)) < len(s.value):
            yield Doubt("train-val-leak", f"`{s.name}` names the same part twice ({', '.join(s.value[:3])}): it is tested on what is trained on", (s,))


def _told_by(text: str) -> set[str]:
    """The parts that the last pieces of a path name."""
    tail = [piece for piece in re.split(r"[/\\]", text) if piece][-2:]
    for piece in reversed(tail):
        words = set(_TOKEN.findall(re.sub(r"\.[a-z0-9]+$", "", piece.lower())))
        told = {"train"} if words & TRAIN else set()
        if words & HELD - {"dev", "eval", "evaluation"}:
            told.add("held")
        if told:
            return told
    return set()


def stopping_data(sheet: Sheet) -> Iterator[Doubt]:
    """Early stopping or validation on the training file."""
    data = [s for s in sheet.settings if s.key in ("data", "train", "train_data", "data_train", "train_file")]
    for s in sheet.settings:
        if s.key in ("valid", "valid_data", "validation_data", "test_data", "eval_data", "val_data", "test", "data_valid") and s.text and _file_like(s.text):
            other = next((d for d in data if d.text == s.text and d.leaf.file == s.leaf.file), None)
            if other is not None:
                yield Doubt("train-val-leak", f"`{s.name}` and `{other.name}` are both {s.text}: what is trained on is tested on", (s, other))


def _file_like(text: str) -> bool:
    return "." in text or "/" in text


def copies_source(sheet: Sheet) -> Iterator[Doubt]:
    """Source and target are the same file, language or column."""
    for s in sheet.settings:
        if not s.text or not s.own & {"src", "source", "text", "input"} or not s.own & {"lang", "language", "path", "file", "data", "train", "column", "corpus", "valid", "field"}:
            continue
        for swap in (("src", "tgt"), ("source", "target"), ("text", "summary"), ("input", "target"), ("input", "output")):
            wanted = s.key.replace(*swap)
            other = next((o for o in sheet.settings if o.key == wanted and o.path[:-1] == s.path[:-1] and o is not s), None)
            if other is not None and other.text == s.text and wanted != s.key:
                yield Doubt("target-leak", f"`{s.name}` and `{other.name}` are both {s.text}: the network learns to copy", (other, s))
    columns = {"cnn_dailymail": ("article", "highlights"), "xsum": ("document", "summary"), "samsum": ("dialogue", "summary")}
    source, target = (next((s for s in sheet.settings if s.key == key), None) for key in ("text_column", "summary_column"))
    for s in sheet.settings:
        known = columns.get(s.text.rsplit("/", 1)[-1]) if s.own & {"dataset", "data"} else None
        if known and source is not None and target is not None and (source.text, target.text) == known[::-1]:
            yield Doubt("target-misaligned", f"`{source.name}` is {source.text} and `{target.name}` is {target.text}: source and target are swapped", (source, target))


def label_among_features(sheet: Sheet) -> Iterator[Doubt]:
    """The label is one of the columns that the model is given."""
    labels = [s for s in sheet.settings if s.text and (s.key in ("label", "target", "label_column", "target_column", "label_col", "target_col", "y", "response", "label_name", "target_name"))]
    for s in sheet.settings:
        if not isinstance(s.value, list) or not s.own & {"features", "feature", "columns", "inputs", "cols", "x", "covariates", "numeric", "categorical"} or s.own & {"drop", "exclude", "ignore", "load", "label", "target"}:
            continue
        for label in labels:
            if label.text in s.value:
                yield Doubt("target-leak", f"`{s.name}` holds {label.text}, which is the label (`{label.name}`)", (s, label))


def dates_in_order(sheet: Sheet) -> Iterator[Doubt]:
    """Training, validation and test follow each other in time."""
    dated: dict[tuple[str, ...], list[tuple[int, str, Setting]]] = {}
    for s in sheet.settings:
        text = str(s.value)
        words = [w for w in _TOKEN.findall(s.key) if w in _ORDER]
        if _DATE.match(text) and len(words) == 1 and s.own & {"until", "end", "to"}:
            dated.setdefault(s.path[:-1], []).append((_ORDER[words[0]], text[:10], s))
    for group in dated.values():
        for (one, early, a), (two, late, b) in zip(sorted(group, key=lambda g: g[0]), sorted(group, key=lambda g: g[0])[1:], strict=False):
            if one < two and early >= late:
                yield Doubt("train-val-leak", f"`{a.name}` is {early} and `{b.name}` is {late}: the parts overlap or are empty", (b, a) if abs(len(b.key)) else (a, b))


def shares_of_data(sheet: Sheet) -> Iterator[Doubt]:
    """What is held out leaves hardly anything to train on."""
    for s in sheet.settings:
        held = s.own & {"val", "valid", "validation", "test", "holdout", "eval", "dev"}
        sized = s.own & {"size", "split", "ratio", "fraction", "frac", "share", "percentage", "pct", "proportion", "prop"}
        if held and sized and s.number is not None and not isinstance(s.value, bool) and 0.6 < s.number < 1 and not s.own & {"crop", "image", "batch", "center", "train"}:
            yield Doubt("too-few-updates", f"`{s.name}` is {s.number:g}: that share is held out, and hardly anything is left to train on", (s,))
        if s.own & {"split", "splits"} or s.above & {"split", "splits"}:
            yield from _list_of_shares(s)
        if s.own & {"train"} and s.own & {"split", "ratio", "fraction", "frac", "share", "proportion"} and s.number is not None and 0 < s.number < 0.2 and not s.own & {"mask", "drop", "sample", "subset", "label", "labeled"}:
            yield Doubt("too-few-updates", f"`{s.name}` is {s.number:g}: hardly anything is left to train on", (s,), "range")


def _list_of_shares(s: Setting) -> Iterator[Doubt]:
    parts = s.numbers
    if len(parts) not in (2, 3) or any(p < 0 for p in parts) or sum(parts) <= 0:
        return
    shares = [p / sum(parts) for p in parts]
    if not any(abs(sum(parts) - whole) < 1e-6 * whole + 1e-9 for whole in (1, 10, 100, 1000)):
        if all(p <= 1 for p in parts):
            yield Doubt("train-val-leak", f"`{s.name}` sums to {sum(parts):g}: shares of the data make 1", (s,), "range")
        return
    if shares[0] < 0.3 and shares[0] < max(shares[1:]):
        yield Doubt("too-few-updates", f"`{s.name}` gives {shares[0]:.0%} to training and {max(shares[1:]):.0%} to a held-out part", (s,))


def not_shuffled(sheet: Sheet) -> Iterator[Doubt]:
    """Training data in the order of the file."""
    if sheet.themes & {"forecast", "rl", "onpolicy"} or sheet.says("grpo", "rlhf", "ppo") or any(re.search(r"(?i)val|test|eval", f.rsplit("/", 1)[-1]) for f in sheet.files) or sheet.says("iterable", "streaming", "webdataset", "shards", "sampler"):
        return
    for s in sheet.settings:
        off = (s.on is False and "shuffle" in s.own and s.own <= _SHUFFLED) or (s.key == "serial_batches" and s.on is True)
        if off and _split_of(s) != "held" and not s.above & HELD and not s.own & HELD:
            yield Doubt("data-not-shuffled", f"`{s.name}` is {str(s.value).lower()}: batches come in the order of the file", (s,), "range")


def normalisation(sheet: Sheet) -> Iterator[Doubt]:
    """Mean and spread of different scales."""
    for mean in sheet.settings:
        if not mean.own & {"mean", "means"} or mean.own & {"noise", "span", "p", "log", "pool", "score", "reward"}:
            continue
        wanted = {re.sub("mean", word, mean.key) for word in ("std", "var", "stds", "sd", "stdev")} | {mean.key.replace("means", "stds")}
        spread = next((s for s in sheet.settings if s.key in wanted and s.key != mean.key and s.path[:-1] == mean.path[:-1] and s.leaf.file == mean.leaf.file), None)
        means = mean.numbers or ([mean.number] if mean.number is not None else [])
        spreads = [] if spread is None else spread.numbers or ([spread.number] if spread.number is not None else [])
        if spread is None or not means or not spreads:
            continue
        if min(spreads) <= 0:
            yield Doubt("input-not-normalised", f"`{spread.name}` is {spread.value}: inputs are divided by it", (spread, mean))
        elif max(map(abs, means)) > 20 and max(spreads) <= 1 and not (max(spreads) == 1 and min(spreads) == 1):
            yield Doubt("input-not-normalised", f"`{mean.name}` counts in 0 to 255 and `{spread.name}` in 0 to 1", (spread, mean))
        elif 0 < max(map(abs, means)) <= 1.5 and min(spreads) > 20:
            yield Doubt("input-not-normalised", f"`{mean.name}` counts in 0 to 1 and `{spread.name}` in 0 to 255", (spread, mean))
        elif len(means) == 3 and means == spreads and len(set(means)) > 1:
            yield Doubt("input-not-normalised", f"`{spread.name}` is a copy of `{mean.name}`", (spread, mean))
        elif sheet.says("ct", "hounsfield", "hu", "ctnormalization") and max(map(abs, means)) <= 1 and max(spreads) <= 1 and spread.number is not None:
            yield Doubt("input-not-normalised", f"`{mean.name}` is {mean.value}: Hounsfield units lie in hundreds", (mean, spread))


def raw_scale(sheet: Sheet) -> Iterator[Doubt]:
    """Inputs fed as 0 to 255, or tables of columns fed as they are."""
    for s in sheet.settings:
        if s.own & {"range"} and len(s.numbers) == 2 and s.numbers[1] >= 100 and s.numbers[0] >= 0 and s.above & {"data", "dataset", "image", "input", "preprocess", "preprocessing"} and sheet.themes & {"diffusion", "gan", "vae"}:
            yield Doubt("input-not-normalised", f"`{s.name}` is {s.value}: pictures of 0 to 255 against noise and outputs of size one", (s,))
        named = s.key in ("normalize", "normalise", "scale", "standardize", "standardise", "normalize_input", "normalize_inputs", "normalize_data", "scale_data", "normalization", "do_normalize", "rescale")
        if named and s.on is False and isinstance(s.value, bool) and (s.key != "scale" or "forecast" in sheet.themes) and (s.above & {"data", "dataset", "preprocess", "preprocessing", "input", "inputs", "transform"} or "forecast" in sheet.themes) and s.key != "normalization":
            yield Doubt("input-not-normalised", f"`{s.name}` is off: inputs are fed as they are", (s,), "range")
    activation = next((s for s in sheet.settings if s.has("activation/act @output/out/final/generator") and s.own & {"output", "out", "final", "last"} and s.text.lower() in ("sigmoid", "relu")), None)
    half = [s for s in sheet.settings if s.own & {"mean", "std"} and set(s.numbers or [s.number or 0.0]) == {0.5}]
    if activation is not None and len(half) >= 2 and sheet.themes & {"gan", "vae", "diffusion"}:
        yield Doubt("output-activation-wrong", f"`{activation.name}` is {activation.text}, and the data are scaled to -1 to 1 (`{half[0].name}`)", (activation, half[0]))


CHECKS = (same_data, other_part, stopping_data, copies_source, label_among_features, dates_in_order, shares_of_data, not_shuffled, normalisation, raw_scale)
