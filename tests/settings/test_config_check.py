"""What is wrong with a config: certain only where the framework's code decides it, nothing on healthy files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from wheeltapper.settings.check import check_config, known_key
from wheeltapper.settings.dialects import dialect_named
from wheeltapper.settings.dialects.schema import Problem
from wheeltapper.settings.parse import parse_file, parse_text
from wheeltapper.settings.tree import ConfigTree

RECORDS = Path(__file__).resolve().parents[1] / "records" / "configs"
HEALTHY = sorted(p for p in (RECORDS / "healthy").rglob("*") if p.is_file())


def tree_of(name: str) -> ConfigTree:
    tree = parse_file(RECORDS / name)
    assert tree is not None
    return tree


def told(problems: list[Problem]) -> set[tuple[str, str, str | None, int | None]]:
    return {(p.grade, p.id, p.key, p.place.line) for p in problems}


@pytest.mark.parametrize("path", HEALTHY, ids=lambda p: p.name)
def test_a_healthy_config_has_no_problem(path: Path) -> None:
    tree = parse_file(path)
    assert tree is not None
    assert [p for p in check_config([tree]) if p.grade == "is"] == []
    assert [p for p in check_config([tree]) if p.id != "syntax"] == []


def test_there_are_enough_of_them() -> None:
    assert len(HEALTHY) >= 38


def test_the_fix_that_does_not_load() -> None:
    problems = check_config([tree_of("faulty/trainner_case_a.yml")])
    assert told(problems) == {
        ("is", "string-number", "train.scheduler.eta_min", 19),
        ("is", "missing", "path", 2),
        ("is", "missing", "datasets", 8),
        ("is", "missing", "network_g", 8),
        ("is", "missing", "logger", 8),
        ("suspected", "unknown-key", "train.grad_clip_max_norm", 11),
    }
    number = next(p for p in problems if p.id == "string-number")
    assert number.suggestion == "Write 1.0e-6."
    assert number.place.column == 14


def test_with_the_version_known_the_late_key_is_certain() -> None:
    tree = tree_of("faulty/trainner_case_a.yml")
    old = {p.key: p.grade for p in check_config([tree], version="2025-11-29")}
    assert old["train.grad_clip_max_norm"] == "is"
    healthy = tree_of("healthy/trainner_gan_cosine.yml")
    assert check_config([healthy], version="2026-06-01") == []
    assert {p.key for p in check_config([healthy], version="2025-06-01")} == {
        "train.grad_clip_max_norm",
        "train.restart_scheduler",
    }


def test_unknown_misplaced_and_mistyped_keys_of_a_strict_loader() -> None:
    problems = check_config([tree_of("faulty/trainner_misplaced.yml")])
    assert told(problems) == {
        ("is", "wrong-place", "total_iter", 5),
        ("is", "unknown-key", "warmup_itr", 6),
        ("is", "unknown-key", "train.grad_clp", 15),
        ("is", "wrong-type", "datasets.train.batch_size_per_gpu", 10),
        ("is", "string-number", "train.ema_decay", 14),
        ("is", "wrong-type", "logger.use_tb_logger", 19),
        ("is", "unknown-key", "train.scheduler.milestone", 18),
        ("is", "missing", "train.scheduler.milestones", 18),
    }
    hints = {p.key: p.suggestion for p in problems}
    assert hints["total_iter"] == "It belongs at `train.total_iter`."
    assert hints["warmup_itr"] == "Did you mean `train.warmup_iter`?"
    assert hints["train.grad_clp"] == "Did you mean `train.grad_clip`?"


def test_what_a_run_printed_was_accepted() -> None:
    tree = replace(tree_of("faulty/trainner_misplaced.yml"), kind="echoed in log")
    assert check_config([tree]) == []


def test_an_unknown_key_in_a_file_for_the_fork_is_only_suspected() -> None:
    text = (RECORDS / "healthy" / "trainner_multistep.yml").read_text(encoding="utf-8")
    text = text.replace("  total_iter:", "  dynamic_loss_scheduling: {enabled: true}\n  my_new_key: 1\n  total_iter:")
    (problem,) = check_config([parse_text(text, "a.yml", "yaml")])
    assert (problem.grade, problem.key) == ("suspected", "train.my_new_key")


def test_string_numbers_by_what_the_framework_does_with_them() -> None:
    (problem,) = check_config([tree_of("faulty/basicsr_string_lr.yml")])
    assert (problem.grade, problem.key) == ("is", "train.optim_g.lr")
    own = check_config([parse_text("lr: 1e-3\nmodel:\n  name: 1e5\n", "a.yml", "yaml")])
    assert told(own) == {("suspected", "string-number", "lr", 1)}
    hydra = parse_text("defaults: [x]\noptim:\n  lr: 1e-3\n", "a.yml", "yaml")
    assert check_config([hydra]) == []


def test_hf_slips_and_overrides() -> None:
    problems = check_config([tree_of("faulty/hf_typo.yaml")])
    assert told(problems) == {
        ("suspected", "unknown-key", "gradient_acumulation_steps", 7),
        ("suspected", "string-number", "learning_rate", 3),
        ("is", "overridden", "warmup_ratio", 6),
        ("is", "conflict", "bf16", 10),
    }


def test_a_scripts_own_keys_are_no_slips() -> None:
    text = (RECORDS / "healthy" / "hf_sft.yaml").read_text(encoding="utf-8")
    extra = text + "adam_beta3: 0.1\nlogging_step_size: 3\nmax_steps_per_epoch: 2\nseeds: 4\nfp8: false\n"
    assert check_config([parse_text(extra, "a.yaml", "yaml")]) == []


def test_ultralytics_refuses_and_overrides() -> None:
    (unknown,) = check_config([tree_of("faulty/yolo_cli.txt")])
    assert (unknown.grade, unknown.key, unknown.suggestion) == ("is", "learning_rate", "Did you mean `lr0`?")
    text = (RECORDS / "healthy" / "ultralytics_args.yaml").read_text(encoding="utf-8")
    auto = text.replace("optimizer: SGD", "optimizer: auto").replace("lr0: 0.01", "lr0: 0.001")
    (problem,) = check_config([parse_text(auto, "args.yaml", "yaml")])
    assert (problem.id, problem.key, problem.grade) == ("overridden", "lr0", "is")
    assert check_config([parse_text(text.replace("optimizer: SGD", "optimizer: auto"), "args.yaml", "yaml")]) == []


def test_other_traps() -> None:
    (ema,) = check_config([tree_of("faulty/mm_ema.py")])
    assert (ema.id, ema.suggestion) == ("ema-momentum", "For a decay of 0.9999 write momentum=0.0001.")
    (blank,) = check_config([tree_of("faulty/broken_continuation.sh")])
    assert (blank.grade, blank.place.line) == ("is", 1)
    sedd = {p.key for p in check_config([tree_of("faulty/sedd_unused.yaml")])}
    assert sedd == {"lr_schedule", "noise.sigma_min", "optim.lr"}


def test_syntax_and_duplicates_carry_their_place() -> None:
    problems = check_config([tree_of("ugly/duplicate.yaml")])
    assert [(p.id, p.grade, p.place.line) for p in problems] == [("duplicate-key", "is", 2), ("duplicate-key", "is", 5)]
    tabs = check_config([tree_of("ugly/tabs.yaml")])
    assert [(p.id, p.grade, p.place.line) for p in tabs] == [("syntax", "is", 2)]


def test_known_key_follows_stars_and_open_sections() -> None:
    trainner = dialect_named("trainner")
    assert known_key(trainner, ("datasets", "anything", "lq_size")) is not None
    assert known_key(trainner, ("network_g", "deep", "er")) is not None
    assert known_key(trainner, ("train", "nope")) is None


def test_the_real_config_of_the_case(shared_runs: Path) -> None:
    (path,) = (shared_runs / "paragonsr2-nano-config").glob("*.yml")
    tree = parse_file(path)
    assert tree is not None
    problems = check_config([tree])
    assert [p.grade for p in problems] == ["suspected"]  # min_weight: 1e-6 in a free block
    for args in sorted(shared_runs.glob("timm-*/args.yaml")):
        tree = parse_file(args)
        assert tree is not None
        assert check_config([tree]) == []
