"""Knobs: the same meaning from every spelling, with its unit, its place, and whether it was declared at all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from wheeltapper.settings.dialects import dialects, recognise_dialect
from wheeltapper.settings.dialects.schema import UNSET
from wheeltapper.settings.knobs import KNOBS, Knobs, cast_value, read_knobs
from wheeltapper.settings.parse import parse_file, parse_text

RECORDS = Path(__file__).resolve().parents[1] / "records" / "configs"
HEALTHY = RECORDS / "healthy"
UNITS = {None, "steps", "micro_steps", "epochs", "samples", "fraction", "unknown"}


def knobs_of(*names: str) -> Knobs:
    trees = [parse_file(HEALTHY / name) for name in names]
    assert None not in trees
    return read_knobs([tree for tree in trees if tree is not None])


EXPECTED: dict[str, tuple[str, dict[str, Any]]] = {
    "trainner_multistep.yml": (
        "trainner",
        {
            "optimizer.lr": 1e-4,
            "schedule.milestones": [60000, 120000],
            "schedule.warmup": 0,
            "batch.accumulation": 2,
            "run.total_steps": 160000,
            "precision": "fp16",
            "amp.scaler": True,
            "ema.decay": 0.999,
            "sr.scale": 4,
            "clip.enabled": True,
            "finetune.from": "experiments/pretrain/4x.safetensors",
            "gan.enabled": False,
        },
    ),
    "trainner_gan_cosine.yml": (
        "trainner",
        {
            "precision": "bf16",
            "amp.scaler": False,
            "clip.norm": 10.0,
            "schedule.t_max": 300000,
            "gan.enabled": True,
            "world_size": 2,
        },
    ),
    "basicsr_srresnet.yml": (
        "basicsr",
        {"optimizer.lr": 2e-4, "eval.every": 5000, "batch.per_device": 16, "ema.decay": 0.999},
    ),
    "neosr_compact.toml": (
        "neosr",
        {
            "optimizer.lr": 1e-3,
            "run.total_steps": 200000,
            "schedule.name": "schedule_free",
            "clip.norm": 1.0,
            "precision": "bf16",
        },
    ),
    "hf_sft.yaml": (
        "hf",
        {
            "optimizer.lr": 2e-5,
            "schedule.warmup": 0.03,
            "run.epochs": 2,
            "precision": "bf16",
            "clip.norm": 1.0,
            "logging.nan_filter": True,
            "optimizer.betas": [0.9, 0.999],
        },
    ),
    "hf_args.json": (
        "hf",
        {
            "run.total_steps": 12000,
            "clip.enabled": False,
            "logging.nan_filter": False,
            "schedule.warmup": 500,
            "amp.scaler": True,
            "eval.every": 1,
        },
    ),
    "hf_args_print.txt": (
        "hf",
        {"schedule.name": "linear", "optimizer.name": "AdamW", "schedule.warmup": 0.1, "run.epochs": 3.0},
    ),
    "accelerate_launch.sh": (
        "hf",
        {"world_size": 8, "precision": "bf16", "batch.accumulation": 16, "optimizer.lr": 2e-5},
    ),
    "lightning_cli.yaml": (
        "lightning",
        {
            "run.epochs": 90,
            "clip.norm": 0.5,
            "precision": "bf16",
            "world_size": 4,
            "optimizer.lr": 1e-3,
            "optimizer.name": "AdamW",
        },
    ),
    "lightning_logs/version_0/hparams.yaml": ("lightning", {"optimizer.lr": 0.0005, "optimizer.betas": [0.9, 0.999]}),
    "timm_args.yaml": (
        "timm",
        {
            "optimizer.lr": 0.001,
            "schedule.interval": "steps",
            "schedule.warmup": 5,
            "precision": "bf16",
            "amp.scaler": False,
            "ema.decay": 0.9999,
            "model.classes": 1000,
        },
    ),
    "timm_train.sh": (
        "timm",
        {"batch.per_device": 256, "schedule.milestones": [30, 60, 80], "world_size": 4, "optimizer.momentum": 0.9},
    ),
    "ultralytics_args.yaml": (
        "ultralytics",
        {"optimizer.lr": 0.01, "schedule.name": "cosine", "batch.nominal": 64, "clip.norm": 10.0},
    ),
    "yolo_cli.txt": ("ultralytics", {"optimizer.lr": 0.002, "optimizer.name": "AdamW", "run.epochs": 100}),
    "nanogpt_shakespeare.py": (
        "nanogpt",
        {
            "optimizer.lr": 1e-3,
            "optimizer.betas": [0.9, 0.99],
            "schedule.warmup": 100,
            "precision": "bf16",
            "clip.norm": 1.0,
        },
    ),
    "nanogpt_finetune.sh": (
        "nanogpt",
        {
            "schedule.name": "constant",
            "schedule.warmup": 0,
            "clip.enabled": False,
            "finetune.from": "gpt2",
            "world_size": 4,
        },
    ),
    "sedd_small.yaml": (
        "sedd",
        {"batch.global": 512, "schedule.warmup": 2500, "optimizer.lr": 3e-4, "vocab_size": 50257},
    ),
    "sedd_protein.yaml": (
        "sedd",
        {"batch.per_device": 32, "curriculum.steps": 5000, "optimizer.lr": 1e-4, "clip.norm": 1.0},
    ),
    "edm_training_options.json": (
        "edm",
        {
            "run.total_samples": 200e6,
            "ema.halflife": 500_000,
            "diffusion.P_mean": -1.2,
            "batch.global": 512,
            "amp.scaler": False,
        },
    ),
    "edm_train.sh": (
        "edm",
        {"run.total_samples": 200e6, "optimizer.lr": 2e-4, "batch.global": 256, "diffusion.P_std": 1.2},
    ),
    "edm2_train.sh": ("edm", {"run.total_samples": 2 << 30, "diffusion.P_mean": -0.4, "batch.per_device": 32}),
    "mmdet3_rtm.py": (
        "mmengine",
        {
            "optimizer.lr": 0.004,
            "ema.decay": 0.9998,
            "schedule.warmup": 1000,
            "schedule.t_max": 18,
            "clip.norm": 35,
            "batch.accumulation": 2,
            "precision": "fp16",
        },
    ),
    "mmdet2_frcnn.py": (
        "mmengine",
        {
            "optimizer.lr": 0.02,
            "schedule.milestones": [8, 11],
            "schedule.gamma": 0.1,
            "clip.enabled": False,
            "amp.static_scale": 512.0,
        },
    ),
    "megatron_pretrain.sh": (
        "megatron",
        {
            "optimizer.lr": 0.00015,
            "schedule.warmup": 0.01,
            "world_size": 16,
            "amp.init_scale": 2.0**32,
            "batch.global": 256,
        },
    ),
    "megatron_print.txt": (
        "megatron",
        {"schedule.warmup": 183105, "precision": "bf16", "amp.scaler": False, "batch.accumulation": 128},
    ),
    "imagenet_ffcv.sh": (
        "argparse",
        {
            "optimizer.lr": 0.8,
            "schedule.name": "onecycle",
            "schedule.warmup": 8,
            "clip.norm": 1.0,
            "augment.progressive": True,
        },
    ),
    "edm_prior.sh": (
        "argparse",
        {"batch.per_device": 4, "batch.accumulation": 16, "optimizer.lr": 1e-4, "amp.enabled": True},
    ),
    "namespace_gluoncv.txt": (
        "generic",
        {"augment.mixup": 0.0, "schedule.milestones": [40, 60], "world_size": 8, "precision": "fp16"},
    ),
    "mae_args.json": ("generic", {"optimizer.lr_base": 0.00015, "batch.accumulation": 4, "schedule.warmup": 40}),
    "swav_block.txt": (
        "generic",
        {"optimizer.lr": 0.6, "schedule.min_lr": 0.0006, "precision": "fp16", "optimizer.weight_decay": 1e-6},
    ),
    "cyclegan_opt.txt": ("generic", {"optimizer.lr": 0.0002, "run.epochs": 100}),
    "dict_print.txt": ("generic", {"ema.enabled": True, "amp.enabled": True, "world_size": 8}),
    "dataclass_hparams.py": ("generic", {"optimizer.lr": 0.0036, "batch.per_device": 64, "seq_len": 1024}),
    "mlcollections.py": ("generic", {"optimizer.lr": 2e-4, "ema.decay": 0.9999, "clip.norm": 1.0}),
    "wandb_config.yaml": ("generic", {"optimizer.lr": 0.0003, "optimizer.name": "adamw", "run.epochs": 12}),
    "deepspeed.json": ("generic", {"batch.global": 512, "precision": "bf16", "clip.norm": 1.0, "optimizer.lr": 1e-4}),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_knobs_of_a_record(name: str) -> None:
    dialect, expected = EXPECTED[name]
    knobs = knobs_of(name)
    assert dialect == knobs.dialect.NAME
    assert {id_: knobs.value(id_) for id_ in expected} == expected


@pytest.mark.parametrize("name", EXPECTED)
def test_declared_knobs_have_places_and_units(name: str) -> None:
    for value in knobs_of(name).values():
        assert value.id in KNOBS
        assert value.unit in UNITS
        assert not (value.default is False and value.leaf is None) or value.id in ("loss.weights", "schedule.warmup"), (
            value
        )


def test_units_come_from_the_framework() -> None:
    assert knobs_of("hf_sft.yaml")["schedule.warmup"].unit == "fraction"
    assert knobs_of("timm_args.yaml")["schedule.warmup"].unit == "epochs"
    assert knobs_of("edm_training_options.json")["schedule.warmup"].unit == "samples"
    assert knobs_of("mmdet3_rtm.py")["schedule.warmup"].unit == "micro_steps"
    assert knobs_of("sedd_protein.yaml")["run.total_steps"].unit == "micro_steps"
    assert knobs_of("sedd_protein.yaml")["schedule.warmup"].unit == "steps"
    assert knobs_of("edm_prior.sh")["run.total_steps"].unit == "unknown"


def test_the_command_line_overrides_the_file_and_the_echo_overrides_both() -> None:
    file = parse_text("lr: 0.1\nepochs: 5\nseed: 1\n", "c.yml", "yaml")
    command = parse_text("python train.py --lr 0.2 --seed 2", "cmd", "argv")
    echo = replace(parse_text("lr: 0.3\n", "log", "keyvalue"), kind="echoed in log")
    knobs = read_knobs([echo, command, file])
    assert knobs.value("optimizer.lr") == 0.3
    assert str(knobs.place("optimizer.lr")) == "log:1:5"
    assert knobs.value("run.seed") == 2
    assert knobs.value("run.epochs") == 5


def test_hydra_overrides_come_over_the_composed_file() -> None:
    knobs = knobs_of("hydra_run/.hydra/config.yaml", "hydra_run/.hydra/overrides.yaml")
    assert knobs.dialect.NAME == "hydra"
    assert knobs.value("optimizer.lr") == 3e-4
    assert knobs.value("batch.per_device") == 64
    assert knobs.value("schedule.name") == "OneCycleLR"
    assert knobs.value("schedule.max_lr") is None  # ${optimizer.lr} is no number


def test_a_string_number_is_cast_and_told() -> None:
    knobs = read_knobs([parse_text("lr: 1e-4\nepochs: 3\n", "c.yml", "yaml")])
    assert knobs.value("optimizer.lr") == 1e-4
    assert knobs["optimizer.lr"].note == "written as the string '1e-4'"
    leaf = knobs["optimizer.lr"].leaf
    assert leaf is not None
    assert leaf.value == "1e-4"


def test_absent_is_unknown_not_off() -> None:
    knobs = read_knobs([parse_text("lr: 0.1\n", "c.yml", "yaml")])
    assert "ema.enabled" not in knobs
    assert knobs.get("clip.norm") is None
    assert str(knobs.place("clip.norm")) == "?"
    assert [value.id for value in knobs.declared()] == ["optimizer.lr"]


def test_two_different_values_for_one_meaning_are_neither_believed() -> None:
    knobs = read_knobs([parse_text("a:\n  lr: 0.1\nb:\n  lr: 0.2\nwd: 0.3\n", "c.yml", "yaml")])
    assert "optimizer.lr" not in knobs
    assert knobs.value("optimizer.weight_decay") == 0.3


def test_evaluation_and_discriminator_settings_are_not_the_training_ones() -> None:
    text = "eval:\n  batch_size: 7\ntrain:\n  batch_size: 3\n  lr: 0.1\ndiscriminator:\n  lr: 0.4\nema:\n  momentum: 0.99\n"
    knobs = read_knobs([parse_text(text, "c.yml", "yaml")])
    assert knobs.value("batch.per_device") == 3
    assert knobs.value("eval.batch") == 7
    assert knobs.value("optimizer.lr") == 0.1
    assert "optimizer.momentum" not in knobs


def test_what_cannot_be_known_is_not_given() -> None:
    auto = read_knobs(
        [parse_text("optimizer: auto\nlr0: 0.001\nlrf: 0.01\nmosaic: 1.0\nimgsz: 640\nnbs: 64\n", "args.yaml", "yaml")]
    )
    assert auto.dialect.NAME == "ultralytics"
    assert "optimizer.lr" not in auto
    shell = read_knobs([parse_text("python train.py --lr $LR --epochs 3\n", "r.sh", "shell")])
    assert "optimizer.lr" not in shell
    assert shell.value("run.epochs") == 3


@pytest.mark.parametrize(
    ("kind", "value", "cast"),
    [
        ("number", "1e-4", 1e-4),
        ("number", True, None),
        ("number", "fast", None),
        ("count", 5e3, 5000),
        ("count", float("nan"), None),
        ("bool", "false", False),
        ("bool", 2, None),
        ("list", "40,60", [40, 60]),
        ("list", [0.9, "x"], None),
        ("name", "", None),
    ],
)
def test_casting(kind: Any, value: Any, cast: Any) -> None:
    assert cast_value(kind, value) == cast


# --- the dialects' own contract


@pytest.mark.parametrize("dialect", dialects(), ids=lambda d: d.NAME)
def test_tables_are_sound(dialect: Any) -> None:
    for path, key in dialect.KEYS.items():
        assert path == key.path
        assert key.knob is None or key.knob in KNOBS, path
        assert key.unit in UNITS
        assert key.kinds <= {"int", "float", "bool", "str", "list", "map", "any"}, path
        if key.default is not UNSET and key.knob is not None and key.default is not None:
            assert cast_value(KNOBS[key.knob].kind, key.default) is not None, path
    assert dialect.UNKNOWN in ("refuse", "ignore", "warn", "unknown")
    assert dialect.__doc__
    assert dialect.recognise(parse_text("", "x.yml", "yaml")) == 0


def test_names_are_unique_and_cover_the_frameworks() -> None:
    names = [d.NAME for d in dialects()]
    assert len(names) == len(set(names)) == 15


def test_unrelated_files_are_no_dialect() -> None:
    for text in ("artifact_uri: x\nrun_id: y\nstatus: 4\n", "names:\n  0: cat\nnc: 1\ntrain: a\nval: b\npath: c\n"):
        assert recognise_dialect([parse_text(text, "meta.yaml", "yaml")]) is None


# --- real records


def test_the_shared_records(shared_runs: Path) -> None:
    def read(name: str) -> Knobs:
        tree = parse_file(shared_runs / name)
        assert tree is not None
        return read_knobs([tree])

    timm = read("timm-cub-lr4e-4-diverged/args.yaml")
    assert timm.dialect.NAME == "timm"
    wanted = (
        "optimizer.lr",
        "schedule.warmup",
        "run.epochs",
        "batch.per_device",
        "model.classes",
        "clip.enabled",
        "precision",
    )
    assert [timm.value(id_) for id_ in wanted] == [0.0004, 10, 300, 32, 200, False, "fp16"]
    gpt = read("nanogpt-wandb-overfit/config.yaml")
    assert gpt.dialect.NAME == "nanogpt"
    assert (gpt.value("optimizer.lr"), gpt.value("schedule.total"), gpt.value("precision")) == (0.001, 5000, "fp16")
    yolo = read("yolo-anemia-no-boxes/args.yaml")
    assert (yolo.dialect.NAME, yolo.value("run.epochs"), yolo.value("batch.global")) == ("ultralytics", 50, 16)
    (sr_path,) = (shared_runs / "paragonsr2-nano-config").glob("*.yml")
    sr = read(str(sr_path))
    assert sr.dialect.NAME == "trainner"
    assert sr.value("schedule.milestones") == [20000, 30000]
    assert (sr.value("clip.norm"), sr.value("checkpoint.every"), sr.value("amp.init_scale")) == (1.0, 20000, 65536.0)
    assert read("mlflow-lgbm-healthy/meta.yaml").dialect.NAME == "generic"


def test_a_learner_is_as_long_as_learn_is_told() -> None:
    text = "learning_rate: 1.0e-3\nn_steps: 128\nn_epochs: 6\ngamma: 0.9\ntotal_timesteps: 40000\n"
    knobs = read_knobs([parse_text(text, "a.yml", "yaml")])
    assert knobs.value("run.total_steps") == 40000
    assert "run.epochs" not in knobs, "n_epochs is of one rollout"
    assert read_knobs([parse_text("n_epochs: 6\n", "a.yml", "yaml")]).value("run.epochs") == 6
