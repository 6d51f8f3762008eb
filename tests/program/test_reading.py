"""Finding and parsing scripts: bounded, never a traceback, never an execution; and fast."""

from __future__ import annotations

import time
from pathlib import Path
from textwrap import dedent

import pytest
from reading_text import code_of, findings_of, ids, sources_of

from wheeltapper.program.checks import run_checks
from wheeltapper.program.index import programs_of
from wheeltapper.program.reading import read_code
from wheeltapper.program.scripts import MAX_BYTES, read_sources


def test_what_cannot_be_read_is_noted(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text("print 'hello'\n")
    (tmp_path / "broken.py").write_text("def f(:\n")
    (tmp_path / "nul.py").write_bytes(b"x = 1\x00\n")
    (tmp_path / "deep.py").write_text("x = " + "(" * 3000 + ")" * 3000)
    (tmp_path / "latin.py").write_bytes("# caf\xe9\nx = 1\n".encode("latin-1"))
    (tmp_path / "good.py").write_text("\ufeffx = 1\n", encoding="utf-8")
    (tmp_path / "huge.py").write_text("#" * (MAX_BYTES + 1))
    found = read_sources([tmp_path])
    assert sorted(Path(s.name).name for s in found.scripts) == ["good.py", "latin.py"]
    notes = {Path(n.file).name: n.text for n in found.notes}
    assert "Python 2" in notes["old.py"]
    assert "not valid Python 3" in notes["broken.py"]
    assert "too large" in notes["huge.py"]
    assert set(notes) == {"old.py", "broken.py", "nul.py", "deep.py", "huge.py"}
    assert all(n.level == "lost" for n in found.notes)


def test_a_folder_of_many_files_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wheeltapper.program.scripts.MAX_FILES", 5)
    for i in range(8):
        (tmp_path / f"m{i}.py").write_text("x = 1\n")
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "lib.py").write_text("x = 1\n")
    found = read_sources([tmp_path])
    assert len(found.scripts) == 5
    assert "3 more scripts" in found.notes[0].text


def test_nothing_is_executed(tmp_path: Path) -> None:
    trap = tmp_path / "trap.txt"
    (tmp_path / "train.py").write_text(
        f"open({str(trap)!r}, 'w').write('x')\nimport torch\nfor i in range(3):\n    torch.ones(1).backward()\n"
    )
    codes, _ = read_code([tmp_path])
    for code in codes:
        list(run_checks(code))
    assert not trap.exists()


def test_a_program_that_calls_itself_in_circles_ends() -> None:
    functions = "\n".join(
        f"def f{i}(x):\n    f{(i + 1) % 40}(x)\n    f{(i + 7) % 40}(x)\n    f{(i + 13) % 40}(x)" for i in range(40)
    )
    text = functions + "\nimport torch\nfor i in range(3):\n    f0(i)\n    torch.ones(1).backward()\n"
    started = time.process_time()
    assert findings_of(text) == []
    assert time.process_time() - started < 5


def test_2000_lines_take_less_than_a_second() -> None:
    block = """
class Layer{i}(nn.Module):
    def __init__(self, width, dropout=0.1):
        super().__init__()
        self.a = nn.Linear(width, width)
        self.b = nn.Linear(width, width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        h = torch.relu(self.a(x))
        if mask is not None:
            h = h * mask
        return self.drop(self.b(h)) + x


def helper_{i}(cfg, items):
    out = []
    for index, item in enumerate(items):
        if index % cfg.log_every == 0:
            print(index, item)
        out.append(item * cfg.scale + index)
    return out
"""
    options = "\n".join(f"    p.add_argument('--opt{i}', type=float, default={i}.0)" for i in range(60))
    uses = "\n".join(f"    print(args.opt{i} + 1)\n    torch.set_num_threads(int(args.opt{i}))" for i in range(60))
    text = (
        "import argparse\nimport torch\nfrom torch import nn\n"
        + "".join(block.format(i=i) for i in range(75))
        + f"\ndef main():\n    p = argparse.ArgumentParser()\n{options}\n    p.add_argument('--log_every', type=int, default=3)\n"
        + f"    p.add_argument('--scale', type=float, default=3)\n    args = p.parse_args()\n{uses}\n"
        + "    model = nn.Sequential(*[Layer0(8) for _ in range(3)])\n    opt = torch.optim.Adam(model.parameters())\n"
        + "    for step in range(100):\n        opt.zero_grad()\n        model(torch.ones(8)).sum().backward()\n        opt.step()\n"
        + "        helper_0(args, [step])\n\nif __name__ == '__main__':\n    main()\n"
    )
    assert len(text.splitlines()) > 1800
    code_of(text)  # imports done
    started = time.process_time()
    assert findings_of(text) == []
    assert time.process_time() - started < 1.0


def test_the_launch_script_gives_the_values() -> None:
    code = code_of(
        """
        import argparse, torch
        p = argparse.ArgumentParser()
        p.add_argument("--lr", type=float, default=0.1)
        args = p.parse_args()
        opt = torch.optim.SGD([torch.ones(1)], lr=args.lr)
        for i in range(3):
            opt.zero_grad(); torch.ones(1).backward(); opt.step()
        """,
        run_sh="LR=0.5\ntorchrun --nproc_per_node=4 train.py --lr $LR\n",
    )
    assert code.given["lr"].value == 0.5
    assert code.given["lr"].place.line == 1
    assert code.given["__processes__"].value == 4
    assert code.values.option("lr") == 0.5


TRAINS = """
    import torch
    from {lib} import run
    if __name__ == "__main__":
        run()
"""
LIBRARY = """
    import torch
    def run():
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in train_loader:
            optimizer.zero_grad()
            model(x).backward()
            optimizer.step()
"""


def test_functions_of_one_name_are_told_apart_by_module() -> None:
    other = LIBRARY.replace("model(x).backward()", "(-model.loss(x)).backward()")
    files = {"one_py": LIBRARY, "two_py": other}
    assert ids(TRAINS.format(lib="one") + "    import two\n", **files) == set()
    assert ids(TRAINS.format(lib="two") + "    import one\n", **files) == {"loss-negated"}


def test_code_nested_too_deeply_is_noted(tmp_path: Path) -> None:
    chain = " + ".join(f"f({i})" for i in range(1500))
    (tmp_path / "train.py").write_text(f"{dedent(LIBRARY)}run()\ntotal = {chain}\nprint(total)\n", encoding="utf-8")
    codes, notes = read_code([tmp_path])
    assert codes == []
    assert any("cannot take this file apart" in note.text for note in notes)


def test_work_is_bounded_and_what_is_left_out_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wheeltapper.program.index.MAX_WORK", 10)
    for name in ("train.py", "demo.py", "other.py"):
        (tmp_path / name).write_text(dedent(LIBRARY) + "run()\n", encoding="utf-8")
    codes, notes = read_code([tmp_path])
    assert [Path(c.program.entry.name).name for c in codes] == ["train.py"]  # named for training, so read first
    assert any("2 more scripts" in note.text for note in notes)


def test_a_test_is_no_entry(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    for name in ("train.py", "tests/test_it.py", "tests/speed.py"):
        (tmp_path / name).write_text(dedent(LIBRARY) + "run()\n", encoding="utf-8")
    codes, _ = read_code([tmp_path])
    assert [Path(c.program.entry.name).name for c in codes] == ["train.py"]


WITH_LAYERS = """
import argparse
from net import Net
from tools import chosen
parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=8)
args = parser.parse_args()
if __name__ == "__main__":
    model = Net(chosen(args))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()
"""


def test_what_only_layers_name_counts() -> None:
    layers = (
        "class Net(nn.Module):\n    def __init__(self, width):\n        self.fc = nn.Linear(width, size_of(width))\n"
    )
    tools = "def chosen(args):\n    return args.width\n\ndef size_of(n):\n    args.width = n\n"
    code = code_of(WITH_LAYERS, net_py=layers + "from tools import size_of\n", tools_py=tools)
    assert sorted(s.name for s in code.program.scripts) == ["net.py", "tools.py", "train.py"]  # a small program is followed whole
    assert code.trains
    assert any(scope.endswith("size_of") for scope in code.program.reachable)  # only the layers call it
    (usage,) = [u for u in code.usages if u.option.name == "width"]
    assert usage.acts  # it goes into code that is not seen


def test_a_script_that_cannot_come_to_a_backward_pass_is_no_program() -> None:
    train = WITH_LAYERS.replace('if __name__ == "__main__":', "def run():")
    detect = "from train import parser\nif __name__ == '__main__':\n    print(parser)\n"
    sources = sources_of({"detect.py": detect, "train.py": "import torch\n" + train})
    programs, _ = programs_of(sources)
    assert "detect.py" not in {p.entry.name for p in programs}
