"""Settings out of a script: what provably ran, with its place, and what a command line may have overridden."""

from __future__ import annotations

from pathlib import Path

import pytest
from reading_text import code_of

from wheeltapper.api import diagnose
from wheeltapper.program.settings import OVERRIDABLE, SURE, settings_of
from wheeltapper.run.gather import read_runs
from wheeltapper.study import Study

LOOP = """
    for epoch in range(EPOCHS):
        for x, y in loader:
            optimizer.zero_grad()
            loss = f(model(x), y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
"""
CONSTANTS = (
    """
    import torch
    LEARNING_RATE = 0.3
    BATCH_SIZE = 64
    EPOCHS = 20
    steps = 7
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, weight_decay=1e-4)
    loader = torch.utils.data.DataLoader(data, batch_size=BATCH_SIZE, workers=steps)
"""
    + LOOP
)
PARSED = (
    """
    import argparse, torch
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()
    EPOCHS = 20
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    loader = torch.utils.data.DataLoader(data, batch_size=args.batch_size)
"""
    + LOOP
)


def told(text: str, *, sure: bool = True, **others: str) -> dict[str, object]:
    return {str(leaf.path[0]): leaf.value for leaf in settings_of(code_of(text, **others), sure=sure)}


def test_constants_and_literals_are_what_ran() -> None:
    found = told(CONSTANTS)
    assert found["lr"] == 0.3
    assert found["weight_decay"] == 1e-4
    assert found["optimizer"] == "Adam"
    assert found["clip_grad_norm"] == 1.0
    assert (found["batch_size"], found["epochs"]) == (64, 20)
    assert "steps" not in found
    leaf = settings_of(code_of(CONSTANTS)).leaf("batch_size")
    assert leaf is not None
    assert (leaf.file, leaf.line, leaf.note) == ("train.py", 4, SURE)


def test_a_default_may_have_been_overridden_unless_the_command_is_known() -> None:
    found = told(PARSED)
    assert "lr" not in found
    assert "batch_size" not in found
    assert (found["momentum"], found["epochs"]) == (0.9, 20)
    every = settings_of(code_of(PARSED), sure=False)
    assert [(leaf.value, leaf.note) for leaf in every if leaf.path == ("lr",)] == [(0.1, OVERRIDABLE)]
    launched = told(PARSED, run_sh="python train.py --lr 0.5\n")
    assert (launched["lr"], launched["batch_size"]) == (0.5, 32)
    passed_on = told(PARSED, run_sh='python train.py --lr 0.5 "$@"\n')
    assert "batch_size" not in passed_on


def test_what_is_written_twice_or_by_evaluated_text_is_not_known() -> None:
    assert "epochs" not in told(CONSTANTS.replace("steps = 7", "EPOCHS = EPOCHS * 2"))
    found = told(CONSTANTS.replace("steps = 7", "exec(open('configurator.py').read())"))
    assert found == {}


def test_an_optimizer_that_an_option_chooses_is_not_known() -> None:
    chosen = PARSED.replace(
        "optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)",
        "if args.lr > 0.05:\n        optimizer = torch.optim.SGD(model.parameters(), lr=0.2)\n"
        "    else:\n        optimizer = torch.optim.Adam(model.parameters(), lr=0.001)",
    )
    assert not {"optimizer", "lr"} & set(told(chosen))


def test_diagnose_has_the_settings_of_the_script_where_no_config_is(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("epoch,train_loss\n" + "".join(f"{i},{2 / (i + 1):.4f}\n" for i in range(12)))
    (tmp_path / "train.py").write_text("\n".join(line[4:] for line in CONSTANTS.split("\n")))
    (run,) = read_runs(tmp_path)
    knobs = Study(run).get("knobs")
    assert knobs.value("optimizer.lr") == 0.3
    assert knobs.place("optimizer.lr").line == 7
    assert diagnose(tmp_path)
    (tmp_path / "log.csv").write_text("epoch,train_loss\n" + "".join(f"{i},{2 / (i + 1):.4f}\n" for i in range(40)))
    (run,) = read_runs(tmp_path)
    assert Study(run).maybe("knobs") is None  # the script trains for 20 epochs: it is not what ran
    (tmp_path / "config.yaml").write_text("lr: 0.01\n")
    (run,) = read_runs(tmp_path)
    knobs = Study(run).get("knobs")
    assert knobs.value("optimizer.lr") == 0.01
    assert "optimizer.name" not in knobs


PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.parametrize(
    ("program", "wanted"),
    [
        (
            "hf_classifier",
            {
                "learning_rate": 2e-5,
                "per_device_train_batch_size": 16,
                "num_train_epochs": 3,
                "greater_is_better": True,
            },
        ),
        (
            "hf_peft",
            {"learning_rate": 1e-4, "gradient_accumulation_steps": 8, "lora_r": 16, "lora_alpha": 32, "mlm": False},
        ),
        ("trl_dpo", {"beta": 0.1, "learning_rate": 5e-7}),
        ("keras_classifier", {"learning_rate": 1e-3, "batch_size": 128, "epochs": 50, "early_stopping_mode": "min"}),
        ("lightning_classifier", {"max_epochs": 30, "gradient_clip_val": 1.0, "lr": 1e-3, "batch_size": 128}),
        ("sb3_dqn", {"buffer_size": 100_000, "gamma": 0.99, "total_timesteps": 300_000}),
        ("table", {"lr": 1e-3, "batch_size": 256, "t_max": 80, "lr_scheduler": "CosineAnnealingLR"}),
    ],
)
def test_what_a_framework_is_given(program: str, wanted: dict[str, object]) -> None:
    found = told((PROGRAMS / f"{program}.py").read_text(), sure=False)
    assert {name: found.get(name) for name in wanted} == wanted


@pytest.mark.parametrize(
    "box",
    [
        "class C:\n    lr = 0.02\n    batch_size = 48\n    dropout = 0.4\nc = C()\n",
        "from types import SimpleNamespace\nc = SimpleNamespace(lr=0.02, batch_size=48, dropout=0.4)\n",
        "from types import SimpleNamespace\nc = SimpleNamespace(**dict(lr=0.02, batch_size=48, dropout=0.4))\n",
    ],
    ids=["class", "namespace", "dict"],
)
def test_settings_kept_together_stand_in_the_code(box: str) -> None:
    loop = """
import torch
net = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Dropout(c.dropout))
opt = torch.optim.SGD(net.parameters(), lr=c.lr)
for x, y in torch.load("rows.pt").split(c.batch_size):
    opt.zero_grad()
    torch.nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
"""
    found = {str(leaf.path[0]): leaf.value for leaf in settings_of(code_of(box + loop))}
    assert {k: found.get(k) for k in ("lr", "batch_size", "dropout")} == {"lr": 0.02, "batch_size": 48, "dropout": 0.4}
