"""Whatever the text: places point at the raw text, values equal those of the reference parser, nothing raises."""

from __future__ import annotations

import json
import math
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from wheeltapper.settings.check import check_config
from wheeltapper.settings.knobs import read_knobs
from wheeltapper.settings.parse import FORMATS, parse_text
from wheeltapper.settings.tree import ConfigTree

RECORDS = Path(__file__).resolve().parents[1] / "records" / "configs"

names = st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**9), 10**9),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=12),
)


def trees(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    nested = st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4), max_leaves=12
    )
    return st.dictionaries(names, nested, min_size=1, max_size=5)


def assert_exact(tree: ConfigTree) -> None:
    for leaf in tree:
        assert leaf.start is not None
        assert tree.text is not None
        assert tree.text[leaf.start : leaf.end] == leaf.raw


def same(one: Any, two: Any) -> bool:
    if isinstance(one, float) and isinstance(two, float) and math.isnan(one) and math.isnan(two):
        return True
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(same(a, b) for a, b in zip(one, two, strict=True))
    return type(one) is type(two) and bool(one == two)


@given(trees(scalars), st.booleans(), st.booleans())
@settings(max_examples=80, deadline=None)
def test_yaml(value: dict[str, Any], flow: bool, windows: bool) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow, allow_unicode=True, sort_keys=False)
    if windows:
        text = text.replace("\n", "\r\n")
    tree = parse_text(text, "a.yml", "yaml")
    assert_exact(tree)
    assert tree.problems == ()
    assert same(tree.nested(), yaml.safe_load(text))


@given(trees(scalars | st.just(math.inf) | st.just(math.nan)), st.sampled_from([None, 1, 4]), st.booleans())
@settings(max_examples=80, deadline=None)
def test_json(value: dict[str, Any], indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only) + "\n"
    tree = parse_text(text, "a.json", "json")
    assert_exact(tree)
    assert tree.problems == ()
    assert same(tree.nested(), json.loads(text))


def toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value) if "\x7f" not in value else '""'
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, value)) + ("," if value else "") + " ]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {toml_value(v)}" for k, v in value.items()) + "}"
    return str(value)


toml_scalars = st.one_of(
    st.booleans(),
    st.integers(-(10**9), 10**9),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text("ab \"\\'#=é", max_size=6),
)


@given(trees(toml_scalars))
@settings(max_examples=80, deadline=None)
def test_toml(value: dict[str, Any]) -> None:
    lines = [f"{key} = {toml_value(item)}  # note" for key, item in value.items() if not isinstance(item, dict)]
    for key, item in value.items():
        if isinstance(item, dict):
            lines += [f"[{key}]", *(f"{k}={toml_value(v)}" for k, v in item.items())]
    text = "\n".join(lines)
    expected = tomllib.loads(text)
    tree = parse_text(text, "a.toml", "toml")
    assert_exact(tree)
    assert tree.problems == ()
    # a table without entries leaves no leaf
    assert same(tree.nested(), {k: v for k, v in expected.items() if v != {} or f"[{k}]" not in lines})


words = st.from_regex(r"[A-Za-z0-9_./:,@%+-]{1,10}", fullmatch=True).filter(
    lambda w: w[0] not in "-+~" and not w.endswith(".py")
)


@given(
    st.dictionaries(names, words | st.text("ab c'\"$`\\", min_size=1, max_size=6), min_size=1, max_size=6),
    st.lists(st.sampled_from([" ", "  ", " \\\n  "]), min_size=14, max_size=14),
    st.booleans(),
)
@settings(max_examples=80, deadline=None)
def test_argv(options: dict[str, str], gaps: list[str], equals: bool) -> None:
    import shlex

    text = "python train.py"
    for (name, value), gap in zip(options.items(), gaps, strict=False):
        text += f"{gap}--{name}{'=' if equals else ' '}{shlex.quote(value)}"
    tree = parse_text(text, "cmd", "argv")
    assert_exact(tree)
    got = {leaf.path[0]: leaf for leaf in tree if leaf.path[0] in options}
    expected = {word.split("=", 1)[0][2:]: word for word in shlex.split(text)[2:] if word.startswith("--")}
    assert set(expected) >= set(options)
    for name, value in options.items():
        if not value.startswith("-") or equals:
            assert str(got[name].value) in (value, value.title()) or float(value) == got[name].value


@given(trees(scalars))
@settings(max_examples=60, deadline=None)
def test_printed_dicts(value: dict[str, Any]) -> None:
    for format_ in ("namespace", "python"):
        tree = parse_text(repr(value), "log", format_)
        assert_exact(tree)
        assert same(tree.nested(), value)


# --- fuzz

FILES = [
    p.read_bytes().decode("utf-8", "replace")
    for p in sorted(RECORDS.rglob("*"))
    if p.is_file() and p.name != "bomb.yaml"
]
_JUNK = st.text(st.sampled_from(list("{}[]()<>:=,;'\"\\$`#&*!|-+~.\n\r\t \x00\x1b\ufeffé1ae_")), max_size=60)


@pytest.mark.parametrize("format_", sorted(FORMATS))
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_nothing_raises(format_: str, data: st.DataObject) -> None:
    text = data.draw(st.one_of(_JUNK, st.text(max_size=60)))
    tree = parse_text(text, "x", format_)
    assert_exact(tree)
    read_knobs([tree])
    check_config([tree])


@pytest.mark.parametrize("format_", sorted(FORMATS))
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_damaged_records_do_not_raise(format_: str, data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(FILES))
    cut = data.draw(st.integers(0, len(text)))
    junk = data.draw(_JUNK)
    tree = parse_text(text[:cut] + junk + text[cut + len(junk) :], "x", format_)
    assert_exact(tree)
    read_knobs([tree])
    check_config([tree])


@pytest.mark.parametrize("format_", sorted(FORMATS))
@pytest.mark.parametrize(
    "piece", ["[", "{", "(", "a: [", "- ", "a=(", "$(", "${a:-", "'", '"', "\\", "a.", "<", "&a *a "]
)
def test_long_repetitions_are_bounded(format_: str, piece: str) -> None:
    tree = parse_text(piece * (20_000 // len(piece)), "x", format_)
    assert_exact(tree)
