"""Logs that people print: bars, timestamps, tables, other languages, batch systems."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from wheeltapper.lab.worlds.writers import Record, Row, by_epoch, dump_yaml, writer

WARNINGS = [
    "/opt/conda/lib/python3.11/site-packages/torch/nn/modules/module.py:1511: FutureWarning: `resume_download` is deprecated\n  warnings.warn(",
    "UserWarning: The given NumPy array is not writable, and PyTorch does not support non-writable tensors.",
    "WARNING: Logging before InitGoogleLogging() is written to STDERR",
    "srun: job step aborted: Waiting up to 32 seconds for job step to finish.",
]


def short(values: dict[str, Any], joint: str = " | ", form: str = "{k} {v}") -> str:
    def number(v: float) -> str:
        return f"{v:.2e}" if v == v and v != 0 and abs(v) < 1e-3 else f"{v:.4f}"

    return joint.join(form.format(k=k, v=number(v)) for k, v in values.items())


def head_with_settings(record: Record) -> list[str]:
    """Settings at the top of a log, in one of the ways people print them."""
    way = record.r.choice(["namespace", "list", "json"])
    if way == "namespace":
        return ["Namespace(" + ", ".join(f"{k}={v!r}" for k, v in sorted(record.config.items())) + ")"]
    if way == "json":
        return [json.dumps(record.config, indent=2)]
    width = max(map(len, record.config))
    return ["-------- options --------", *(f"{k:>{width}}: {v}" for k, v in record.config.items()), "-" * 25]


def save(record: Record, folder: Path, lines: list[str], *names: str) -> None:
    tail = (
        [f'Traceback (most recent call last):\n  File "train.py", line 1, in <module>\n    main()\n{record.error}']
        if record.error and record.error != "stopped"
        else []
    )
    (folder / record.r.choice(names)).write_text("\n".join([*lines, *record.tail.splitlines(), *tail]) + "\n")


@writer("print")
def simple_print(record: Record, folder: Path) -> str:
    lines = [*head_with_settings(record), *record.printed.splitlines()]
    style = record.r.choice(["bar", "colon", "iter", "nano"])
    total = record.draw.total_steps
    for row in record.rows:
        cells = record.cells(row)
        if style == "bar":
            lines.append(f"step {row['step']:6d} | {short(cells)}")
        elif style == "colon":
            lines.append(f"[{row['step']}/{total}] {short(cells, ', ', '{k}: {v}')}")
        elif style == "nano":
            lines.append(f"{'step' if row['split'] == 'val' else 'iter'} {row['step']}: {short(cells, ', ')}")
        else:
            lines.append(f"Iter {row['step']}  {short(cells, '  ', '{k}={v}')}")
    save(record, folder, lines, "train.log", "log.txt", "nohup.out", "output.txt")
    return "step"


@writer("logging")
def python_logging(record: Record, folder: Path) -> str:
    logger = record.r.choice(["root", "__main__", "trainer", "engine.train"])
    lines = []

    def say(row: Row | None, text: str) -> None:
        when = (record.when(row) if row else record.begin).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
        lines.append(f"{when} - {logger} - INFO - {text}")

    for line in head_with_settings(record)[0].splitlines():
        say(None, line)
    for line in record.printed.splitlines():
        say(None, line)
    for row in record.rows:
        what = "Validation" if row["split"] == "val" else "Training"
        say(row, f"{what} step {row['step']} {short(record.cells(row), ' ', '{k}={v}')}")
    save(record, folder, lines, "train.log", "run.log", "experiment.log")
    dump_yaml(folder / "config.yaml", record.config)
    return "step"


@writer("tqdm")
def tqdm(record: Record, folder: Path) -> str:
    """Bars that overwrite themselves, one per epoch or one for all."""
    out = "\n".join([*head_with_settings(record), *record.printed.splitlines()]) + "\n"
    total = record.draw.total_steps
    for row in record.rows:
        cells = short(record.cells(row), ", ", "{k}={v}")
        if row["split"] == "val":
            out += f"\nstep {row['step']} {cells}\n"
            continue
        share = row["step"] / total
        bar = "█" * int(20 * share) + " " * (20 - int(20 * share))
        spent = int(row["clock"] * record.pace)
        rate = row["step"] / max(1e-3, row["clock"] * record.pace)
        out += f"\rTraining: {100 * share:3.0f}%|{bar}| {row['step']}/{total} [{spent // 60:02d}:{spent % 60:02d}<{0:02d}:00, {rate:.2f}it/s, {cells}]"
    (folder / record.r.choice(["stderr.log", "train.log", "nohup.out"])).write_text(out + "\n")
    (folder / "config.json").write_text(json.dumps(record.config, indent=1))
    return "step"


@writer("rich")
def rich_table(record: Record, folder: Path) -> str:
    lines = [*head_with_settings(record), *record.printed.splitlines()]
    columns = ["step", *dict.fromkeys(k for row in record.rows for k in record.cells(row))]
    lines += ["┏" + "┳".join("━" * 14 for _ in columns) + "┓", "┃" + "┃".join(f" {c[:12]:<12} " for c in columns) + "┃"]
    lines.append("┡" + "╇".join("━" * 14 for _ in columns) + "┩")
    for row in record.rows:
        cells: dict[str, Any] = {"step": row["step"], **record.cells(row)}
        texts = [f"{cells[c]:.5g}" if c in cells else "" for c in columns]
        lines.append("│" + "│".join(f" {t:<12} " for t in texts) + "│")
    lines.append("└" + "┴".join("─" * 14 for _ in columns) + "┘")
    save(record, folder, lines, "console.txt", "train.log")
    dump_yaml(folder / "config.yaml", record.config)
    return "step"


WORDS = {
    "de": {
        "step": "Schritt",
        "loss": "Verlust",
        "lr": "Lernrate",
        "acc": "Genauigkeit",
        "val": "Validierung",
        "train": "Training",
        "epoch": "Epoche",
        "grad_norm": "Gradientennorm",
    },
    "es": {
        "step": "Paso",
        "loss": "pérdida",
        "lr": "tasa",
        "acc": "exactitud",
        "val": "validación",
        "train": "entrenamiento",
        "epoch": "Época",
        "grad_norm": "norma_grad",
    },
    "zh": {
        "step": "步数",
        "loss": "损失",
        "lr": "学习率",
        "acc": "准确率",
        "val": "验证",
        "train": "训练",
        "epoch": "轮次",
        "grad_norm": "梯度范数",
    },
    "fr": {
        "step": "Étape",
        "loss": "perte",
        "lr": "taux",
        "acc": "précision",
        "val": "validation",
        "train": "entraînement",
        "epoch": "Époque",
        "grad_norm": "norme_grad",
    },
    "ru": {
        "step": "Шаг",
        "loss": "потери",
        "lr": "скорость",
        "acc": "точность",
        "val": "валидация",
        "train": "обучение",
        "epoch": "Эпоха",
        "grad_norm": "норма",
    },
}


@writer("tongue")
def other_language(record: Record, folder: Path) -> str:
    words = WORDS[record.r.choice(sorted(WORDS))]
    lines = list(record.printed.splitlines())
    for row in record.rows:
        split = words["val"] if row["split"] == "val" else words["train"]
        cells = short({words.get(k, k): v for k, v in row["values"].items()}, ", ", "{k}: {v}")
        if record.per_epoch:
            lines.append(f"{words['epoch']} {row['epoch']} [{split}] {cells}")
        else:
            lines.append(f"{words['step']} {row['step']} [{split}] {cells}")
    save(record, folder, lines, "train.log", "ausgabe.txt", "log.txt")
    (folder / "config.json").write_text(json.dumps(record.config, indent=2))
    return "epoch" if record.per_epoch else "step"


@writer("imagenet")
def imagenet(record: Record, folder: Path) -> str:
    """Epoch: [3][20/50] with the value and its mean in brackets."""
    lines = [*head_with_settings(record), *record.printed.splitlines()]
    per = record.draw.steps_per_epoch
    for row in record.rows:
        cells = dict(row["values"])
        if row["split"] == "val":
            lines.append(" * " + short(cells, " ", "{k} {v}"))
        else:
            inside = "\t".join(f"{k.capitalize()} {v:.4e} ({v:.4e})" for k, v in cells.items())
            at = row["step"] - (row["epoch"] - (1 if record.per_epoch else 0)) * per
            lines.append(f"Epoch: [{row['epoch']}][{at:4d}/{per}]\t{inside}")
    save(record, folder, lines, "log.txt", "train.out", "nohup.out")
    return "epoch" if record.per_epoch else "step"


@writer("keras_console")
def keras_console(record: Record, folder: Path) -> str:
    lines = [*head_with_settings(record), *record.printed.splitlines()]
    total = record.draw.cfg["epochs"]
    per = record.draw.steps_per_epoch
    for row in by_epoch(record):
        cells = {k: v for k, v in row.items() if k != "epoch"}
        lines += [f"Epoch {row['epoch']}/{total}", f"{per}/{per} - 2s - {short(cells, ' - ', '{k}: {v}')}"]
    save(record, folder, lines, "train.log", "keras.log", "out.txt")
    return "epoch"


@writer("epoch_print")
def epoch_print(record: Record, folder: Path) -> str:
    lines = [*head_with_settings(record), *record.printed.splitlines()]
    style = record.r.choice(["pipe", "bracket", "pad"])
    total = record.draw.cfg["epochs"]
    for row in by_epoch(record):
        cells = {k: v for k, v in row.items() if k != "epoch"}
        head = {
            "pipe": f"epoch {row['epoch']:03d}",
            "bracket": f"[Epoch {row['epoch']}/{total}]",
            "pad": f"Ep {row['epoch']:>4}",
        }[style]
        lines.append(f"{head} | {short(cells)}" if style == "pipe" else f"{head} {short(cells, ', ', '{k}={v}')}")
    save(record, folder, lines, "log.txt", "train.log", "out.log")
    if record.r.random() < 0.5:
        dump_yaml(folder / "config.yaml", record.config)
    return "epoch"


@writer("slurm")
def slurm(record: Record, folder: Path) -> str:
    job = record.r.randint(100000, 999999)
    lines = [
        f"Job {job} on gpu{record.r.randint(1, 40):03d} started {record.begin:%a %b %d %H:%M:%S UTC %Y}",
        "module load cuda/12.1",
    ]
    lines += [
        "+ python train.py " + " ".join(f"--{k} {v}" for k, v in record.config.items()),
        record.r.choice(WARNINGS[:3]),
    ]
    lines += record.printed.splitlines()
    for row in record.rows:
        if record.r.random() < 0.01:
            lines.append(record.r.choice(WARNINGS[:2]))
        lines.append(
            f"{record.when(row):%H:%M:%S} {row['split']:<5} step {row['step']:>6} {short(record.cells(row), ' ', '{k} {v}')}"
        )
    if record.error == "stopped":
        lines.append(
            f"slurmstepd: error: *** JOB {job} CANCELLED AT {record.when(record.rows[-1]):%Y-%m-%dT%H:%M:%S} DUE TO TIME LIMIT ***"
        )
    save(record, folder, lines, f"slurm-{job}.out")
    return "step"


@writer("hf_console")
def hf_console(record: Record, folder: Path) -> str:
    """The dictionaries that the transformers trainer prints, between its bars."""
    lines = [*record.printed.splitlines()]
    per = record.draw.steps_per_epoch
    for row in record.rows:
        head = "eval_" if row["split"] == "val" else ""
        body = {head + {"lr": "learning_rate"}.get(k, k): float(f"{v:.5g}") for k, v in row["values"].items()}
        lines.append(str({**body, "epoch": round(row["step"] / per, 2), "step": row["step"]}))
    save(record, folder, lines, "train.log", "stdout.log")
    dump_yaml(folder / "args.yaml", record.config)
    return "step"


@writer("fairseq")
def fairseq(record: Record, folder: Path) -> str:
    lines = [f"{record.begin:%Y-%m-%d %H:%M:%S} | INFO | fairseq_cli.train | " + str(record.config)]
    for row in record.rows:
        what = "valid" if row["split"] == "val" else "train_inner"
        cells = short(row["values"], " | ")
        lines.append(
            f"{record.when(row):%Y-%m-%d %H:%M:%S} | INFO | {what} | epoch {row['epoch']:03d} | {cells} | num_updates {row['step']}"
        )
    save(record, folder, lines, "train.log", "hydra_train.log")
    return "step"


@writer("loguru")
def loguru(record: Record, folder: Path) -> str:
    lines = [
        f"{record.begin:%Y-%m-%d %H:%M:%S}.000 | INFO     | __main__:main:41 - config:\n"
        + yaml.safe_dump(record.config, sort_keys=False)
    ]
    for row in record.rows:
        stamp = f"{record.when(row):%Y-%m-%d %H:%M:%S}.{record.r.randint(0, 999):03d}"
        cells = short(record.cells(row), " ", "{k}={v}")
        lines.append(f"{stamp} | INFO     | __main__:{row['split']}:77 - step={row['step']} {cells}")
    save(record, folder, lines, "app.log", "train.log")
    return "step"


EPOCH_ONLY = ("keras", "keras_console", "epoch_print")
RETURNS_ONLY = ("sb3", "sb3_console", "monitor")
NOT_FOR_RETURNS = ("keras", "keras_console", "epoch_print", "hf", "hf_console", "imagenet", "fairseq")
NEEDS_STEPS = ("fairseq",)
