"""Settings that cannot be meant: for each kind a wrong and a right configuration of the same make."""

from __future__ import annotations

import pytest

from wheeltapper.settings.parse import parse_text
from wheeltapper.settings.sanity import CHECKS, doubts_of
from wheeltapper.settings.sanity.bounds import bounds
from wheeltapper.settings.sanity.observed import known_keys, observed
from wheeltapper.settings.sanity.selection import way_of
from wheeltapper.settings.sanity.sheet import Sheet

# What is wrong, the line it stands on, the healthy text (yaml), what is replaced by what.
CASES = [
    ("dropout-too-high", "net:\n  width: 64\n  dropout: 0.1\n", "0.1", "5"),
    ("setting-beyond-practice", "augment:\n  color_jitter_prob: 0.8\n", "0.8", "8"),
    ("init-too-large", "model:\n  initializer_range: 0.02\n", "0.02", "20"),
    ("setting-beyond-practice", "generator:\n  z_dim: 128\n", "128", "1"),
    ("setting-beyond-practice", "model:\n  norm_eps: 1.0e-5\n", "1.0e-5", "10.0"),
    ("ema-horizon-too-long", "train:\n  ema_decay: 0.999\n", "0.999", "1.0"),
    ("lr-too-high", "optimizer:\n  name: adamw\n  lr: 3.0e-4\n", "3.0e-4", "3.0"),
    ("lr-too-high", "optimizer: lion\nlr: 1.0e-4\nmin_lr: 1.0e-5\n", "1.0e-5", "1.0e-3"),
    ("lr-too-high", "scheduler:\n  name: multistep\n  milestones: [30, 60]\n  gamma: 0.1\nepochs: 90\n", "0.1", "10"),
    ("weight-decay-too-strong", "optimizer:\n  name: sgd\n  lr: 0.1\n  weight_decay: 1.0e-4\n", "1.0e-4", "10"),
    ("setting-beyond-practice", "optimizer:\n  name: adam\n  betas: [0.9, 0.999]\n", "[0.9, 0.999]", "[0.999, 0.9]"),
    ("milestones-never-reached", "epochs: 90\nlr_schedule:\n  milestones: [30, 60]\n", "[30, 60]", "[150, 180]"),
    ("schedule-too-short", "max_iters: 600000\nlr_decay_iters: 600000\nlearning_rate: 6.0e-4\n", "lr_decay_iters: 600000", "lr_decay_iters: 6000"),
    ("warmup-longer-than-run", "epochs: 100\nwarmup_epochs: 5\n", "warmup_epochs: 5", "warmup_epochs: 300"),
    ("early-stop-wrong-mode", "monitor: val_wer\nmode: min\n", "min", "max"),
    ("early-stop-wrong-mode", "metric_for_best_model: accuracy\ngreater_is_better: true\n", "true", "false"),
    ("setting-beyond-practice", "metrics: [Recall, MRR]\ntopk: [10]\nvalid_metric: MRR@10\n", "MRR@10", "MRR@50"),
    ("setting-beyond-practice", "bf16: true\nfp16: false\n", "false", "true"),
    ("train-val-leak", "data:\n  train_file: a/train.csv\n  val_file: a/val.csv\n", "a/val.csv", "a/train.csv"),
    ("train-val-leak", "data:\n  train_file: a/train.csv\n  val_file: a/val.csv\n", "a/train.csv", "a/test.csv"),
    ("target-leak", "label: y\nfeatures: [a, b, c]\n", "[a, b, c]", "[a, y, c]"),
    ("input-not-normalised", "mean: [123.7, 116.3, 103.5]\nstd: [58.4, 57.1, 57.4]\n", "[58.4, 57.1, 57.4]", "[0.229, 0.224, 0.225]"),
    ("objective-mismatch", "dataset: cifar10\nnum_classes: 10\n", "num_classes: 10", "num_classes: 12"),
    ("objective-mismatch", "nc: 3\nnames: [a, b, c]\n", "nc: 3", "nc: 80"),
    ("setting-beyond-practice", "model:\n  d_model: 512\n  n_heads: 8\n", "8", "7"),
    ("setting-beyond-practice", "hidden_size: 512\nmax_position_embeddings: 2048\nseq_length: 2048\n", "max_position_embeddings: 2048", "max_position_embeddings: 512"),
    ("setting-beyond-practice", "moe:\n  num_experts: 8\n  top_k: 2\n", "2", "16"),
    ("setting-beyond-practice", "assigner:\n  pos_iou_thr: 0.7\n  neg_iou_thr: 0.3\n", "0.7", "0.1"),
    ("temperature-too-high", "student_temp: 0.1\nteacher_temp: 0.04\n", "0.04", "0.7"),
    ("objective-mismatch", "gan:\n  real_label: 1.0\n  fake_label: 0.0\n", "0.0", "1.0"),
    ("wrong-loss-sign", "loss:\n  lambda_rec: 10\n  lambda_kl: 1\n", "lambda_rec: 10", "lambda_rec: -10"),
    ("loss-weight-runaway", "loss:\n  bbox_loss_coef: 5\n  giou_loss_coef: 2\n  mask_loss_coef: 1\n", "5", "50000"),
    ("gamma-too-low", "algo: ppo\ngae_lambda: 0.95\ngamma: 0.99\n", "0.99", "0.1"),
    ("setting-beyond-practice", "algo: sac\nreplay_buffer: true\nbatch_size: 256\ntau: 0.005\n", "0.005", "0.0"),
    ("too-few-updates", "algo: td3\ntotal_timesteps: 1000000\nlearning_starts: 25000\n", "25000", "5000000"),
    ("policy-collapse", "algorithm: grpo\nrollout:\n  n: 5\n  temperature: 1.0\n", "n: 5", "n: 1"),
    ("setting-beyond-practice", "hop_length: 256\nwin_length: 1024\n", "1024", "128"),
    ("accumulation-not-done", "global_batch_size: 512\nmicro_batch_size: 4\ndata_parallel_size: 32\n", "512", "500"),
    ("lr-too-high", "library: xgboost\nparams:\n  eta: 0.05\n  max_depth: 6\n", "0.05", "50"),
    ("params-not-in-optimizer", "base_model: meta-llama/Llama-3-8B\nlora_target_modules: [q_proj, v_proj]\n", "[q_proj, v_proj]", "[query_key_value]"),
    ("target-misaligned", "tokenizer: bert-large-uncased\nvocab_size: 30528\n", "30528", "21128"),
    ("unknown-config-key", "data:\n  num_workers: 4\nweight_decay: 0.1\ngradient_accumulation_steps: 4\n", "gradient_accumulation_steps", "gradient_acumulation_steps"),
    ("warmup-longer-than-run", "max_duration: 24800ba\nscheduler:\n  t_warmup: 100ba\n", "100ba", "100ep"),
]  # fmt: skip


def _told(text: str, name: str = "config.yaml", kind: str = "yaml") -> set[str]:
    return {doubt.cause for doubt in doubts_of([parse_text(text, name, kind)])}


@pytest.mark.parametrize(("cause", "text", "old", "new"), CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)])
def test_wrong_is_told_and_right_is_not(cause: str, text: str, old: str, new: str) -> None:
    assert text.count(old) >= 1
    assert _told(text) == set()
    assert cause in _told(text.replace(old, new, 1))


def test_the_place_is_the_line_of_the_setting() -> None:
    doubts = doubts_of([parse_text("a: 1\nmodel:\n  dropout: 7\n", "c.yaml", "yaml")])
    assert [(d.settings[0].leaf.file, d.settings[0].line) for d in doubts] == [("c.yaml", 3)]


def test_two_environments_in_one_file_are_judged_each() -> None:
    text = "Hopper:\n  n_timesteps: 1000000\n  gamma: 0.99\n  gae_lambda: 0.9\nAnt:\n  n_timesteps: 1000000\n  gamma: 0.2\n  gae_lambda: 0.9\n"
    doubts = doubts_of([parse_text(text, "ppo.yml", "yaml")])
    assert [d.settings[0].name for d in doubts] == ["Ant.gamma"]


def test_a_factor_of_noam_is_no_rate_and_adapters_bear_more() -> None:
    noam = "optimizer: adam\nlearning_rate: 2\ndecay_method: noam\nwarmup_steps: 8000\n"
    assert _told(noam) == set()
    assert "lr-too-high" in _told(noam.replace("noam", "none"))
    tuned = "model_name_or_path: bert-base-uncased\noptim: adamw_torch\nlearning_rate: 2.0e-2\n"
    assert "lr-too-high" in _told(tuned)
    assert _told(tuned + "lora_r: 8\nlora_alpha: 16\n") == set()


def test_zero_and_minus_one_switch_off() -> None:
    assert _told("ema_decay: 0\nloss_scale: 0\nfp16: true\nmax_epochs: 0\nmax_steps: 20000\nclip_grad: -1\n") == set()


def test_settings_written_in_python_text_and_with_dots() -> None:
    text = "run.batch_size = 8\nNet.init_std = 30\n"
    assert "init-too-large" in _told(text, "a.gin", "keyvalue")
    yaml = 'Hopper:\n  policy: MlpPolicy\n  gae_lambda: 0.9\n  policy_kwargs: "dict(log_std_init=20, ortho_init=False)"\n'
    assert "init-too-large" in _told(yaml)


def test_which_way_is_better() -> None:
    assert [way_of(m) for m in ("val/top1", "val_loss", "eval_wer", "rouge2", "mystery")] == ["up", "down", "down", "up", ""]


def test_tables_are_whole() -> None:
    assert len(CHECKS) > 80
    assert all(b.low < b.high for b in bounds())
    assert len(observed()) > 200
    assert "weight_decay" in known_keys()
    assert all(row.least <= row.most for row in observed().values())


def test_nothing_at_all_is_no_doubt() -> None:
    assert doubts_of([]) == []
    assert Sheet([]).settings == ()
