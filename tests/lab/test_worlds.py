"""The worlds: every family trains from its own script, every fault and control finds its place in one."""

from __future__ import annotations

import ast
import json
import random
from datetime import datetime
from pathlib import Path

import pytest

pytest.importorskip("torch")

from wheeltapper.lab.worlds import plan, textlogs, truth
from wheeltapper.lab.worlds.draw import Draw, draw_base, smallest
from wheeltapper.lab.worlds.families import FAMILIES
from wheeltapper.lab.worlds.make import make_one, on_users_machine, written_config
from wheeltapper.lab.worlds.names import Names
from wheeltapper.lab.worlds.script import NotApplicable, Recorder, body_text, execute
from wheeltapper.lab.worlds.scriptfile import script_text
from wheeltapper.lab.worlds.writers import WRITERS, Record

THINGS = plan.things()


def trained(family: str, seed: int, tmp_path: Path, **want: object) -> tuple[Draw, Recorder]:
    draw = smallest(draw_base(FAMILIES[family], seed, want))
    recorder = Recorder()
    _, error = execute(body_text(draw), draw.cfg, recorder, tmp_path)
    assert error is None
    return draw, recorder


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_every_family_trains_from_its_script(family: str, tmp_path: Path) -> None:
    draw, recorder = trained(family, 3, tmp_path)
    points = truth.curve(recorder.rows, draw.family.main)
    assert len(points) >= 2
    assert points[-1][0] <= draw.total_steps


@pytest.mark.parametrize("what", sorted(THINGS))
def test_every_fault_and_control_has_a_place(what: str) -> None:
    thing = THINGS[what]
    for family in plan.families_of(thing):
        placed = 0
        for seed in range(4):
            draw = draw_base(FAMILIES[family], seed, thing.want)
            before = (dict(draw.cfg), body_text(draw))
            thing.apply(draw, random.Random(seed))
            try:
                after = (draw.cfg, body_text(draw))
            except NotApplicable:
                continue
            ast.parse(after[1])
            placed += 1
            if thing.kind != "control":
                assert after != before
        assert placed, f"{what} never fits {family}"


def test_the_worlds_are_as_wide_as_promised() -> None:
    faults = [t for t in THINGS.values() if t.kind != "control"]
    assert len(faults) >= 100
    assert len(THINGS) - len(faults) >= 40
    assert len(FAMILIES) >= 20
    assert len(WRITERS) >= 20
    assert {f for t in faults for f in plan.families_of(t)} == set(FAMILIES)


def test_a_plan_is_its_seed_and_grows_at_its_end() -> None:
    assert plan.jobs(5, 60)[:40] == plan.jobs(5, 40)
    assert plan.jobs(5, 40) != plan.jobs(6, 40)
    assert len({job.id for job in plan.jobs(5, 400)}) == 400


def test_sealed_families_and_faults_never_reach_the_fit_half() -> None:
    for job in plan.jobs(1, 800):
        if job.family in plan.SEALED_FAMILIES or job.what in plan.SEALED_FAULTS:
            assert job.split == "sealed"


@pytest.mark.parametrize("fmt", sorted(WRITERS))
def test_every_writer_shows_the_last_score(fmt: str, tmp_path: Path) -> None:
    returns = fmt in textlogs.RETURNS_ONLY
    draw, recorder = trained("ppo" if returns else "tab", 1, tmp_path, per_epoch=fmt in textlogs.EPOCH_ONLY)
    names = Names(4)
    folder = tmp_path / "run"
    folder.mkdir()
    rows = on_users_machine(recorder.rows, 2.0)
    config = written_config(draw, names)
    record = Record(draw, names, rows, config, "", None, random.Random(0), datetime(2025, 5, 5), 2.0)
    assert WRITERS[fmt](record, folder) in ("step", "epoch", "epoch0")
    text = "".join(p.read_text(errors="replace") for p in folder.rglob("*") if p.is_file())
    if fmt != "tb":
        value = truth.curve(rows, draw.family.main)[-1][1]
        assert f"{value:.3g}"[:4] in text


def test_the_kept_script_is_the_text_that_ran_and_runs_alone(tmp_path: Path) -> None:
    draw = smallest(draw_base(FAMILIES["distill"], 2, {"per_epoch": False}))
    recorder = Recorder()
    execute(body_text(draw), draw.cfg, recorder, tmp_path)
    names = Names(7)
    names.object = "hp"
    text = script_text(body_text(draw), names, draw.cfg, "jsonl", "distillation", random.Random(1))
    (tmp_path / "train.py").write_text(text)
    _, error = execute(text.split("\n\n", 1)[1].replace("import time\n", ""), draw.cfg, Recorder(), tmp_path)
    assert error is None
    written = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    mine = [row["values"]["acc"] for row in recorder.rows if row["split"] == "val"]
    assert [row["val_acc"] for row in written if "val_acc" in row] == pytest.approx(mine)


def test_a_broken_run_is_labelled_with_its_harm(tmp_path: Path) -> None:
    job = plan.Job("w-test", "tab", "labels_shuffled", 11, "fit")
    label = make_one(job, tmp_path)
    assert label["class"] == "broken"
    assert label["healthy"] is False
    assert label["cause"] == "labels_shuffled"
    assert label["effect"] > 0.5
    assert label["onset_lo"] <= label["onset"] <= label["onset_hi"] <= label["total"]
    assert label["best_step"] in label["best_steps_ok"]
    assert any((tmp_path / "runs" / "w-test").iterdir())
