"""Roles that structure and behaviour tell: what is inferred, and what must stay unknown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wheeltapper.run.gather import read_runs
from wheeltapper.run.model import Run

N = 20


def falling(start: float, end: float, n: int = N) -> list[float]:
    return [end + (start - end) * float(np.exp(-3 * i / n)) for i in range(n)]


def table(**columns: list[float]) -> str:
    rows = zip(*columns.values(), strict=True)
    return "\n".join([",".join(columns), *(",".join(f"{v:.5g}" for v in row) for row in rows)]) + "\n"


def run_of(tmp_path: Path, text: str, name: str = "curve.csv") -> Run:
    (tmp_path / name).write_text(text)
    (run,) = read_runs(tmp_path)
    return run


STEPS = [float(10 * i) for i in range(N)]
LOSS, HELD = falling(2.3, 0.4), falling(2.4, 0.6)


@pytest.mark.parametrize(("train", "held"), [("train_zeta", "dev_zeta"), ("tr_zeta", "va_zeta"), ("fit_zeta", "ho_zeta")])
def test_a_stem_of_two_splits_that_falls_is_a_loss(tmp_path: Path, train: str, held: str) -> None:
    run = run_of(tmp_path, table(step=STEPS, **{train: LOSS, held: HELD}))
    assert [(s.split, s.better, len(s)) for s in run.find("loss")] == [("train", "down", N), ("val", "down", N)]
    assert "falls" in run.series["train/loss"].inferred
    assert any("is read as val/loss" in note.text for note in run.notes)


def test_the_batches_of_such_a_stem_are_of_training(tmp_path: Path) -> None:
    rows = []
    for epoch in range(6):
        rows += [f"epoch {epoch} update {epoch * 40 + i * 10} zeta {2.0 / (1 + epoch + i / 4):.4f}" for i in range(4)]
        rows.append(f"dev: epoch={epoch} train_zeta={2.0 / (1 + epoch):.4f} dev_zeta={2.1 / (1 + epoch):.4f}")
    run = run_of(tmp_path, "\n".join(rows) + "\n", "train.log")
    assert run.series["val/loss"].values[-1] == pytest.approx(0.35)
    batches = run.series_named("zeta")
    assert batches is not None
    assert (batches.split, batches.quantity, len(batches)) == ("train", "loss", 24)


def test_a_share_that_rises_as_the_loss_falls_is_a_score(tmp_path: Path) -> None:
    text = table(step=STEPS, loss=LOSS, train_zeta=[1 - x / 3 for x in LOSS], val_zeta=[1 - x / 3 for x in HELD])
    run = run_of(tmp_path, text)
    assert [(s.split, s.better) for s in run.find("score")] == [("train", "up"), ("val", "up")]


@pytest.mark.parametrize(
    "text",
    [
        table(step=STEPS, train_zeta=LOSS[::-1], val_zeta=HELD[::-1]),  # a loss that diverges rises, too
        table(step=STEPS, train_zeta=LOSS, val_zeta=HELD, loss=LOSS[::-1]),  # a score may fall where the loss rises
        table(step=STEPS, train_zeta=LOSS, val_zeta=HELD, train_loss=LOSS, val_loss=HELD),  # the loss is known already
        table(step=STEPS, train_zeta=[-x for x in HELD], val_zeta=[-x for x in LOSS]),  # negative
        table(step=STEPS, train_zeta=[float(N - i) for i in range(N)], val_zeta=[float(N - i) for i in range(N)]),  # counts
        table(step=STEPS, train_zeta=LOSS, val_zeta=[1000 * x for x in HELD]),  # of another size
        table(step=STEPS, train_zeta=[1.0 + 0.001 * (i % 3) for i in range(N)], val_zeta=HELD),  # stands still
    ],
)
def test_what_is_not_clear_stays_unknown(tmp_path: Path, text: str) -> None:
    run = run_of(tmp_path, text)
    assert {s.better for s in run.series.values() if "zeta" in s.raw} == {"unknown"}


def test_parts_that_add_up_to_a_total_are_losses(tmp_path: Path) -> None:
    a, b = falling(1.2, 0.2), [0.3 + 0.1 * (i % 5) for i in range(N)]
    run = run_of(tmp_path, table(step=STEPS, shape=a, pose=b, total=[x + 0.5 * y for x, y in zip(a, b, strict=True)]))
    assert {s.name for s in run.find("loss", "train", whole=False)} == {"train/loss", "train/loss.shape", "train/loss.pose"}


def test_columns_that_do_not_add_up_are_none(tmp_path: Path) -> None:
    a, b = falling(1.2, 0.2), [0.3 + 0.1 * (i % 5) for i in range(N)]
    run = run_of(tmp_path, table(step=STEPS, shape=a, pose=b, total=[x * y + 0.1 for x, y in zip(a, b, strict=True)]))
    assert not run.find("loss", whole=False)


def test_a_total_beside_a_part_is_the_whole(tmp_path: Path) -> None:
    rows = "".join(f'{{"event": "step", "gs": {i * 20 + 20}, "bce": {x:.4f}, "total": {x + 0.05 * (i % 3):.4f}}}\n' for i, x in enumerate(LOSS))
    run = run_of(tmp_path, rows, "metrics.jsonl")
    assert run.series["train/loss"].raw == "total"
    assert (run.series["train/loss.bce"].clock, run.series["train/loss"].at[-1]) == ("step", 400.0)


def test_clients_measure_training_and_the_server_what_is_held_out(tmp_path: Path) -> None:
    rows = [f"| {i + 1:5d} | {LOSS[i]:10.4f} | {HELD[i]:9.4f} | {100 - 30 * HELD[i]:9.2f} |" for i in range(N)]
    text = "| round | local loss | glob loss | glob acc% |\n+-------+------------+-----------+-----------+\n" + "\n".join(rows) + "\n"
    run = run_of(tmp_path, text, "nohup.out")
    assert run.series["train/loss"].values[0] == pytest.approx(LOSS[0], abs=1e-4)
    assert run.series["val/loss"].values[0] == pytest.approx(HELD[0], abs=1e-4)
    assert (run.series["val/accuracy"].clock, run.series["val/accuracy"].at[-1]) == ("epoch", N)


def test_the_one_error_of_no_data_is_of_training_beside_a_held_out_result(tmp_path: Path) -> None:
    run = run_of(tmp_path, table(step=STEPS, mse=LOSS, rel_l2_test=HELD))
    assert (run.series["train/mse"].split, bool(run.series["train/mse"].inferred)) == ("train", True)
    alone = run_of(tmp_path, table(step=STEPS, mse=LOSS, other=HELD))
    assert alone.series["mse"].split is None


def test_the_losses_of_two_adversaries(tmp_path: Path) -> None:
    rows = [f"[{i * 100}/2000] D {1.3 + 0.01 * (i % 4):.3f} G {0.7 + 0.01 * (i % 3):.3f} D(acc) 0.6{i % 10}" for i in range(1, N)]
    run = run_of(tmp_path, "\n".join(rows) + "\n", "ring.log")
    assert {"train/gan_d", "train/gan_g"} <= set(run.series)
    assert (run.series["train/gan_g"].clock, run.series["train/gan_g"].at[0]) == ("step", 100.0)
    assert not run.find("accuracy", whole=False)  # how well real is told from made is no score of the run


def test_a_number_in_a_file_of_settings_is_no_return(tmp_path: Path) -> None:
    (tmp_path / "adapter.json").write_text('{"r": 8, "lora_alpha": 16, "lora_dropout": 0.05}')
    (tmp_path / "summary.json").write_text('{"r": 8, "foo": 2}')
    run = run_of(tmp_path, table(epoch=[float(i) for i in range(N)], loss=LOSS))
    assert list(run.series) == ["train/loss"]
    assert [tree.get("lora_alpha") for tree in run.configs if tree.file.endswith("adapter.json")] == [16]


def test_a_score_beside_an_f1_is_no_return(tmp_path: Path) -> None:
    run = run_of(tmp_path, table(step=STEPS, loss=LOSS, ents_f=[1 - x / 3 for x in HELD], score=[1 - x / 3 for x in HELD]))
    assert run.series["val/score"].better == "up"
    assert not run.find("return")
