"""What is read from a text: passages, numbers, positions, claims."""

from __future__ import annotations

import pytest

from wheeltapper.review.document import passages, repaired
from wheeltapper.review.quantities import positions, quantities
from wheeltapper.review.read_causes import PHRASES, read_causes
from wheeltapper.review.read_states import read_states
from wheeltapper.rules.causes import causes
from wheeltapper.run.model import Run

EMPTY = Run("r", ".", (), {})


@pytest.mark.parametrize(
    ("text", "low", "high", "unit"),
    [
        ("40.9 %", 40.9, 40.9, "%"),
        ("1,700", 1700, 1700, ""),
        ("25K", 25_000, 25_000, ""),
        ("1e3-1e4 range", 1e3, 1e4, ""),
        ("2^21", 2.0**21, 2.0**21, ""),
        ("~0.8", 0.8, 0.8, ""),
        ("11.5119 dB", 11.5119, 11.5119, "dB"),
        ("35k-40k iterations", None, None, None),  # a position, not a value
    ],
)
def test_numbers_as_people_write_them(text: str, low: float | None, high: float | None, unit: str | None) -> None:
    found = quantities(text)
    if low is None:
        assert found == []
    else:
        assert [(q.low, q.high, q.unit) for q in found] == [(low, high, unit)]


def test_parts_of_names_are_no_numbers() -> None:
    assert quantities("top-1 of a 64x64 ResNet50 on p4d.24xlarge") == []


def test_huge_numbers_do_not_break_the_reader() -> None:
    assert [q.low for q in quantities("2^999999999 and 9e999999 and 3")][-1] == 3


@pytest.mark.parametrize(
    ("text", "at", "clock"),
    [
        ("at step 1,000", 1000, "step"),
        ("@ 1,000 iterations", 1000, "step"),
        ("by epoch 3", 3, "epoch"),
        ("after 25k steps", 25_000, "step"),
    ],
)
def test_positions(text: str, at: float, clock: str) -> None:
    assert [(p.at, p.clock) for p in positions(text)] == [(at, clock)]


def test_wrongly_decoded_text_is_repaired_and_plain_text_stays() -> None:
    assert repaired("8Ã— A100") == "8× A100"
    assert repaired("café → naïve") == "café → naïve"


def test_blocks_know_their_language_and_what_introduces_them() -> None:
    parts = passages("## Fix\nUse this:\n```yaml\nlr: 0.1\n```\nIt ends at 3. Then it stops.\n")
    assert [(p.kind, p.line, p.text) for p in parts] == [
        ("heading", 1, "Fix"),
        ("prose", 2, "Use this:"),
        ("code", 4, "lr: 0.1"),
        ("prose", 6, "It ends at 3."),
        ("prose", 6, "Then it stops."),
    ]
    assert parts[2].language == "yaml"
    assert parts[2].before == "Use this:"


def test_a_fence_that_never_closes_loses_nothing() -> None:
    parts = passages("```yaml\na: 1\n## Next\nThe loss falls.\n")
    assert [p.kind for p in parts] == ["code", "heading", "prose"]


def test_every_phrase_names_something_that_is_answered() -> None:
    """An id in the table is a cause, or a rule that folk.refused or answer_causes answers."""
    folk = {
        "rate-never-reached", "longer-warmup", "cut-too-early", "average-against-schedule", "pre-step-harmless", "rate-of-an-epoch's-end",
        "high-loss-scale", "fp16-imprecise", "batch-norm-of-average", "average-on-one-rank", "loss-weights-shift", "clip-as-cure",
        "accumulated-gradients", "overfit-by-training-loss", "no-new-best", "noise-levels", "curriculum-outruns", "less-noise", "last-value-high",
    }  # fmt: skip
    own = {"degradation", "ema-is-evaluated", "resize-works", "noise-share", "diverged", "loss-weight-runaway"}
    known = {cause.id for cause in causes()} | folk | own
    assert {id_ for phrase in PHRASES for id_ in phrase.causes} - known == set()


@pytest.mark.parametrize("text", ["No sign of overfitting.", "There is no gradient explosion.", "It did not overfit."])
def test_what_is_denied_is_not_blamed(text: str) -> None:
    assert read_causes(text, 1) == []


def test_sums_speeds_and_checkpoints() -> None:
    kinds = {
        type(c).__name__
        for c in read_states("0.1 × sqrt(32) × 2 = 3.2 at 15,000 images/second, kept as `best.pt`", 1, EMPTY)
    }
    assert kinds == {"Sum", "Speed", "Checkpoint"}


def test_a_condition_is_no_claim() -> None:
    assert read_states("If NaN losses appear, lower the rate.", 1, EMPTY) == []
