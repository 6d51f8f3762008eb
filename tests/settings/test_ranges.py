"""Working ranges: what lies inside is never told, what lies outside is told with its cause, farthest first."""

from __future__ import annotations

import pytest

from wheeltapper.rules.causes import cause
from wheeltapper.settings.knobs import Knobs, read_knobs
from wheeltapper.settings.parse import parse_text
from wheeltapper.settings.ranges import RANGES, settings_beyond


def knobs(text: str) -> Knobs:
    return read_knobs([parse_text(text, "config.yaml", "yaml")])


def beyond(text: str) -> list[tuple[str, str]]:
    return [(found.range.knob, found.range.cause) for found in settings_beyond(knobs(text))]


@pytest.mark.parametrize(
    "text",
    [
        "optimizer: AdamW\nlr: 0.0003\nweight_decay: 0.1\nlabel_smoothing: 0.1\ndropout: 0.5\ngrad_clip: 1.0\n",
        "optimizer: SGD\nlr: 0.4\nmomentum: 0.9\nweight_decay: 0.0005\n",
        "optimizer: SGD\nlr: 1.0\nmomentum: 0.98\n",
        "temperature: 0.07\noptimizer: adam\nlr: 0.001\n",
        "grad_clip: 0\ndropout: 0\nweight_decay: 0\n",  # zero switches it off
    ],
)
def test_recipes_lie_inside(text: str) -> None:
    assert beyond(text) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("optimizer: AdamW\nlr: 0.26\n", ("optimizer.lr", "lr-too-high")),
        ("optimizer: Adam\nlr: 1.0e-8\n", ("optimizer.lr", "lr-too-low")),
        ("optimizer: SGD\nlr: 0.05\nmomentum: 0.999\n", ("optimizer.momentum", "momentum-too-high")),
        ("label_smoothing: 0.93\n", ("loss.label_smoothing", "label-smoothing-too-strong")),
        ("dropout: 0.97\n", ("augment.dropout", "dropout-too-high")),
        ("lora_r: 2\nlora_alpha: 2048\n", ("lora.alpha_over_rank", "lr-too-high")),
        ("lora_r: 32\nlora_alpha: 0.02\n", ("lora.alpha_over_rank", "lr-too-low")),
        ("mlm_probability: 0.95\n", ("mask.rate", "setting-beyond-practice")),
        ("momentum: 0.9\nlr: 0.03\nweight_decay: 2.0\n", ("optimizer.weight_decay", "weight-decay-too-strong")),  # momentum: SGD
    ],
)
def test_beyond_sense_is_told_with_its_cause(text: str, told: tuple[str, str]) -> None:
    assert beyond(text)[:1] == [told]


def test_one_step_is_where_sense_ends() -> None:
    for range_ in RANGES:
        assert range_.steps(range_.usual) == pytest.approx(0.0), range_
        assert range_.steps(range_.sense) == pytest.approx(1.0), range_


def test_every_range_names_a_cause_and_a_reason() -> None:
    for range_ in RANGES:
        assert cause(range_.cause) is not None, range_.cause
        assert range_.why
