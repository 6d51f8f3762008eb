"""A small run with known numbers, and what is said to claims about it."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from wheeltapper import api
from wheeltapper.cli.main import main
from wheeltapper.review.answer_states import evaluated
from wheeltapper.review.model import ClaimFile, Review, Value

STEPS = range(10, 1010, 10)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Training loss falls, validation loss turns at step 400 and rises; the rate is constant; no average, no fp16."""
    folder = tmp_path_factory.mktemp("run")
    lines = []
    for step in STEPS:
        lines.append({"step": step, "loss": 3.0 * 0.995**step + 0.02, "lr": 0.001})
        if step % 50 == 0:
            val = 2.0 - 0.003 * step if step <= 400 else 0.8 + 0.002 * (step - 400)
            lines.append({"step": step, "val_loss": val, "val_acc": min(0.9, 0.1 + step / 1000)})
    (folder / "log.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    (folder / "config.yaml").write_text(
        "learning_rate: 0.001\nlr_schedule: constant\nbatch_size: 64\nmax_steps: 1000\ndropout: 0.1\nprecision: fp32\nwarmup_steps: 10\nsave_every: 500\n"
    )
    return folder


def verdicts(text: str, run: Path) -> list[str]:
    return [answer.verdict for answer in api.review(text, run).answers]


@pytest.mark.parametrize(
    "text",
    [
        "Validation loss is lowest at step 400 (0.80) and ends at 2.0.",
        "Validation loss rises after step 400.",
        "val_loss goes from 1.85 to 2.0.",
        "Validation accuracy reaches 90 %.",
        "Training loss falls to about 0.04.",
        "`learning_rate: 0.001`",
        "The batch size is 64.",
        "lr is constant at 0.001.",
        "The run finished all 1000 steps.",
        "There is dropout 0.1.",
        "ln(100) = 4.605.",
    ],
)
def test_what_is_true_is_supported_and_never_contradicted(text: str, run: Path) -> None:
    said = verdicts(text, run)
    assert "supported" in said
    assert "contradicted" not in said


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Validation loss ends at 0.31.", "not at 0.31"),
        ("Training loss grows during the run.", "the other way"),
        ("Validation loss starts to climb at step 100.", "lowest at step 400"),
        ("The validation loss bottoms out at step 800.", "0.8 at step 400"),
        ("The loss is high because the learning rate decays too fast.", "never falls"),
        ("The loss jumps because the EMA decay is too high.", "no average"),
        ("fp16 overflow made it unstable, mixed precision has numerical problems.", "fp32"),
        ("Increase `lr_warmup_final_ratio_v2`, it is too low.", "no key"),
        ("Set `dropout` to 0.1 to regularise.", "without effect"),
        ("The batch size is 32.", "64"),
        ("The training loss is NaN from step 300 on.", "every value is finite"),
        ("0.1 × sqrt(32) × 2 = 3.2", "1.1314"),
        ("It diverged because of no warmup.", "warm-up of 10"),
    ],
)
def test_what_is_wrong_is_contradicted_with_its_numbers(text: str, why: str, run: Path) -> None:
    against = [a for a in api.review(text, run).answers if a.verdict == "contradicted"]
    assert against, api.review(text, run).answers
    assert any(why in a.why for a in against), [a.why for a in against]


def test_an_edit_block_without_effect_and_one_with_an_unknown_key(run: Path) -> None:
    same = api.review("Change this:\n```yaml\nbatch_size: 64\n```\n", run)
    assert {a.verdict for a in same.answers} == {"contradicted"}
    other = api.review("Change this:\n```yaml\nbatch_size: 32\nfrobnicate_rate: 3\n```\n", run)
    said = {a.claim.text: a.verdict for a in other.answers if type(a.claim).__name__ == "Edit"}
    assert said == {"batch_size: 32": "undecided", "frobnicate_rate: 3": "contradicted"}


def test_a_checkpoint_off_the_saving_grid_is_not_there(run: Path) -> None:
    assert verdicts("Resume from the checkpoint of step 420.", run) == ["contradicted"]


def test_advice_is_no_claim_and_the_rest_is_unread(run: Path) -> None:
    review = api.review("Please try again.\nThe moon is made of green cheese and nothing else.\n", run)
    assert [a.verdict for a in review.answers] == ["no-claim"]
    assert [u.line for u in review.unread] == [2]


def test_what_the_record_lacks_is_said_to_be_lacking(run: Path) -> None:
    assert verdicts("PSNR ends at 31.2 dB.", run) in ([], ["not-in-record"])
    assert verdicts("Step 5000: val_loss should be about 0.3.", run) == ["contradicted"]  # beyond the plan


def test_claims_come_and_go_as_json(run: Path) -> None:
    file = ClaimFile(claims=(Value(subject=("val/loss",), low=0.8, high=0.8, moment="lowest", at=400, clock="step"),))
    again = msgspec.json.decode(msgspec.json.encode(file), type=ClaimFile)
    review: Review = api.review(again.claims, run)
    assert [a.verdict for a in review.answers] == ["supported"]
    assert review.answers[0].places


def test_the_schema_of_claims_is_that_of_the_types() -> None:
    from importlib.resources import files

    stored = json.loads((files("wheeltapper.report") / "schema" / "claims.json").read_text())
    assert {k: v for k, v in stored.items() if k not in ("$schema", "$id", "title")} == json.loads(
        json.dumps(msgspec.json.schema(ClaimFile))
    )


def test_answers_are_as_their_schema_says(run: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    from importlib.resources import files

    text = tmp_path / "d.md"
    text.write_text("Validation loss ends at 0.31.\nNonsense of a kind.\n")
    assert main(["review", str(text), str(run), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    jsonschema.validate(told, json.loads((files("wheeltapper.report") / "schema" / "review.json").read_text()))
    assert told["counts"]["contradicted"] == 1
    assert told["answers"][0]["places"][0].endswith(":120")


def test_bad_claims_and_missing_documents_are_errors_for_people(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "claims.json"
    bad.write_text('{"claims": [{"kind": "value"}]}')
    assert main(["review", str(bad), str(run), "--claims"]) == 2
    assert "claims.json" in capsys.readouterr().err
    assert main(["review", "/nowhere.md", str(run)]) == 2
    assert "there is no file" in capsys.readouterr().err


@pytest.mark.parametrize("expression", ["__import__('os')", "9**9**9", "1/0", "(" * 50, "a.b"])
def test_arithmetic_is_only_arithmetic(expression: str) -> None:
    with pytest.raises((ValueError, SyntaxError, ArithmeticError, RecursionError, MemoryError)):
        evaluated(expression)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\x00\x1b[31m",
        "```" * 500,
        "# " * 2000,
        "loss " * 5000,
        "((((" * 3000,
        "- a: &x [*x]\n" * 200,
        "1e" + "9" * 500,
    ],
)
def test_hostile_documents_are_survived(text: str, run: Path) -> None:
    assert api.review(text, run).run


def test_the_example_cases_are_answered_as_their_truth_tables_say() -> None:
    """One claim of each kind from the write-ups, word for word; the whole tables: research/review."""
    root = Path(__file__).resolve().parents[2] / "examples" / "cases"
    said = {
        "004-imagenet-onecycle": [
            ("Only updated on rank 0, causing distributed training issues", "contradicted"),
            ("Max LR still correctly reaches 0.8 at epoch 8", "supported"),
            ("Epoch 60: LR ≈ 0.00008 (final)", "contradicted"),
            ("~15,000 images/second throughput", "contradicted"),
            ("~50 seconds per epoch", "supported"),
        ],
        "001-sr-degradation": [
            ("Resume training from iteration 1,000 checkpoint (best performing)", "contradicted"),
            ("Stop current training", "contradicted"),
            ("Performance Loss: PSNR decline of 0.5097", "supported"),
        ],
        "000-edm-prior": [("scp remote:/path/checkpoint_step_025000.pth .", "contradicted")],
    }
    for folder, claims in said.items():
        for text, verdict in claims:
            decided = {a.verdict for a in api.review(text, root / folder).answers} & {"supported", "contradicted"}
            assert decided == {verdict}, (folder, text)
