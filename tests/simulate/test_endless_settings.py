"""Settings are untrusted: a length without end is refused, not simulated; a word where a number belongs is an answer."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from wheeltapper import api
from wheeltapper.errors import InputError
from wheeltapper.finding import Unknown
from wheeltapper.settings.knobs import read_knobs
from wheeltapper.settings.parse import FORMATS, parse_file, parse_text
from wheeltapper.simulate.ema import simulate_ema
from wheeltapper.simulate.plan import MOST_TICKS, Plan, held
from wheeltapper.simulate.plan_from_knobs import planned_lr
from wheeltapper.simulate.scaler import DEEPSPEED, TORCH, scale_history, skip_bounds
from wheeltapper.simulate.schedules import simulate

CONFIGS = Path(__file__).resolve().parents[1] / "records" / "configs" / "healthy"
FILES = sorted(file for file in CONFIGS.rglob("*") if file.is_file())
SECONDS = 20.0  # CPU time; a plan of the most updates that are drawn takes five
ENDLESS = ("2000000000", "1e300", "-1", "0", "nan", "'word'", "[1, 2]", "9" * 400)


@pytest.mark.parametrize("file", FILES, ids=lambda p: p.name)
def test_any_number_of_a_config_may_be_anything(file: Path, tmp_path: Path) -> None:
    """`epochs: 2000000000` never ended: the plan was drawn epoch by epoch."""
    text = file.read_text(encoding="utf-8")
    numbers = list(re.finditer(r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?(?![\w.])", text))
    keyed = [m for m in numbers if re.search(r"epoch|iter|step|batch|lr|warm|cycle|kimg", text[max(0, m.start() - 25) : m.start()], re.I)]
    begun = time.process_time()
    for i, number in enumerate(keyed[:12]):
        target = tmp_path / file.name
        target.write_text(text[: number.start()] + ENDLESS[i % len(ENDLESS)] + text[number.end() :], encoding="utf-8")
        tree = parse_file(target)
        if tree is not None and len(tree):
            planned_lr(read_knobs([tree]), trees=[tree], steps_per_epoch=100)
    assert time.process_time() - begun < SECONDS


@pytest.mark.parametrize("key", ["epochs", "max_steps", "warmup_epochs", "batch_size", "lr_cycle_limit", "num_cycles"])
def test_check_ends_on_two_thousand_million(tmp_path: Path, key: str) -> None:
    for name, text in (
        ("args.yaml", "sched: cosine\nepochs: 90\nlr: 0.1\nwarmup_epochs: 5\nbatch_size: 32\nsched_on_updates: false\n"),
        ("training_args.json", '{"learning_rate": 1e-4, "max_steps": 1000, "lr_scheduler_type": "cosine_with_restarts", "num_cycles": 1}'),
    ):
        changed = re.sub(rf'(\b{key}"?: ?)\d+', r"\g<1>2000000000", text)
        (tmp_path / name).write_text(changed if changed != text else text.rstrip("}\n") + ("" if "{" in text else f"\n{key}: 2000000000\n") + ("}" if "{" in text else ""))
        begun = time.process_time()
        api.check(tmp_path / name)
        assert time.process_time() - begun < SECONDS


def test_what_cannot_be_drawn_is_refused() -> None:
    for call in (
        lambda: simulate("torch.CosineAnnealingLR", MOST_TICKS + 1, T_max=10),
        lambda: simulate("hf.linear", 2_000_000_000, num_training_steps=5),
        lambda: simulate("mmengine", 2_000_000_000, schedulers=[]),
        lambda: simulate_ema("torch", 2_000_000_000, decay=0.999),
        lambda: scale_history(TORCH, 2_000_000_000),
        lambda: held(simulate("torch.StepLR", 1000, step_size=10), 1_000_000),
    ):
        with pytest.raises(InputError, match="more than can be drawn"):
            call()


def test_many_restarts_are_many_values_and_few_words() -> None:
    plan = simulate("hf.cosine_with_restarts", 100, num_training_steps=100, num_cycles=2_000_000_000)
    assert len(plan.events) <= 1002
    assert isinstance(simulate("timm.cosine", 100, t_initial=1, cycle_limit=2_000_000_000), Plan)


@pytest.mark.parametrize("scaler", [TORCH, DEEPSPEED])
def test_skips_of_a_run_without_end_are_not_counted_one_by_one(scaler: object) -> None:
    begun = time.process_time()
    bounds = skip_bounds(scaler, 10**15, 2.0**16)  # type: ignore[arg-type]
    assert bounds.possible
    assert (bounds.low, bounds.high) == (0, 10**15)
    assert time.process_time() - begun < SECONDS


def test_words_where_numbers_belong_are_an_answer() -> None:
    tree = parse_text("sched: cosine\nepochs: many\nlr: 0.1\nwarmup_epochs: [1]\nsched_on_updates: true\nopt: sgd\n", "args.yaml", "yaml")
    assert isinstance(planned_lr(read_knobs([tree]), trees=[tree], steps_per_epoch=10), Unknown)


def test_a_key_that_looks_like_a_place_in_a_list(tmp_path: Path) -> None:
    tree = parse_text("python train.py a.999999999=1 a.b.-1=2 lr=0.1\n", "run.sh", "argv")
    assert isinstance(tree.nested(), dict)


SHELL = {
    "doubled text": "A=0123456789\n" + "A=$A$A\n" * 60 + "python train.py --lr $A\n",
    "doubled arrays": "a=(" + "x" * 400 + ")\n" + "".join(f"a{i}=(${{a{i - 1 if i else ''}[@]}} ${{a{i - 1 if i else ''}[@]}})\n" for i in range(16)) + "python train.py ${a15[@]}\n",
    "nested defaults": "python train.py --lr " + "${A:-" * 300 + "1" + "}" * 300 + "\n",
    "appended": "A=1\n" + "A+=$A$A\n" * 60 + "python t.py $A\n",
    "array of long ones": "A=" + "x" * 9000 + "\nB=(" + "$A " * 1000 + ")\n" + "C=($B $B)\nD=($C $C)\n" * 50 + "python t.py ${D[@]}\n",
}  # fmt: skip


@pytest.mark.parametrize("kind", SHELL)
def test_a_small_launch_script_stays_small(kind: str) -> None:
    """412 bytes took 6 GB."""
    tree = parse_text(SHELL[kind], "run.sh", "shell")
    assert sum(len(str(leaf.value)) for leaf in tree) < 30_000_000


@pytest.mark.parametrize("text", ["x" * 400_000, "python t.py '" + "y" * 400_000, 'python t.py "' + "\\a" * 200_000, "a=1 " * 100_000, "\\a" * 200_000, "$(" * 50_000, "if " * 90_000])
def test_a_long_shell_line_takes_linear_time(text: str) -> None:
    begun = time.process_time()
    parse_text(text, "run.sh", "shell")
    assert time.process_time() - begun < 4


def test_every_parser_answers_where_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    for format_ in list(FORMATS):
        monkeypatch.setitem(FORMATS, format_, lambda _: 1 / 0)
        tree = parse_text("lr: 1", "a.yaml", format_)
        assert len(tree) == 0
        assert "ZeroDivisionError" in tree.problems[0]
