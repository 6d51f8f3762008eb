"""The part of a training script that most families share: optimizer, schedule, loop, as a person writes it."""

from __future__ import annotations

from typing import Any

SPLIT = '''
def split(*tensors):
    """The first n_train samples train, the rest validate."""
    order = torch.randperm(len(tensors[0]), generator=torch.Generator().manual_seed(cfg.data_seed))
    tensors = [t[order] for t in tensors]
    return [t[: cfg.n_train] for t in tensors], [t[cfg.n_train :] for t in tensors]
'''

OPTIMIZERS = {
    "adam": "torch.optim.Adam(model.parameters(), lr=cfg.lr, eps=cfg.adam_eps)",
    "adamw": "torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay, eps=cfg.adam_eps)",
    "sgd": "torch.optim.SGD(model.parameters(), lr=cfg.lr, momentum=cfg.momentum, weight_decay=cfg.weight_decay)",
    "rmsprop": "torch.optim.RMSprop(model.parameters(), lr=cfg.lr)",
}

SCHEDULES = {
    "constant": ["    return 1.0"],
    "cosine": [
        "    progress = (step - cfg.warmup_steps) / max(1, cfg.decay_steps - cfg.warmup_steps)",
        "    return 0.5 * (1 + math.cos(math.pi * progress))",
    ],
    "linear": [
        "    progress = (step - cfg.warmup_steps) / max(1, cfg.decay_steps - cfg.warmup_steps)",
        "    return max(0.0, 1.0 - progress)",
    ],
    "multistep": ["    return cfg.lr_gamma ** sum(step >= m for m in cfg.milestones)"],
    "restarts": [
        "    progress = (step - cfg.warmup_steps) % cfg.restart_every / cfg.restart_every",
        "    return 0.5 * (1 + math.cos(math.pi * progress))",
    ],
    "invsqrt": ["    return math.sqrt((cfg.warmup_steps + 1) / (step + 1))"],
}


def schedule_text(plan: dict[str, Any]) -> str:
    lines = ["def lr_factor(step):", f'    """Warmup, then {plan["schedule"]}."""']
    lines += ["    if step < cfg.warmup_steps:", "        return (step + 1) / cfg.warmup_steps"]
    return "\n".join(lines + SCHEDULES[plan["schedule"]])


def before_loop(plan: dict[str, Any]) -> list[str]:
    lines = [
        "torch.manual_seed(cfg.seed)",
        "np.random.seed(cfg.seed)",
        "train_data, val_data = build_data()",
        "model = build_model()",
        f"optimizer = {OPTIMIZERS[plan['optimizer']]}",
    ]
    if plan["schedule"] == "plateau":
        lines.append(
            "scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau("
            "optimizer, mode=cfg.plateau_mode, factor=cfg.plateau_factor, patience=cfg.plateau_patience)"
        )
    else:
        lines.append("scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_factor)")
    if plan["ema"]:
        lines.append("averaged = copy.deepcopy(model)")
    lines += ["count = len(train_data[0])", "step, epoch, running = 0, 0, []"]
    if plan["early_stop"]:
        lines.append("best, bad = None, 0")
    if plan["resume"]:
        lines += [
            "if cfg.resume:",
            '    state = torch.load("last.pt")',
            '    model.load_state_dict(state["model"])',
            '    optimizer.load_state_dict(state["optimizer"])',
            '    scheduler.load_state_dict(state["scheduler"])',
            '    step, epoch = state["step"], state["epoch"]',
            '    print(f"Resumed from last.pt at step {step}")',
        ]
    if plan["eval_first"]:
        lines.append('log_metrics("val", step, epoch, evaluate(model, val_data))')
    return lines


def step_lines(plan: dict[str, Any]) -> list[str]:
    """One update, from the batch to the scheduler."""
    lines = [
        "pick = order[start : start + cfg.batch_size]",
        "batch = [t[pick] for t in train_data]",
        "model.train()",
    ]
    clip = plan["clip"]
    if plan["accum"] > 1:
        lines += [
            "optimizer.zero_grad()",
            "for part in zip(*(t.chunk(cfg.accum_steps) for t in batch)):",
            "    loss, extra = compute_loss(model, list(part))",
            "    (loss / cfg.accum_steps).backward()",
        ]
    elif plan["autocast"]:
        lines += [
            'with torch.autocast("cpu", dtype=torch.bfloat16):',
            "    loss, extra = compute_loss(model, batch)",
            "optimizer.zero_grad()",
            "loss.backward()",
        ]
    else:
        lines += ["loss, extra = compute_loss(model, batch)", "optimizer.zero_grad()", "loss.backward()"]
    if clip:
        lines.append("grad_norm = nn.utils.clip_grad_norm_(model.parameters(), cfg.grad_clip)")
    elif plan["log_grad_norm"]:
        lines.append(
            "grad_norm = torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm()"
        )
    lines.append("optimizer.step()")
    if plan["schedule"] != "plateau":
        lines.append("scheduler.step()")
    if plan["ema"]:
        lines += [
            "with torch.no_grad():",
            "    for slow, fast in zip(averaged.parameters(), model.parameters()):",
            "        slow.lerp_(fast, 1 - cfg.ema_decay)",
            "    for slow, fast in zip(averaged.buffers(), model.buffers()):",
            "        slow.copy_(fast)",
        ]
    return [*lines, "step += 1", "running.append(loss.item())"]


def train_row(plan: dict[str, Any]) -> list[str]:
    row = ['"loss": sum(running) / len(running)', '"lr": optimizer.param_groups[0]["lr"]']
    if plan["clip"] or plan["log_grad_norm"]:
        row.append('"grad_norm": float(grad_norm)')
    if plan["log_speed"]:
        row.append('"samples_per_s": len(running) * cfg.batch_size / (time.perf_counter() - tick)')
    if plan["log_memory"]:
        row.append('"mem_mb": memory_mb()')
    lines = [f"row = {{{', '.join(row)}, **extra}}", 'log_metrics("train", step, epoch, row)', "running = []"]
    if plan["log_speed"]:
        lines.append("tick = time.perf_counter()")
    return lines


def eval_lines(plan: dict[str, Any]) -> list[str]:
    who = "averaged" if plan["ema"] else "model"
    lines = [f"scores = evaluate({who}, val_data)", 'log_metrics("val", step, epoch, scores)']
    if plan["schedule"] == "plateau":
        lines.append("scheduler.step(scores[cfg.monitor])")
    if plan["resume"]:
        lines += [
            'state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), '
            '"scheduler": scheduler.state_dict(), "step": step, "epoch": epoch}',
            'torch.save(state, "last.pt")',
        ]
    if plan["early_stop"]:
        lines += [
            "score = scores[cfg.monitor]",
            'improved = best is None or (score < best if cfg.monitor_mode == "min" else score > best)',
            "best, bad = (score, 0) if improved else (best, bad + 1)",
            "if bad >= cfg.patience:",
            '    print(f"Early stopping at step {step}: {cfg.monitor} did not improve for {bad} evaluations")',
            "    return",
        ]
    return lines


def indent(lines: list[str], depth: int) -> list[str]:
    return ["    " * depth + line for line in lines]


def loop_text(plan: dict[str, Any]) -> str:
    per_epoch = plan["per_epoch"]
    limit = "epoch < cfg.epochs" if per_epoch else "step < cfg.max_steps"
    body = ["def main():", *indent(before_loop(plan), 1)]
    if plan["log_speed"]:
        body.append("    tick = time.perf_counter()")
    body += [f"    while {limit}:", "        order = torch.randperm(count)"]
    body.append("        for start in range(0, count - cfg.batch_size + 1, cfg.batch_size):")
    body += indent(step_lines(plan), 3)
    if per_epoch:
        body += ["        epoch += 1", *indent(train_row(plan), 2), *indent(eval_lines(plan), 2)]
    else:
        body += ["            if step % cfg.log_every == 0:", *indent(train_row(plan), 4)]
        body += ["            if step % cfg.eval_every == 0 or step == cfg.max_steps:", *indent(eval_lines(plan), 4)]
        body += ["            if step >= cfg.max_steps:", "                break", "        epoch += 1"]
    return "\n".join(body) + '\n\n\nif __name__ == "__main__":\n    main()\n'


MEMORY = '''
def memory_mb():
    """Resident memory of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6
'''
