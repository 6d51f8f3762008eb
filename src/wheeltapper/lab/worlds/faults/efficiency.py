"""Faults that cost time or memory, not learning."""

from __future__ import annotations

from wheeltapper.lab.worlds.faults.table import edit, fault, later, put

WATCHED = {"log_speed": True, "log_memory": True, "ema": False, "accum": 1, "autocast": False}
fault(
    "memory_leak",
    "code",
    "efficiency",
    "losses are kept with their graphs in a list that grows",
    "keep loss.item()",
    edit(
        (
            "            running.append(loss.item())",
            "            running.append(loss.item())\n            history.append((loss, batch, [p.detach().clone() for p in model.parameters()]))",
        ),
        ("    step, epoch, running = 0, 0, []", "    step, epoch, running = 0, 0, []\n    history = []"),
    ),
    "tab",
    "cls",
    "seg",
    "forecast",
    "gpt",
    "vae",
    "distill",
    "s2s",
    want=WATCHED,
    measure="memory",
    also=("throughput_decay",),
)
fault(
    "throughput_decay",
    "code",
    "efficiency",
    "a sum over the whole history with its graph is taken at every step",
    "a running mean of numbers",
    edit(
        (
            "            running.append(loss.item())",
            "            running.append(loss.item())\n            history.append(loss)\n            smooth = sum(history) / len(history)",
        ),
        ("    step, epoch, running = 0, 0, []", "    step, epoch, running = 0, 0, []\n    history = []"),
    ),
    "tab",
    "forecast",
    "vae",
    "distill",
    "inr",
    "rec",
    want=WATCHED,
    measure="speed",
    also=("memory_leak",),
)
fault(
    "slow_data_loader",
    "code",
    "efficiency",
    "samples are copied one by one and prepared in Python",
    "index the tensor",
    edit(
        (
            "            batch = [t[pick] for t in train_data]",
            "            began = time.perf_counter()\n            batch = [torch.stack([torch.tensor(t[i].numpy().tolist(), dtype=t.dtype) for i in pick.tolist()]) for t in train_data]\n            data_s = time.perf_counter() - began",
        ),
        (
            "            running.append(loss.item())",
            '            running.append(loss.item())\n            extra["data_time"] = data_s\n            extra["batch_time"] = time.perf_counter() - began',
        ),
    ),
    "cls",
    "det",
    "vae",
    "seg",
    want={**WATCHED, "log_memory": False},
    measure="speed",
)
fault(
    "eval_too_often",
    "setting",
    "efficiency",
    "the whole validation set is scored at almost every step",
    "evaluate every few percent of the run",
    put(eval_every=[1, 2]),
    "cls",
    "tab",
    "gpt",
    "seg",
    "det",
    want={**WATCHED, "per_epoch": False, "log_memory": False},
    measure="speed",
    also=("slow_data_loader",),
)
fault(
    "slow_from_step",
    "code",
    "efficiency",
    "from some step on a debug check walks through every weight",
    "drop the check",
    later(
        "            running.append(loss.item())",
        "            running.append(loss.item())\n            if step >= AT:\n                assert all(math.isfinite(v) for p in model.parameters() for v in p.reshape(-1)[:400].tolist())\n                _ = [p.detach().numpy().tolist() for p in model.parameters()]",
    ),
    "tab",
    "forecast",
    "vae",
    "distill",
    want={**WATCHED, "log_memory": False},
    measure="speed",
    cause="throughput_decay",
    also=("slow_data_loader", "slow_node"),
    script="never",
)
