"""Where a setting stands among public runs: shares, groups, words, and nothing said where too little is known."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import resources

import pytest

from wheeltapper.settings.knobs import read_knobs
from wheeltapper.settings.parse import parse_text
from wheeltapper.settings.practice import (
    IDS,
    Kind,
    Rank,
    beyond_practice,
    counts,
    meaning_of,
    numbers_of,
    place_in_practice,
    spread_of,
)
from wheeltapper.settings.practice.features import family_name, family_of, optimizer_class

REFERENCE = resources.files("wheeltapper.settings.practice") / "reference.json"


def test_the_reference_is_small_and_holds_only_counts() -> None:
    text = REFERENCE.read_text("utf-8")
    assert len(text) <= 400_000
    held = json.loads(text)
    for knob, groups in held["knobs"].items():
        assert knob in IDS
        for spread in groups.values():
            assert len(spread["v"]) == len(spread["c"])
            assert spread["v"] == sorted(spread["v"])
            assert 1 <= spread["r"] <= sum(spread["c"])
    configurations, repositories = counts()
    assert configurations >= 1000
    assert repositories >= 300


@pytest.mark.parametrize(
    ("knob", "value", "optimizer"),
    [
        ("optimizer.lr", 0.26, "AdamW"),
        ("optimizer.weight_decay", 51.0, None),
        ("clip.norm", 1e-6, None),
        ("augment.dropout", 0.95, None),
    ],
)
def test_what_hardly_anybody_runs_is_beyond_practice(knob: str, value: float, optimizer: str | None) -> None:
    rank = place_in_practice(knob, value, optimizer=optimizer)
    assert rank is not None
    assert rank.beyond
    assert rank.bits > 5
    assert f"{rank.n:,} public runs" in rank.sentence(value)


@pytest.mark.parametrize(
    ("knob", "value", "optimizer"),
    [
        ("optimizer.lr", 3e-4, "adamw"),
        ("optimizer.lr", 0.1, "sgd"),
        ("optimizer.weight_decay", 0.0, None),
        ("clip.norm", 1.0, None),
        ("batch.per_device", 32, None),
        ("ema.decay", 0.999, None),
        ("augment.dropout", 0.1, None),
        ("optimizer.beta2", 0.95, None),
    ],
)
def test_recipes_are_usual(knob: str, value: float, optimizer: str | None) -> None:
    rank = place_in_practice(knob, value, optimizer=optimizer)
    assert rank is not None
    assert not rank.beyond
    assert rank.bits < 2
    assert "usual" in rank.sentence(value)


def test_shares_add_up_and_ties_are_neither_below_nor_above() -> None:
    spread = spread_of("optimizer.lr")
    assert spread is not None
    value = spread.quantile(0.5)
    rank = place_in_practice("optimizer.lr", value)
    assert rank is not None
    tied = spread.counts[spread.values.index(value)] / spread.n
    assert rank.below + rank.above + tied == pytest.approx(1)


def test_the_group_falls_back_from_special_to_general() -> None:
    special = spread_of("optimizer.lr", Kind("adamw"))
    unknown = spread_of("optimizer.lr", Kind("no such optimizer", "no such family", "scratch"))
    everything = spread_of("optimizer.lr")
    assert special is not None
    assert everything is not None
    assert special.group == "AdamW"
    assert special.n < everything.n
    assert unknown == everything


def test_nothing_is_said_of_what_is_not_known() -> None:
    assert place_in_practice("no.such.knob", 1.0) is None
    assert place_in_practice("optimizer.lr", float("nan")) is None
    assert place_in_practice("optimizer.lr", True) is None
    few = Rank("x", 1.0, 0.0, 30, 30, "all kinds")
    assert not few.beyond  # thirty runs cannot tell half a percent


def test_numbers_of_a_run() -> None:
    text = (
        "optimizer: adamw\nlr: 0.001\nbetas: [0.9, 0.95]\nbatch_size: 8\ngradient_accumulation_steps: 4\n"
        "max_steps: 1000\nwarmup_steps: 100\nlora_r: 8\nlora_alpha: 32\n"
    )
    numbers = numbers_of(read_knobs([parse_text(text, "config.yaml", "yaml")]))
    assert numbers["optimizer.beta2"] == 0.95
    assert numbers["batch.effective"] == 32
    assert numbers["lora.alpha_over_rank"] == 4
    assert numbers["schedule.warmup_steps"] == 100


def test_beyond_practice_of_a_whole_configuration() -> None:
    usual = "optimizer: adamw\nlr: 0.0003\nweight_decay: 0.01\nmax_grad_norm: 1.0\nbatch_size: 32\n"
    assert beyond_practice(read_knobs([parse_text(usual, "c.yaml", "yaml")])) == []
    odd = usual.replace("0.01", "51").replace("norm: 1.0", "norm: 1.0e-6")
    found = beyond_practice(read_knobs([parse_text(odd, "c.yaml", "yaml")]))
    assert {id for id, _, _ in found} == {"optimizer.weight_decay", "clip.norm"}


def test_names() -> None:
    assert optimizer_class("paged_adamw_8bit") == "adamw"
    assert optimizer_class("torch.optim.SGD") == "sgd"
    assert family_name("gpt") == "lm"
    assert family_name("quantum") is None
    assert family_of(["configs/ppo_atari.yaml", "gae_lambda"]) == "rl"
    assert family_of(["lr"]) is None
    assert all(meaning_of(id) for id in IDS)


def test_the_reference_is_loaded_only_when_asked() -> None:
    code = (
        "import sys, wheeltapper.settings.check, wheeltapper.cli.main as m; m.build_parser();"
        "assert 'wheeltapper.settings.practice' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
