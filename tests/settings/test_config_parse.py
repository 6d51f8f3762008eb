"""Each format: values as the framework's own parser makes them, places exact, traps and losses told."""

from __future__ import annotations

import datetime
import math
from pathlib import Path

import pytest

from wheeltapper.settings.parse import FORMATS, decode, format_of, parse_file, parse_text
from wheeltapper.settings.position import EXPRESSION
from wheeltapper.settings.tree import ConfigTree

RECORDS = Path(__file__).resolve().parents[1] / "records" / "configs"
ALL = sorted(p for p in RECORDS.rglob("*") if p.is_file())


def yaml(text: str, first_line: int = 1) -> ConfigTree:
    return parse_text(text, "a.yml", "yaml", first_line)


def assert_places(tree: ConfigTree) -> None:
    assert tree.text is not None
    for leaf in tree:
        assert leaf.start is not None
        assert tree.text[leaf.start : leaf.end] == leaf.raw, leaf
        before = tree.text[: leaf.start].replace("\r\n", "\n")
        assert leaf.column == len(before) - (before.rfind("\n") + 1) + 1, leaf


@pytest.mark.parametrize("path", ALL, ids=lambda p: str(p.relative_to(RECORDS)))
def test_every_record_is_read_with_exact_places(path: Path) -> None:
    text = decode(path.read_bytes())
    assert text is not None
    tree = parse_file(path) or parse_text(text, str(path), "namespace")
    assert len(tree) > 0
    assert_places(tree)


# --- YAML


def test_the_yaml_1_1_trap_stays_a_string_and_says_so() -> None:
    tree = yaml("a: 1e-6\nb: 1.0e-6\nc: !!float 1e-6\nd: '1e-6'\ne: 1.5e6\n")
    assert [leaf.value for leaf in tree] == ["1e-6", 1e-6, 1e-6, "1e-6", "1.5e6"]
    assert [leaf.note is not None for leaf in tree] == [True, False, False, False, True]
    assert tree.leaves[0].note == "YAML 1.1 reads 1e-6 as a string, not a number (write 1.0e-6)"
    assert "1.5e+6" in str(tree.leaves[4].note)
    assert tree.leaves[2].raw == "!!float 1e-6"


@pytest.mark.parametrize(
    ("written", "value", "told"),
    [
        ("no", False, "False"),
        ("1:30", 90, "base 60"),
        ("010", 8, "base 8"),
        ("None", "None", "null"),
        ("nan", "nan", ".nan"),
    ],
)
def test_other_yaml_1_1_surprises_are_noted(written: str, value: object, told: str) -> None:
    (leaf,) = yaml(f"k: {written}\n")
    assert leaf.value == value
    assert told in str(leaf.note)


def test_anchors_merges_and_aliases_keep_their_places() -> None:
    tree = yaml("base: &b {lr: 1, wd: 2}\nrun:\n  <<: *b\n  lr: 3\ncopy: *b\nx: &y 5\nz: *y\n")
    assert tree.get("run.lr") == 3
    inherited = tree.leaf("run.wd")
    assert inherited is not None
    assert (inherited.value, inherited.line, inherited.note) == (2, 1, "comes from &b, line 1, by <<")
    assert tree.get("copy.lr") == 1
    assert tree.get("z") == 5
    anchored = tree.leaf("x")
    assert anchored is not None
    assert anchored.raw == "5"  # an edit of the value must not lose the anchor
    assert_places(tree)


def test_tags_are_never_constructed(tmp_path: Path) -> None:
    target = tmp_path / "owned"
    tree = yaml(f"a: !!python/object/apply:os.system ['touch {target}']\nb: !!python/name:os.system\nc: !ENV x\n")
    assert not target.exists()
    assert tree.get("b") == ""
    assert "not constructed" in str(tree.leaf("c").note)  # type: ignore[union-attr]


def test_a_tuple_tag_is_a_list() -> None:
    assert yaml("betas: !!python/tuple\n- 0.9\n- 0.95\n").nested() == {"betas": [0.9, 0.95]}


def test_a_key_written_twice_is_reported_and_the_last_one_wins() -> None:
    tree = parse_file(RECORDS / "ugly" / "duplicate.yaml")
    assert tree is not None
    assert tree.nested() == {"lr": 0.2, "opt": {"b": 2}}
    assert len(tree.problems) == 2
    assert "duplicate.yaml:2:1" in tree.problems[0]


def test_a_syntax_error_costs_its_line_only() -> None:
    tree = parse_file(RECORDS / "ugly" / "conflict.yaml")
    assert tree is not None
    assert tree.nested() == {"lr": 0.1, "batch_size": 64, "epochs": 10}
    assert any("conflict.yaml:2:1" in problem for problem in tree.problems)
    tabs = parse_file(RECORDS / "ugly" / "tabs.yaml")
    assert tabs is not None
    assert tabs.nested() == {"a": None, "c": 2, "lr": 0.1}


def test_bombs_and_loops_are_bounded() -> None:
    bomb = parse_file(RECORDS / "ugly" / "bomb.yaml")
    assert bomb is not None
    assert len(bomb) <= 50_000
    assert any("aliases expand" in problem for problem in bomb.problems)
    loop = parse_file(RECORDS / "ugly" / "recursive.yaml")
    assert loop is not None
    assert loop.get("lr") == 1
    deep = yaml("a: " + "[" * 3000 + "]" * 3000)
    assert any("deeper" in problem for problem in deep.problems)


def test_dates_and_second_documents() -> None:
    tree = yaml("---\nd: 2024-05-01\n---\nlr: 1\n")
    assert tree.get("d") == datetime.date(2024, 5, 1)
    assert tree.leaves[1].path == ("document 2", "lr")
    assert "second document" in tree.problems[0]


def test_the_first_line_of_a_block_inside_a_log() -> None:
    tree = yaml("a: 1\nb:\n  c: 2\n", first_line=40)
    assert [leaf.line for leaf in tree] == [40, 42]


def test_wandb_wrappers_are_taken_off() -> None:
    tree = parse_file(RECORDS / "healthy" / "wandb_config.yaml")
    assert tree is not None
    assert tree.kind == "W&B config"
    assert tree.get("learning_rate") == 0.0003
    assert tree.get("optimizer.name") == "adamw"
    leaf = tree.leaf("learning_rate")
    assert leaf is not None
    assert leaf.line == 5


# --- JSON, TOML


def test_json_with_comments_nan_and_a_trailing_comma() -> None:
    tree = parse_file(RECORDS / "ugly" / "commented.json")
    assert tree is not None
    assert tree.get("lr") == 2e-3
    assert math.isnan(tree.get("loss"))
    assert tree.get("bound") == -math.inf
    assert [("a comment;" in p, "twice" in p, "a comma" in p) for p in tree.problems] == [
        (True, False, False),
        (False, True, False),
        (False, False, True),
    ]


def test_a_cut_json_keeps_what_came_before() -> None:
    tree = parse_file(RECORDS / "ugly" / "cut.json")
    assert tree is not None
    assert tree.get("model.depth") == 12
    assert "ends inside" in tree.problems[-1]
    assert parse_text('{"a": 1}\n', "a.json", "json").problems == ()


def test_toml_tables_and_a_broken_line() -> None:
    text = '[a]\nx.y = 1\n[[l]]\nv = 1e-4\n[[l]]\nv = inf\n[l.sub]\nd = """q"""\n'
    tree = parse_text(text, "a.toml", "toml")
    assert tree.nested() == {"a": {"x": {"y": 1}}, "l": [{"v": 1e-4}, {"v": math.inf, "sub": {"d": "q"}}]}
    assert tree.problems == ()
    broken = parse_file(RECORDS / "ugly" / "broken.toml")
    assert broken is not None
    assert broken.get("model.width") == 1000
    assert "broken.toml:2:7: not TOML" in broken.problems[0]


# --- Python


def test_python_modules_are_read_without_running_them(tmp_path: Path) -> None:
    target = tmp_path / "owned"
    text = (
        f"open({str(target)!r}, 'w')\n"
        "epochs = 12\nlr = 1e-3 * 8\nopt = dict(type='SGD', lr=lr, steps=[epochs // 2])\n"
        "name = make_name()\nif big:\n    lr = 1\nclass C:\n    wd: float = 0.1\n"
    )
    tree = parse_text(text, "c.py", "python")
    assert not target.exists()
    assert tree.get("opt.lr") == 0.008
    assert tree.get("opt.steps.0") == 6
    assert tree.get("C.wd") == 0.1
    assert tree.leaf("name").note == EXPRESSION  # type: ignore[union-attr]
    assert tree.leaf("lr").note == "may be changed on line 7"  # type: ignore[union-attr]
    assert tree.leaf("opt.lr").raw == "lr"  # type: ignore[union-attr]
    assert_places(tree)


def test_python_that_does_not_parse_is_read_statement_by_statement() -> None:
    tree = parse_file(RECORDS / "ugly" / "py2.py")
    assert tree is not None
    assert tree.get("lr") == 0.1
    assert tree.get("opts.b.1") == 2
    assert tree.get("epochs") == 10
    assert len(tree.problems) == 2


def test_non_ascii_text_does_not_shift_python_places() -> None:
    tree = parse_text("s = 'é😀'; lr = 0.5  # ü\n", "c.py", "python")
    assert tree.leaf("lr").raw == "0.5"  # type: ignore[union-attr]
    assert_places(tree)


def test_a_hostile_power_is_not_computed() -> None:
    assert parse_text("x = 9**9**9**9\n", "c.py", "python").leaves[0].note == EXPRESSION


def test_namespaces_with_objects_in_them() -> None:
    tree = parse_file(RECORDS / "healthy" / "namespace_gluoncv.txt")
    assert tree is not None
    assert tree.format == "namespace"
    assert tree.get("lr_decay_epoch") == "40,60"
    assert tree.get("ctx.1") == "gpu(1)"
    assert tree.get("norm_layer") == "<class 'mxnet.gluon.nn.BatchNorm'>"
    assert tree.get("wd") == 0.0001
    cut = parse_text((RECORDS / "ugly" / "cut_namespace.txt").read_text(encoding="utf-8"), "log", "namespace")
    assert cut.get("betas.1") == 0.999
    assert "cut" in cut.problems[0]


def test_pairs_on_one_line() -> None:
    tree = parse_text("lr0=0.01, lrf=0.2, name=exp one", "log", "namespace")
    assert tree.nested() == {"lr0": 0.01, "lrf": 0.2, "name": "exp one"}


# --- commands and scripts


def test_a_command_line() -> None:
    text = (
        "X=1 torchrun --nproc_per_node=8 --standalone train.py c.py --a 1 --b=-2 --flag --betas 0.9 0.95 +m.n=1e-3 2>&1"
    )
    tree = parse_text(text, "cmd", "argv")
    assert tree.nested() == {
        "env": {"X": "1"},
        "launcher": {"program": "torchrun", "nproc_per_node": 8, "standalone": True},
        "script": "train.py",
        "positional": ["c.py"],
        "a": 1,
        "b": -2,
        "flag": True,
        "betas": [0.9, 0.95],
        "m": {"n": 1e-3},
    }
    assert tree.kind == "command"


def test_yacs_and_mm_overrides() -> None:
    tree = parse_text("python t.py --cfg-options optimizer.lr=0.02 a.b=[1,2] SOLVER.BASE_LR 0.1", "c", "argv")
    assert tree.get("optimizer.lr") == 0.02
    assert tree.get("a.b.1") == 2
    assert tree.get("SOLVER.BASE_LR") == 0.1


def test_a_value_from_a_variable_stands_where_the_variable_is_set() -> None:
    tree = parse_file(RECORDS / "healthy" / "edm_prior.sh")
    assert tree is not None
    leaf = tree.leaf("gradient_accumulation_steps")
    assert leaf is not None
    assert (leaf.value, leaf.line, leaf.raw) == (16, 4, "16")
    assert leaf.note == "the value of $GRAD_ACCUM, used on line 15"
    assert tree.get("mixed_precision") is True
    assert tree.get("var.LEARNING_RATE") == 1e-4


def test_options_inside_a_quoted_variable_and_an_array() -> None:
    tree = parse_file(RECORDS / "healthy" / "megatron_pretrain.sh")
    assert tree is not None
    leaf = tree.leaf("lr_warmup_fraction")
    assert leaf is not None
    assert (leaf.value, leaf.line) == (0.01, 21)
    assert tree.get("save_interval") == 10000
    assert tree.get("var.WORLD_SIZE") == 16
    assert tree.get("launcher.nnodes") == 2


def test_what_only_a_shell_could_know_is_left_open() -> None:
    tree = parse_file(RECORDS / "ugly" / "loop.sh")
    assert tree is not None
    assert str(tree.leaf("lr").note).startswith(EXPRESSION)  # type: ignore[union-attr]
    assert "condition" in str(tree.leaf("wd").note)  # type: ignore[union-attr]
    assert tree.leaf("an") is None  # a here-document is no option
    echoed = parse_text("echo python train.py --lr 1\n", "s.sh", "shell")
    assert len(echoed) == 0


def test_the_training_command_comes_first_among_several() -> None:
    tree = parse_text("python prepare.py --n 1 --m 2 --o 3\npython train.py --lr 1\n", "s.sh", "shell")
    assert tree.get("script") == "train.py"
    assert tree.get("command.1.script") == "prepare.py"


def test_hydra_overrides_become_paths() -> None:
    tree = parse_file(RECORDS / "healthy" / "hydra_run" / ".hydra" / "overrides.yaml")
    assert tree is not None
    assert tree.kind == "command"
    assert tree.nested() == {"optimizer": {"lr": 3e-4}, "trainer": {"grad_clip": 1.0}, "data": {"batch_size": 64}}
    assert tree.leaf("optimizer.lr").raw == "3e-4"  # type: ignore[union-attr]


def test_key_value_blocks() -> None:
    tree = parse_file(RECORDS / "healthy" / "swav_block.txt")
    assert tree is not None
    assert tree.get("arch") == "resnet50"
    assert tree.get("wd") == 1e-6
    assert tree.get("size_crops.0") == 32
    dots = parse_file(RECORDS / "healthy" / "megatron_print.txt")
    assert dots is not None
    assert dots.get("lr_decay_samples") == 200000000
    options = parse_file(RECORDS / "healthy" / "cyclegan_opt.txt")
    assert options is not None
    assert options.leaf("lr").raw == "0.0002"  # type: ignore[union-attr]
    commas = parse_text("Total iters: 200,000\nname: x\n", "log", "keyvalue")
    assert commas.get("Total iters") == 200000


# --- files


def test_formats_by_name_and_content(tmp_path: Path) -> None:
    assert format_of("a.yml", "") == "yaml"
    assert format_of("args.txt", '{"a": 1}') == "json"
    assert format_of("args", "Namespace(a=1)") == "namespace"
    assert format_of("run", "#!/bin/bash\n") == "shell"
    assert format_of("cmd.txt", "python train.py --a 1") == "argv"
    assert format_of("notes.txt", "once upon a time\nthere was a run\n") is None
    assert set(FORMATS) == {"yaml", "json", "toml", "python", "namespace", "argv", "shell", "keyvalue", "prototxt"}
    binary = tmp_path / "a.yaml"
    binary.write_bytes(b"\x00\x01\x02")
    assert parse_file(binary) is None
    assert parse_file(tmp_path / "absent.yaml") is None
    assert parse_file(tmp_path) is None


def test_old_encodings_and_byte_order_marks(tmp_path: Path) -> None:
    latin = tmp_path / "l.yaml"
    latin.write_bytes("name: caf\xe9\nlr: 0.1\n".encode("latin-1"))
    wide = tmp_path / "w.yaml"
    wide.write_bytes("lr: 0.1\n".encode("utf-16"))
    for path in (latin, wide):
        tree = parse_file(path)
        assert tree is not None
        assert tree.get("lr") == 0.1


def test_without_libyaml_the_tree_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    import yaml as pyyaml

    from wheeltapper.settings import parse_yaml

    paths = [
        p for p in ALL if p.suffix in (".yaml", ".yml") and p.name not in ("bomb.yaml", "tabs.yaml", "conflict.yaml")
    ]
    with_c = [parse_file(path) for path in paths]
    monkeypatch.setattr(parse_yaml, "_LOADER", pyyaml.SafeLoader)
    assert [parse_file(path) for path in paths] == with_c
