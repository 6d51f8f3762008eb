"""Nonsense in a configuration gets a finding with file and line, never a traceback, and is never certain."""

from __future__ import annotations

import pytest

from wheeltapper.settings.check import check_config
from wheeltapper.settings.parse import parse_text

ORDINARY = "lr: 0.0003\noptimizer: adamw\nbatch_size: 64\nepochs: 20\nweight_decay: 0.01\nmax_grad_norm: 1.0\n"


def problems(text: str, format: str = "yaml") -> list[tuple[str, int | None]]:
    return [(one.id, one.place.line) for one in check_config([parse_text(text, f"config.{format}", format)])]


@pytest.mark.parametrize(
    ("line", "id"),
    [
        ("lr: fast", "text-for-number"),
        ("lr: -0.1", "nonsense-value"),
        ("weight_decay: -3", "nonsense-value"),
        ("dropout: 3.5", "nonsense-value"),
        ("lr: [0.1, 0.2]", "list-for-number"),
        ("epochs: many", "text-for-number"),
        ("learing_rate: 0.1", "near-miss"),
        ("clip_norm_: 0.5", "near-miss"),
    ],
)
def test_nonsense_is_found_at_its_line(line: str, id: str) -> None:
    assert (id, 2) in problems(f"seed: 1\n{line}\n")


def test_a_number_beyond_floats() -> None:
    found = problems('{"seed": 1,\n"lr": 1e400}', "json")
    assert ("nonsense-value", 2) in found


@pytest.mark.parametrize("value", ["auto", "${lr}", "null", "", "1e-3", "0"])
def test_what_stands_for_a_number_is_no_nonsense(value: str) -> None:
    assert not [id for id, _ in problems(f"lr: {value}\n") if id in ("nonsense-value", "text-for-number")]


def test_an_ordinary_configuration_has_no_finding() -> None:
    assert problems(ORDINARY) == []


def test_nothing_here_is_certain() -> None:
    text = "lr: -1.5\ndropout: 9\nclip_norm_: 1\noptimizer: adamw\nbatch_size: 8\nweight_decay: 5000\n"
    found = check_config([parse_text(text, "config.yaml", "yaml")])
    assert {one.grade for one in found} == {"suspected"}
    assert "beyond-practice" in {one.id for one in found}


def test_a_key_that_the_framework_does_not_know_beside_one_it_does() -> None:
    lines = ["out_dir = 'o'", "eval_iters = 20", "always_save_checkpoint = True", "n_embd = 96", "block_size = 64"]
    lines += ["decay_lr = True", "lr_decay_iters = 100", "learning_rate = 0.001", "warm_up_iters = 10"]
    text = "\n".join(lines) + "\n"
    found = check_config([parse_text(text, "train_x.py", "python")])
    assert (9, "Did you mean `warmup_iters`?") in [(p.place.line, p.suggestion) for p in found]
