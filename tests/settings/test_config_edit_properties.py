"""Random files and random edits: there and back gives the first bytes, and nothing but a refusal is ever raised."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from wheeltapper.errors import RefusedEdit
from wheeltapper.finding import Edit
from wheeltapper.settings.edit import plan_edits
from wheeltapper.settings.edited import differing, same
from wheeltapper.settings.parse import FORMATS, parse_text
from wheeltapper.settings.spell import spell

KEYS = st.sampled_from(["lr", "alpha", "wd", "beta", "size", "gamma_x", "n", "use_it", "decay"])
COMMENTS = st.sampled_from(["", "  # lr: 3", "\t# tab\there", " # ünïcode"])
DECIMALS = st.integers(1, 9_999_999).map(lambda n: n / 10_000_000).filter(lambda x: x >= 1e-5)
EXPONENTS = st.builds(lambda m, e: float(f"{m}e-{e}"), st.integers(1, 9), st.integers(5, 12))
INTEGERS = st.integers(-5, 10**6)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Any, Any, str]:
    """Two numbers of one kind, and the style they are written in."""
    style = draw(st.sampled_from(["decimal", "exponent", "integer", "bool"]))
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "decimal": DECIMALS,
        "exponent": EXPONENTS,
        "integer": INTEGERS,
        "bool": st.booleans(),
    }
    one = draw(kinds[style])
    two = draw(kinds[style].filter(lambda x: x != one))
    return one, two, style


def written(value: Any, style: str, format: str) -> str:
    """A value as an author would write it in this style."""
    old = {"decimal": "0.5", "exponent": "1.0e-6" if format == "yaml" else "1e-6", "integer": "1", "bool": None}[style]
    return spell(value, old, format)


@st.composite
def files(draw: st.DrawFn) -> tuple[str, str, str, Any, Any]:
    """A file of two sections with one setting to edit: text, format, key, its value, another one."""
    format_ = draw(st.sampled_from(["yaml", "json", "toml", "python", "shell"]))
    one, two, style = draw(pairs())
    names = draw(st.lists(KEYS, min_size=1, max_size=6, unique=True))
    target = draw(st.sampled_from(names))
    others = {name: draw(st.sampled_from(["0.25", "7", "3"])) for name in names}
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    note = draw(COMMENTS)
    value = written(one, style, "json" if format_ == "shell" else format_)
    raw = {**others, target: value}
    if format_ == "yaml":
        lines = ["a:", *(f"  {k}: {v}{note}" for k, v in raw.items()), "b:", *(f"    {k}: 1" for k in names)]
        key = f"a.{target}"
    elif format_ == "toml":
        lines = ["[a]", *(f"{k} = {v}{note}" for k, v in raw.items()), "[b]", *(f"{k} = 1" for k in names)]
        key = f"a.{target}"
    elif format_ == "json":
        lines = ["{", '  "a": {', *(f'    "{k}": {v},' for k, v in raw.items()), '    "z": 0', "  },", '  "b": 1', "}"]
        key = f"a.{target}"
    elif format_ == "python":
        lines = ["a = dict(", *(f"    {k}={v},{note}" for k, v in raw.items()), ")", "b = 1"]
        key = f"a.{target}"
    else:
        lines = ["#!/bin/bash", "python train.py " + " \\\n  ".join(f"--{k} {v}" for k, v in raw.items())]
        key = target
    end = draw(st.sampled_from([newline, ""]))
    return newline.join(lines).replace("\r\n", "\n").replace("\n", newline) + end, format_, key, one, two


@settings(max_examples=250, deadline=None)
@given(files())
def test_there_and_back_gives_the_same_bytes(case: tuple[str, str, str, Any, Any]) -> None:
    text, format_, key, one, two = case
    tree = parse_text(text, "f", format_)
    [edited] = plan_edits([tree], [Edit(key, one, two)])
    after = parse_text(edited.after, "f", format_)
    assert [".".join(map(str, path)) for path in differing(tree, after)] == [key]
    assert same(after.get(key), two)
    assert edited.after.count("\n") == text.count("\n")
    [back] = plan_edits([after], [Edit(key, two, one)])
    assert back.after == text


@settings(max_examples=250, deadline=None)
@given(
    st.sampled_from(sorted(FORMATS)),
    st.text(alphabet="ab:=-{}[],\n \t'\"#&*<0123456789.e$()\\/", max_size=60),
    st.sampled_from([("optimizer.lr", None, 0.1), ("a", 1, 2), ("a.b", None, 3), ("a", 1, None), ("a", None, [1, 2])]),
)
def test_any_text_gives_an_edit_or_a_refusal(format: str, text: str, edit: tuple[str, Any, Any]) -> None:
    tree = parse_text(text, "f", format)
    try:
        made = plan_edits([tree], [Edit(*edit)], options={"lr": "--lr", "a": "--a"})
    except RefusedEdit:
        return
    assert made[0].after != text


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(KEYS, st.recursive(st.integers(0, 9), lambda inner: st.lists(inner, max_size=3)), min_size=1),
    st.data(),
)
def test_every_number_of_a_json_file_can_be_changed(content: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(content, indent=data.draw(st.sampled_from([None, 2, 4])))
    tree = parse_text(text, "f.json", "json")
    leaves = [leaf for leaf in tree if isinstance(leaf.value, int)]
    if not leaves:
        return
    leaf = data.draw(st.sampled_from(leaves))
    [edited] = plan_edits([tree], [Edit(leaf.dotted, leaf.value, leaf.value + 1)])
    after = parse_text(edited.after, "f.json", "json")
    assert list(differing(tree, after)) == [leaf.path]


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["yaml", "json", "toml", "python"]), st.floats(allow_nan=False, allow_infinity=False, width=64))
def test_a_spelled_number_is_read_as_itself(format: str, number: float) -> None:
    """Whatever the notation of the file, the loader reads the number that was meant (to 12 digits)."""
    for old in ("0.1", "1e-4", "1.0e-4", "5E-05", "1", None):
        text = spell(number, old, format)
        line = {"yaml": "lr: {}\n", "json": '{{"lr": {}}}', "toml": "lr = {}\n", "python": "lr = {}\n"}[format]
        value = parse_text(line.format(text), "f", format).get("lr")
        assert isinstance(value, (int, float))
        assert value == number or abs(value - number) <= 1e-11 * abs(number)
