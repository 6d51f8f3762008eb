"""Every check: a script it must report, and the nearest healthy script it must not."""

from __future__ import annotations

from textwrap import dedent

import pytest
from faults import FAULTS
from many_faults import FAULTS as MANY
from reading_text import findings_of, ids
from test_torch_loops import CASES as LOOPS
from twins import TWINS
from unseen_faults import FAULTS as UNSEEN

from wheeltapper.program.checks import SECTIONS, checks, missing_sections, section, title

HEAD = """
import torch
import torch.nn.functional as F
from torch import nn
from nets import Net, train_loader, val_loader
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
"""
LOOP = """
for epoch in range(10):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
"""


def script(body: str, head: str = HEAD) -> str:
    return head + dedent(body)


CASES: dict[str, tuple[str, str]] = {
    "noise-as-published": (
        script(
            """
            P_mean, P_std = -1.2, 1.2
            for x in train_loader:
                n = torch.randn([len(x), 1])
                sigma = (n * P_std + P_mean).exp()
                optimizer.zero_grad()
                F.mse_loss(model(x + torch.randn_like(x) * sigma), x).backward()
                optimizer.step()
            """
        ),
        script(
            """
            for x in train_loader:
                sigma = torch.exp(torch.randn([len(x), 1]) * 1.2 - 0.2)
                optimizer.zero_grad()
                F.mse_loss(model(x + torch.randn_like(x) * sigma), x).backward()
                optimizer.step()
            """
        ),
    ),
    "ema-on-one-rank": (
        script(
            "rank = torch.distributed.get_rank()\nfrom torch.optim.swa_utils import AveragedModel\nema = AveragedModel(model)\n"
            + LOOP
            + "        if rank == 0:\n            ema.update_parameters(model)\ntorch.save(ema.state_dict(), 'ema.pt')\n"
        ),
        script(
            "rank = torch.distributed.get_rank()\nfrom torch.optim.swa_utils import AveragedModel\nema = AveragedModel(model)\n"
            + LOOP
            + "        if epoch > 3:\n            ema.update_parameters(model)\ntorch.save(ema.state_dict(), 'ema.pt')\n"
        ),
    ),
    "scheduler-never-stepped": (
        script("sched = torch.optim.lr_scheduler.StepLR(optimizer, 3)\n" + LOOP + "    print(sched.get_last_lr())\n"),
        script("sched = torch.optim.lr_scheduler.StepLR(optimizer, 3)\n" + LOOP + "    sched.step()\n"),
    ),
    "scheduler-wrong-unit": (
        script(
            "epochs = 10\nsched = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * len(train_loader))\n"
            + LOOP
            + "    sched.step()\n"
        ),
        script(
            "epochs = 10\nsched = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * len(train_loader))\n"
            + LOOP
            + "        sched.step()\n"
        ),
    ),
    "scheduler-stepped-in-init": (
        script("sched = torch.optim.lr_scheduler.StepLR(optimizer, 3)\nsched.step()\n" + LOOP + "    sched.step()\n"),
        script(
            "sched = torch.optim.lr_scheduler.StepLR(optimizer, 3)\nfor _ in range(4):\n    sched.step()\n"
            + LOOP
            + "    sched.step()\n"
        ),
    ),
    "onecycle-overrun": (
        script(
            "sched = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=len(train_loader), cycle_momentum=False)\n"
            + LOOP
            + "        sched.step()\n"
        ),
        script(
            "sched = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=10 * len(train_loader), cycle_momentum=False)\n"
            + LOOP
            + "        sched.step()\n"
        ),
    ),
    "onecycle-overrides-momentum": (
        script("sched = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, 999)\n" + LOOP + "        sched.step()\n"),
        script(
            "sched = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, 999, cycle_momentum=False)\n"
            + LOOP
            + "        sched.step()\n"
        ),
    ),
    "clip-before-unscale": (
        script("""
            scaler = torch.amp.GradScaler("cuda")
            for x, y in train_loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                scaler.scale(loss).backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(optimizer)
                scaler.update()
        """),
        script("""
            scaler = torch.amp.GradScaler("cuda")
            for x, y in train_loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                if scaler is not None:
                    scaler.scale(loss).backward()
                    scaler.unscale_(optimizer)
                else:
                    loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(optimizer)
                scaler.update()
        """),
    ),
    "clip-after-step": (
        script("""
            for x, y in train_loader:
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        """),
        script("""
            for x, y in train_loader:
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
        """),
    ),
    "zero-grad-missing": (
        script("for x, y in train_loader:\n    F.cross_entropy(model(x), y).backward()\n    optimizer.step()\n"),
        script(
            "for x, y in train_loader:\n    F.cross_entropy(model(x), y).backward()\n    optimizer.step()\n    model.zero_grad()\n"
        ),
    ),
    "loss-negated": (
        script("for x, y in train_loader:\n    loss = F.cross_entropy(model(x), y)\n    optimizer.zero_grad()\n    (-loss / 2).backward()\n    optimizer.step()\n"),
        script("for x, y in train_loader:\n    reward = model(x).mean()\n    optimizer.zero_grad()\n    (-reward).backward()\n    optimizer.step()\n"),
    ),
    "params-frozen": (
        script('for name, p in model.named_parameters():\n    p.requires_grad = name.startswith("fc.")\n' + LOOP),
        script("for name, p in model.named_parameters():\n    p.requires_grad = True\n" + LOOP),
    ),
    "params-not-in-optimizer": (
        script(LOOP, HEAD.replace("model.parameters()", "list(model.fc.parameters())")),
        script(LOOP, HEAD.replace("model.parameters()", "[*model.body.parameters(), *model.fc.parameters()]")),
    ),
    "loss-not-divided": (
        script("""
            accum_steps = 4
            for i, (x, y) in enumerate(train_loader):
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                if (i + 1) % accum_steps == 0:
                    optimizer.step()
                    optimizer.zero_grad()
        """),
        script("""
            accum_steps = 4
            for i, (x, y) in enumerate(train_loader):
                loss = F.cross_entropy(model(x), y) * (1 / accum_steps)
                loss.backward()
                if (i + 1) % accum_steps == 0:
                    optimizer.step()
                    optimizer.zero_grad()
        """),
    ),
    "ema-never-used": (
        script(
            "from torch.optim.swa_utils import AveragedModel\nema = AveragedModel(model)\n" + LOOP + "        ema.update_parameters(model)\n"
        ),
        script(
            "from torch.optim.swa_utils import AveragedModel\nema = AveragedModel(model)\n"
            + LOOP
            + "        ema.update_parameters(model)\ntorch.save(ema.module.state_dict(), 'ema.pt')\n"
        ),
    ),
    "ema-horizon-too-long": (
        script(
            "from timm.utils import ModelEmaV2\nmax_steps = 2000\nema = ModelEmaV2(model, decay=0.9999)\n"
            "parser = __import__('argparse').ArgumentParser()\nparser.add_argument('--max_steps', type=int, default=2000)\n"
            "args = parser.parse_args()\n"
            "for step in range(args.max_steps):\n    optimizer.zero_grad()\n    model(step).backward()\n    optimizer.step()\n"
            "    ema.update(model)\ntorch.save(ema.module.state_dict(), 'e.pt')\n"
        ),
        script(
            "from timm.utils import ModelEmaV2\nema = ModelEmaV2(model, decay=0.99)\n"
            "parser = __import__('argparse').ArgumentParser()\nparser.add_argument('--max_steps', type=int, default=2000)\n"
            "args = parser.parse_args()\n"
            "for step in range(args.max_steps):\n    optimizer.zero_grad()\n    model(step).backward()\n    optimizer.step()\n"
            "    ema.update(model)\ntorch.save(ema.module.state_dict(), 'e.pt')\n"
        ),
    ),
    "ema-buffers-not-averaged": (
        script(
            "from torch.optim.swa_utils import AveragedModel\nbn = nn.BatchNorm2d(3)\nprint(bn)\nema = AveragedModel(model)\n"
            + LOOP
            + "        ema.update_parameters(model)\n    ema.eval()\n    print(ema(x))\n"
        ),
        script(
            "from torch.optim.swa_utils import AveragedModel\nbn = nn.BatchNorm2d(3)\nprint(bn)\nema = AveragedModel(model, use_buffers=True)\n"
            + LOOP
            + "        ema.update_parameters(model)\n    ema.eval()\n    print(ema(x))\n"
        ),
    ),
    "train-mode-not-restored": (
        script("""
            def validate():
                model.eval()
                with torch.no_grad():
                    return sum(model(x).sum() for x, y in val_loader)
            model.train()
            for epoch in range(10):
                for x, y in train_loader:
                    optimizer.zero_grad()
                    F.cross_entropy(model(x), y).backward()
                    optimizer.step()
                validate()
        """),
        script("""
            def validate():
                model.eval()
                with torch.no_grad():
                    total = sum(model(x).sum() for x, y in val_loader)
                model.train()
                return total
            for epoch in range(10):
                for x, y in train_loader:
                    optimizer.zero_grad()
                    F.cross_entropy(model(x), y).backward()
                    optimizer.step()
                validate()
        """),
    ),
    "val-in-train-mode": (
        script("drop = nn.Dropout(0.5)\nprint(drop)\n" + LOOP + "    with torch.no_grad():\n        for x, y in val_loader:\n            model(x)\n"),
        script(
            "drop = nn.Dropout(0.5)\nprint(drop)\n"
            + LOOP
            + "    model.eval()\n    with torch.no_grad():\n        for x, y in val_loader:\n            model(x)\n"
        ),
    ),
    "eval-without-no-grad": (
        script(LOOP + "    model.eval()\n    for x, y in val_loader:\n        print(model(x).sum())\n"),
        script(LOOP + "    model.eval()\n    with torch.inference_mode():\n        for x, y in val_loader:\n            print(model(x).sum())\n"),
    ),
    "resume-never-loaded": (
        script(
            "import argparse\np = argparse.ArgumentParser()\np.add_argument('--resume', default=None)\nargs = p.parse_args()\nstart = 0\n"
            "if args.resume:\n    start = 5\n"
            + LOOP.replace("range(10)", "range(start, 10)")
        ),
        script(
            "import argparse\np = argparse.ArgumentParser()\np.add_argument('--resume', default=None)\nargs = p.parse_args()\nstart = 0\n"
            "if args.resume:\n    model.load_state_dict(torch.load(args.resume))\n    start = 5\n"
            + LOOP.replace("range(10)", "range(start, 10)")
        ),
    ),
    "resume-incomplete": (
        script(
            "sched = torch.optim.lr_scheduler.StepLR(optimizer, 3)\nckpt = torch.load('last.pt')\nmodel.load_state_dict(ckpt['model'])\n"
            "optimizer.load_state_dict(ckpt['optimizer'])\n"
            + LOOP
            + "    sched.step()\n    torch.save({'model': model.state_dict(), 'optimizer': optimizer.state_dict(), 'sched': sched.state_dict()}, 'last.pt')\n"
        ),
        script(
            "sched = torch.optim.lr_scheduler.StepLR(optimizer, 3)\nckpt = torch.load('last.pt')\nmodel.load_state_dict(ckpt['model'])\n"
            "optimizer.load_state_dict(ckpt['optimizer'])\nsched.load_state_dict(ckpt['sched'])\n"
            + LOOP
            + "    sched.step()\n    torch.save({'model': model.state_dict(), 'optimizer': optimizer.state_dict(), 'sched': sched.state_dict()}, 'last.pt')\n"
        ),
    ),
    "lr-scaled-twice": (
        script("import torch.distributed as dist\nlr = 0.1\nworld_size = dist.get_world_size()\nlr *= world_size\noptimizer = torch.optim.SGD(model.parameters(), lr=lr * world_size)\n" + LOOP),
        script("import torch.distributed as dist\nlr = 0.1\nworld_size = dist.get_world_size()\nif world_size > 8:\n    lr *= world_size\nelse:\n    lr = lr * world_size\noptimizer = torch.optim.SGD(model.parameters(), lr=lr)\n" + LOOP),
    ),
    "per-rank-sampler-seed": (
        script("from torch.utils.data import DistributedSampler\nimport torch.distributed as dist\nrank = dist.get_rank()\nseed = 42 + rank\nsampler = DistributedSampler(train_loader.dataset, seed=seed)\nsampler.set_epoch(0)\n" + LOOP),
        script("from torch.utils.data import DistributedSampler\nimport torch.distributed as dist\nrank = dist.get_rank()\ntorch.manual_seed(42 + rank)\nsampler = DistributedSampler(train_loader.dataset, seed=42)\nsampler.set_epoch(0)\n" + LOOP),
    ),
    "set-epoch-missing": (
        script("from torch.utils.data import DistributedSampler\nsampler = DistributedSampler(train_loader.dataset)\nprint(sampler)\n" + LOOP),
        script("from torch.utils.data import DistributedSampler\nsampler = DistributedSampler(train_loader.dataset, shuffle=False)\nprint(sampler)\n" + LOOP),
    ),
    "double-softmax": (
        script("for x, y in train_loader:\n    optimizer.zero_grad()\n    out = torch.softmax(model(x), dim=1)\n    loss = F.cross_entropy(out, y)\n    loss.backward()\n    optimizer.step()\n"),
        script("for x, y in train_loader:\n    optimizer.zero_grad()\n    out = model(x)\n    probs = torch.softmax(out, dim=1)\n    loss = F.cross_entropy(out, y)\n    loss.backward()\n    optimizer.step()\n    print(probs.max())\n"),
    ),
    "nan-to-num-grads": (
        script(LOOP.replace("        optimizer.step()", "        for p in model.parameters():\n            torch.nan_to_num(p.grad, out=p.grad)\n        optimizer.step()")),
        script(LOOP.replace("        optimizer.step()", "        print(torch.nan_to_num(loss))\n        optimizer.step()")),
    ),
}  # fmt: skip


# Checks without a program of their own among the faults; each has a test in test_played.py.
RARE = {"seed-in-loop", "made-anew", "one-batch-only", "rate-is-zero"}


@pytest.mark.parametrize("name", CASES)
def test_the_defect_is_reported(name: str) -> None:
    assert name in ids(CASES[name][0])


@pytest.mark.parametrize("name", CASES)
def test_the_near_miss_is_not(name: str) -> None:
    assert [f"{f.id}: {f.summary}" for f in findings_of(CASES[name][1])] == []


# Reported by the case re-creations in test_code_of_cases.py instead, with their twins, or in files of their own.
BY_CASES = {
    "ema-low-precision",
    "ema-per-micro-step",
    "val-normalised-otherwise",
    "accumulation-not-implemented",
    "detector-settings-contradict",
    "names-in-another-order",
    "best-checkpoint-by-shifting-metric",
    "config-key-never-read",
    "objective-preconditioner-mismatch",
    "option-never-used",
    "prints-effective-batch-that-is-not",
    "resize-not-applied",
    "workers-per-process",
}


def test_every_check_has_a_case_and_a_near_miss() -> None:
    by_faults = {id for faults in (FAULTS, UNSEEN, MANY) for _, ids, _, _ in faults for id in ids.split()}
    assert set(checks()) <= set(CASES) | BY_CASES | by_faults | RARE | set(TWINS) | set(LOOPS)


@pytest.mark.parametrize("name", checks())
def test_a_check_is_its_own_page(name: str) -> None:
    module = checks()[name]
    assert missing_sections(module) == []
    assert name == module.ID
    assert title(module)
    for part in SECTIONS:
        assert len(section(module, part)) > 30, part


def test_lightning_steps_once_per_epoch_unless_told() -> None:
    text = """
        import lightning as L
        import torch
        class M(L.LightningModule):
            def training_step(self, batch, i):
                return self(batch).sum()
            def configure_optimizers(self):
                opt = torch.optim.AdamW(self.parameters(), lr=1e-3)
                sched = torch.optim.lr_scheduler.OneCycleLR(opt, 1e-3, total_steps=self.trainer.estimated_stepping_batches)
                return [opt], [sched]
    """
    assert ids(text) == {"scheduler-wrong-unit"}
    told = text.replace("[sched]", "[{'scheduler': sched, 'interval': 'step'}]")
    assert ids(told) == set()


def test_updates_against_micro_batches_in_both_directions() -> None:
    body = """
        accum_steps = 4
        sched = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max={total})
        for epoch in range(10):
            for i, (x, y) in enumerate(train_loader):
                (F.cross_entropy(model(x), y) / accum_steps).backward()
                if (i + 1) % accum_steps == 0:
                    optimizer.step()
                    optimizer.zero_grad()
                    {inside}
                {outside}
    """
    whole, updates = "10 * len(train_loader)", "10 * len(train_loader) // accum_steps"
    assert ids(script(body.format(total=whole, inside="sched.step()", outside="pass"))) == {"scheduler-wrong-unit"}
    assert ids(script(body.format(total=updates, inside="pass", outside="sched.step()"))) == {"scheduler-wrong-unit"}
    assert ids(script(body.format(total=updates, inside="sched.step()", outside="pass"))) == set()
    assert ids(script(body.format(total=whole, inside="pass", outside="sched.step()"))) == set()


def test_a_loss_scale_of_one_micro_batch_is_no_mismatch() -> None:
    body = """
        accum_steps = 1
        sched = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10 * len(train_loader))
        for epoch in range(10):
            for i, (x, y) in enumerate(train_loader):
                F.cross_entropy(model(x), y).backward()
                if (i + 1) % accum_steps == 0:
                    optimizer.step()
                    optimizer.zero_grad()
                    sched.step()
    """
    assert ids(script(body)) == set()
