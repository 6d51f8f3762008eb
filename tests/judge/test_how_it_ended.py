"""A run that died says so first; one that went on after a traceback did not die."""

from __future__ import annotations

from pathlib import Path

import pytest

from wheeltapper import api
from wheeltapper.report.view import view_of

TRACE = """Traceback (most recent call last):
  File "train.py", line 120, in <module>
    main()
  File "train.py", line 80, in main
    loss.backward()
{error}
"""
OOM = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB"


def rows(first: int, last: int) -> str:
    return "".join(
        f"Epoch: [{e}][{i}/500] loss {2.3 * 0.9 ** (e * 2 + i / 250):.4f} lr 0.1\n"
        for e in range(first, last)
        for i in range(0, 500, 50)
    )


def written(folder: Path, **logs: str) -> Path:
    (folder / "config.yaml").write_text("epochs: 10\nbatch_size: 64\nlr: 0.1\n")
    for name, text in logs.items():
        (folder / f"{name}.log").write_text(text)
    return folder


def test_out_of_memory_is_the_first_thing_said(tmp_path: Path) -> None:
    (diagnosis,) = api.diagnose(written(tmp_path, train=rows(0, 4) + TRACE.format(error=OOM)))
    assert diagnosis.verdict != "ill"  # what was learned is; the label of such runs in the corpus says so, too
    assert diagnosis.progress.state == "crashed"
    assert diagnosis.headline.startswith("The run did not finish: at epoch 3.9 of 10 the program ran out of memory: torch")
    assert "did not finish" in diagnosis.headline
    assert "rashed" in view_of(diagnosis).verdict_words or diagnosis.verdict == "cannot-tell"
    assert not any("ran out of memory" in line for line in diagnosis.why)  # once is enough


def test_too_few_rows_and_a_crash(tmp_path: Path) -> None:
    (diagnosis,) = api.diagnose(written(tmp_path, train=rows(0, 1)[:130] + TRACE.format(error=OOM)))
    assert diagnosis.verdict == "cannot-tell"
    assert diagnosis.headline.startswith("Cannot tell: the run did not finish: ")
    assert view_of(diagnosis).verdict_words == "Cannot tell"


def test_a_crash_after_the_end(tmp_path: Path) -> None:
    log = rows(0, 10) + TRACE.format(error="AttributeError: module 'wandb' has no attribute 'run'")
    (diagnosis,) = api.diagnose(written(tmp_path, train=log))
    assert diagnosis.progress.state == "finished"
    assert diagnosis.headline.startswith("The training reached its end, and then the program crashed: AttributeError")
    assert view_of(diagnosis).verdict_words == "Sound"


@pytest.mark.parametrize("words", ["KeyboardInterrupt", "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2024-01-01 ***"])
def test_stopped_by_hand_is_no_crash(tmp_path: Path, words: str) -> None:
    (diagnosis,) = api.diagnose(written(tmp_path, train=rows(0, 4) + words + "\n"))
    assert diagnosis.progress.state == "stopped"
    assert diagnosis.verdict != "ill"
    assert any("stopped by hand" in line for line in diagnosis.why)


def test_training_that_went_on_did_not_crash(tmp_path: Path) -> None:
    skipped = "skipping this batch\n" * 3
    log = rows(0, 4) + TRACE.format(error=OOM) + skipped + rows(4, 5)
    (diagnosis,) = api.diagnose(written(tmp_path, train=log))
    assert diagnosis.progress.state == "stopped"
    assert "crash" not in diagnosis.progress.text
    assert not any(f.id == "crashed" for f in diagnosis.findings)


def test_a_later_launch_in_another_file_goes_on(tmp_path: Path) -> None:
    first = rows(0, 4) + TRACE.format(error="RuntimeError: NCCL error")
    (diagnosis,) = api.diagnose(written(tmp_path, train_1=first, train_2=rows(4, 10)))
    assert diagnosis.progress.state != "crashed"
    assert not any(f.id == "crashed" for f in diagnosis.findings)


def test_a_second_log_of_the_same_launch_does_not_go_on(tmp_path: Path) -> None:
    """A file that is written more often reaches a little further than the one that holds the traceback."""
    often = "".join(f'{{"step": {i}, "grad_norm": {1 + 1 / (i + 1)}}}\n' for i in range(0, 1996, 5))
    folder = written(tmp_path, train=rows(0, 4) + TRACE.format(error=OOM))
    (folder / "metrics.jsonl").write_text(often)
    diagnosis = max(api.diagnose(folder), key=lambda d: len(d.run.series))
    assert diagnosis.progress.state == "crashed"
