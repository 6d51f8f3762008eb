"""The load test: what does not load, changes too much or is not taken by the script is told, and untried is untried."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

from wheeltapper import api
from wheeltapper.finding import Edit
from wheeltapper.remedy.loads import Check, LoadTest, declared_options, edit_run, load_test, own_loader, scale_of
from wheeltapper.remedy.resumes import resume_test, takes_effect
from wheeltapper.run.model import Checkpoint, Fact, Run
from wheeltapper.settings.edited import Edited

SCRIPT = """
import argparse
import torch

p = argparse.ArgumentParser()
p.add_argument("--lr", type=float, default=0.1)
p.add_argument("--epochs", type=int, default=3)
p.add_argument("--warmup-epochs", type=int, default=0)
p.add_argument("--scheduler", choices=["cosine", "step"], default="cosine")
p.add_argument("--resume")
args = p.parse_args()
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
if args.resume:
    state = torch.load(args.resume)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
for epoch in range(args.epochs):
    loss = model(torch.randn(4, 2)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    print(f"epoch {epoch} loss {loss.item()}")
"""
TRAINNER = """\
name: 2x_Model
scale: 2
use_amp: false
num_gpu: 1
path: {}
network_g: {type: span}
datasets:
  train:
    type: pairedimagedataset
    lq_size: 64
    batch_size_per_gpu: 8
train:
  ema_decay: 0.999
  optim_g: {type: AdamW, lr: !!float 1e-4}
  scheduler:
    type: MultiStepLR
    milestones: [60000, 120000]
    gamma: 0.5
  total_iter: 200000
"""


def run_of(folder: Path, **files: str) -> Run:
    for name, text in files.items():
        path = folder / name.replace("__", ".")
        path.write_text(text, encoding="utf-8")
    (folder / "train.log").write_text("".join(f"epoch {i} loss {1 / (i + 1):.4f}\n" for i in range(8)))
    [run] = api.read(folder)
    return run


@pytest.fixture
def scripted(tmp_path: Path) -> Run:
    return run_of(tmp_path, train__py=SCRIPT, run__sh="python train.py --lr 0.1 --epochs 8 --scheduler cosine\n")


def by_name(test: LoadTest, part: str) -> Check:
    return next(check for check in test.checks if part in check.name)


def test_an_edit_that_the_script_takes(scripted: Run) -> None:
    [edited] = edit_run(scripted, [Edit("optimizer.lr", 0.1, 0.05)])
    test = load_test(edited, scripted)
    assert test.ok
    assert by_name(test, "options of train.py").ok is True
    assert by_name(test, "framework's rules").ok is None


def test_a_flag_is_added_as_the_script_spells_it(scripted: Run) -> None:
    assert declared_options(scripted)["warmup_epochs"] == "--warmup-epochs"
    [edited] = edit_run(scripted, [Edit("schedule.warmup", None, 2, unit="epochs")])
    assert edited.after.endswith("--scheduler cosine --warmup-epochs 2\n")
    assert load_test(edited, scripted).ok


def test_what_argparse_would_refuse(scripted: Run) -> None:
    [word] = edit_run(scripted, [Edit("schedule.name", "cosine", "linear")])
    test = load_test(word, scripted)
    assert [check.text for check in test.failed] == ["--scheduler takes one of cosine, step, not linear"]
    [part] = edit_run(scripted, [Edit("run.epochs", 8, 7.5)])
    assert [check.text for check in load_test(part, scripted).failed] == ["--epochs takes int, not 7.5"]


def test_a_stray_change_is_found(scripted: Run) -> None:
    [edited] = edit_run(scripted, [Edit("optimizer.lr", 0.1, 0.05)])
    stray = replace(edited, after=edited.after.replace("--epochs 8", "--epochs 9"))
    assert by_name(load_test(stray, scripted), "intended").text == "also changed: epochs"
    nothing = replace(edited, after=edited.before)
    assert by_name(load_test(nothing, scripted), "intended").text == "not changed: lr"


def test_a_broken_text_is_found(tmp_path: Path) -> None:
    run = run_of(tmp_path, config__yaml=TRAINNER)
    [edited] = edit_run(run, [Edit("ema.decay", 0.999, 0.99)])
    assert load_test(edited, run).ok
    broken = replace(edited, after=edited.after.replace("train:\n  ema", "train:\n ema"))
    assert not by_name(load_test(broken, run), "parses").ok


def test_the_rules_of_the_framework(tmp_path: Path) -> None:
    """traiNNer refuses a key it does not know: a fix that adds one would not load."""
    run = run_of(tmp_path, config__yaml=TRAINNER)
    [edited] = edit_run(run, [Edit("ema.decay", 0.999, 0.99)])
    worse = replace(edited, after=edited.after.replace("  ema_decay", "  grad_clip_norm: 1.0\n  ema_decay"))
    assert "grad_clip_norm" in by_name(load_test(worse, run, loaders=False), "rules of traiNNer").text
    assert not load_test(worse, run, loaders=False).ok


def test_an_absent_framework_is_said_to_be_absent(tmp_path: Path) -> None:
    if importlib.util.find_spec("traiNNer") is not None:
        pytest.skip("traiNNer is installed")
    run = run_of(tmp_path, config__yaml=TRAINNER)
    [edited] = edit_run(run, [Edit("ema.decay", 0.999, 0.99)])
    said = load_test(edited, run).checks[-1]
    assert said.ok is None, "what was not tried is not ticked"
    assert said.name == "traiNNer's ReduxOptions takes it"
    assert said.text == "traiNNer is not installed: not tried; yaml.safe_load_all takes it"


def test_a_file_that_did_not_load_before_is_not_said_to_parse(tmp_path: Path) -> None:
    run = run_of(tmp_path, config__yaml=TRAINNER + "  odd: [1, 2\n")
    [edited] = edit_run(run, [Edit("ema.decay", 0.999, 0.99)])
    said = by_name(load_test(edited, run, loaders=False), "parses")
    assert said.ok is None
    assert "not YAML" in said.text


def test_the_loader_of_the_format_in_a_process_of_its_own(tmp_path: Path) -> None:
    from wheeltapper.settings.knobs import read_knobs

    knobs = read_knobs([])
    assert own_loader(Edited("a.yaml", "a: 1\n", "a: 2\n", ()), knobs).ok is True
    assert own_loader(Edited("a.yaml", "a: 1\n", "a: [2\n", ()), knobs).ok is False
    never = own_loader(Edited("a.json", "{'a': 1}", "{'a': 2}", ()), knobs)
    assert never.ok is None
    assert "before the edit either" in never.text
    assert own_loader(Edited("a.toml", "a = 1\n", "a = \n", ()), knobs).ok is False
    slow = own_loader(Edited("a.yaml", "a: 1\n", "a: 2\n", ()), knobs, timeout=0.001)
    assert slow.ok is None
    assert "timeout" in slow.text


def test_omegaconf_is_asked_where_it_is_installed(tmp_path: Path) -> None:
    pytest.importorskip("omegaconf")
    folder = tmp_path / ".hydra"
    folder.mkdir()
    from wheeltapper.settings.knobs import read_knobs
    from wheeltapper.settings.parse import parse_text

    tree = parse_text("optim:\n  lr: 1e-3\n", str(folder / "config.yaml"), "yaml")
    knobs = read_knobs([tree])
    assert knobs.dialect.NAME == "hydra"
    good = own_loader(Edited(tree.file, tree.text or "", "optim:\n  lr: 5.0e-4\n", ()), knobs)
    assert (good.ok, good.name) == (True, "OmegaConf.create takes it")
    assert own_loader(Edited(tree.file, tree.text or "", "optim:\n  lr: ${\n", ()), knobs).ok is False


def test_units_from_the_facts_of_the_run(scripted: Run) -> None:
    run = replace(scripted, facts={"steps_per_epoch": Fact("steps_per_epoch", 40, "counted")})
    assert scale_of(run).steps_per_epoch == 40
    [edited] = edit_run(run, [Edit("schedule.warmup", None, 80, unit="steps")])
    assert edited.after.endswith("--warmup-epochs 2\n")


# -- resuming ------------------------------------------------------------------------------------------


def held(run: Run, *kinds: str, exists: bool = True) -> Run:
    return replace(run, checkpoints=(Checkpoint("ckpt.pt", step=10, kinds=kinds, exists=exists),))


def test_a_checkpoint_that_only_the_log_names(scripted: Run) -> None:
    [check] = resume_test(held(scripted, "raw", exists=False), "ckpt.pt", [])
    assert check.ok is False
    assert "only the log names it" in check.text
    [check] = resume_test(scripted, "other.pt", [])
    assert "no such file" in check.text


def test_what_resuming_needs(scripted: Run) -> None:
    assert resume_test(held(scripted, "raw", "optimizer", "scheduler"), "ckpt.pt", [])[1].ok is True
    lacking = resume_test(held(scripted, "raw"), "ckpt.pt", [])[1]
    assert lacking.ok is False
    assert "no optimizer state" in lacking.text
    assert resume_test(held(scripted, "optimizer"), "ckpt.pt", [])[1].text.startswith("no weights")


def test_the_saved_optimizer_brings_the_old_rate_back(scripted: Run) -> None:
    lr, epochs = Edit("optimizer.lr", 0.1, 0.05), Edit("run.epochs", 8, 16)
    checks = resume_test(held(scripted, "raw", "optimizer"), "ckpt.pt", [lr, epochs])
    assert [check.ok for check in checks[2:]] == [False, True]
    assert "optimizer state brings back the old value" in checks[2].text


def test_a_script_that_loads_weights_only_lets_the_edit_through(tmp_path: Path) -> None:
    weights = SCRIPT.replace('    optimizer.load_state_dict(state["optimizer"])\n', "")
    run = held(run_of(tmp_path, train__py=weights, run__sh="python train.py --lr 0.1\n"), "raw", "optimizer")
    assert resume_test(run, "ckpt.pt", [Edit("optimizer.lr", 0.1, 0.05)])[2].ok is True


def test_a_script_that_sets_the_rate_itself_lets_the_edit_through(tmp_path: Path) -> None:
    by_hand = SCRIPT.replace(
        "    scheduler.step()\n", "    for g in optimizer.param_groups:\n        g['lr'] = args.lr\n"
    )
    run = held(run_of(tmp_path, train__py=by_hand, run__sh="python train.py --lr 0.1\n"), "raw", "optimizer")
    assert resume_test(run, "ckpt.pt", [Edit("optimizer.lr", 0.1, 0.05)])[2].ok is True
    assert resume_test(run, "ckpt.pt", [Edit("optimizer.weight_decay", None, 0.1)])[2].ok is False


@pytest.mark.parametrize(
    ("dialect", "knob", "ok"),
    [
        ("nanogpt", "optimizer.lr", True),
        ("nanogpt", "optimizer.weight_decay", False),
        ("sedd", "schedule.warmup", True),
        ("ultralytics", "optimizer.lr", False),
        ("ultralytics", "model.image_size", True),
        ("trainner", "schedule.milestones", False),
        ("trainner", "clip.norm", True),
        ("megatron", "optimizer.lr", False),
        ("hf", "schedule.warmup", True),
        ("hf", "optimizer.lr", False),
        ("lightning", "schedule.t_max", False),
        ("lightning", "batch.per_device", True),
        ("lightning", "amp.init_scale", False),
    ],
)
def test_frameworks_differ(dialect: str, knob: str, ok: bool) -> None:
    from wheeltapper.settings.knobs import read_knobs

    knobs = read_knobs([], dialect=dialect)
    full = Checkpoint("ckpt.pt", kinds=("raw", "optimizer", "scheduler", "scaler"))
    assert takes_effect(Edit(knob, 1, 2), full, knobs).ok is ok


def test_torch_really_restores_what_we_say_it_does() -> None:
    """The fact the table stands on, on the torch that is installed here."""
    torch = pytest.importorskip("torch")
    weight = [torch.nn.Parameter(torch.zeros(1))]
    old = torch.optim.AdamW(weight, lr=1e-3, betas=(0.9, 0.999), weight_decay=0.1)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(old, T_max=10)
    new = torch.optim.AdamW(weight, lr=1e-5, betas=(0.9, 0.95), weight_decay=0.0)
    longer = torch.optim.lr_scheduler.CosineAnnealingLR(new, T_max=1000)
    new.load_state_dict(old.state_dict())
    longer.load_state_dict(cosine.state_dict())
    group = new.param_groups[0]
    assert (group["lr"], group["betas"], group["weight_decay"], longer.T_max) == (1e-3, (0.9, 0.999), 0.1, 10)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    scaler.load_state_dict(torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=7).state_dict())
    assert scaler.get_scale() == 1024.0
    assert scaler.get_growth_interval() == 7


def test_a_switch_that_is_on_by_default_is_not_turned_off_by_leaving_it_out(tmp_path: Path) -> None:
    script = SCRIPT.replace(
        'p.add_argument("--resume")', 'p.add_argument("--amp", action=argparse.BooleanOptionalAction, default=True)'
    ).replace("if args.resume:", "if args.amp:")
    run = run_of(tmp_path, train__py=script, run__sh="python train.py --amp --lr 0.1\n")
    [edited] = edit_run(run, [Edit("amp", True, False)])
    assert edited.after == "python train.py --no-amp --lr 0.1\n"
    assert load_test(edited, run).ok
    gone = replace(edited, after="python train.py --lr 0.1\n", changes=(replace(edited.changes[0], new=None),))
    assert [check.text for check in load_test(gone, run).failed] == [
        "without --amp it is on all the same: that is its default"
    ]
