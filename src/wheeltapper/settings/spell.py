"""How a value is written: in the style of the text it replaces, and so that the loader reads what was meant.

The style of the old text is kept where it can hold the new value (exponent or decimals, quotes, `yes` or `True`,
thousands), so that an edit and its inverse give the first text again.

>>> spell(5e-5, old="1.0e-4", format="yaml"), spell(False, old="yes", format="yaml"), spell(3e-4, old='"1e-4"')
('5.0e-5', 'no', '"3e-4"')
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Any

from wheeltapper.settings.parse_yaml import safe_float

_TAG = re.compile(r"(!\S*[ \t]+)(.*)\Z", re.S)
_QUOTED = re.compile(r"([rRuUbB]?)(\"\"\"|'''|\"|')(.*)\2\Z", re.S)
_NUMBER = re.compile(r"[-+]?(?:[\d_,]*\.?[\d_]*)(?:[eE][-+]?\d+)?\Z")
_TRUTHS = (("true", "false"), ("yes", "no"), ("on", "off"), ("1", "0"), ("y", "n"))
_YAML_PLAIN = re.compile(r"[A-Za-z_./][\w./+\-]*(?: [\w./+\-]+)*\Z")
_YAML_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n", "none", "nan", "inf"}
_SHELL_PLAIN = re.compile(r"[\w@%+=:,./\-]+\Z")
LONGEST_DECIMAL = 14  # a decimal number with more characters is easier to read with an exponent


class Unspellable(Exception):  # noqa: N818
    """This format has no text for the value."""


def spell(value: Any, old: str | None = None, format: str = "json", *, whole: bool = False, like: str = "") -> str:
    """The text of a value in `format`, after the manner of `old` (the text it replaces) or of the file `like`.

    `whole`: the setting is an integer and stays one.
    """
    tag, body = "", old
    if old is not None and format == "yaml" and (tagged := _TAG.match(old)):
        tag, body = tagged.groups()
    quoted = _QUOTED.match(body) if body else None
    if quoted and not isinstance(value, (list, tuple)):
        mark, inner = quoted.group(2), quoted.group(3)
        if value is None:
            return _null(format, like)
        text = value if isinstance(value, str) else _plain(value, inner, "json", whole, like)
        return f"{tag}{quoted.group(1)}{mark}{_escaped(text, mark, format)}{mark}"
    if tag.strip() in ("!!float", "!!int") and not isinstance(value, (int, float)):
        tag = ""
    if isinstance(value, (list, tuple)):
        return _list(value, body, format, whole, like)
    if isinstance(value, str):
        return tag + _string(value, format)
    kind = "json" if tag.strip() == "!!float" else format  # with the tag, 1e-6 is a number in YAML 1.1 too
    return tag + _plain(value, body, kind, whole, like)


def _plain(value: Any, old: str | None, format: str, whole: bool, like: str) -> str:
    if value is None:
        return _null(format, like)
    if isinstance(value, bool):
        return _truth(value, old, format, like)
    if isinstance(value, (int, float)):
        return number_text(value, old, format, whole=whole)
    return _string(str(value), format)


def number_text(value: float, old: str | None, format: str, *, whole: bool = False) -> str:
    """A number in the notation of `old`: decimals, an exponent with or without padding, thousands."""
    if isinstance(value, float) and not math.isfinite(value):
        return _not_finite(value, format)
    old = old if old and _NUMBER.match(old) and re.search(r"\d", old) else None
    if whole or isinstance(value, int):
        if not float(value).is_integer():
            raise Unspellable(f"{value!r} is not a whole number")
        fractional = old is not None and not whole and re.search(r"[.eE]", old)
        if not fractional:
            return _grouped(int(value), old)
    number = _tidy(float(value))
    exponent = bool(old and re.search(r"[eE]", old)) and number != 0
    text = _exponent(number, old) if exponent or len(_decimal(number, old)) > LONGEST_DECIMAL else _decimal(number, old)
    if format == "yaml" and "e" in text.lower():
        upper = "E" in text
        text = safe_float(text)
        return text.replace("e", "E") if upper else text
    if format == "toml" and not re.search(r"[.eE]", text):
        text += ".0"
    return text


def _tidy(number: float) -> float:
    """0.1 * 3 as 0.3: binary dust of a computation is not part of what was meant."""
    rounded = float(f"{number:.12g}")
    return rounded if len(repr(rounded)) + 3 < len(repr(number)) else number


def _decimal(number: float, old: str | None) -> str:
    text = format_plain(number)
    if "." not in text and (old is None or "." in old or old.isdecimal() is False):
        text += ".0"
    if old and re.match(r"[-+]?\.\d", old):
        text = re.sub(r"^(-?)0\.", r"\1.", text)
    return text


def format_plain(number: float) -> str:
    """All digits of a float without an exponent; no dot for a whole number.

    >>> format_plain(1e-07), format_plain(30.0)
    ('0.0000001', '30')
    """
    digits = format(Decimal(repr(number)), "f")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def _exponent(number: float, old: str | None) -> str:
    """`5e-5`; `5.0e-5`, `5E-05` or `5e-05` where the old text is written so."""
    mantissa, _, power = f"{Decimal(repr(number)).normalize():e}".partition("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    written = re.match(r"[-+]?([\d_]*\.?[\d_]*)([eE])([-+]?)(\d+)\Z", old or "")
    if written is None:
        return f"{mantissa}e{int(power)}"
    head, letter, sign, digits = written.groups()
    if "." in head and "." not in mantissa:
        mantissa += ".0"
    padded = digits.startswith("0") and len(digits) > 1
    amount = f"{abs(int(power)):0{len(digits)}d}" if padded else f"{abs(int(power))}"
    mark = "-" if int(power) < 0 else "+" if sign == "+" else ""
    return f"{mantissa}{letter}{mark}{amount}"


def _grouped(value: int, old: str | None) -> str:
    for mark in ("_", ","):
        if old and mark in old:
            return f"{value:{mark}}"
    return str(value)


def _not_finite(value: float, format: str) -> str:
    if format == "yaml":
        return ".nan" if value != value else ".inf" if value > 0 else "-.inf"
    if format == "json":
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    text = "nan" if value != value else "inf" if value > 0 else "-inf"
    return f'float("{text}")' if format == "python" else text


def _truth(value: bool, old: str | None, format: str, like: str) -> str:
    strict = {"json": ("true", "false"), "toml": ("true", "false"), "python": ("True", "False")}.get(format)
    if strict and not (old and format == "python" and old in ("0", "1")):
        return strict[0] if value else strict[1]
    if old is None:
        capital = len(re.findall(r"\b(?:True|False)\b", like)) > len(re.findall(r"\b(?:true|false)\b", like))
        old = "True" if capital or (not like and format in ("namespace", "keyvalue")) else "true"
    for pair in _TRUTHS:
        if old.lower() in pair:
            word = pair[0] if value else pair[1]
            return word.upper() if old.isupper() and len(old) > 1 else word.title() if old[:1].isupper() else word
    return "true" if value else "false"


def _null(format: str, like: str) -> str:
    if format == "toml":
        raise Unspellable("TOML has no empty value; the key must be taken out")
    if format in ("python", "namespace"):
        return "None"
    return "~" if format == "yaml" and re.search(r":[ \t]+~[ \t]*(?:#|\r?$)", like, re.M) else "null"


def _string(text: str, format: str) -> str:
    if format in ("json", "toml"):
        return json.dumps(text, ensure_ascii=False)
    if format in ("python", "namespace"):
        return repr(text)
    if format in ("shell", "argv"):
        return text if _SHELL_PLAIN.match(text) else "'" + text.replace("'", "'\\''") + "'"
    if format == "yaml":
        plain = _YAML_PLAIN.match(text) and text.lower() not in _YAML_WORDS and not re.match(r"[\d.]", text)
        return text if plain else json.dumps(text, ensure_ascii=False)
    return text


def _escaped(text: str, mark: str, format: str) -> str:
    """Text between quotes of the kind `mark`."""
    if format == "yaml" and mark == "'":
        return text.replace("'", "''")
    if format == "toml" and mark in ("'", "'''"):
        if mark[0] in text:
            raise Unspellable("the text holds the quote that surrounds it")
        return text
    if mark[0] not in text and "\\" not in text and "\n" not in text:
        return text
    inner = json.dumps(text, ensure_ascii=False)[1:-1]
    return inner if mark[0] == '"' else inner.replace('\\"', '"').replace("'", "\\'")


def _list(values: list[Any] | tuple[Any, ...], old: str | None, format: str, whole: bool, like: str) -> str:
    kind = format if format not in ("shell", "argv", "keyvalue") else "json"
    items = [spell(item, None, kind, whole=whole and isinstance(item, (int, float)), like=like) for item in values]
    if format in ("shell", "argv") and (old is None or old[:1] not in "[("):
        return ("," if old and "," in old else " ").join(items)
    if old and old[:1] == "(":
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    if old and "," in old and old[:1] not in "[":
        return (", " if ", " in old else ",").join(items)
    return f"[{', '.join(items)}]"
