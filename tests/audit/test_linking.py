"""Which program made a run: the only one above the only run did; one of several, or above several runs, is charged with nothing."""

from __future__ import annotations

from pathlib import Path

from wheeltapper.api import read
from wheeltapper.audit.linking import links_of
from wheeltapper.program.reading import read_code

SCRIPT = """
import torch
net = torch.nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in torch.load("rows.pt"):
    opt.zero_grad()
    torch.nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
"""
ROWS = "step,alpha,beta\n" + "".join(f"{i},{1 / (i + 1):.4f},{i / 9:.4f}\n" for i in range(12))


def linked(folder: Path) -> list[bool]:
    return [
        any(link.linked for link in links_of(run, read_code([Path(s) for s in run.scripts])[0])) for run in read(folder)
    ]


def laid_out(folder: Path, *logs: str, scripts: tuple[str, ...] = ("train.py",)) -> Path:
    for script in scripts:
        (folder / script).write_text(SCRIPT)
    for log in logs:
        (folder / log).parent.mkdir(parents=True)
        (folder / log).write_text(ROWS)
    return folder


def test_the_script_above_the_only_run_made_it(tmp_path: Path) -> None:
    assert linked(laid_out(tmp_path, "lightning_logs/version_0/metrics.csv")) == [True]


def test_of_two_runs_below_a_script_neither_is_charged_to_it(tmp_path: Path) -> None:
    folder = laid_out(tmp_path, "lightning_logs/version_0/metrics.csv", "lightning_logs/version_1/metrics.csv")
    assert linked(folder) == [False, False]


def test_two_scripts_above_a_run_are_charged_with_nothing(tmp_path: Path) -> None:
    assert linked(laid_out(tmp_path, "outputs/a/metrics.csv", scripts=("one.py", "two.py"))) == [False]
