"""Optimizers and schedulers whose class is looked up by name, written in the ways people write it."""

from __future__ import annotations

import pytest
from reading_text import code_of, ids

HEAD = """
    import torch
    import torch.nn.functional as F
    from torch import optim
    from torch.optim import lr_scheduler
    cfg = {"type": "AdamW", "lr": 1e-3}
"""
LOOP = """
    for epoch in range(10):
        for x, y in train_loader:
            {clear}
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
        {after}
"""
WAYS = {
    "getattr": 'opt = getattr(torch.optim, cfg["type"])(model.parameters(), lr=cfg["lr"])',
    "getattr-alias": 'cls = getattr(optim, "AdamW")\n    opt = cls(model.parameters(), lr=cfg["lr"])',
    "dict-attr": 'opt = torch.optim.__dict__["AdamW"](model.parameters(), lr=1e-3)',
    "table": 'TABLE = {"adamw": optim.AdamW, "sgd": optim.SGD}\n    opt = TABLE["adamw"](model.parameters(), lr=1e-3)',
    "table-get": 'TABLE = {"AdamW": optim.AdamW}\n    opt = TABLE.get(cfg["type"], optim.SGD)(model.parameters(), lr=1e-3)',
    "either": "kind = optim.AdamW if len(cfg) > 1 else optim.AdamW\n    opt = kind(model.parameters(), lr=1e-3)",
    "factory": "def build(c):\n        return getattr(optim, c['type'])(model.parameters(), lr=c['lr'])\n    opt = build(cfg)",
}


def script(way: str, clear: str = "opt.zero_grad()", after: str = "pass") -> str:
    return HEAD + "    " + way + LOOP.format(clear=clear, after=after)


@pytest.mark.parametrize("way", WAYS)
def test_the_class_is_known(way: str) -> None:
    made = code_of(script(WAYS[way])).made("optimizer")
    assert [p.made_by for p in made] == ["AdamW"]
    assert "opt" in made[0].names


@pytest.mark.parametrize("way", WAYS)
def test_checks_see_the_optimizer(way: str) -> None:
    assert ids(script(WAYS[way], clear="pass")) == {"zero-grad-missing"}
    assert ids(script(WAYS[way])) == set()


def test_a_name_that_cannot_be_read_still_has_a_kind() -> None:
    code = code_of(script("import os\n    opt = getattr(torch.optim, os.environ['OPT'])(model.parameters(), lr=1e-3)"))
    assert [p.made_by for p in code.made("optimizer")] == ["an optimizer by name"]


SCHEDULES = {
    "getattr": 'sched = getattr(lr_scheduler, "StepLR")(opt, 3)',
    "table": 'KINDS = {"step": lr_scheduler.StepLR, "cos": lr_scheduler.CosineAnnealingLR}\n    sched = KINDS["step"](opt, 3)',
}


@pytest.mark.parametrize("way", SCHEDULES)
def test_a_scheduler_by_name_must_be_stepped(way: str) -> None:
    make = f"{WAYS['getattr']}\n    {SCHEDULES[way]}"
    assert ids(script(make)) == {"scheduler-never-stepped"}
    assert ids(script(make, after="sched.step()")) == set()


def test_other_things_looked_up_are_no_optimizer() -> None:
    text = script("opt = torch.optim.SGD(model.parameters(), lr=1e-3)\n    net = getattr(torch.nn, 'Linear')(3, 4)")
    assert [p.made_by for p in code_of(text).made("optimizer")] == ["SGD"]


def test_a_renamed_import_is_followed() -> None:
    main = """
        import torch
        import torch.nn.functional as F
        from engine import Scaler as NativeScaler
        opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
        scaler = NativeScaler()
        for x, y in train_loader:
            scaler(F.cross_entropy(model(x), y), opt)
    """
    engine = """
        class Scaler:
            def __call__(self, loss, optimizer):
                loss.backward()
                optimizer.step()
    """
    assert ids(main, engine_py=engine) == {"zero-grad-missing"}
    cleared = engine.replace("optimizer.step()", "optimizer.step()\n                optimizer.zero_grad()")
    assert ids(main, engine_py=cleared) == set()


def test_a_step_made_by_a_function_is_followed() -> None:
    main = """
        import torch
        import losses
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        optimize_fn = losses.optimization_manager(1.0)
        train_step_fn = losses.get_step_fn(optimize_fn)
        for batch in train_loader:
            loss = train_step_fn(model, optimizer, batch)
    """
    made = """
        import torch
        def optimization_manager(limit):
            def update(optimizer, params):
                torch.nn.utils.clip_grad_norm_(params, limit)
                optimizer.step()
            return update
        def get_step_fn(optimize_fn):
            def step_fn(model, optimizer, batch):
                {clear}
                loss = model(batch).mean()
                loss.backward()
                optimize_fn(optimizer, model.parameters())
                return loss
            return step_fn
    """
    assert ids(main, losses_py=made.format(clear="optimizer.zero_grad()")) == set()
    assert ids(main, losses_py=made.format(clear="pass")) == {"zero-grad-missing"}
