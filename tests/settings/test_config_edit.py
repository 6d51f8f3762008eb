"""Edits of ugly configs of every dialect: one edit is one line, and nothing else moves."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from wheeltapper.errors import RefusedEdit
from wheeltapper.finding import Edit
from wheeltapper.settings.edit import plan_edits
from wheeltapper.settings.edited import differing
from wheeltapper.settings.parse import parse_text


class Ugly(NamedTuple):
    """A file, one edit, and the one line of the file that changes (old, new)."""

    name: str
    format: str
    text: str
    edit: tuple[str, Any, Any]
    old: str
    new: str


def _lr(old: Any, new: Any) -> tuple[str, Any, Any]:
    return ("optimizer.lr", old, new)


TRAINNER = """\
name: 4x_Model # the name	with a tab
scale: 4
use_amp: true
amp_bf16: false
datasets:
  train:
    type: pairedimagedataset
    batch_size_per_gpu: 8
    accum_iter: 1
train:
  ema_decay: 0.999
  grad_clip: true
  optim_g:
    type: AdamW
    lr: !!float 1e-4   # peak
    weight_decay: 0
    betas: [0.9, 0.99]
  scheduler:
    type: MultiStepLR
    milestones: [ 60000, 120000,  160000 ]   # of 200000
    gamma: 0.5
  total_iter: 200000
  warmup_iter: -1
"""

YAML = [
    Ugly("plain", "yaml", "lr: 0.1\nepochs: 90\n", _lr(0.1, 0.01), "lr: 0.1", "lr: 0.01"),
    Ugly("trap is mended", "yaml", "lr: 1e-4\n", _lr(1e-4, 5e-5), "lr: 1e-4", "lr: 5.0e-5"),
    Ugly("safe exponent", "yaml", "lr: 1.0e-4 # hm\n", _lr(1e-4, 3e-6), "lr: 1.0e-4 # hm", "lr: 3.0e-6 # hm"),
    Ugly(
        "float tag quoted", "yaml", 'optim:\n  lr: !!float "3e-4"\n', _lr(3e-4, 1e-4),
        '  lr: !!float "3e-4"', '  lr: !!float "1e-4"',
    ),
    Ugly("float tag plain", "yaml", "lr: !!float 1e-4\n", _lr(1e-4, 2e-4), "lr: !!float 1e-4", "lr: !!float 2e-4"),
    Ugly("quoted number", "yaml", "lr: '0.1'\n", _lr(0.1, 0.2), "lr: '0.1'", "lr: '0.2'"),
    Ugly("tab before a comment", "yaml", "lr: 0.1\t# keep\tme\n", _lr(0.1, 0.2), "lr: 0.1\t# keep\tme", "lr: 0.2\t# keep\tme"),
    Ugly("comment looks like the key", "yaml", "# lr: 0.1\nlr: 0.1\n# lr: 0.3\n", _lr(0.1, 0.2), "\nlr: 0.1", "\nlr: 0.2"),
    Ugly("value in a string", "yaml", "note: 'lr: 0.1'\nlr: 0.1\n", _lr(0.1, 0.2), "\nlr: 0.1", "\nlr: 0.2"),
    Ugly("flow map", "yaml", "optim: {lr: 0.1, name: sgd}  # x\n", _lr(0.1, 0.2), "{lr: 0.1,", "{lr: 0.2,"),
    Ugly(
        "flow map over lines", "yaml", "optim: {\n  name: sgd,   # a\n  lr: 0.1, # b\n}\n", _lr(0.1, 0.2),
        "  lr: 0.1, # b", "  lr: 0.2, # b",
    ),
    Ugly("spaces before the colon", "yaml", "lr   :    0.1\nepochs : 3\n", _lr(0.1, 0.2), "lr   :    0.1", "lr   :    0.2"),
    Ugly("no newline at the end", "yaml", "epochs: 3\nlr: 0.1", _lr(0.1, 0.2), "\nlr: 0.1", "\nlr: 0.2"),
    Ugly("anchor stays", "yaml", "lr: &rate 0.1\nepochs: 3\n", _lr(0.1, 0.2), "lr: &rate 0.1", "lr: &rate 0.2"),
    Ugly("alias becomes a value", "yaml", "x: &r 0.1\nlr: *r\n", _lr(0.1, 0.2), "\nlr: *r", "\nlr: 0.2"),
    Ugly("quoted key", "yaml", '"lr": 0.1\n', _lr(0.1, 0.2), '"lr": 0.1', '"lr": 0.2'),
    Ugly("value on the next line", "yaml", "lr:\n  0.1\nepochs: 2\n", _lr(0.1, 0.2), "  0.1", "  0.2"),
    Ugly(
        "near names", "yaml", "lr_min: 0.1\nmy_lr: 0.1\nlr: 0.1\nlr2: 0.1\n", _lr(0.1, 0.2), "\nlr: 0.1\n", "\nlr: 0.2\n",
    ),
    Ugly("same key elsewhere", "yaml", "val:\n  lr: 0.1\ntrain:\n  lr: 0.1\n", ("train.lr", 0.1, 0.3), "train:\n  lr: 0.1", "train:\n  lr: 0.3"),
    Ugly("second document", "yaml", "lr: 0.1\n---\nlr: 0.1\n", _lr(0.1, 0.2), "lr: 0.1\n---", "lr: 0.2\n---"),
    Ugly("item of a list", "yaml", "losses:\n- type: l1\n  weight: 1.0\n- type: gan\n  weight: 0.1\n", ("losses.1.weight", 0.1, 0.05), "gan\n  weight: 0.1", "gan\n  weight: 0.05"),
    Ugly("yes and no", "yaml", "use_ema: yes\nlr: 0.1\n", ("ema.enabled", True, False), "use_ema: yes", "use_ema: no"),
    Ugly("True", "yaml", "use_ema: True\n", ("ema.enabled", True, False), "use_ema: True", "use_ema: False"),
    Ugly("integer stays one", "yaml", "epochs: 90\n", ("run.epochs", 90, 45.0), "epochs: 90", "epochs: 45"),
    Ugly("float stays one", "yaml", "lr: 1.0\n", _lr(1.0, 3), "lr: 1.0", "lr: 3.0"),
    Ugly("thousands", "yaml", "total_steps: 100_000\n", ("run.total_steps", 100000, 50000), "100_000", "50_000"),
    Ugly("null to a number", "yaml", "max_grad_norm: null\n", ("max_grad_norm", None, 1.0), "null", "1.0"),
    Ugly("nothing to a number", "yaml", "train:\n  clip:\n  x: 1\n", ("train.clip", None, 0.5), "  clip:", "  clip: 0.5"),
    Ugly("trainner lr", "yaml", TRAINNER, _lr(1e-4, 5e-5), "lr: !!float 1e-4   # peak", "lr: !!float 5e-5   # peak"),
    Ugly("one of a list", "yaml", TRAINNER, ("schedule.milestones", [60000, 120000, 160000], [60000, 100000, 160000]), "[ 60000, 120000,  160000 ]", "[ 60000, 100000,  160000 ]"),
    Ugly("a shorter list", "yaml", TRAINNER, ("schedule.milestones", [60000, 120000, 160000], [50000, 90000]), "[ 60000, 120000,  160000 ]", "[ 50000, 90000 ]"),
    Ugly("second beta", "yaml", TRAINNER, ("optimizer.betas", [0.9, 0.99], [0.9, 0.95]), "[0.9, 0.99]", "[0.9, 0.95]"),
    Ugly("off by minus one", "yaml", TRAINNER, ("train.warmup_iter", -1, 1000), "warmup_iter: -1", "warmup_iter: 1000"),
    Ugly("ema decay", "yaml", TRAINNER, ("ema.decay", 0.999, 0.99), "ema_decay: 0.999", "ema_decay: 0.99"),
    Ugly("fp16 to bf16 by its switch", "yaml", TRAINNER, ("precision", "fp16", "bf16"), "amp_bf16: false", "amp_bf16: true"),
    Ugly("batch by knob", "yaml", TRAINNER, ("batch.per_device", 8, 4), "batch_size_per_gpu: 8", "batch_size_per_gpu: 4"),
    Ugly("windows", "yaml", "lr: 0.1\r\nepochs: 3 # c\r\n", ("run.epochs", 3, 5), "epochs: 3 # c\r\n", "epochs: 5 # c\r\n"),
    Ugly("byte order mark", "yaml", "\ufefflr: 0.1\nepochs: 3\n", _lr(0.1, 0.2), "\ufefflr: 0.1", "\ufefflr: 0.2"),
    Ugly("umlauts before", "yaml", "name: Größe ✓\nlr: 0.1\n", _lr(0.1, 0.2), "\nlr: 0.1", "\nlr: 0.2"),
    Ugly("hydra override list", "yaml", "- optim.lr=0.1\n- +data.n=3\n", _lr(0.1, 0.2), "- optim.lr=0.1", "- optim.lr=0.2"),
    Ugly("name", "yaml", "scheduler: cosine\nlr: 0.1\n", ("schedule.name", "cosine", "constant"), "cosine", "constant"),
    Ugly("a switch of another name", "yaml", "learning_rate: 1.0e-4\nnum_train_epochs: 3\nfp16: true # half\n", ("precision", "fp16", "bf16"), "fp16: true", "bf16: true"),
    Ugly("two switches are two lines", "json", '{"fp16": true, "bf16": false, "lr": 1}', ("precision", "fp16", "bf16"), '"fp16": true, "bf16": false', '"fp16": false, "bf16": true'),
    Ugly("precision word", "yaml", "precision: 16-mixed\nmax_epochs: 3\n", ("precision", "fp16", "bf16"), "16-mixed", "bf16-mixed"),
]  # fmt: skip

JSON = [
    Ugly("json", "json", '{"lr": 1e-4, "epochs": 3}\n', _lr(1e-4, 5e-5), '"lr": 1e-4', '"lr": 5e-5'),
    Ugly("padded exponent", "json", '{"lr": 5e-05}', _lr(5e-5, 1e-4), "5e-05", "1e-04"),
    Ugly("with comments", "json", '{\n  // "lr": 3,\n  "lr": 0.1, /* lr */\n}\n', _lr(0.1, 0.2), '"lr": 0.1, /*', '"lr": 0.2, /*'),
    Ugly("nested lists", "json", '{"a": [[1, 2], [3, 4]], "lr": 0.1}', ("a.1.0", 3, 5), "[3, 4]", "[5, 4]"),
    Ugly("number as text", "json", '{"lr": "1e-4"}', _lr(1e-4, 2e-4), '"1e-4"', '"2e-4"'),
    Ugly(
        "deepspeed", "json", '{\n\t"fp16": {"enabled": true},\n\t"gradient_clipping": 1.0,\n\t"train_batch_size": 32\n}',
        ("clip.norm", 1.0, 0.5), '"gradient_clipping": 1.0', '"gradient_clipping": 0.5',
    ),
    Ugly("bool", "json", '{"use_ema": true}', ("ema.enabled", True, False), "true", "false"),
    Ugly("escapes before", "json", '{"p": "C:\\\\a\\"lr\\": 1", "lr": 0.1}', _lr(0.1, 0.2), '"lr": 0.1}', '"lr": 0.2}'),
]  # fmt: skip

TOML = [
    Ugly("toml", "toml", "[train]\nlr = 1e-4 # c\n[val]\nlr = 1e-4\n", ("train.lr", 1e-4, 5e-5), "lr = 1e-4 # c", "lr = 5e-5 # c"),
    Ugly("toml float", "toml", "lr = 1.0\n", _lr(1.0, 2), "lr = 1.0", "lr = 2.0"),
    Ugly("inline table", "toml", 'optim = { name = "sgd", lr = 0.1 }\n', _lr(0.1, 0.3), "lr = 0.1 }", "lr = 0.3 }"),
    Ugly("dotted keys", "toml", "optim.lr = 0.1\noptim.wd = 0\n", _lr(0.1, 0.3), "optim.lr = 0.1", "optim.lr = 0.3"),
    Ugly("array over lines", "toml", "milestones = [\n  10, # a\n  20,\n]\nlr=1\n", ("milestones", [10, 20], [10, 30]), "  20,", "  30,"),
    Ugly("array of tables", "toml", "[[loss]]\nw = 1.0\n[[loss]]\nw = 0.1\n", ("loss.1.w", 0.1, 0.2), "w = 0.1", "w = 0.2"),
    Ugly("single quotes", "toml", "optimizer = 'sgd'\n", ("optimizer.name", "sgd", "adamw"), "'sgd'", "'adamw'"),
]  # fmt: skip

PYTHON = [
    Ugly("module", "python", "learning_rate = 6e-4 # max\nbatch_size = 12\n", _lr(6e-4, 3e-4), "6e-4 # max", "3e-4 # max"),
    Ugly(
        "dict call", "python", "optimizer = dict(\n    type='SGD',  # it\n    lr=0.1,  # is\n    momentum=0.9)\n",
        _lr(0.1, 0.05), "    lr=0.1,  # is", "    lr=0.05,  # is",
    ),
    Ugly("dict display", "python", "cfg = {\n  'lr': 0.1,  # a\n  'x': 'lr: 0.1',\n}\n", ("cfg.lr", 0.1, 0.2), "'lr': 0.1,", "'lr': 0.2,"),
    Ugly("by a name", "python", "base_lr = 0.1\noptimizer = dict(lr=base_lr)\n", ("optimizer.lr", 0.1, 0.2), "base_lr = 0.1", "base_lr = 0.2"),
    Ugly("arithmetic", "python", "max_iters = 600 * 1000\n", ("run.total_steps", 600000, 300000), "600 * 1000", "300000"),
    Ugly("dataclass", "python", "class TrainConfig:\n    lr: float = 1e-3  # c\n    steps: int = 10\n", ("TrainConfig.lr", 1e-3, 1e-4), "1e-3  # c", "1e-4  # c"),
    Ugly("tuple", "python", "betas = (0.9, 0.95)\nlr = 1\n", ("optimizer.betas", [0.9, 0.95], [0.9, 0.99]), "(0.9, 0.95)", "(0.9, 0.99)"),
    Ugly("leading dot", "python", "dropout = .5\n", ("augment.dropout", 0.5, 0.1), ".5", ".1"),
    Ugly("True to False", "python", "use_ema = True\n", ("ema.enabled", True, False), "True", "False"),
    Ugly("tabs and crlf", "python", "lr\t=\t0.1\t# x\r\nn = 1\r\n", _lr(0.1, 0.2), "lr\t=\t0.1\t# x\r\n", "lr\t=\t0.2\t# x\r\n"),
    Ugly("umlaut before it on the line", "python", "a = dict(n='ü', lr=0.1)\n", ("a.lr", 0.1, 0.2), "lr=0.1", "lr=0.2"),
]  # fmt: skip

SHELL = [
    Ugly("option", "argv", "python train.py --lr 0.1 --epochs 3", _lr(0.1, 0.01), "--lr 0.1", "--lr 0.01"),
    Ugly("joined", "argv", "python train.py --lr=1e-4 config.py", _lr(1e-4, 3e-4), "--lr=1e-4", "--lr=3e-4"),
    Ugly("variable", "shell", 'LR=0.1   # rate\npython train.py --lr "$LR"\n', _lr(0.1, 0.2), "LR=0.1   # rate", "LR=0.2   # rate"),
    Ugly("default of a variable", "shell", "python train.py --lr ${LR:-0.1}\n", _lr(0.1, 0.2), "${LR:-0.1}", "${LR:-0.2}"),
    Ugly("quoted variable", "shell", "LR='0.1'\npython train.py --lr $LR\n", _lr(0.1, 0.2), "LR='0.1'", "LR='0.2'"),
    Ugly(
        "continued lines", "shell", "torchrun --nproc_per_node 8 train.py \\\n  --lr 0.1 \\\n  --epochs 3 \\\n  2>&1 | tee log\n",
        _lr(0.1, 0.2), "  --lr 0.1 \\", "  --lr 0.2 \\",
    ),
    Ugly("hydra", "shell", "python train.py optim.lr=0.1 +data.n=3\n", _lr(0.1, 0.2), "optim.lr=0.1", "optim.lr=0.2"),
    Ugly("array", "shell", "ARGS=(--lr 0.1 --wd 0)\npython train.py \"${ARGS[@]}\"\n", _lr(0.1, 0.2), "(--lr 0.1", "(--lr 0.2"),
    Ugly("list option", "shell", "python t.py --milestones 30 60 80 --lr 1\n", ("schedule.milestones", [30, 60, 80], [30, 70, 80]), "30 60 80", "30 70 80"),
    Ugly("longer list option", "shell", "python t.py --milestones 30 60 --lr 1\n", ("milestones", [30, 60], [10, 20, 30]), "30 60", "10 20 30"),
    Ugly("a switch taken out", "shell", "python t.py --amp --lr 1\n", ("amp", True, False), " --amp --lr", " --lr"),
    Ugly("bf16 for fp16", "shell", "python t.py --fp16 --lr 1\n", ("precision", "fp16", "bf16"), "--fp16", "--bf16"),
    Ugly("two betas", "shell", "python t.py --adam-beta1 0.9 --adam-beta2 0.999\n", ("optimizer.betas", [0.9, 0.999], [0.9, 0.95]), "0.999", "0.95"),
    Ugly("environment", "shell", "OMP_NUM_THREADS=1 python t.py --lr 1\n", ("env.OMP_NUM_THREADS", "1", "4"), "=1 python", "=4 python"),
]  # fmt: skip

KEYVALUE = [
    Ugly("colon", "keyvalue", "lr: 0.1\nepochs: 10\n", _lr(0.1, 0.2), "lr: 0.1", "lr: 0.2"),
    Ugly("equals", "keyvalue", "lr = 1e-3\nepochs = 10\n", _lr(1e-3, 2e-3), "lr = 1e-3", "lr = 2e-3"),
    Ugly("dots", "keyvalue", "lr .......... 0.1\nepochs ...... 10\n", _lr(0.1, 0.2), ". 0.1", ". 0.2"),
    Ugly("thousands commas", "keyvalue", "max_steps: 100,000\nlr: 1\n", ("run.total_steps", 100000, 50000), "100,000", "50,000"),
]  # fmt: skip

ALL = [*YAML, *JSON, *TOML, *PYTHON, *SHELL, *KEYVALUE]


def test_there_are_enough_ugly_files() -> None:
    assert len(ALL) >= 60
    assert {case.format for case in ALL} == {"yaml", "json", "toml", "python", "argv", "shell", "keyvalue"}


@pytest.mark.parametrize("case", ALL, ids=lambda case: f"{case.format}-{case.name}")
def test_one_edit_changes_one_line_and_one_setting(case: Ugly) -> None:
    tree = parse_text(case.text, "file", case.format)
    [edited] = plan_edits([tree], [Edit(*case.edit)])
    assert case.text.count(case.old) == 1, "the table is ambiguous"
    assert edited.after == case.text.replace(case.old, case.new)
    diff = [line for line in edited.diff().splitlines()[2:] if line[0] in "+-"]
    assert [line[0] for line in diff] == ["-", "+"]
    moved = {".".join(map(str, path)) for path in differing(tree, parse_text(edited.after, "file", case.format))}
    meant = {key for change in edited.changes for key in (change.key, *change.also)}
    within = {key for key in moved if key.startswith("var.") or any(key == m or key.startswith(f"{m}.") for m in meant)}
    assert moved
    assert moved == within


@pytest.mark.parametrize("case", ALL, ids=lambda case: f"{case.format}-{case.name}")
def test_line_ends_and_marks_stay(case: Ugly) -> None:
    tree = parse_text(case.text, "file", case.format)
    [edited] = plan_edits([tree], [Edit(*case.edit)])
    for mark in ("\r\n", "\t", "\ufeff", "#"):
        assert edited.after.count(mark) == case.text.count(mark)
    assert edited.after.endswith("\n") == case.text.endswith("\n")


# -- settings that are not there yet -------------------------------------------------------------------

HF = "learning_rate: 5.0e-5\nper_device_train_batch_size: 8\nnum_train_epochs: 3\nlogging_steps: 10\nsave_steps: 100\n"
NANO = (
    "eval_interval = 5\neval_iters = 40\nalways_save_checkpoint = False\nn_embd = 384\nblock_size = 256 # context\n"
    "max_iters = 5000\nlr_decay_iters = 5000\n"
)
MEGATRON = (
    "python pretrain_gpt.py \\\n    --tensor-model-parallel-size 2 \\\n    --micro-batch-size 4 \\\n"
    "    --global-batch-size 256 \\\n    --train-iters 5000 \\\n    --lr 1.5e-4 \\\n    --lr-decay-style cosine\n"
)


def added(text: str, format: str, *edits: Edit, **more: Any) -> list[str]:
    """Lines that an edit adds; none is taken away."""
    [edited] = plan_edits([parse_text(text, f"file.{format}", format)], list(edits), **more)
    lines = edited.diff().splitlines()[2:]
    assert not [line for line in lines if line.startswith("-")], edited.diff()
    return [line[1:] for line in lines if line.startswith("+")]


@pytest.mark.parametrize(
    ("text", "format", "edit", "line"),
    [
        (TRAINNER, "yaml", Edit("loss.name", None, "x"), None),
        (HF, "yaml", Edit("schedule.warmup", 0, 100, unit="steps"), "warmup_steps: 100"),
        (HF, "yaml", Edit("optimizer.weight_decay", 0.0, 1e-2), "weight_decay: 0.01"),
        (HF.replace("\n", "\r\n"), "yaml", Edit("optimizer.weight_decay", 0.0, 1e-2), "weight_decay: 0.01"),
        (HF.rstrip("\n"), "yaml", Edit("max_grad_norm", None, 0.5), "max_grad_norm: 0.5"),
        (NANO, "python", Edit("schedule.warmup", 2000, 100), "warmup_iters = 100"),
        (NANO, "python", Edit("optimizer.lr", 6e-4, 1e-4), "learning_rate = 0.0001"),
    ],
)
def test_a_missing_key_goes_into_its_section(text: str, format: str, edit: Edit, line: str | None) -> None:
    if line is None:
        with pytest.raises(RefusedEdit, match="no key"):
            plan_edits([parse_text(text, "f.yml", format)], [edit])
        return
    if text.endswith("\n"):
        assert added(text, format, edit) == [line]
    [edited] = plan_edits([parse_text(text, f"f.{format}", format)], [edit])
    assert line in edited.after
    assert ("\r\n" in edited.after) == ("\r\n" in text)
    assert edited.after.replace("\r\n", "").count("\n") in (0, edited.after.count("\n"))
    assert edited.after.endswith("\n") == text.endswith("\n")


def test_a_section_keeps_its_indentation() -> None:
    text = TRAINNER.replace("  warmup_iter: -1\n", "")
    assert added(text, "yaml", Edit("schedule.warmup", None, 500)) == ["  warmup_iter: 500"]
    wide = "train:\n        total_iter: 10   # c\n        ema_decay: 0.9\nscale: 2\n"
    assert added(wide, "yaml", Edit("train.warmup_iter", None, 5), dialect="trainner") == ["        warmup_iter: 5"]


def test_a_missing_section_is_made() -> None:
    text = "name: x\nscale: 2\nval:\n  val_freq: 10\n"
    lines = added(text, "yaml", Edit("train.warmup_iter", None, 5), dialect="trainner")
    assert lines == ["train:", "  warmup_iter: 5"]
    empty = "name: x\ntrain:\nscale: 2\n"
    assert added(empty, "yaml", Edit("train.warmup_iter", None, 5), dialect="trainner") == ["  warmup_iter: 5"]


def test_a_key_goes_into_a_flow_map() -> None:
    [edited] = plan_edits(
        [parse_text("train: {ema_decay: 0.9}  # c\nname: x\n", "f.yml", "yaml")],
        [Edit("train.warmup_iter", None, 5)],
        dialect="trainner",
    )
    assert edited.after == "train: {ema_decay: 0.9, warmup_iter: 5}  # c\nname: x\n"


def test_a_key_beside_a_commented_last_member() -> None:
    json = '{\n  "learning_rate": 1e-4,\n  "max_steps": 10  // last\n}\n'
    [edited] = plan_edits([parse_text(json, "f.json", "json")], [Edit("max_grad_norm", None, 0.5)], dialect="hf")
    assert edited.after == '{\n  "learning_rate": 1e-4,\n  "max_steps": 10,  // last\n  "max_grad_norm": 0.5\n}\n'


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ('{"fp16": {"enabled": true}}', '{"learning_rate": 0.5, "fp16": {"enabled": true}}'),
        ("{}", '{"learning_rate": 0.5}'),
        ('{\n  "a": {\n    "b": 1\n  }\n}', '{\n  "learning_rate": 0.5,\n  "a": {\n    "b": 1\n  }\n}'),
    ],
)
def test_a_key_into_json_without_plain_members(text: str, after: str) -> None:
    [edited] = plan_edits([parse_text(text, "f.json", "json")], [Edit("learning_rate", None, 0.5)], dialect="hf")
    assert edited.after == after


def test_toml_sections() -> None:
    text = "name = 'x'\n[train]\nema_decay = 0.9\n\n[val]\nval_freq = 3\n"
    assert added(text, "toml", Edit("train.warmup_iter", None, 5), dialect="trainner") == ["warmup_iter = 5"]
    lines = added("name = 'x'\n", "toml", Edit("train.warmup_iter", None, 5), dialect="trainner")
    assert lines == ["", "[train]", "warmup_iter = 5"]


def test_a_missing_flag_is_added_in_the_manner_of_the_others() -> None:
    tree = parse_text(MEGATRON, "run.sh", "shell")
    [edited] = plan_edits([tree], [Edit("clip.norm", 1.0, 0.5)])
    assert edited.after == MEGATRON.replace("cosine\n", "cosine \\\n    --clip-grad 0.5\n")


def test_a_flag_that_the_script_declares() -> None:
    tree = parse_text('python train.py --batch_size 8 "$@" > log.txt 2>&1\n', "run.sh", "shell")
    [edited] = plan_edits([tree], [Edit("optimizer.lr", None, 0.1)], options={"lr": "--lr"})
    assert edited.after == 'python train.py --batch_size 8 --lr 0.1 "$@" > log.txt 2>&1\n'
    joined = parse_text("python train.py --batch_size=8\n", "run.sh", "shell")
    [edited] = plan_edits([joined], [Edit("optimizer.lr", None, 0.1)], options={"lr": "--lr"})
    assert edited.after == "python train.py --batch_size=8 --lr=0.1\n"


def test_an_option_known_from_the_print_goes_to_the_command() -> None:
    printed = parse_text("Namespace(lr=0.1, batch_size=8)", "train.log", "namespace")
    script = parse_text("python train.py --batch_size 8\n", "run.sh", "shell")
    [edited] = plan_edits([printed, script], [Edit("optimizer.lr", 0.1, 0.2)], options={"lr": "--lr"})
    assert edited.file == "run.sh"
    assert edited.after == "python train.py --batch_size 8 --lr 0.2\n"


def test_a_dump_is_not_edited_where_a_command_sets_it() -> None:
    dump = parse_text('{"lr": 0.1, "batch_size": 8}', "args.json", "json")
    script = parse_text("python train.py --batch_size 8\n", "run.sh", "shell")
    [edited] = plan_edits([dump, script], [Edit("optimizer.lr", 0.1, 0.2)], options={"lr": "--lr"})
    assert edited.file == "run.sh"
    named = parse_text("python train.py --config args.json\n", "run.sh", "shell")
    [edited] = plan_edits([dump, named], [Edit("optimizer.lr", 0.1, 0.2)], options={"lr": "--lr"})
    assert edited.file == "args.json"


def test_a_merged_key_is_overridden_in_its_section_only() -> None:
    text = "base: &b\n  lr: 0.1\ntrain:\n  <<: *b\n  epochs: 3\nother:\n  <<: *b\n"
    tree = parse_text(text, "f.yml", "yaml")
    [edited] = plan_edits([tree], [Edit("train.lr", 0.1, 0.2)])
    after = parse_text(edited.after, "f.yml", "yaml")
    assert (after.get("train.lr"), after.get("base.lr"), after.get("other.lr")) == (0.2, 0.1, 0.1)


def test_what_shares_the_text_is_named() -> None:
    tree = parse_text("g: {lr: &r 0.1}\nd: {lr: *r}\n", "f.yml", "yaml")
    [edited] = plan_edits([tree], [Edit("g.lr", 0.1, 0.2)])
    assert edited.changes[0].also == ("d.lr",)
    script = parse_text("LR=0.1\npython t.py --lr $LR --lr_d $LR\n", "run.sh", "shell")
    [edited] = plan_edits([script], [Edit("lr", 0.1, 0.2)])
    assert edited.changes[0].also == ("lr_d",)


# -- taking out ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format", "text", "key", "after"),
    [
        ("yaml", "a: 1\nbad: 2  # c\nb: 3\n", "bad", "a: 1\nb: 3\n"),
        ("yaml", "t: {a: 1, bad: 2, b: 3}\n", "t.bad", "t: {a: 1, b: 3}\n"),
        ("yaml", "t: {a: 1, bad: 2}\n", "t.bad", "t: {a: 1}\n"),
        ("json", '{\n  "a": 1,\n  "bad": 2\n}', "bad", '{\n  "a": 1\n}'),
        ("json", '{\n  "bad": 2,\n  "a": 1\n}', "bad", '{\n  "a": 1\n}'),
        ("toml", "a = 1\nbad = 2\n", "bad", "a = 1\n"),
        ("python", "d = dict(a=1, bad=2, b=3)\n", "d.bad", "d = dict(a=1, b=3)\n"),
        ("shell", "python t.py --a 1 --bad 2 --b 3\n", "bad", "python t.py --a 1 --b 3\n"),
        (
            "shell",
            "python t.py \\\n  --a 1 \\\n  --bad '2' \\\n  --b 3\n",
            "bad",
            "python t.py \\\n  --a 1 \\\n  --b 3\n",
        ),
        ("shell", "python t.py \\\n  --a 1 \\\n  --bad=2\n", "bad", "python t.py \\\n  --a 1\n"),
    ],
)
def test_a_setting_is_taken_out(format: str, text: str, key: str, after: str) -> None:
    [edited] = plan_edits([parse_text(text, "f", format)], [Edit(key, 2, None)])
    assert edited.after == after


# -- refusals ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format", "text", "edit", "why"),
    [
        ("yaml", "lr: 0.1\n", Edit("optimizer.lr", 0.2, 0.3), r"is 0\.1 here; the edit takes it to be 0\.2"),
        ("yaml", "lr: 0.1\n", Edit("optimizer.lr", None, 0.3), "takes it not to be set"),
        ("yaml", "lr: 0.1\n", Edit("optimizer.lr", 0.1, 0.1), "already: nothing would change"),
        ("yaml", "lr: 0.1\n", Edit("clip.norm", None, 1.0), "has no key"),
        ("yaml", "lr: 0.1\n", Edit("train.lr", 0.1, 1.0), "no file to edit has the key"),
        ("yaml", "epochs: 3\n", Edit("run.total_steps", None, 1), "has no key"),
        ("yaml", "batch_size: 8\n", Edit("batch.per_device", 8, 8.5), "not a whole number"),
        ("python", "import os\nlr = float(os.environ['LR'])\n", Edit("lr", "float(os.environ['LR'])", 1.0), "computed"),
        ("python", "lr = 0.1\nif big:\n    lr = 0.2\n", Edit("optimizer.lr", 0.1, 1.0), "not certain"),
        ("shell", "LR=$(cat lr)\npython t.py --lr $LR\n", Edit("lr", "$(cat lr)", 1.0), "computed"),
        ("shell", "if x; then LR=1; fi\npython t.py --lr $LR\n", Edit("lr", 1, 2), "not certain"),
        ("yaml", "b: &b {lr: 0.1}\nc: *b\n", Edit("c.lr", 0.1, 0.2), "several settings share"),
        ("yaml", "lr: ${base.lr}\n", Edit("lr", "${base.lr}", "x"), None),
        ("toml", "resume = 'a.pt'\n", Edit("x.y", 3, None), "no file to edit has the key"),
    ],
)
def test_an_edit_that_would_not_do_what_it_says_is_refused(format: str, text: str, edit: Edit, why: str | None) -> None:
    tree = parse_text(text, "conf/file", format)
    if why is None:
        assert plan_edits([tree], [edit])
        return
    with pytest.raises(RefusedEdit, match=why) as caught:
        plan_edits([tree], [edit])
    assert "conf/file" in str(caught.value)


def test_the_refusal_says_where() -> None:
    tree = parse_text("a: 1\nlr: 0.1\n", "conf/x.yml", "yaml")
    with pytest.raises(RefusedEdit, match=r"conf/x\.yml:2: optimizer\.lr is 0\.1 here"):
        plan_edits([tree], [Edit("optimizer.lr", 0.2, 0.3)])


def test_contradictions_are_refused() -> None:
    tree = parse_text("lr: 0.1\n", "f.yml", "yaml")
    with pytest.raises(RefusedEdit, match="contradict"):
        plan_edits([tree], [Edit("optimizer.lr", 0.1, 0.2), Edit("optimizer.lr", 0.1, 0.3)])
    with pytest.raises(RefusedEdit, match=r"is 0\.2 here|undone by another edit"):
        plan_edits([tree], [Edit("optimizer.lr", 0.1, 0.2), Edit("lr", 0.1, 0.3)])
    [edited] = plan_edits([tree], [Edit("optimizer.lr", 0.1, 0.2), Edit("optimizer.lr", 0.1, 0.2)])
    assert edited.after == "lr: 0.2\n"


def test_what_the_run_printed_is_not_edited() -> None:
    printed = parse_text("Namespace(lr=0.1)", "train.log", "namespace")
    with pytest.raises(RefusedEdit, match="only what the run printed"):
        plan_edits([printed], [Edit("optimizer.lr", 0.1, 0.2)])
    other = parse_text("epochs: 3\n", "conf.yml", "yaml")
    with pytest.raises(RefusedEdit, match="no file to edit sets it"):
        plan_edits([printed, other], [Edit("optimizer.lr", 0.1, 0.2)])


def test_a_file_that_was_overridden_is_not_edited() -> None:
    conf = parse_text("lr: 0.1\n", "conf.yml", "yaml")
    typed = parse_text("python train.py --lr 0.5", "train.log", "argv")
    from dataclasses import replace

    echoed = replace(typed, text=None)
    with pytest.raises(RefusedEdit, match=r"the run used 0\.5 \(train\.log:1\)"):
        plan_edits([conf, echoed], [Edit("optimizer.lr", 0.5, 0.2)])


def test_a_key_that_this_version_does_not_have() -> None:
    tree = parse_text(TRAINNER, "f.yml", "yaml")
    with pytest.raises(RefusedEdit, match="of 2025-01-01 has no key"):
        plan_edits([tree], [Edit("schedule.restart", False, True)], version="2025-01-01")
    [edited] = plan_edits([tree], [Edit("schedule.restart", False, True)], version="2026-06-01")
    assert "  restart_scheduler: true\n" in edited.after


# -- units ---------------------------------------------------------------------------------------------


def test_the_unit_of_the_file_is_used() -> None:
    from wheeltapper.settings.units import Scale

    scale = Scale(steps_per_epoch=100, total_steps=1000)
    tree = parse_text("warmup_epochs: 1\nlr: 0.1\n", "f.yml", "yaml")
    [edited] = plan_edits([tree], [Edit("schedule.warmup", 1, 500, unit="steps")], scale=scale)
    assert edited.after == "warmup_epochs: 5\nlr: 0.1\n"
    ratio = parse_text("warmup_ratio: 0.03\nlr: 0.1\n", "f.yml", "yaml")
    [edited] = plan_edits([ratio], [Edit("schedule.warmup", 0.03, 100, unit="steps")], scale=scale)
    assert edited.after == "warmup_ratio: 0.1\nlr: 0.1\n"
    with pytest.raises(RefusedEdit, match="counted in epochs"):
        plan_edits([tree], [Edit("schedule.warmup", 1, 500, unit="steps")])


def test_a_knob_that_the_file_holds_otherwise() -> None:
    text = "custom_hooks = [dict(type='EMAHook', momentum=0.001)]\noptim_wrapper = dict(optimizer=dict(lr=0.1))\n"
    tree = parse_text(text, "c.py", "python")
    from wheeltapper.settings.knobs import read_knobs

    decay = read_knobs([tree], dialect="mmengine").value("ema.decay")
    assert decay == pytest.approx(0.999)
    [edited] = plan_edits([tree], [Edit("ema.decay", decay, 0.99)], dialect="mmengine")
    assert "momentum=0.01)" in edited.after


def test_several_edits_of_one_file() -> None:
    tree = parse_text(TRAINNER, "f.yml", "yaml")
    edits = [
        Edit("optimizer.lr", 1e-4, 5e-5),
        Edit("ema.decay", 0.999, 0.99),
        Edit("schedule.milestones", [60000, 120000, 160000], [10000, 20000]),
        Edit("train.scheduler.gamma", 0.5, 0.25),
    ]
    [edited] = plan_edits([tree], edits)
    assert sum(line.startswith("-") for line in edited.diff().splitlines()[2:]) == 4
    assert [change.knob for change in edited.changes] == [edit.knob for edit in edits]
    lines = edited.after.splitlines()
    for change in edited.changes:
        assert change.new is not None
        assert change.new.split(",")[0] in lines[change.line - 1]


def test_what_is_computed_from_it_goes_along_and_is_named() -> None:
    text = "max_epochs = 36\nsched = dict(T_max=max_epochs - 6, gamma=0.1)\n"
    [edited] = plan_edits([parse_text(text, "c.py", "python")], [Edit("max_epochs", 36, 12)])
    assert edited.after == text.replace("36", "12")
    assert edited.changes[0].also == ("sched.T_max",)


def test_the_copy_that_the_framework_made_is_not_edited() -> None:
    """The same text twice: the file that was started with is changed, not the record beside the log."""
    copy = parse_text(TRAINNER, "experiments/m/m.yml", "yaml")
    own = parse_text(TRAINNER, "options/train/m.yml", "yaml")
    typed = parse_text("python train.py -opt options/train/m.yml", "train.log", "argv")
    for trees in ([copy, own, typed], [own, copy, typed]):
        [edited] = plan_edits(trees, [Edit("optimizer.lr", 1e-4, 5e-5)], dialect="trainner")
        assert edited.file == "options/train/m.yml"


def test_text_becomes_a_number() -> None:
    tree = parse_text("train:\n  eta_min: 1e-6 # low\n", "f.yml", "yaml")
    [edited] = plan_edits([tree], [Edit("train.eta_min", "1e-6", 1e-6)])
    assert edited.after == "train:\n  eta_min: 1.0e-6 # low\n"


def test_a_switch_with_two_names() -> None:
    tree = parse_text("python t.py --auto-resume --lr 1\n", "run.sh", "shell")
    both = {"auto_resume": "--auto-resume/--no-auto-resume"}
    [edited] = plan_edits([tree], [Edit("resume.auto", True, False)], options=both)
    assert edited.after == "python t.py --no-auto-resume --lr 1\n"
    [back] = plan_edits([parse_text(edited.after, "run.sh", "shell")], [Edit("resume.auto", False, True)], options=both)
    assert back.after == tree.text


def test_what_hydra_composed_is_overridden_and_not_edited() -> None:
    """A change of .hydra/config.yaml reaches no run: it is written anew each time."""
    composed = parse_text(
        "optim:\n  lr: 0.1\n  betas: [0.9, 0.99]\nhydra:\n  run: {dir: x}\n", "out/.hydra/config.yaml", "yaml"
    )
    with pytest.raises(RefusedEdit, match="only what the run printed"):
        plan_edits([composed], [Edit("optimizer.lr", 0.1, 0.2)])
    script = parse_text("python train.py data=big \\\n  trainer.gpus=8\n", "run.sh", "shell")
    [edited] = plan_edits([composed, script], [Edit("optimizer.lr", 0.1, 0.2)], dialect="hydra")
    assert edited.after == "python train.py data=big \\\n  trainer.gpus=8 \\\n  optim.lr=0.2\n"
