"""Faults of the loop: what is called when, and on what."""

from __future__ import annotations

from wheeltapper.lab.worlds.faults.table import SGD, SGD_FAMILIES, both, edit, fault, put

fault(
    "zero_grad_missing",
    "code",
    "code",
    "gradients are never cleared and pile up",
    "optimizer.zero_grad() every step",
    edit(("            optimizer.zero_grad()\n            loss.backward()", "            loss.backward()")),
    want={"clip": False, "accum": 1, "autocast": False},
    also=("lr_too_high",),
)
fault(
    "accumulation_not_divided",
    "code",
    "code",
    "the accumulated loss is summed, not averaged",
    "divide by accum_steps",
    both(put(accum_steps=8), edit(("(loss / cfg.accum_steps).backward()", "loss.backward()"))),
    *SGD_FAMILIES,
    want={**SGD, "accum": 8, "clip": False},
    also=("lr_too_high",),
)
fault(
    "params_not_in_optimizer",
    "code",
    "code",
    "only the head is given to the optimizer",
    "model.parameters()",
    edit(("(model.parameters(), lr", "(model.head.parameters(), lr")),
    "tab",
    "cls",
    "seg",
    "det",
    "ctc",
    "forecast",
    "gnn",
    "inr",
    "gpt",
    "mlm",
    "s2s",
    "moe",
    "distill",
    "con",
    also=("frozen_parameters",),
)
fault(
    "frozen_parameters",
    "code",
    "code",
    "the features are cut from the graph, only the head learns",
    "no detach",
    edit(("self.head(h)", "self.head(h.detach())")),
    "tab",
    "cls",
    "seg",
    "det",
    "ctc",
    "forecast",
    "gnn",
    "inr",
    "gpt",
    "mlm",
    "s2s",
    "con",
    also=("params_not_in_optimizer",),
)
fault(
    "step_once_per_epoch",
    "code",
    "code",
    "optimizer.step() stands outside the inner loop",
    "step inside the loop",
    edit(
        ("            optimizer.step()\n", ""), ("        epoch += 1", "        optimizer.step()\n        epoch += 1")
    ),
    want={"per_epoch": True, "schedule": "constant", "ema": False},
    cause="accumulation_not_done",
    also=("too_few_updates", "lr_too_low", "step_once_per_epoch"),
)
fault(
    "same_batch_repeated",
    "code",
    "data",
    "every step takes the first batch",
    "walk through the order",
    edit(("pick = order[start : start + cfg.batch_size]", "pick = torch.arange(count)[: cfg.batch_size]")),
    also=("overfitting", "data_not_shuffled"),
)
fault(
    "data_not_shuffled",
    "code",
    "data",
    "sorted by target and never shuffled",
    "shuffle every epoch",
    edit(
        ("        order = torch.randperm(count)", "        order = torch.arange(count)"),
        (
            "    tensors = [t[order] for t in tensors]\n",
            "    tensors = [t[order] for t in tensors]\n    by_target = torch.argsort(tensors[-1][: cfg.n_train])\n    tensors = [torch.cat([t[by_target], t[cfg.n_train :]]) for t in tensors]\n",
        ),
    ),
    "cls",
    "tab",
    "distill",
    "moe",
    "rec",
    want={"per_epoch": True},
)
fault(
    "optimizer_recreated",
    "code",
    "code",
    "a new optimizer every step: no momentum, no second moment",
    "make the optimizer once",
    edit(
        (
            "            optimizer.zero_grad()\n",
            '            optimizer = torch.optim.Adam(model.parameters(), lr=optimizer.param_groups[0]["lr"])\n            optimizer.zero_grad()\n',
        )
    ),
    want={"optimizer": "adam", "schedule": "constant", "accum": 1, "ema": False},
    script="always",
    also=("lr_too_high",),
)
fault(
    "wrong_loss_sign",
    "code",
    "code",
    "the loss is maximised",
    "minimise it",
    edit(("            loss.backward()", "            (-loss).backward()")),
    want={"accum": 1, "autocast": False, "clip": True},
    also=("lr_too_high",),
)
fault(
    "stuck_eval_mode",
    "code",
    "code",
    "after the first evaluation the model never returns to train mode",
    "model.train() every step",
    edit(
        ("            model.train()\n", ""),
        ("    step, epoch, running = 0, 0, []", "    step, epoch, running = 0, 0, []\n    model.train()"),
    ),
    "cls",
    "seg",
    "det",
    "con",
    want={"ema": False},
    script="always",
)
fault(
    "grad_noise",
    "code",
    "learning",
    "noise is added to the gradient at every step and never fades",
    "no noise",
    edit(
        (
            "            optimizer.step()\n",
            "            for parameter in model.parameters():\n                if parameter.grad is not None:\n                    parameter.grad += 0.5 * torch.randn_like(parameter)\n            optimizer.step()\n",
        )
    ),
    want={"optimizer": "adam"},
    also=("lr_too_high", "labels_shuffled"),
)
fault(
    "clip_value_tiny",
    "code",
    "learning",
    "each gradient element is clamped to almost nothing",
    "clip the norm",
    edit(
        (
            "            optimizer.step()\n",
            "            nn.utils.clip_grad_value_(model.parameters(), 1e-6)\n            optimizer.step()\n",
        )
    ),
    *SGD_FAMILIES,
    want={**SGD, "clip": False},
    cause="clip_too_small",
)
fault(
    "ema_never_updated",
    "code",
    "evaluation",
    "the averaged model is evaluated and never updated",
    "update the average",
    edit(("                    slow.lerp_(fast, 1 - cfg.ema_decay)", "                    slow.lerp_(fast, 0.0)")),
    want={"ema": True},
    cause="ema_horizon_too_long",
    also=("ema_never_updated", "option_not_wired"),
)
fault(
    "ema_buffers_stale",
    "code",
    "evaluation",
    "the average keeps the batch-norm statistics of the start",
    "copy the buffers",
    edit(
        (
            "                for slow, fast in zip(averaged.buffers(), model.buffers()):\n                    slow.copy_(fast)\n",
            "",
        )
    ),
    "cls",
    "seg",
    "det",
    "con",
    want={"ema": True},
)
fault(
    "resume_lost_optimizer",
    "code",
    "schedule",
    "resumed without the optimizer's state",
    "load the optimizer's state",
    edit(
        ('        optimizer.load_state_dict(state["optimizer"])\n', ""),
        (
            '        scheduler.load_state_dict(state["scheduler"])\n',
            '        for group in optimizer.param_groups:\n            group["lr"] = 5 * cfg.lr\n',
        ),
    ),
    want={"resume": True, "optimizer": "adam", "schedule": "cosine"},
    also=("schedule_restarted_on_resume", "lr_too_high"),
)
fault(
    "schedule_restarted_on_resume",
    "code",
    "schedule",
    "after the resume the schedule begins anew",
    "load the scheduler's state",
    edit(('        scheduler.load_state_dict(state["scheduler"])\n', "")),
    want={"resume": True, "optimizer": "adam", "schedule": "cosine"},
    also=("resume_lost_optimizer",),
)
fault(
    "stale_resume",
    "code",
    "code",
    "the resume forgets the weights and starts from new ones",
    "load the weights",
    edit(('        model.load_state_dict(state["model"])\n', "")),
    want={"resume": True, "optimizer": "adam", "schedule": "cosine"},
    also=("resume_lost_optimizer",),
)
