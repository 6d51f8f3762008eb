"""Lines as an English log would have them: the words of other languages, and decimal commas.

Done once, where lines are made, so that every reader and every clock understands "Epoche 3: Verlust 0,52". It is only done
for a file whose start shows that it is needed; what was taken for what is told in a Note.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.resources import files

SEEN = 1 << 16  # characters of a file by which it is judged
LEAST = 2  # decimal commas before a file is taken for one that has them: a sentence may hold one by chance
_EAST = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_COMMA = re.compile(r"(?<![\d,.\[(])\d{1,4},(?:\d{1,2}|\d{4,})(?![\d,])")
_POINT = re.compile(r"\d\.\d")
_DECIMAL = re.compile(r"(?<=\d),(?=\d)")
# Chinese and Japanese punctuation, sign for sign.
WIDE = str.maketrans("：，；（）＝［］％｜", ":,;()=[]%|")
# "第3轮", "第 3/12 轮": the counter stands behind the number it counts.
_ORDINAL = re.compile(r"第\s*(\d+(?:\s*/\s*\d+)?)\s*(?:个|個)?\s*(epoch|step|episode)\b")
_OUTER = re.compile(r"^ +| +$", re.M)
_MEASURE = r"(?:loss|accuracy|error|precision|recall)"
# "pérdida de validación", "perte_val", "perte d'entraînement": the data stand behind the measure.
_BEHIND = re.compile(
    rf"\b({_MEASURE})(?:_| (?:de |di |en |of |da |do |del |la |na |no |sur )*| d['’])(train|val|validation|test)\b"
)
_TELLING = {"loss", "accuracy", "epoch", "rate", "step", "error", "reward"}


@cache
def _dictionary() -> dict[str, str]:
    with (files("wheeltapper.reading") / "foreign_words.toml").open("rb") as file:
        told = tomllib.load(file)
    return {word: english for words in told.values() for english, spelled in words.items() for word in spelled}


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Words that may touch others, words that stand alone, and either of them with a number before or behind it."""
    east = sorted((w for w in _dictionary() if _EAST.search(w)), key=len, reverse=True)
    west = sorted((w for w in _dictionary() if not _EAST.search(w)), key=len, reverse=True)
    alone = rf"(?<![^\W_])(?:{'|'.join(map(re.escape, west))})(?![^\W_])"
    touching = "|".join(map(re.escape, east))
    either = "|".join(map(re.escape, sorted(_telling()[1:], key=len, reverse=True)))
    shown = rf"(?i)(?<![^\W_\u3000-\ud7ff])(?:{either})(?:_?\w{{1,12}}|[ _]d\S{{1,12}}(?: \w+)?)?\W{{0,8}}\d|第\s*\d+\s*[轮步回]"
    return re.compile(touching), re.compile(f"(?i){alone}"), re.compile(shown)


def english(text: str) -> str:
    """The text with the words that logs of other languages use in English; all else as it is.

    >>> english("第3轮 训练损失：0.52，学习率：0.001"), english("Epoche 3: Validierungsverlust 0.5")
    ('epoch 3 train loss:0.52, learning rate:0.001', 'epoch 3: val loss 0.5')
    >>> english("perte_val = 0.3"), english("pérdida de entrenamiento: 0.4")
    ('val loss = 0.3', 'train loss: 0.4')
    """
    east, west, _ = _patterns()
    words = _dictionary()
    if not text.isascii():
        text = east.sub(lambda hit: f" {words[hit[0]]} ", text.translate(WIDE))
        text = re.sub(r"(?<=\S)  +", " ", re.sub(r" +(?=[:=,;)\]|%])", "", text))
        text = _ORDINAL.sub(r"\2 \1", text)
    text = west.sub(lambda hit: words[hit[0].lower()], text)
    text = _BEHIND.sub(r"\2 \1", text)
    return _OUTER.sub("", text)


@cache
def _telling() -> tuple[str, ...]:
    return ("第", *(word for word, meant in _dictionary().items() if meant.split()[-1] in _TELLING))


@lru_cache(maxsize=16)
def is_foreign(start: str) -> bool:
    """Does a word of another language stand beside a number?"""
    low = start[:SEEN].lower()
    return any(word in low for word in _telling()) and _patterns()[2].search(low) is not None


@lru_cache(maxsize=16)
def has_foreign(header: str) -> bool:
    """Do the names of a table have a word of another language?"""
    low = header.lower()
    return any(word in low for word in _telling()) and english(header) != header


class Manner:
    """How a file writes words and numbers, judged by its start."""

    def __init__(self, start: str) -> None:
        self.foreign = is_foreign(start)
        commas = sum(1 for _ in _COMMA.finditer(start, 0, SEEN))
        self.decimal_comma = commas >= LEAST and commas > 5 * sum(1 for _ in _POINT.finditer(start, 0, SEEN))

    @property
    def plain(self) -> bool:
        return not (self.foreign or self.decimal_comma)

    def says(self) -> Iterator[str]:
        if self.foreign:
            yield "words of another language are read as the English ones"
        if self.decimal_comma:
            yield "numbers have decimal commas"

    def read(self, text: str) -> str:
        """Whole lines in plain English, as many as before."""
        if self.decimal_comma:
            text = _DECIMAL.sub(".", text)
        return english(text) if self.foreign else text
