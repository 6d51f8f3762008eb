"""Odd but healthy: runs that look strange and are sound. `plain` is the healthy run without any oddity."""

from __future__ import annotations

import random
from typing import Any

from wheeltapper.lab.worlds.draw import Draw
from wheeltapper.lab.worlds.faults.table import LOOP, Change, Fault, both, edit, later, put, share_of_total

CONTROLS: list[Fault] = []


def control(id: str, story: str, apply: Change, *families: str, **more: Any) -> None:
    CONTROLS.append(Fault(id, "none", "control", "control", apply, story, "", families or (LOOP,), **more))


def nothing(_draw: Draw, _r: random.Random) -> None:
    """The run as drawn."""


def longer(draw: Draw, _r: random.Random) -> None:
    for key in ("max_steps", "epochs", "decay_steps"):
        if key in draw.cfg:
            draw.cfg[key] = int(draw.cfg[key] * 1.6)


def stop_share(draw: Draw, r: random.Random) -> None:
    draw.notes["stop_share"] = r.uniform(0.6, 0.85)


def gentle_rate(draw: Draw, _r: random.Random) -> None:
    draw.cfg["lr"] = float(f"{draw.cfg['lr'] * 0.5:.2g}")


BATCH = "            batch = [t[pick] for t in train_data]"
ALL = (LOOP, "gan", "ppo", "dqn")
control("plain", "nothing is odd", nothing, *ALL)
control("plain_again", "nothing is odd", nothing, *ALL)
control("resume_clean", "stopped and resumed with all its state", nothing, want={"resume": True})
control("warm_restarts", "the rate restarts on purpose", nothing, want={"schedule": "restarts", "ema": False})
control("constant_lr", "no schedule at all", gentle_rate, want={"schedule": "constant"})
control("invsqrt", "inverse square root with warmup", share_of_total("warmup_steps", 0.1), want={"schedule": "invsqrt"})
control("lr_staircase", "the rate falls in steps and the loss with it", nothing, want={"schedule": "multistep"})
control("plateau_cuts", "ReduceLROnPlateau cuts the rate when the loss rests", nothing, want={"schedule": "plateau"})
control(
    "long_warmup",
    "a fifth of the run is warmup",
    share_of_total("warmup_steps", 0.2),
    want={"schedule": "cosine", "ema": False},
)
control(
    "clip_always_on",
    "the clip is below the usual norm; Adam does not mind",
    put(grad_clip=[0.05, 0.1]),
    want={"clip": True, "optimizer": "adam"},
)
control("ema_good", "a sensible average is evaluated", nothing, want={"ema": True})
control("accumulation", "gradients are accumulated and divided", nothing, want={"accum": 4, "autocast": False})
control(
    "bf16_autocast",
    "mixed precision in bfloat16",
    nothing,
    "tab",
    "cls",
    "forecast",
    "distill",
    "vae",
    "inr",
    want={"autocast": True, "accum": 1},
)
control(
    "early_stopping",
    "early stopping ends a run that had learned",
    put(patience=6),
    want={"early_stop": True, "schedule": "constant"},
)
control(
    "spike_recovers",
    "one bad batch, and it recovers",
    later(BATCH, BATCH + "\n            if AT <= step < AT + 2:\n                batch[0] = 4 * batch[0]", 0.3, 0.5),
    "tab",
    "forecast",
    "inr",
    "distill",
    "moe",
    "vae",
    "ctc",
    "seg",
    want={"clip": True, "optimizer": "adam"},
    script="never",
)
control("unfinished", "ended by a time limit while it still improved", stop_share, *ALL, want={"schedule": "cosine"})
control(
    "dropout_val_better",
    "dropout makes the training loss worse than validation",
    put(dropout=[0.3, 0.4]),
    "tab",
    "cls",
    "rec",
    "distill",
    "gnn",
    "s2s",
)
control("label_smoothing", "label smoothing keeps the training loss high", put(label_smoothing=[0.1, 0.2]), "cls")
control("label_noise_floor", "labels are noisy, so accuracy cannot reach one", put(label_noise=[0.2, 0.3]), "cls")
control("noise_floor", "the target is noisy, so the loss rests early at its floor", put(target_noise=[1.0, 1.5]), "tab")
control(
    "small_val_set",
    "few validation samples: the score jumps",
    put(n_val=[40, 60]),
    "tab",
    "cls",
    "seg",
    "s2s",
    "forecast",
    "det",
)
control(
    "mixup",
    "mixed samples keep the training loss high",
    edit(
        (
            "    x, y = batch\n    logits = model(x)\n    loss = F.cross_entropy(logits, y, label_smoothing=cfg.label_smoothing)",
            "    x, y = batch\n    lam = float(np.random.beta(0.4, 0.4))\n    other = torch.randperm(len(x))\n    logits = model(lam * x + (1 - lam) * x[other])\n    loss = lam * F.cross_entropy(logits, y) + (1 - lam) * F.cross_entropy(logits, y[other])",
        )
    ),
    "cls",
)
control(
    "input_noise",
    "noise is added to the inputs as augmentation",
    edit((BATCH, BATCH + "\n            batch[0] = batch[0] + 0.1 * batch[0].std() * torch.randn_like(batch[0])")),
    "tab",
    "cls",
    "seg",
    "det",
    "forecast",
    "moe",
    "distill",
    "ctc",
)
control(
    "loss_in_other_units",
    "the loss is a sum: values in the hundreds",
    edit(
        (
            "    loss = F.mse_loss(prediction, y)\n    return loss",
            "    loss = 100 * F.mse_loss(prediction, y)\n    return loss",
        )
    ),
    "tab",
    "forecast",
    want={"optimizer": "adam", "clip": False},
)
control(
    "negative_loss",
    "a likelihood with a density above one: the loss goes below zero",
    edit(
        (
            "    loss = F.mse_loss(prediction, y)\n    return loss",
            "    loss = F.mse_loss(prediction, y) / 0.02 / 2 + 0.5 * math.log(2 * math.pi * 0.02)\n    return loss",
        )
    ),
    "tab",
    "forecast",
    want={"optimizer": "adam", "clip": False},
)
control(
    "kl_warmup",
    "the KL term grows, and the loss with it",
    both(
        put(kl_weight=[0.05, 0.1]),
        edit(
            (
                "    loss = recon + cfg.kl_weight * kl\n    return loss",
                "    WARM.append(1)\n    loss = recon + cfg.kl_weight * min(1.0, len(WARM) / 400) * kl\n    return loss",
            ),
            (
                "class Net(nn.Module):",
                "WARM = []  # one entry a step: the KL term grows over the first 400\n\n\nclass Net(nn.Module):",
            ),
        ),
    ),
    "vae",
)
control(
    "log_softmax_twice",
    "log_softmax before cross_entropy changes nothing",
    edit(
        (
            "    logits = model(x)\n    loss = F.cross_entropy(logits, y",
            "    logits = model(x).log_softmax(1)\n    loss = F.cross_entropy(logits, y",
        )
    ),
    "cls",
    script="always",
)
control(
    "curriculum",
    "harder samples come later, so the training loss rises for a while",
    later(BATCH, BATCH + "\n            if step < AT:\n                batch[0] = batch[0] * 0.9", 0.2, 0.3),
    "tab",
    "distill",
    "moe",
    want={"optimizer": "adam"},
)
control(
    "batch_grows",
    "the batch doubles half-way",
    later(
        "            pick = order[start : start + cfg.batch_size]",
        "            size = cfg.batch_size if step >= AT else cfg.batch_size // 2\n            pick = order[start : start + size]",
        0.4,
        0.6,
    ),
    want={"per_epoch": False, "accum": 1},
)
control("weight_decay_mild", "a weight decay of 0.1, as is usual", put(weight_decay=0.1), want={"optimizer": "adamw"})
control(
    "long_after_ceiling",
    "goes on long after the score reached its ceiling",
    longer,
    "cls",
    "con",
    "ctc",
    "seg",
    "inr",
    want={"schedule": "cosine"},
)
control(
    "freeze_on_purpose",
    "only some adapters are trained, as planned",
    edit(("        layer.mlp[0], layer.mlp[2] = LoRA(layer.mlp[0]), LoRA(layer.mlp[2])\n", "")),
    "lora",
)
control(
    "shuffle_off_harmless",
    "not shuffled, but the order is random anyway",
    edit(("        order = torch.randperm(count)", "        order = torch.arange(count)")),
    "tab",
    "cls",
    "forecast",
    "rec",
    "s2s",
    "distill",
    want={"ema": False},
)
control("critic_steps", "the discriminator is trained twice a step", put(n_critic=2), "gan")
control(
    "two_timescales",
    "the discriminator's rate is a few times the generator's",
    both(put(n_critic=1), lambda d, _r: d.cfg.update(d_lr=3 * d.cfg["g_lr"])),
    "gan",
)
control("entropy_bonus", "a usual entropy bonus keeps the entropy up", put(ent_coef=0.02), "ppo")
control(
    "reward_scaled",
    "rewards are scaled, returns are logged unscaled",
    lambda d, _r: d.cfg.update(reward_scale=d.cfg["reward_scale"] * 0.5),
    "ppo",
    "dqn",
)
control("polyak_often", "the target network follows closely", put(target_update_interval=20), "dqn")
control(
    "sparse_log",
    "few rows are logged",
    lambda d, _r: d.cfg.update(log_every=4 * d.cfg["log_every"], eval_every=max(1, d.cfg["max_steps"] // 6)),
    want={"per_epoch": False},
)
control(
    "val_first_chaotic",
    "batch-norm statistics settle after the first evaluations",
    nothing,
    "cls",
    "seg",
    "det",
    want={"eval_first": True, "ema": False},
)
