"""What lies in the folder afterwards: the same rows in the files of many tools. Text logs are in `textlogs`."""

from __future__ import annotations

import csv
import io
import json
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from wheeltapper.lab.files import EventFile
from wheeltapper.lab.worlds.draw import Draw
from wheeltapper.lab.worlds.names import Names

Row = dict[str, Any]


@dataclass
class Record:
    """All that a writer needs of one run."""

    draw: Draw
    names: Names
    rows: list[Row]
    config: dict[str, Any]
    printed: str
    error: str | None
    r: random.Random
    begin: datetime
    pace: float  # seconds on the user's machine for one second here
    tail: str = ""  # what the script said at its end

    def when(self, row: Row) -> datetime:
        return self.begin + timedelta(seconds=row["clock"] * self.pace)

    def cells(self, row: Row) -> dict[str, float]:
        return {self.names.score(row["split"], key): value for key, value in row["values"].items()}

    @property
    def per_epoch(self) -> bool:
        return bool(self.draw.plan["per_epoch"])


Writer = Callable[[Record, Path], str]
WRITERS: dict[str, Writer] = {}


def writer(name: str) -> Callable[[Writer], Writer]:
    def keep(function: Writer) -> Writer:
        WRITERS[name] = function
        return function

    return keep


def plain(value: Any) -> Any:
    """JSON has no NaN in most tools; Python's own writer does."""
    return value if not isinstance(value, float) else float(f"{value:.6g}")


def dump_yaml(path: Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(data, sort_keys=False))


def table(rows: list[dict[str, Any]], first: list[str]) -> str:
    """A CSV over all columns that occur."""
    columns = list(dict.fromkeys([*first, *(key for row in rows for key in row)]))
    out = io.StringIO()
    sheet = csv.DictWriter(out, columns, restval="")
    sheet.writeheader()
    sheet.writerows(rows)
    return out.getvalue()


def by_epoch(record: Record) -> list[dict[str, Any]]:
    """One row per epoch with training and validation side by side."""
    merged: dict[int, dict[str, Any]] = {}
    for row in record.rows:
        merged.setdefault(row["epoch"], {"epoch": row["epoch"]}).update(record.cells(row))
    return [merged[key] for key in sorted(merged)]


@writer("jsonl")
def jsonl(record: Record, folder: Path) -> str:
    style = record.r.choice(["one", "two", "nested"])
    lines: dict[str, list[str]] = {}
    for row in record.rows:
        split = "val" if row["split"] == "val" else "train"
        name = {"one": "metrics.jsonl", "two": f"{split}_log.jsonl", "nested": "log.jsonl"}[style]
        cells = {k: plain(v) for k, v in record.cells(row).items()}
        body = {"step": row["step"], "epoch": row["epoch"], **cells}
        if style == "nested":
            body = {"step": row["step"], row["split"]: {k: plain(v) for k, v in row["values"].items()}}
        lines.setdefault(name, []).append(json.dumps(body))
    for name, content in lines.items():
        (folder / name).write_text("\n".join(content) + "\n")
    dump_yaml(folder / "config.yaml", record.config)
    return "step"


@writer("csv")
def plain_csv(record: Record, folder: Path) -> str:
    rows = [{"step": row["step"], **{k: plain(v) for k, v in record.cells(row).items()}} for row in record.rows]
    (folder / record.r.choice(["log.csv", "metrics.csv", "history.csv"])).write_text(table(rows, ["step"]))
    (folder / record.r.choice(["config.json", "params.json", "hparams.json"])).write_text(
        json.dumps(record.config, indent=2)
    )
    return "step"


@writer("lightning")
def lightning(record: Record, folder: Path) -> str:
    home = folder / "lightning_logs" / "version_0" if record.r.random() < 0.5 else folder
    home.mkdir(parents=True, exist_ok=True)
    rows = []
    for row in record.rows:
        cells = {k: plain(v) for k, v in record.cells(row).items()}
        rows.append({"epoch": row["epoch"], "step": max(0, row["step"] - 1), **cells})
    (home / "metrics.csv").write_text(table(rows, ["epoch", "step"]))
    dump_yaml(home / "hparams.yaml", record.config)
    return "step"


@writer("hf")
def hf(record: Record, folder: Path) -> str:
    per_epoch = record.draw.steps_per_epoch
    history = []
    for row in record.rows:
        head = "eval_" if row["split"] == "val" else ""
        rename = {"lr": "learning_rate"}
        body = {head + rename.get(k, k): plain(v) for k, v in row["values"].items()}
        history.append({"epoch": round(row["step"] / per_epoch, 4), **body, "step": row["step"]})
    total = record.draw.total_steps
    state = {
        "best_metric": None,
        "best_model_checkpoint": None,
        "epoch": history[-1]["epoch"] if history else 0,
        "eval_steps": record.config.get(record.names.setting("eval_every"), 500),
        "global_step": history[-1]["step"] if history else 0,
        "is_local_process_zero": True,
        "is_world_process_zero": True,
        "log_history": history,
        "logging_steps": record.config.get(record.names.setting("log_every"), 500),
        "max_steps": total,
        "num_train_epochs": math.ceil(total / per_epoch),
        "total_flos": 0,
        "train_batch_size": record.draw.cfg["batch_size"],
    }
    place = folder / f"checkpoint-{state['global_step']}" if record.r.random() < 0.4 else folder
    place.mkdir(exist_ok=True)
    (place / "trainer_state.json").write_text(json.dumps(state, indent=2))
    (folder / "training_args.json").write_text(json.dumps(hf_args(record), indent=2))
    return "step"


def hf_args(record: Record) -> dict[str, Any]:
    official = {
        "lr": "learning_rate", "batch_size": "per_device_train_batch_size", "schedule": "lr_scheduler_type",
        "grad_clip": "max_grad_norm", "epochs": "num_train_epochs", "adam_eps": "adam_epsilon",
        "log_every": "logging_steps", "eval_every": "eval_steps", "accum_steps": "gradient_accumulation_steps",
    }  # fmt: skip
    optimizer = {"adam": "adamw_torch", "adamw": "adamw_torch", "sgd": "sgd", "rmsprop": "rmsprop"}
    args = {"optim": optimizer[record.draw.plan["optimizer"]], "output_dir": "out"}
    return args | {official.get(key, key): value for key, value in record.draw.cfg.items()}


@writer("keras")
def keras(record: Record, folder: Path) -> str:
    rows = []
    for number, row in enumerate(by_epoch(record)):
        cells = {}
        for key, value in row.items():
            if key != "epoch":
                bare = key.split("/")[-1].removeprefix(record.names.train + "_")
                is_val = key.startswith(record.names.val) and record.names.val
                cells[f"val_{bare.removeprefix(record.names.val + '_')}" if is_val else bare] = plain(value)
        rows.append({"epoch": number, **cells})
    (folder / record.r.choice(["training.csv", "training_log.csv", "history.csv"])).write_text(table(rows, ["epoch"]))
    (folder / "config.json").write_text(json.dumps(record.config, indent=2))
    return "epoch0"


@writer("tb")
def tensorboard(record: Record, folder: Path) -> str:
    events = EventFile(folder, record.begin.timestamp(), record.r.choice(["gpu-node-3", "ws1", "c4e2a"]))
    for row in record.rows:
        events.scalars(row["step"], record.when(row).timestamp(), {k: float(v) for k, v in record.cells(row).items()})
    dump_yaml(folder / record.r.choice(["hparams.yaml", "config.yaml"]), record.config)
    return "step"


@writer("wandb")
def wandb(record: Record, folder: Path) -> str:
    stamp = record.begin.strftime("%Y%m%d_%H%M%S")
    code = "".join(record.r.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=8))
    files = folder / "wandb" / f"offline-run-{stamp}-{code}" / "files"
    dump_yaml(
        files / "config.yaml", {"wandb_version": 1, **{k: {"desc": None, "value": v} for k, v in record.config.items()}}
    )
    summary: dict[str, Any] = {}
    lines = []
    for row in record.rows:
        cells = {k: plain(v) for k, v in record.cells(row).items()}
        summary.update(cells, _step=row["step"], _timestamp=record.when(row).timestamp())
        lines.append(f"step {row['step']}: " + ", ".join(f"{k}={v:.4g}" for k, v in cells.items()))
    (files / "wandb-summary.json").write_text(json.dumps(summary))
    (files / "output.log").write_text(record.printed + "\n".join(lines) + "\n")
    meta = {
        "os": "Linux-5.15",
        "python": "3.11.9",
        "program": "train.py",
        "startedAt": record.begin.isoformat(),
        "gpu": "NVIDIA A100",
    }
    (files / "wandb-metadata.json").write_text(json.dumps(meta))
    return "step"


@writer("mlflow")
def mlflow(record: Record, folder: Path) -> str:
    run = "".join(record.r.choices("0123456789abcdef", k=32))
    home = folder / "mlruns" / "0" / run
    for part in ("metrics", "params", "tags", "artifacts"):
        (home / part).mkdir(parents=True, exist_ok=True)
    for key, value in record.config.items():
        (home / "params" / key).write_text(str(value))
    content: dict[str, list[str]] = {}
    for row in record.rows:
        for key, value in record.cells(row).items():
            name = key.replace("/", "_")
            content.setdefault(name, []).append(f"{int(record.when(row).timestamp() * 1000)} {value} {row['step']}")
    for name, lines in content.items():
        (home / "metrics" / name).write_text("\n".join(lines) + "\n")
    status = 4 if record.error else 3
    dump_yaml(
        home / "meta.yaml",
        {
            "experiment_id": "0",
            "run_id": run,
            "run_name": record.draw.family.words,
            "status": status,
            "start_time": int(record.begin.timestamp() * 1000),
        },
    )
    return "step"


@writer("sb3")
def sb3(record: Record, folder: Path) -> str:
    """stable-baselines3: progress.csv and the settings."""
    rows = []
    for number, row in enumerate(record.rows, 1):
        head = {
            "time/iterations": number,
            "time/total_timesteps": row["step"],
            "time/time_elapsed": int(row["clock"] * record.pace),
        }
        rows.append({**head, **sb3_cells(row)})
    (folder / "progress.csv").write_text(table(rows, []))
    dump_yaml(folder / record.r.choice(["config.yml", "args.yml"]), record.config)
    return "step"


def sb3_cells(row: Row) -> dict[str, Any]:
    rollout = ("ep_rew_mean", "ep_len_mean", "exploration_rate")
    return {("rollout/" if k in rollout else "train/") + k: plain(v) for k, v in row["values"].items() if v == v}


@writer("sb3_console")
def sb3_console(record: Record, folder: Path) -> str:
    lines = ["Using cpu device", "Wrapping the env in a DummyVecEnv."]
    for number, row in enumerate(record.rows, 1):
        cells = sb3_cells(row)
        cells |= {
            "time/iterations": number,
            "time/total_timesteps": row["step"],
            "time/time_elapsed": int(row["clock"] * record.pace),
        }
        lines.append("-" * 45)
        for group in ("rollout", "time", "train"):
            lines.append(f"| {group + '/':<25}|{'':<16}|")
            lines += [f"|    {k.split('/')[1]:<22}| {v:<15.4g}|" for k, v in cells.items() if k.startswith(group)]
        lines.append("-" * 45)
    (folder / record.r.choice(["train.log", "stdout.txt", "console.log"])).write_text("\n".join(lines) + "\n")
    dump_yaml(folder / "config.yaml", record.config)
    return "step"


@writer("monitor")
def monitor(record: Record, folder: Path) -> str:
    """Gym monitor style beside a JSON of settings: returns and lengths, with the learner's own CSV."""
    head = json.dumps({"t_start": record.begin.timestamp(), "env_id": record.draw.cfg["env_id"]})
    rows = [row["values"] for row in record.rows if row["values"]["ep_rew_mean"] == row["values"]["ep_rew_mean"]]
    clocks = [row["clock"] * record.pace for row in record.rows]
    lines = [f"{v['ep_rew_mean']:.6f},{int(v['ep_len_mean'])},{t:.3f}" for v, t in zip(rows, clocks, strict=False)]
    (folder / "monitor.csv").write_text(f"#{head}\nr,l,t\n" + "\n".join(lines) + "\n")
    learner = [{"timesteps": row["step"], **{k: plain(v) for k, v in row["values"].items()}} for row in record.rows]
    (folder / "progress.csv").write_text(table(learner, ["timesteps"]))
    (folder / "config.json").write_text(json.dumps(record.config, indent=2))
    return "step"


@writer("hydra")
def hydra(record: Record, folder: Path) -> str:
    dump_yaml(folder / ".hydra" / "config.yaml", record.config)
    changed = record.r.sample(sorted(record.config), 2)
    (folder / ".hydra" / "overrides.yaml").write_text("".join(f"- {k}={record.config[k]}\n" for k in changed))
    lines = []
    for row in record.rows:
        cells = " ".join(f"{k}={v:.5g}" for k, v in record.cells(row).items())
        stamp = record.when(row).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
        lines.append(f"[{stamp}][__main__][INFO] - step={row['step']} {cells}")
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    return "step"


@writer("notebook")
def notebook(record: Record, folder: Path) -> str:
    """The output cell of a notebook; the code cell holds the settings, or the whole script where it is kept."""
    settings = "config = " + json.dumps(record.config, indent=4).replace("true", "True").replace(
        "false", "False"
    ).replace("null", "None")
    lines = [record.printed] if record.printed else []
    for row in record.rows:
        cells = ", ".join(f"{k} {v:.4f}" for k, v in record.cells(row).items())
        lines.append(f"{row['split']} step {row['step']}: {cells}\n")
    book_cells = [
        {"cell_type": "markdown", "metadata": {}, "source": [f"# {record.draw.family.words}\n"]},
        {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [], "source": settings.splitlines(True)},
        {
            "cell_type": "code", "execution_count": 2, "metadata": {}, "source": ["main()"],
            "outputs": [{"name": "stdout", "output_type": "stream", "text": lines}],
        },
    ]  # fmt: skip
    book = {
        "cells": book_cells,
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    (folder / record.r.choice(["train.ipynb", "experiment.ipynb", "Untitled.ipynb"])).write_text(
        json.dumps(book, indent=1)
    )
    return "step"
