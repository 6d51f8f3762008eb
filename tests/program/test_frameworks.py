"""What frameworks and configuration files make of a program: values from files, engines, modules made by LightningCLI."""

from __future__ import annotations

from framework_twins import RUNNER
from reading_text import code_of, findings_of, ids

SIGNS = """
from ultralytics import YOLO

NAMES = ["left_turn", "right_turn", "stop"]
YOLO("yolo11n.pt").train(data="data.yaml", epochs=50, fliplr=0.0, freeze=4)
"""
DATA = "train: pics/a\nval: pics/b\nnames:\n  0: left_turn\n  1: right_turn\n  2: stop\n"
AGENT = """
import yaml
from stable_baselines3 import DQN

told = yaml.safe_load(open("agent.yaml"))
DQN("MlpPolicy", "CartPole-v1", **told["dqn"]).learn(total_timesteps=told["steps"])
"""
SETTINGS = "steps: 50000\ndqn:\n  learning_starts: 1000\n  gamma: 0.99\n"
ENGINE = """
import torch
from ignite.engine import Engine, Events
from torch import nn
from torch.utils.data import DataLoader
from rows import Rows

net = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.2), nn.Linear(8, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
learn = DataLoader(Rows("train"), batch_size=32, shuffle=True)

def one(engine, batch):
    net.train()
    x, y = batch
    opt.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    opt.step()

Engine(one).run(learn, max_epochs=5)
"""
FORECAST = """
import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from lightning.pytorch.cli import LightningCLI
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Pieces(Dataset):
    def __init__(self, line, n):
        self.line, self.n = line, n

    def __len__(self):
        return len(self.line) - self.n - 6

    def __getitem__(self, i):
        return self.line[i : i + self.n], self.line[i + self.n : i + self.n + 6]

class Line(L.LightningDataModule):
    def __init__(self, path: str, n: int = 48):
        super().__init__()
        self.save_hyperparameters()

    def setup(self, stage=None):
        self.line = torch.from_numpy(np.load(self.hparams.path))

    def train_dataloader(self):
        return DataLoader(Pieces(self.line, self.hparams.n), batch_size=64, shuffle=True)

class Net(L.LightningModule):
    def __init__(self, width: int = 32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(48, width), nn.ReLU(), nn.Linear(width, 6))

    def training_step(self, batch, i):
        x, y = batch
        return F.mse_loss(self.net(x), y)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)

LightningCLI(Net, Line)
"""
PLAN = "trainer:\n  max_epochs: 40\n  gradient_clip_val: 1.0\n  check_val_every_n_epoch: 1\nmodel:\n  width: 64\ndata:\n  path: line.npy\n  n: 48\n"


def test_settings_of_a_detector_against_its_classes() -> None:
    assert ids(SIGNS, data_yaml=DATA) == set()
    assert "detector-settings-contradict" in ids(SIGNS.replace("fliplr=0.0", "fliplr=0.5"), data_yaml=DATA)
    assert "detector-settings-contradict" in ids(SIGNS.replace("freeze=4", "freeze=30"), data_yaml=DATA)
    assert "detector-settings-contradict" in ids(SIGNS, data_yaml=DATA.replace("pics/b", "pics/a"))


def test_the_same_classes_in_two_orders() -> None:
    swapped = DATA.replace("1: right_turn", "1: stop").replace("2: stop", "2: right_turn")
    assert "names-in-another-order" in ids(SIGNS, data_yaml=swapped)


def test_values_of_a_file_are_known_with_their_place() -> None:
    assert ids(AGENT, agent_yaml=SETTINGS) == set()
    found = findings_of(AGENT, agent_yaml=SETTINGS.replace("1000", "60000"))
    assert [(f.id, f.places[0].line) for f in found] == [("never-begins", 3)]
    found = findings_of(AGENT, agent_yaml=SETTINGS.replace("0.99", "0.3"))
    assert [(f.id, f.places[0].file) for f in found] == [("argument-beyond-sense", "agent.yaml")]


def test_the_step_of_an_engine_is_played() -> None:
    assert ids(ENGINE) == set()
    assert "zero-grad-missing" in ids(ENGINE.replace("    opt.zero_grad()\n", ""))


def test_what_lightning_makes_of_a_file() -> None:
    assert ids(FORECAST, config_yaml=PLAN) == set()
    assert "target-in-input" in ids(FORECAST.replace("self.line[i + self.n : i + self.n + 6]", "self.line[i + self.n - 6 : i + self.n]"), config_yaml=PLAN)
    assert "never-begins" in ids(FORECAST, config_yaml=PLAN.replace("n_epoch: 1", "n_epoch: 50"))
    assert "argument-beyond-sense" in ids(FORECAST, config_yaml=PLAN.replace("val: 1.0", "val: 1.0e-6"))


def test_a_configuration_of_a_runner_is_a_program() -> None:
    assert code_of(RUNNER).trains
    for old, new in (("milestones=[8, 11]", "milestones=[80, 110]"), ('"data/" + "judge.json"', '"data/" + "learn.json"'), ("dict(classes=", "dict(CLASSES=")):
        assert "runner-config-contradicts" in ids(RUNNER.replace(old, new))
    assert "pixels-of-another-scale" in ids(RUNNER.replace("[103.5, 116.3, 123.7], std=[57.4, 57.1, 58.4]", "[0.41, 0.46, 0.48], std=[0.23, 0.22, 0.22]"))
