"""The labelled records beside the checkout: no healthy run is called ill, and what was found stays found.

Skipped where the records are not given. The table itself: `python scripts/corpus.py`.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def rows(shared_runs: Path) -> list[Any]:
    spec = importlib.util.spec_from_file_location("corpus_table", ROOT / "scripts" / "corpus.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["corpus_table"] = module
    spec.loader.exec_module(module)
    found: list[Any] = module.judge(shared_runs)
    return found


def test_no_healthy_run_is_called_ill(rows: list[Any]) -> None:
    healthy = [r for r in rows if r.kind in ("healthy", "healthy-hard-negative")]
    assert len(healthy) >= 30
    assert [r.name for r in healthy if r.verdict == "ill"] == []


def test_no_run_in_trouble_is_called_sound(rows: list[Any]) -> None:
    assert [r.name for r in rows if r.kind == "trouble" and r.verdict == "sound"] == []


def test_what_was_found_stays_found(rows: list[Any]) -> None:
    """21 of 24 on 2026-11-17 with the fitted judge (22 with the ladders it replaced). Those left open say "cannot tell"."""
    assert sum(r.verdict == "ill" for r in rows if r.kind == "trouble") >= 21
    # "Sound" must be earned: 17 of 32 reach it (all 32 with the ladders), the others are left open; none is called ill.
    assert sum(r.verdict == "sound" for r in rows if r.kind.startswith("healthy")) >= 17


def test_the_unjudgeable_is_not_judged(rows: list[Any]) -> None:
    assert {r.verdict for r in rows if r.kind == "unjudgeable"} == {"cannot-tell"}
