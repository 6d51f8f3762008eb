"""Settings that stand in a script, without running it."""

from __future__ import annotations

from pathlib import Path

import pytest

from wheeltapper.settings.knobs import read_knobs
from wheeltapper.settings.parse import configs_among
from wheeltapper.settings.parse_script import DEFAULT, parse_script

SCRIPTS = {
    "torch": (
        "LR = 3e-4\nopt = torch.optim.AdamW(net.parameters(), lr=LR, weight_decay=0.05)\n"
        "loader = DataLoader(data, batch_size=64, shuffle=True)\ntorch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)\n",
        {"optimizer.name": "AdamW", "optimizer.lr": 3e-4, "batch.per_device": 64, "clip.norm": 0.5},
    ),
    "trainer": (
        "args = TrainingArguments(output_dir='o', learning_rate=2e-5, num_train_epochs=3, warmup_ratio=0.1)\n"
        "lora = LoraConfig(r=8, lora_alpha=16, lora_dropout=0.05)\n",
        {"optimizer.lr": 2e-5, "run.epochs": 3, "schedule.warmup": 0.1, "model.lora_rank": 8, "lora.alpha": 16},
    ),
    "keras": (
        "model.compile(optimizer=Adam(learning_rate=0.01), loss='mse')\nmodel.fit(x, y, epochs=7, batch_size=16)\n",
        {"optimizer.lr": 0.01, "run.epochs": 7, "batch.per_device": 16, "optimizer.name": "Adam"},
    ),
    "rl": (
        "model = PPO('MlpPolicy', env, learning_rate=1e-3, gamma=0.9, gae_lambda=0.8, clip_range=0.3, ent_coef=0.02)\n",
        {"optimizer.lr": 1e-3, "rl.gamma": 0.9, "rl.gae_lambda": 0.8, "rl.clip_range": 0.3, "rl.entropy_coef": 0.02},
    ),
    "loss": (
        "crit = CrossEntropyLoss(label_smoothing=0.2, ignore_index=255)\nlr = 0.1\n",
        {"loss.label_smoothing": 0.2, "loss.ignore_index": 255, "optimizer.lr": 0.1},
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_literals_of_calls(name: str) -> None:
    text, expected = SCRIPTS[name]
    knobs = read_knobs([parse_script(text, "train.py")])
    assert {id: knobs.value(id) for id in expected} == expected


def test_defaults_of_options_are_marked() -> None:
    text = "p.add_argument('--lr', type=float, default=0.1)\np.add_argument('--epochs', default=30, type=int)\n"
    tree = parse_script(text, "train.py")
    assert [(leaf.dotted, leaf.value, leaf.line, leaf.note) for leaf in tree] == [
        ("lr", 0.1, 1, DEFAULT),
        ("epochs", 30, 2, DEFAULT),
    ]


def test_two_values_for_one_name_are_not_believed() -> None:
    assert len(parse_script("a = SGD(p, lr=0.1)\nb = SGD(q, lr=0.2)\n", "x.py").leaves) == 1  # the optimizer's name


@pytest.mark.parametrize("text", ["", "def f(:\n", "x = " + "(" * 500, "\x00", "lr = 9 ** 9 ** 9 ** 9\n"])
def test_hostile_text_gives_an_empty_tree(text: str) -> None:
    assert len(parse_script(text, "x.py")) == 0


def test_a_module_of_settings_is_a_configuration(tmp_path: Path) -> None:
    config, script = tmp_path / "config.py", tmp_path / "train.py"
    config.write_text("# config\nlearning_rate = 0.001\nmax_iters = 100\n")
    script.write_text("import torch\nlr = 0.1\nfor x in y:\n    step(x)\n")
    assert [Path(tree.file).name for tree in configs_among([config, script])] == ["config.py"]
