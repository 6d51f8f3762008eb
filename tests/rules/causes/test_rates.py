"""How far a learning rate is off, and what to: by the kind of optimizer, and by how long the run is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from made_runs import at_chance, case_of, edits_of

from wheeltapper.rules.causes._settings import adaptive, usual_rate
from wheeltapper.rules.causes.loss_scale_collapse import at_any_scale
from wheeltapper.run.model import Run
from wheeltapper.testing import make_run


def at_rate(rate: float, steps: int, script: Path | None = None, optimizer: str = "") -> Run:
    config = f"learning_rate: {rate}\nmax_steps: {steps}\nnum_classes: 10\n{optimizer}"
    run = make_run(at_chance(10, 60), spacing=steps / 60, config=config, facts={"total_steps": steps})
    return run if script is None else replace(run, scripts=(str(script),))


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import torch\nopt = torch.optim.AdamW(m.parameters())", True),
        ("from torch.optim import SGD\nopt = SGD(m.parameters(), 0.1)", False),
        ("opt = AdamW(g) if big else SGD(g)", None),
        ("opt = make(g)", None),
        ("def broken(", None),
    ],
)
def test_the_script_names_the_optimizer_where_the_settings_do_not(code: str, told: bool | None, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(code)
    assert adaptive(case_of(at_rate(0.08, 400, script))) is told
    assert adaptive(case_of(at_rate(0.08, 400, script, "optimizer: sgd\n"))) is False, "the settings come first"


@pytest.mark.parametrize(("steps", "rate"), [(400, 7.5e-3), (100, 1e-2), (5000, 6e-4), (200_000, 3e-4)])
def test_short_runs_have_the_upper_end_of_what_is_usual(steps: int, rate: float) -> None:
    assert usual_rate(case_of(at_rate(1e-7, steps, optimizer="optimizer: adam\n"))) == pytest.approx(rate)


def new_rate(cause: str, run: Run) -> float:
    return float(edits_of(cause, case_of(run))["optimizer.lr"][1])


def test_a_rate_that_is_far_off_goes_to_what_is_usual_for_the_length() -> None:
    adam = "optimizer: adamw\n"
    assert new_rate("lr-too-low", at_rate(1e-6, 400, optimizer=adam)) == pytest.approx(7.5e-3, rel=0.1)
    assert new_rate("lr-too-low", at_rate(1e-6, 100_000, optimizer=adam)) == pytest.approx(3e-4)
    assert new_rate("lr-too-high", at_rate(0.4, 400, optimizer=adam)) == pytest.approx(7.5e-3)
    assert new_rate("lr-too-low", at_rate(1e-4, 288, optimizer="optimizer: sgd\nmomentum: 0.9\n")) == pytest.approx(0.3)


def test_a_scale_that_fell_far_below_one_with_a_finite_loss_is_not_the_range_of_fp16() -> None:
    """The root of zero has no gradient at any scale; bf16 does not help, so no setting is offered."""

    def told(last: float, loss: float) -> tuple[str, dict[str, tuple[object, object]]]:
        scale = [2.0**16 * (last / 2.0**16) ** min(1.0, i / 30) for i in range(200)]
        run = make_run(
            {"l_total": [1.0 / (1 + i) + 0.1 for i in range(20)] + [loss] * 180, "scale_g": scale},
            config="use_amp: true\namp_bf16: false\nprecision: fp16\n",
        )
        case = case_of(run)
        words = at_any_scale(case.get("loss_scale"), case.get("train_loss"))
        return words, edits_of("loss-scale-collapse", case)

    words, edits = told(2.0**-19, 0.12)
    assert "not finite at any scale" in words
    assert edits == {}
    assert told(0.25, 0.12)[0] == "", "an honest overflow can need a scale below one"
    assert told(2.0**-19, float("nan"))[0] == "", "the forward pass overflows"
    assert told(0.25, 0.12)[1] == {"precision": ("fp16", "bf16")}
