"""The script as it lies in the folder: settings, logger and training, in the words of the run."""

from __future__ import annotations

import random
from typing import Any

from wheeltapper.lab.worlds.names import Names
from wheeltapper.lab.worlds.script import IMPORTS

LOGGERS = {
    "tb": 'from torch.utils.tensorboard import SummaryWriter\n\nwriter = SummaryWriter("runs")\n\n\ndef log_metrics(split, step, epoch, values):\n    for name, value in values.items():\n        writer.add_scalar(f"{split}/{name}", value, step)\n',
    "wandb": 'import wandb\n\nwandb.init(mode="offline", config=vars(CFG))\n\n\ndef log_metrics(split, step, epoch, values):\n    wandb.log({f"{split}/{name}": value for name, value in values.items()}, step=step)\n',
    "mlflow": 'import mlflow\n\n\ndef log_metrics(split, step, epoch, values):\n    mlflow.log_metrics({f"{split}_{name}": value for name, value in values.items()}, step=step)\n',
    "jsonl": 'import json\n\n\ndef log_metrics(split, step, epoch, values):\n    with open("metrics.jsonl", "a") as file:\n        file.write(json.dumps({"step": step, "epoch": epoch, **{f"{split}_{k}": v for k, v in values.items()}}) + "\\n")\n',
    "csv": 'ROWS = []\n\n\ndef log_metrics(split, step, epoch, values):\n    ROWS.append({"step": step, **{f"{split}_{k}": v for k, v in values.items()}})\n    columns = sorted({key for row in ROWS for key in row})\n    with open("log.csv", "w") as file:\n        file.write(",".join(columns) + "\\n")\n        for row in ROWS:\n            file.write(",".join(str(row.get(c, "")) for c in columns) + "\\n")\n',
    "logging": 'import logging\n\nlogging.basicConfig(format="%(asctime)s - %(name)s - %(levelname)s - %(message)s", level=logging.INFO)\nlogger = logging.getLogger(__name__)\n\n\ndef log_metrics(split, step, epoch, values):\n    logger.info("%s step %d %s", split, step, " ".join(f"{k}={v:.4f}" for k, v in values.items()))\n',
    "print": 'def log_metrics(split, step, epoch, values):\n    print(f"{split} epoch {epoch} step {step} | " + " | ".join(f"{k} {v:.4f}" for k, v in values.items()), flush=True)\n',
}
LIKE = {
    "lightning": "csv", "keras": "csv", "sb3": "csv", "monitor": "csv", "hf": "jsonl", "hydra": "logging",
    "loguru": "logging", "fairseq": "logging",
}  # fmt: skip


def settings_text(names: Names, cfg: dict[str, Any], r: random.Random) -> str:
    """How a script gets its settings: argparse, a class, or a namespace."""
    written = names.config(cfg)
    simple = not any(isinstance(v, list) for v in written.values())
    if names.object in ("args", "opt") and simple:
        lines = ["import argparse", "", "parser = argparse.ArgumentParser()"]
        for key, value in written.items():
            kind = 'action="store_true"' if value is False else f"type={type(value).__name__}, default={value!r}"
            if value is True:
                kind = "type=bool, default=True"
            lines.append(f'parser.add_argument("--{key}", {kind})')
        lines.append(f"{names.object} = parser.parse_args()")
        return "\n".join(lines) + "\n"
    if r.random() < 0.5:
        lines = ["class Config:", *(f"    {key} = {value!r}" for key, value in written.items())]
        return "\n".join(lines) + f"\n\n\n{names.object} = Config()\n"
    inside = "".join(f"    {key}={value!r},\n" for key, value in written.items())
    return f"from types import SimpleNamespace\n\n{names.object} = SimpleNamespace(\n{inside})\n"


def script_text(body: str, names: Names, cfg: dict[str, Any], fmt: str, words: str, r: random.Random) -> str:
    logger = LOGGERS[LIKE.get(fmt, fmt if fmt in LOGGERS else "print")].replace("CFG", names.object)
    head = f'"""Train: {words}."""\n\n' + "\n".join(IMPORTS) + "\n\n"
    return head + settings_text(names, cfg, r) + "\n\n" + logger + "\n\n" + names.script(body)
