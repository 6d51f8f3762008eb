"""The first screen in words: no cause is told with more confidence than there is, nothing is said twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wheeltapper import api
from wheeltapper.finding import Evidence, Finding, Remedy
from wheeltapper.judge import wording
from wheeltapper.judge.model import SOMETHING_ELSE, BestCheckpoint, Expected, Missing, RankedCause
from wheeltapper.run.merge import merge
from wheeltapper.study import Study
from wheeltapper.testing import ask_sign, make_run

ILL = Finding("diverged", "train/loss rose from 1 to 9 since step 40", "ill", "is-p", series="train/loss")
FOR = Evidence(2.0, "it broke at the highest rate so far", "rate")
NOTHING = Study(merge([], name="run", root="."))
ASK = Missing("the gradient norm before clipping", "whether the norm rose before the loss did", bits=1.0)


def cause(id: str, title: str, share: float, *evidence: Evidence) -> RankedCause:
    remedy = Remedy(f"Mend {id}.", "try")
    return RankedCause(id, title, share, "suspected", evidence=evidence, remedies=(remedy,), trial="fork and see")


def other(share: float) -> RankedCause:
    return RankedCause(SOMETHING_ELSE, "Something else", share, "suspected")


def test_a_leading_cause_is_named_with_what_speaks_for_it() -> None:
    ranked = (cause("a", "The rate is too high", 0.7, FOR), cause("b", "OneCycleLR overruns", 0.2), other(0.1))
    assert wording.why("ill", [ILL], ranked, ()) == (
        "The rate is too high (70%): it broke at the highest rate so far",
        "or OneCycleLR overruns (20%)",
    )
    assert wording.todo("ill", ranked, None, [ASK], NOTHING) == (
        "Mend a.",
        "To prove it: fork and see.",
        "Log the gradient norm before clipping (whether the norm rose before the loss did).",
    )


@pytest.mark.parametrize(
    "ranked",
    [
        (cause("a", "The rate is too high", 0.4), cause("b", "The model overfits", 0.3, FOR), other(0.3)),
        (cause("a", "The rate is too high", 0.34, FOR), cause("b", "The model overfits", 0.33, FOR), other(0.33)),
        (other(0.6), cause("a", "The rate is too high", 0.4, FOR)),
    ],
    ids=["nothing speaks for it", "a tie", "something else is likelier"],
)
def test_a_cause_that_does_not_lead_is_not_treated(ranked: tuple[RankedCause, ...]) -> None:
    (line,) = wording.why("ill", [ILL], ranked, ())
    assert line.startswith("The cause is open: the rate is too high")
    steps = wording.todo("ill", ranked, None, [ASK], NOTHING)
    assert steps[0] == "To test the likeliest cause: fork and see."
    assert not any(step.startswith("Mend") for step in steps)


def test_the_headline_is_not_said_again() -> None:
    same = Evidence(4.0, ILL.summary, "sign")
    assert wording.why("ill", [ILL], (cause("a", "The rate is too high", 0.94, same), other(0.06)), ()) == (
        "The rate is too high (94%)",
    )


def test_a_settled_cause_asks_for_no_more_logging() -> None:
    best = BestCheckpoint("ckpt/11.pt", 11, "val/accuracy", 34.39, "best val/accuracy", exists=True)
    assert wording.todo("ill", (cause("a", "The rate is too high", 0.95, FOR), other(0.05)), best, [ASK], NOTHING) == (
        "Keep ckpt/11.pt (val/accuracy 34.39).",
        "Mend a.",
    )


def test_what_is_normal_is_one_sentence() -> None:
    normal = Expected("noise", "No new best is expected on noise", "no new best in 6 evaluations is expected")
    assert wording.why("sound", [], (), [normal]) == ("no new best in 6 evaluations is expected",)


def test_too_few_values_are_not_called_no_values(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("epoch,train_loss,val_loss\n1,0.5,0.6\n")
    (diagnosis,) = api.diagnose(tmp_path / "one.csv")
    assert diagnosis.headline == "Cannot tell: no series holds more than 1 value, too few to judge"
    assert diagnosis.why == ()
    assert diagnosis.todo == ("Come back when more of the run is logged.",)


def test_a_config_alone_asks_for_the_log_and_for_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("lr: 0.1\nbatch_size: 32\nepochs: 3\n")
    (diagnosis,) = api.diagnose(tmp_path)
    assert diagnosis.verdict == "cannot-tell"
    assert [line.split(";")[0] for line in diagnosis.todo] == ["Give the log of the run as well"]


def test_what_could_not_be_read_is_said_in_the_headline(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("loss: 0.5 " * 2_000_000 + "\n")
    (diagnosis,) = api.diagnose(tmp_path / "train.log")
    assert "could be read (" in diagnosis.headline
    assert "a line of 20.0 MB was left out" in diagnosis.headline


def test_one_finding_is_told_once() -> None:
    proof = Finding("ema", "The average lasts longer than the run.", "ill", "is")
    ranked = (cause("a", "The average is too long", 0.95, Evidence(7.0, proof.summary, "proof")), other(0.05))
    assert wording.why("ill", [ILL, proof], ranked, ()) == (
        "The average is too long (95%): The average lasts longer than the run",
    )


def test_what_a_trial_confirmed_need_not_be_proved_again() -> None:
    tried = Evidence(4.2, "the trial confirmed it", "trial")
    ranked = (cause("a", "The rate is too high", 0.8, FOR, tried), other(0.2))
    assert not any("To prove it" in line for line in wording.todo("ill", ranked, None, [ASK], NOTHING))


def test_a_position_is_told_with_its_clock() -> None:
    """ "at 12" may be a step or an epoch; a reader of the reasons must not guess."""
    rise = 0.1 * (1 + np.cos(np.pi * np.arange(40) / 20)) / 2
    loss = np.linspace(2.0, 1.0, 40)
    run = make_run({"train/loss": loss.tolist(), "lr": rise.tolist()}, clock="epoch", facts={"total_epochs": 40})
    said = [e.text for c in api.judge(run).causes for e in c.evidence if "the learning rate" in e.text]
    assert any("epoch 2" in text for text in said), said
    jump = [*np.linspace(3.0, 1.0, 30), *np.full(30, 2.9)]
    noisy = (np.array(jump) + np.random.default_rng(0).normal(0, 0.01, 60)).tolist()
    told = api.judge(make_run({"train/loss": noisy}, clock="epoch"))
    said = [f.summary for f in told.findings] + [e.text for c in told.causes for e in c.evidence]
    assert any("epoch 30" in text or "epoch 31" in text for text in said), said


def test_the_numbers_beside_a_share_agree_with_it() -> None:
    """The last values alone may say the opposite of nine evaluations in ten."""
    run = make_run({"train/loss": [2.0, 1.9, 1.8, 1.7, 1.6, 1.0], "val/loss": [1.5, 1.4, 1.3, 1.2, 1.1, 1.3]})
    (found,) = ask_sign("val-below-train", run)
    assert isinstance(found, Finding)
    assert "(median 1.3 against 1.75)" in found.summary
