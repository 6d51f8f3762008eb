"""How far a learning rate is off, and what to: by the kind of optimizer, and by how long the run is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from made_runs import BY_ID, NOISE, at_chance

from wheeltapper.causes import Case, Excluded, remedies_of, weighed
from wheeltapper.causes._look import at_any_scale
from wheeltapper.causes._settings import adaptive, starts_low, usual_rate
from wheeltapper.diagnosis.diagnose import ask_run
from wheeltapper.finding import Edit, Finding
from wheeltapper.run.model import Run
from wheeltapper.signals import Signals
from wheeltapper.testing import make_run


def case_of(run: Run) -> Case:
    return ask_run(run).case


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
    return float(remedies_of(BY_ID[cause], case_of(run))[0].edits[0].new)


def test_a_rate_that_is_far_off_goes_to_what_is_usual_for_the_length() -> None:
    adam = "optimizer: adamw\n"
    assert new_rate("lr-too-low", at_rate(1e-6, 400, optimizer=adam)) == pytest.approx(7.5e-3, rel=0.1)
    assert new_rate("lr-too-low", at_rate(1e-6, 100_000, optimizer=adam)) == pytest.approx(3e-4)
    assert new_rate("lr-too-high", at_rate(0.4, 400, optimizer=adam)) == pytest.approx(7.5e-3)
    assert new_rate("lr-too-low", at_rate(1e-4, 288, optimizer="optimizer: sgd\nmomentum: 0.9\n")) == pytest.approx(0.3)


@pytest.mark.parametrize("cause", ["training-longer-than-useful", "overfitting"])
def test_what_never_fell_was_neither_overdone_nor_learned_by_heart(cause: str) -> None:
    def answer(loss: list[float], onset: float) -> object:
        run = make_run({"train/loss": loss})
        flat = Finding("plateau", "flat", "ill", "is", series="train/loss", clock="step", onset=onset)
        return weighed(BY_ID[cause], Case(Signals(run), (flat,)))

    never = (1.0 + 0.01 * NOISE[:400]).tolist()
    assert isinstance(answer(never, 2.0), Excluded)
    learned = [1.0 + 2.0 / (1 + i) + 0.01 * NOISE[i] for i in range(400)]
    assert not isinstance(answer(learned, 100.0), Excluded)


def test_a_scale_that_fell_far_below_one_with_a_finite_loss_is_not_the_range_of_fp16() -> None:
    """The root of zero has no gradient at any scale; bf16 does not help, so no setting is offered."""

    def told(last: float, loss: float) -> tuple[str, tuple[Edit, ...]]:
        scale = [2.0**16 * (last / 2.0**16) ** min(1.0, i / 30) for i in range(200)]
        run = make_run(
            {"l_total": [1.0 / (1 + i) + 0.1 for i in range(20)] + [loss] * 180, "scale_g": scale},
            config="use_amp: true\namp_bf16: false\nprecision: fp16\n",
        )
        case = case_of(run)
        words = at_any_scale(case.get("loss_scale"), case.get("train_loss"))
        return words, remedies_of(BY_ID["loss-scale-collapse"], case)[0].edits

    words, edits = told(2.0**-19, 0.12)
    assert "not finite at any scale" in words
    assert edits == ()
    assert told(0.25, 0.12)[0] == "", "an honest overflow can need a scale below one"
    assert told(2.0**-19, float("nan"))[0] == "", "the forward pass overflows"
    assert told(0.25, 0.12)[1] != ()


def test_a_warm_up_that_begins_beyond_what_is_usual_does_not_start_low() -> None:
    def low(peak: float) -> bool:
        rate = [peak * min(1.0, (i + 1) / 16) for i in range(60)]
        run = make_run({**at_chance(10, 60), "lr": rate}, config=f"lr: {peak}\nmomentum: 0.9\nmax_steps: 5000\n")
        return starts_low(case_of(run))

    assert low(0.3)
    assert not low(24.0)
