"""A skeleton that `scripts/new.py` writes holds all that its contract asks for."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType

import pytest

from wheeltapper import observations
from wheeltapper.rules import causes, signs

SCRIPT = Path(__file__).resolve().parents[1] / "scripts" / "new.py"
NEEDED = {
    "observation": (observations.SECTIONS, ("ABOUT", "EDGES", "BAND", "observe")),
    "sign": (signs.SECTIONS, ("ID", "LIVE", "CASES", "look")),
    "cause": (causes.SECTIONS, ("ID", "AREA", "ABOUT", "EXPLAINS", "SHOWS", "TRIAL", "REMEDY")),
}


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", NEEDED)
def test_a_skeleton_holds_what_its_kind_needs(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new = load(SCRIPT)
    monkeypatch.setattr(new, "PACKAGE", tmp_path)
    monkeypatch.setattr(sys, "argv", ["new.py", kind, "made-up"])
    path = tmp_path / new.KINDS[kind][0] / "made_up.py"
    assert (Path(observations.__file__).parents[1] / new.KINDS[kind][0]).is_dir(), "the folder of the kind exists"
    path.parent.mkdir(parents=True)
    assert new.main() == 0
    module = load(path)
    sections, names = NEEDED[kind]
    page = inspect.cleandoc(module.__doc__ or "")
    assert [section for section in sections if f"## {section}" not in page] == []
    assert [name for name in names if not hasattr(module, name)] == []
    assert getattr(module, "ID", "made-up") == "made-up"
    assert new.main() == 2, "a file that exists is not overwritten"


def test_the_words_of_the_cause_skeleton_can_be_said(tmp_path: Path) -> None:
    path = tmp_path / "made_up.py"
    path.write_text(load(SCRIPT).CAUSE.format(name="made-up"), encoding="utf-8")
    module = load(path)
    bands = {observation.id: observation for observation in observations.observations()}
    known = bands.keys() | {sign.id for sign in signs.signs()}
    for name, word in {**module.SHOWS, **module.FORBIDS}.items():
        assert name in known
        assert causes.fits(word, bands.get(name))
