"""plan.yaml: what is written is read back; what is misspelt is said plainly."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import yaml

from wheeltapper import api
from wheeltapper.errors import InputError
from wheeltapper.remedy.plan import Plan
from wheeltapper.remedy.plan_file import dump_plan, load_plan, parse_plan

JUDGED_AS = "lr-too-high"  # what is done about it is tested here, not what the judge says

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def plan() -> Plan:
    found = api.fix(EXAMPLES / "collapsed").plan
    assert found is not None
    return found


def test_a_plan_is_read_back_as_it_was_written(plan: Plan) -> None:
    assert parse_plan(dump_plan(plan)) == plan


@pytest.mark.parametrize(
    ("option", "edits", "says"),
    [
        ("A", False, "Nothing is trained"),
        ("B", True, "Start the next run with the changed settings, then:"),
        ("B", False, "Mend by hand what `issues` names"),
        ("C", True, "Resume from the checkpoint under `resume`"),
    ],
)
def test_its_head_says_what_to_do_with_it(option: str, edits: bool, says: str, plan: Plan) -> None:
    one = msgspec.structs.replace(plan, option=option, edits=plan.edits if edits else ())
    head = [line for line in dump_plan(one).splitlines() if line.startswith("#")]
    assert says in head[0]
    assert any("wheeltapper followup" in line for line in head) == (option != "A")


def test_every_number_says_where_it_comes_from(plan: Plan) -> None:
    assert plan.expected
    for band in plan.expected:
        assert band.source
        assert band.low is not None or band.high is not None
    assert all(warning.reason for warning in plan.warnings)
    assert all(question.test for question in plan.questions)
    assert all(rule.when and rule.then for rule in plan.contingencies)


def test_the_rate_is_promised_as_the_corrected_config_plans_it(plan: Plan) -> None:
    """timm: five epochs up to 6e-4 from 1e-6 are in args.yaml; half of the old peak is the new one."""
    rates = [band for band in plan.expected if band.metric == "lr"]
    assert len(rates) >= 4
    peak = max(band.high or 0.0 for band in rates)
    assert 5.5e-4 < peak < 6.2e-4
    assert all((band.low or 0) <= (band.high or 0) for band in rates)


def test_no_warning_rings_inside_what_is_promised(plan: Plan) -> None:
    for warning in plan.warnings:
        for band in plan.expected:
            if band.metric != warning.metric or band.at < (warning.after or 0):
                continue
            assert warning.above is None or band.high is None or band.high <= warning.above
            assert warning.below is None or band.low is None or band.low >= warning.below


def changed(plan: Plan, **keys: object) -> str:
    data = yaml.safe_load(dump_plan(plan))
    data.update(keys)
    return yaml.safe_dump(data)


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"version": 2}, "version 2; this Wheeltapper reads version 1"),
        ({"version": True}, "version True"),
        ({"expectd": []}, "there is no key `expectd`"),
        ({"option": "D"}, "option"),
        ({"expected": [{"metric": "lr", "clock": "step", "at": 5, "source": "x"}]}, "neither `low` nor `high`"),
        ({"expected": [{"metric": "lr", "clock": "step", "at": 5, "low": 1, "source": " "}]}, "does not say its `source`"),
        ({"expected": [{"metric": "lr", "clock": "step", "at": "5", "low": 1, "source": "x"}]}, "a number is needed, not a text"),
        ({"edits": [{"knob": "a", "old": 1, "new": 2}]}, "`edits`, entry 1: the key `cause` is missing"),
        ({"case": "../../.bashrc"}, "the history is called case.json"),
        ({"source": "exp1"}, "`source`: a group of keys is needed, not a text"),
        ({"configs": ["../config.yaml"]}, "is not the name of a file beside the plan"),
        ({"expected": [{"metric": "lr", "clock": "steps", "at": 5, "low": 1, "source": "x"}]}, "`clock`: steps is not among step,"),
        ({"expected": [{"metric": "lr", "clock": "step", "at": 5, "low": 2, "high": 1, "source": "x"}]}, "2 lies above `high`, 1"),
        ({"expected": [{"metric": "lr", "clock": "step", "at": 5, "low": 2, "within": -1, "source": "x"}]}, "-1 is below zero"),
    ],
)  # fmt: skip
def test_a_wrong_entry_is_named(plan: Plan, keys: dict[str, object], says: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_plan(changed(plan, **keys), "p.yaml")
    assert says in str(caught.value)
    assert str(caught.value).startswith("p.yaml")


@pytest.mark.parametrize("value", [".nan", ".inf", "-.inf"])
def test_what_is_no_number_is_refused_with_its_line(value: str, plan: Plan) -> None:
    lines = dump_plan(plan).splitlines()
    spot = next(n for n, line in enumerate(lines) if line.startswith("  low: "))
    lines[spot] = f"  low: {value}"
    with pytest.raises(InputError) as caught:
        parse_plan("\n".join(lines), "p.yaml")
    assert str(caught.value).startswith(f"p.yaml:{spot + 1}")
    assert "`expected`, entry 1, `low`: " in str(caught.value)


def test_a_wrong_entry_is_named_with_its_line(plan: Plan) -> None:
    text = dump_plan(plan).replace("  clock: epoch\n  at: 10.0", "  clock: epochs\n  at: 10.0", 1)
    line = text.splitlines().index("  clock: epochs") + 1
    with pytest.raises(InputError) as caught:
        parse_plan(text, "p.yaml")
    assert str(caught.value).startswith(f"p.yaml:{line}")


@pytest.mark.parametrize("text", ["", "a: [", "- 1", "{}", "\x00", "&a [*a]", "version: !!python/object:os.system x"])
def test_what_is_no_plan_is_said_so(text: str, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(text)
    with pytest.raises(InputError):
        load_plan(tmp_path / "plan.yaml")


def test_a_missing_or_binary_file_is_no_traceback(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_plan(tmp_path / "none.yaml")
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(InputError, match="not text"):
        load_plan(tmp_path / "b.yaml")
