"""Settings that stand in a script: the literal is changed where it lives, and nothing that a framework only writes is."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from journeys.travel import PROGRAMS
from wheeltapper import api
from wheeltapper.errors import RefusedEdit
from wheeltapper.finding import Edit
from wheeltapper.remedy.code_edits import edit_code, seed_in_code
from wheeltapper.remedy.launch import patch_of
from wheeltapper.remedy.loads import edit_run, load_test
from wheeltapper.run.model import Run
from wheeltapper.settings.edit import editable
from wheeltapper.settings.parse import parse_text

LOG = "epoch,train_loss,val_loss\n" + "".join(f"{i},{2.0 - i / 10},{2.1 - i / 10}\n" for i in range(8))


def run_with(folder: Path, program: str, text: str | None = None) -> Run:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.py").write_text(text if text is not None else (PROGRAMS / f"{program}.py").read_text())
    (folder / "metrics.csv").write_text(LOG)
    return api.read(folder)[0]


@pytest.mark.parametrize(
    ("program", "knob", "old", "new", "line"),
    [
        ("plain", "optimizer.lr", 3e-3, 1e-4, 'parser.add_argument("--lr", type=float, default=1e-4)'),
        ("plain", "clip.norm", 5.0, 0.5, "            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)"),
        ("hf_trainer", "optimizer.lr", 5e-4, 1e-4, "    learning_rate=1e-4,"),
        ("hf_trainer", "clip.norm", None, 0.5, "    max_grad_norm=0.5,"),
        ("hf_trainer", "schedule.warmup", 20, 200, "    warmup_steps=200,"),
        ("trl_sft", "optimizer.weight_decay", None, 0.1, "    weight_decay=0.1,"),
        ("lightning_fit", "optimizer.lr", 2e-3, 1e-4, "model = Classifier(lr=1e-4)"),
        ("lightning_fit", "clip.norm", 1.0, 0.5, "    gradient_clip_val=0.5,"),
        ("keras_fit", "optimizer.lr", 2e-3, 1e-4, "    optimizer=keras.optimizers.Adam(learning_rate=1e-4),"),
        ("keras_fit", "clip.norm", None, 1.0, "    optimizer=keras.optimizers.Adam(learning_rate=2e-3, clipnorm=1.0),"),
        ("keras_fit", "run.epochs", 15, 30, "    epochs=30,"),
        ("sb3_ppo", "optimizer.lr", 1e-3, 3e-4, "    learning_rate=3e-4,"),
        ("timm_style", "optimizer.momentum", 0.9, 0.8, 'parser.add_argument("--momentum", default=0.8, type=float)'),
        ("accelerate_loop", "optimizer.lr", 2e-3, 1e-4, "LEARNING_RATE = 1e-4"),
    ],
)
def test_the_literal_is_changed_where_it_lives(
    program: str, knob: str, old: object, new: object, line: str, tmp_path: Path
) -> None:
    run = run_with(tmp_path, program)
    (made,) = edit_code(run, [Edit(knob, old, new)])
    before, after = made.before.splitlines(), made.after.splitlines()
    assert [one for one in after if one not in before] == [line]
    assert not load_test(made, run).failed
    (tmp_path / "fix.patch").write_text(patch_of([made]))
    subprocess.run(["git", "apply", "fix.patch"], cwd=tmp_path, check=True)
    assert (tmp_path / "train.py").read_text() == made.after


def test_two_edits_and_line_ends_of_another_system(tmp_path: Path) -> None:
    text = (PROGRAMS / "hf_trainer.py").read_text().replace("\n", "\r\n")
    run = run_with(tmp_path, "hf_trainer")
    (tmp_path / "train.py").write_bytes(text.encode())
    (made,) = edit_code(run, [Edit("optimizer.lr", 5e-4, 1e-4), Edit("run.epochs", 6, 9)])
    assert made.after == text.replace("learning_rate=5e-4", "learning_rate=1e-4").replace("epochs=6", "epochs=9")
    (tmp_path / "fix.patch").write_bytes(patch_of([made]).encode())
    subprocess.run(["git", "apply", "fix.patch"], cwd=tmp_path, check=True)
    assert (tmp_path / "train.py").read_bytes() == made.after.encode()


def test_a_seed_that_a_call_sets(tmp_path: Path) -> None:
    run = run_with(tmp_path, "lightning_fit")
    assert seed_in_code(run) == 0
    (made,) = edit_code(run, [Edit("run.seed", 0, 7)])
    assert "seed_everything(7)" in made.after
    assert "manual_seed(1)" in made.after  # the generator of the forms is not the seed of the run


COMPUTED = """
import os, torch
from torch import nn
model = nn.Linear(4, 2)
rate = float(os.environ["LR"])
optimizer = torch.optim.SGD(model.parameters(), lr=rate)
for step in range(100):
    loss = model(torch.randn(8, 4)).pow(2).mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""


def test_what_is_not_written_out_is_refused(tmp_path: Path) -> None:
    run = run_with(tmp_path, "computed", COMPUTED)
    with pytest.raises(RefusedEdit, match=r"optimizer\.lr"):
        edit_code(run, [Edit("optimizer.lr", None, 1e-4)])
    with pytest.raises(RefusedEdit, match="the run used"):
        edit_code(run_with(tmp_path / "b", "plain"), [Edit("optimizer.lr", 0.5, 1e-4)])
    shutil.rmtree(tmp_path / "b")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("out/config.json", json.dumps({"model_type": "bert", "architectures": ["Bert"], "learning_rate": 0.1})),
        ("checkpoint-100/config.json", '{"learning_rate": 0.1}'),
        ("out/adapter_config.json", '{"r": 8, "lora_dropout": 0.1}'),
        ("logs/version_0/hparams.yaml", "lr: 0.1\n"),
        ("hparams.yaml", "lr: 0.1\n"),
        (".hydra/config.yaml", "lr: 0.1\n"),
    ],
)
def test_what_a_framework_writes_is_not_edited(name: str, text: str) -> None:
    assert not editable(parse_text(text, name, "json" if name.endswith("json") else "yaml"))


def test_what_people_write_is() -> None:
    assert editable(parse_text('{"learning_rate": 0.1, "epochs": 3}', "conf/config.json", "json"))
    assert editable(parse_text("lr: 0.1\n", "args.yaml", "yaml"))


def test_the_dump_of_a_script_is_left_alone_and_its_default_changed(tmp_path: Path) -> None:
    run_with(tmp_path, "timm_style")
    (tmp_path / "args.yaml").write_text("batch_size: 64\nepochs: 15\nlr: 0.05\nmomentum: 0.9\nopt: sgd\nseed: 42\n")
    (made,) = edit_run(api.read(tmp_path)[0], [Edit("optimizer.lr", 0.05, 0.01)])
    assert Path(made.file).name == "train.py"
    assert 'add_argument("--lr", default=0.01' in made.after
