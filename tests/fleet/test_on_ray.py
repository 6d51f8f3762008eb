"""A scan on a real Ray cluster of two workers on this machine; one of them is killed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from made_fleet import fleet_at
from wheeltapper.cli.main import main
from wheeltapper.fleet import on_ray
from wheeltapper.fleet.scan import scan
from wheeltapper.fleet.worker import Outcome, Task, judged

pytestmark = pytest.mark.slow


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("ray", reason="needs ray")
    source = Path(on_ray.__file__).resolve().parents[2]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(source), *map(str, Path(__file__).resolve().parents[:2]), *filter(None, [os.environ.get("PYTHONPATH")])]))
    fleet_at(tmp_path / "runs", 10)
    return tmp_path / "runs"


def dies_once(task: Task) -> Outcome:
    """The worker that first meets this run is killed in the middle of it."""
    mark = Path(task.path).parents[2] / "killed"
    if task.path.endswith("run-00004") and not mark.exists():
        mark.write_text("")
        os.kill(os.getpid(), 9)
    return judged(task)


@pytest.mark.filterwarnings("ignore")
def test_a_killed_worker_costs_no_run(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_ray, "judged", dies_once)
    index = runs.parent / "index.sqlite"
    found = scan([runs], index_file=index, workers=2, engine=on_ray.ray_engine())
    assert (runs.parent / "killed").exists()
    assert found.problems == ()
    assert len(found.members) == 10
    here = scan([runs], index_file=index, workers=0)
    assert here.read == 0  # the same index
    other = scan([runs], index_file=runs.parent / "other.sqlite", workers=0)
    assert [m.row for m in found.members] == [m.row for m in other.members]


def test_an_engine_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    fleet_at(tmp_path / "runs", 4)
    assert main(["diagnose", str(tmp_path / "runs"), "--engine", "spark"]) == 2
    assert "no engine" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["diagnose", str(tmp_path / "runs"), "--engine", "ray"]) == 2
    assert "pip install ray" in capsys.readouterr().err
