"""Faults that are plain in the code, each written in two ways, beside healthy look-alikes."""

from __future__ import annotations

import pytest
from reading_text import findings_of, ids

HEAD = """
import torch
import torch.nn.functional as F
from torch import nn
from nets import Net, train_loader, val_loader
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
"""
LOOP = """
for epoch in range(10):
    for x, y in train_loader:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
"""

# -- accumulation that only divides -------------------------------------------------------------------

DIVIDED = {
    "plain": "accum = 4\nfor x, y in train_loader:\n    (F.mse_loss(model(x), y) / accum).backward()\n{step}",
    "config": """
import yaml
cfg = yaml.safe_load(open("config.yaml"))
total = cfg["n_iters"] // cfg["accum_steps"]
for x, y in train_loader:
    loss = F.mse_loss(model(x), y)
    loss = loss / cfg["accum_steps"]
    loss.backward()
{step}""",
}
NOW = "    optimizer.step()\n    optimizer.zero_grad()\n"


@pytest.mark.parametrize("way", DIVIDED)
def test_a_loss_divided_and_not_accumulated(way: str) -> None:
    config = {"config_yaml": "accum_steps: 4\nn_iters: 1000\n"} if way == "config" else {}
    count = "accum" if way == "plain" else 'cfg["accum_steps"]'
    (found,) = findings_of(HEAD + DIVIDED[way].format(step=NOW), **config)
    assert (found.id, found.grade) == ("accumulation-not-implemented", "is")
    held = DIVIDED[way].replace("for x, y in train_loader", "for i, (x, y) in enumerate(train_loader)")
    every = f"    if (i + 1) % {count} == 0:\n        optimizer.step()\n        optimizer.zero_grad()\n"
    assert ids(HEAD + held.format(step=every), **config) == set()


def test_a_count_handed_on_is_not_judged() -> None:
    text = (
        HEAD
        + "import engine\naccum = 4\nengine.setup(accum)\n"
        + DIVIDED["plain"].format(step=NOW).replace("accum = 4\n", "", 1)
    )
    assert ids(text) == set()


# -- resuming -----------------------------------------------------------------------------------------

SAVE = 'torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, "last.pt")\n'


@pytest.mark.parametrize("read", ['ckpt["epoch"]', 'ckpt.get("epoch", 0)'])
def test_a_resume_that_forgets_the_optimizer(read: str) -> None:
    lost = f'ckpt = torch.load("last.pt")\nmodel.load_state_dict(ckpt["model"])\nstart = {read} + 1\n'
    loop = LOOP.replace("range(10)", "range(start, 10)") + SAVE
    (found,) = findings_of(HEAD + lost + loop)
    assert (found.id, found.severity) == ("resume-incomplete", "ill")
    kept = lost + 'optimizer.load_state_dict(ckpt["optimizer"])\n'
    assert ids(HEAD + kept + loop) == set()


def test_weights_loaded_to_begin_with_are_no_resume() -> None:
    load = 'ckpt = torch.load("pretrained.pt")\nmodel.load_state_dict(ckpt["model"])\nprint(ckpt["epoch"])\n'
    assert ids(HEAD + load + LOOP + SAVE) == set()


# -- parameters chosen by name ------------------------------------------------------------------------

CHOSEN = {
    "comprehension": 'chosen = [p for n, p in model.named_parameters() if n.startswith("gate")]\n',
    "loop": 'chosen = []\nfor name, p in model.named_parameters():\n    if p.requires_grad and "gate" in name:\n        chosen.append(p)\n',
}


@pytest.mark.parametrize("way", CHOSEN)
def test_parameters_chosen_by_name(way: str) -> None:
    make = "optimizer = torch.optim.AdamW(chosen, lr=1e-3)\n"
    head = HEAD.replace("optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)\n", "")
    assert ids(head + CHOSEN[way] + make + LOOP) == {"params-not-in-optimizer"}
    tuned = head.replace("Net()", 'Net.from_pretrained("x")') + CHOSEN[way] + make + LOOP
    assert ids(tuned) == set()


def test_groups_by_name_give_all() -> None:
    head = HEAD.replace("optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)\n", "")
    groups = """
decay, plain = [], []
for name, p in model.named_parameters():
    if name.endswith("bias"):
        plain.append(p)
    else:
        decay.append(p)
optimizer = torch.optim.AdamW([{"params": decay}, {"params": plain, "weight_decay": 0.0}], lr=1e-3)
"""
    assert ids(head + groups + LOOP) == set()


# -- shards by hand -----------------------------------------------------------------------------------

SHARDS = {
    "chained": "g = torch.Generator().manual_seed({seed})\norder = torch.randperm(1000, generator=g)\nmine = order[rank::world]\n",
    "numpy": "import numpy as np\nrng = np.random.default_rng({seed})\norder = rng.permutation(1000)\nmine = order[rank::world]\n",
}


@pytest.mark.parametrize("way", SHARDS)
def test_shards_of_different_permutations(way: str) -> None:
    ranks = "import torch.distributed as dist\nrank, world = dist.get_rank(), dist.get_world_size()\n"
    use = "print(len(mine))\n"
    assert ids(HEAD + ranks + SHARDS[way].format(seed="42 + rank") + use + LOOP) == {"per-rank-sampler-seed"}
    assert ids(HEAD + ranks + SHARDS[way].format(seed="42") + use + LOOP) == set()


# -- the objective ------------------------------------------------------------------------------------

EDM = """
from networks import EDMPrecond
net = EDMPrecond(32, 3)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
def loss_fn(net, y, sigma):
    {noisy}
    d = net(x, sigma)
    {target}
    return {compare}
for y in train_loader:
    optimizer.zero_grad()
    sigma = torch.rand(len(y))
    loss_fn(net, y, sigma).mean().backward()
    optimizer.step()
"""
NOISES = ["noise = torch.randn_like(y)\n    x = y + sigma * noise", "x = y + torch.randn_like(y) * sigma"]


@pytest.mark.parametrize("noisy", NOISES)
@pytest.mark.parametrize("compare", ["((d - target) ** 2)", "F.mse_loss(d, target)"])
def test_a_denoiser_against_another_target(noisy: str, compare: str) -> None:
    made = EDM.format(noisy=noisy, target="target = (x - y) / sigma", compare=compare)
    assert ids(HEAD + made) == {"objective-preconditioner-mismatch"}
    right = EDM.format(noisy=noisy, target="target = y", compare=compare)
    assert ids(HEAD + right) == set()
    weighted = EDM.format(
        noisy=noisy, target="weight = (sigma ** 2 + 0.25) / (sigma * 0.5) ** 2", compare="weight * (d - y) ** 2"
    )
    assert ids(HEAD + weighted) == set()


# -- normalisation ------------------------------------------------------------------------------------

NORM = "T.Normalize((0.5, 0.5, 0.5), (0.2, 0.2, 0.2))"
LISTS = {
    "names": "from torchvision import transforms as T\ntrain_tf = T.Compose([T.RandomCrop(32), T.ToTensor(), {a}])\n"
    "val_tf = T.Compose([T.ToTensor(), {b}])\nprint(train_tf, val_tf)\n",
    "keys": 'from torchvision import transforms as T\ntf = {{"train": T.Compose([T.ToTensor(), {a}]), "val": T.Compose([T.ToTensor(), {b}])}}\nprint(tf)\n',
}


@pytest.mark.parametrize("way", LISTS)
def test_pictures_normalised_otherwise(way: str) -> None:
    other = NORM.replace("0.5", "0.0")
    none = LISTS[way].replace(", {b}]", "]")
    assert ids(HEAD + LISTS[way].format(a=NORM, b=other) + LOOP) == {"val-normalised-otherwise"}
    assert ids(HEAD + none.format(a=NORM) + LOOP) == {"val-normalised-otherwise"}
    assert ids(HEAD + LISTS[way].format(a=NORM, b=NORM) + LOOP) == set()


def test_options_read_by_evaluated_text_are_used() -> None:
    text = """
        import argparse
        import torch
        def main():
            parser = argparse.ArgumentParser()
            parser.add_argument("--ema-decay", type=float, default=0.9)
            parser.add_argument("--warmup", type=int, default=3)
            args = parser.parse_args()
            def given(name):
                return hasattr(args, name) and eval(f"args.{name}")
            if given("warmup"):
                print("warm")
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for x in train_loader:
                optimizer.zero_grad()
                model(x).backward()
                optimizer.step()
        main()
    """
    assert ids(text) == set()


def test_a_record_of_settings_is_no_promise() -> None:
    text = """
        import argparse
        import torch
        parser = argparse.ArgumentParser()
        parser.add_argument("--lr", type=float, default=0.1)
        parser.add_argument("--bf16", action="store_true")
        args = parser.parse_args()
        config = {"precision": "bf16" if args.bf16 else "fp32", "lr": args.lr, "batch_size": 8, "epochs": 3}
        print(config)
        optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
        for epoch in range(3):
            for x in train_loader:
                optimizer.zero_grad()
                with torch.autocast("cuda", enabled=args.bf16):
                    loss = model(x)
                loss.backward()
                optimizer.step()
    """
    assert ids(text) == set()


RESIZED = """
class Trainer:
    def __init__(self):
        self.size = self.image_size(0)
        self.start_epoch = 0
    def resume(self, state):
        self.start_epoch = state["epoch"]
        self.size = self.image_size(self.start_epoch)
    def image_size(self, epoch):
        return 16 if epoch < 5 else 32
    def fit(self):
        for epoch in range(self.start_epoch, 10):
            size = self.image_size(epoch)
            if size != self.image_size(epoch - 1):
                print("now", size)
                {apply}
            for x, y in train_loader:
                optimizer.zero_grad()
                F.mse_loss(model(F.interpolate(x, self.size)), y).backward()
                optimizer.step()
trainer = Trainer()
trainer.resume(torch.load("x"))
trainer.fit()
"""


def test_a_size_that_is_announced_and_not_applied() -> None:
    assert ids(HEAD + RESIZED.format(apply="pass")) == {"resize-not-applied"}
    assert ids(HEAD + RESIZED.format(apply="self.size = size")) == set()
