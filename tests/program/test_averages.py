"""Averages of the weights written by hand, in the ways public repositories write them."""

from __future__ import annotations

import pytest
from reading_text import code_of, findings_of, ids

HEAD = """
    import copy
    import torch
    import torch.nn.functional as F
    from torch import nn
    from nets import Net, train_loader, val_loader
    model = Net()
    ema_model = copy.deepcopy(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    decay = 0.999
"""
UPDATES = {
    "lerp": """
        for e, p in zip(ema_model.parameters(), model.parameters()):
            e.lerp_(p, 1 - decay)""",
    "mul-add-alpha": """
        for e, p in zip(ema_model.parameters(), model.parameters()):
            e.data.mul_(decay).add_(p.data, alpha=1 - decay)""",
    "mul-add-product": """
        for e, p in zip(ema_model.parameters(), model.parameters()):
            e.mul_(decay).add_((1 - decay) * p)""",
    "copy-lerp": """
        for e, p in zip(ema_model.parameters(), model.parameters()):
            e.copy_(p.detach().lerp(e, decay))""",
    "copy-sum": """
        live, kept = model.state_dict(), ema_model.state_dict()
        for key in live.keys():
            kept[key].data.copy_(kept[key].data * decay + live[key].data * (1 - decay))""",
    "assign": """
        for e, p in zip(ema_model.parameters(), model.parameters()):
            e.data = decay * e.data + (1.0 - decay) * p.data""",
    "in-place": """
        live = model.state_dict()
        for k, v in ema_model.state_dict().items():
            v *= decay
            v += (1 - decay) * live[k].detach()""",
    "towards": """
        one_minus_decay = 1.0 - decay
        for e, p in zip(ema_model.parameters(), model.parameters()):
            e.sub_(one_minus_decay * (e - p))""",
}
LOOK_ALIKES = {
    "momentum": """
        for p in model.parameters():
            buf[p].mul_(0.9).add_(p.grad, alpha=0.1)""",
    "moments": """
        for p in model.parameters():
            exp_avg.lerp_(p.grad, 1 - 0.9)""",
    "metric": """
        for name in ("a", "b"):
            smooth[name] = 0.98 * smooth[name] + (1 - 0.98) * loss.item()""",
    "mix": """
        for x2, y2 in extra:
            x.lerp_(x2, 0.3)""",
}


def loop(update: str, where: str = "after") -> str:
    lines = update.replace("\n        ", "\n            ")
    before, after = (lines, "") if where == "before" else ("", lines)
    return f"""{HEAD}
    for step in range(100000):
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward(){before}
            optimizer.step(){after}
"""


@pytest.mark.parametrize("way", UPDATES)
def test_the_update_and_its_decay_are_read(way: str) -> None:
    code = code_of(loop(UPDATES[way]))
    assert len(code.hand_averages) == 1
    from wheeltapper.program.averages import averages_of

    assert [(a.decay, a.every) for a in averages_of(code)] == [(0.999, 1.0)]


@pytest.mark.parametrize("way", LOOK_ALIKES)
def test_look_alikes_are_none(way: str) -> None:
    assert code_of(loop(LOOK_ALIKES[way])).hand_averages == []


@pytest.mark.parametrize(
    "ramp", ["min(0.9999, (1 + step) / (10 + step))", "0.5 ** (32 / max(1, half_life))", "1 - (1 + step) ** -0.75"]
)
def test_a_ramped_decay_has_no_constant(ramp: str) -> None:
    from wheeltapper.program.averages import averages_of, is_ramped

    code = code_of(
        loop(UPDATES["lerp"]).replace("decay = 0.999", "half_life = 500").replace("1 - decay", f"1 - ({ramp})")
    )
    assert averages_of(code) == []
    assert is_ramped(code)


def test_a_class_of_its_own_is_followed_to_the_config() -> None:
    text = """
        import torch, yaml
        class EMA:
            def __init__(self, model, decay):
                self.decay = decay
                self.shadow = {k: v.detach().clone() for k, v in model.state_dict().items()}
            def update(self, model):
                for k, v in model.state_dict().items():
                    self.shadow[k].lerp_(v, 1 - self.decay)
        cfg = yaml.safe_load(open("config.yaml"))
        average = EMA(model, cfg["training"]["ema"])
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        for step in range(cfg["training"]["n_iters"]):
            optimizer.zero_grad()
            model(step).mean().backward()
            optimizer.step()
            average.update(model)
        torch.save(average.shadow, "ema.pt")
    """
    config = "training:\n  ema: 0.9999\n  n_iters: 2000\n"
    found = [f for f in findings_of(text, config_yaml=config) if f.id == "ema-horizon-too-long"]
    assert [(f.grade, f.severity) for f in found] == [("is", "ill")]
    assert ids(text, config_yaml=config.replace("2000", "200000")) == set()


NORMED = HEAD.replace("model = Net()", "model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))")


def test_parameters_only_leave_batch_norm_behind() -> None:
    text = loop(UPDATES["lerp"]).replace(HEAD, NORMED)
    assert ids(text) == {"ema-buffers-not-averaged"}
    assert ids(loop(UPDATES["in-place"]).replace(HEAD, NORMED)) == set()  # all of the state
    assert ids(loop(UPDATES["lerp"])) == set()  # no batch norm
    copied = text + "            for a, b in zip(ema_model.buffers(), model.buffers()):\n                a.copy_(b)\n"
    assert ids(copied) == set()
    teacher = text.replace("loss = F.mse_loss(model(x), y)", "loss = F.mse_loss(model(x), ema_model(x))")
    assert ids(teacher) == set()  # it runs while training and keeps statistics of its own


@pytest.mark.parametrize(
    "half", ["ema_model = ema_model.bfloat16()", "ema_model = copy.deepcopy(model).to(torch.bfloat16)"]
)
def test_an_average_in_half_precision(half: str) -> None:
    text = loop(UPDATES["lerp"]).replace("decay = 0.999", f"decay = 0.999\n    {half}")
    found = findings_of(text)
    assert [(f.id, f.grade) for f in found] == [("ema-low-precision", "is")]
    saved = (
        loop(UPDATES["lerp"]) + "    small = copy.deepcopy(ema_model).half()\n    torch.save(small.state_dict(), 'x')\n"
    )
    assert ids(saved) == set()


def test_an_average_of_standing_weights() -> None:
    body = """
    accum_steps = 4
    for epoch in range(100):
        for i, (x, y) in enumerate(train_loader):
            (F.mse_loss(model(x), y) / accum_steps).backward()
            if (i + 1) % accum_steps == 0:
                optimizer.step()
                optimizer.zero_grad()
            {outside}
    """
    own = "\n            ".join(
        line.strip() if "for" in line else "    " + line.strip() for line in UPDATES["lerp"].strip().splitlines()
    )
    assert ids(HEAD + body.format(outside=own)) == {"ema-per-micro-step"}
    inside = "\n                ".join(
        line.strip() if "for" in line else "    " + line.strip() for line in UPDATES["lerp"].strip().splitlines()
    )
    moved = body.replace("optimizer.zero_grad()", "optimizer.zero_grad()\n                " + inside).format(
        outside="pass"
    )
    assert ids(HEAD + moved) == set()
