"""Logs in styles of their own makers: whose numbers they are, where they stand, which settings they print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wheeltapper.reading import readings_of
from wheeltapper.reading._echo import EchoScanner
from wheeltapper.reading._split_words import split_of
from wheeltapper.run.gather import read_runs
from wheeltapper.run.model import Run
from wheeltapper.run.names import meaning_of
from wheeltapper.settings.knobs import read_knobs

N = 12
LOSS = [2.0 / (1 + i) for i in range(N)]
HELD = [2.2 / (1 + i) for i in range(N)]
ACC = [1 - 0.9 / (1 + i) for i in range(N)]


def run_of(tmp_path: Path, text: str, name: str = "train.log") -> Run:
    (tmp_path / name).write_text(text, encoding="utf-8")
    (run,) = read_runs(tmp_path)
    return run


def told(run: Run) -> dict[str, tuple[int, str, float]]:
    return {s.name: (len(s), s.clock, round(float(s.values[0]), 3)) for s in run.series.values() if s.better in ("up", "down")}


def echoed(text: str) -> dict[str, object]:
    scanner = EchoScanner("a.log")
    scanner.feed(list(enumerate(text.split("\n"), 1)))
    return {leaf.dotted: leaf.value for tree in scanner.finish() for leaf in tree}


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("held-out loss", "val"), ("out_of_sample_mse", "val"), ("in-sample mse", "train"), ("oof_auc", "val"),
        ("holdout logloss", "val"), ("learning_rate", None), ("devices", None), ("testosterone", None),
    ],
)  # fmt: skip
def test_words_for_a_split(name: str, split: str | None) -> None:
    assert split_of(name) == split


@pytest.mark.parametrize(
    ("name", "quantity", "split"),
    [
        ("ho_logloss", "loss", "val"), ("fit_loss", "loss", "train"), ("ho_bal_acc", "accuracy", "val"), ("cv_auc", "auc", "val"),
        ("mse/out_of_sample", "mse", "val"), ("Lva", "loss", "val"), ("Ltr", "loss", "train"), ("val_mean_io_u", "iou", "val"),
        ("PCK@2.5px", "pck", "val"), ("best_fit", None, None), ("fit_time", "duration", None),
    ],
)  # fmt: skip
def test_names_with_such_words(name: str, quantity: str | None, split: str | None) -> None:
    meaning = meaning_of(name)
    assert (meaning.quantity, meaning.split if quantity != "duration" else None) == (quantity, split)


def test_a_word_before_the_epoch_behind_a_logger(tmp_path: Path) -> None:
    rows = []
    for i in range(N):
        rows += [f"2026-11-18 05:41:{2 * i:02d},000 parity INFO: ep[{i + 1}] it[{50 * (2 * i + j + 1)}/1200] running_loss: {LOSS[i]:.4f}" for j in (0, 1)]
        rows.append(f"2026-11-18 05:41:{2 * i + 1:02d},000 parity INFO: Validation - Epoch: {i + 1}  Avg accuracy: {ACC[i]:.4f} Avg loss: {HELD[i]:.4f}")
    run = run_of(tmp_path, "\n".join(rows) + "\n")
    assert told(run) == {
        "val/loss": (N, "epoch", 2.2), "train/loss.running": (2 * N, "step", 2.0), "val/accuracy": (N, "epoch", 0.1)
    }  # fmt: skip
    assert run.series["train/loss.running"].at.tolist()[:3] == [50, 100, 150]  # of the run, not of the epoch


def test_valid_before_a_short_word_for_the_epoch(tmp_path: Path) -> None:
    rows = [f"ep={i} lr=0.001 ce={LOSS[i]:.4f}\n>> valid ep={i} ce={HELD[i]:.4f} acc={ACC[i]:.4f}" for i in range(N)]
    assert told(run_of(tmp_path, "\n".join(rows) + "\n")) == {
        "train/loss": (N, "epoch", 2.0), "val/loss": (N, "epoch", 2.2), "val/accuracy": (N, "epoch", 0.1)
    }  # fmt: skip


def test_events_say_whose_rows_they_are(tmp_path: Path) -> None:
    rows = []
    for i in range(N):
        rows += [{"event": "step", "gs": 20 * i + 10, "epoch": i, "bce": LOSS[i]}]
        rows += [{"event": "valid", "gs": 20 * i + 20, "epoch": i, "auc": ACC[i], "logloss": HELD[i], "train_bce": LOSS[i]}]
    run = run_of(tmp_path, "\n".join(map(json.dumps, rows)) + "\n", "metrics.jsonl")
    assert told(run)["val/loss"] == (N, "step", 2.2)
    assert told(run)["val/auc"] == (N, "step", 0.1)
    assert {s.split for s in run.series.values() if "bce" in s.raw} == {"train"}


@pytest.mark.parametrize(
    ("counter", "clock"), [("gs", "step"), ("upd", "step"), ("round", "epoch"), ("i", "step"), ("comm_round", "epoch"), ("trees", "step")]
)
def test_counters_under_odd_names(tmp_path: Path, counter: str, clock: str) -> None:
    table = f"{counter},train_loss,val_loss\n" + "".join(f"{5 * i},{LOSS[i]},{HELD[i]}\n" for i in range(N))
    assert told(run_of(tmp_path, table, "a.csv"))["val/loss"][1] == clock
    (tmp_path / "a.csv").unlink()
    lines = "".join(f"{counter}={5 * i} train_loss={LOSS[i]:.4f} val_loss={HELD[i]:.4f}\n" for i in range(N))
    assert told(run_of(tmp_path, lines))["val/loss"][1] == clock


def test_what_does_not_count_is_no_clock(tmp_path: Path) -> None:
    table = "gs,train_loss\n" + "".join(f"{(7 * i) % 5},{LOSS[i]}\n" for i in range(N))
    assert told(run_of(tmp_path, table, "a.csv"))["train/loss"][1] == "row"


def test_a_fit_called_anew_for_every_row_tells_no_place(tmp_path: Path) -> None:
    rows = [f"Iteration 1, loss = {LOSS[i]:.8f}\n[{i + 1:02d}] holdout logloss {HELD[i]:.4f}  bal_acc {ACC[i]:.4f}" for i in range(N)]
    (tmp_path / "mlp.out").write_text("\n".join(rows) + "\n")
    run = run_of(tmp_path, "ep,fit_loss,ho_logloss,ho_bal_acc\n" + "".join(f"{i + 1},{LOSS[i]},{HELD[i]},{ACC[i]}\n" for i in range(N)), "curve.csv")
    assert told(run) == {"train/loss": (N, "epoch", 2.0), "val/loss": (N, "epoch", 2.2), "val/accuracy": (N, "epoch", 0.1)}


def test_folds_one_after_the_other_are_runs(tmp_path: Path) -> None:
    rows = [f"[fold{k}] Ep {i + 1:02d}/{N} trn_rmse={LOSS[i] + k:.4f}  val_rmse={HELD[i] + k:.4f}" for k in (0, 1) for i in range(N)]
    (tmp_path / "a.log").write_text("{'epochs': 12, 'lr': 0.002, 'batch_size': 64}\n" + "\n".join(rows) + "\n")
    runs = read_runs(tmp_path)
    assert [(len(run.series["val/rmse"]), [s.kind for s in run.segments]) for run in runs] == [(N, ["first"])] * 2
    assert [round(float(run.series["val/rmse"].values[0]), 2) for run in runs] == [2.2, 3.2]
    assert all(run.configs for run in runs)


def test_a_relaunch_that_names_one_fold_is_one_run(tmp_path: Path) -> None:
    rows = [f"epoch {i + 1} train_loss {LOSS[i]:.4f} val_loss {HELD[i] + k:.4f}" for k in (0, 1) for i in range(N)]
    (tmp_path / "a.log").write_text("=== fold 3 ===\n" + "\n".join(rows) + "\n")
    assert len(read_runs(tmp_path)) == 1


def test_rows_within_a_row_are_no_series(tmp_path: Path) -> None:
    rows = [{"epoch": i + 1, "train_loss": LOSS[i], "batches": [{"train_loss": 1.0 + j} for j in range(9)]} for i in range(N)]
    assert list(told(run_of(tmp_path, json.dumps(rows), "history.json"))) == ["train/loss"]


def test_a_history_in_yaml(tmp_path: Path) -> None:
    rows = "".join(f"- epoch: {i + 1}\n  train: {{loss: {LOSS[i]:.4f}}}\n  valid: {{loss: {HELD[i]:.4f}, acc: {ACC[i]:.4f}}}\n" for i in range(N))
    run = run_of(tmp_path, "history:\n" + rows, "results.yaml")
    assert told(run) == {"train/loss": (N, "epoch", 2.0), "val/loss": (N, "epoch", 2.2), "val/accuracy": (N, "epoch", 0.1)}
    (tmp_path / "results.yaml").write_text("lr: 0.1\nmilestones:\n- 3\n- 5\nblocks:\n- epoch: 3\n  lr: 0.1\n")
    assert readings_of(tmp_path / "results.yaml")[0].configs  # a configuration with a list in it


def test_scores_that_the_reader_of_a_framework_passes_over(tmp_path: Path) -> None:
    rows = []
    for i in range(N):
        rows += [f"Epoch: [{i + 1}][{j}/29] Elapsed 0s Loss: {LOSS[i]:.4f}({LOSS[i]:.4f})" for j in (0, 15, 28)]
        rows += [f"Epoch {i + 1} - avg_train_loss: {LOSS[i]:.4f}  avg_val_loss: {HELD[i]:.4f}  time: 0s"]
        rows += [f"Epoch {i + 1} - Accuracy: {ACC[i]:.4f}  F1: {ACC[i]:.4f}  lr: 1e-3"]
    assert {"val/loss", "val/accuracy", "val/f1"} <= set(told(run_of(tmp_path, "\n".join(rows) + "\n")))


def test_a_table_without_known_results_keeps_the_names_of_its_columns(tmp_path: Path) -> None:
    run = run_of(tmp_path, "step,shape,pose\n" + "".join(f"{i},{LOSS[i]},{HELD[i] - LOSS[i]}\n" for i in range(N)), "a.csv")
    assert set(run.series) == {"shape", "pose"}


@pytest.mark.parametrize(
    "text",
    [
        "== run ==\n  lr        : 0.1\n  batch_size : 16\n  epochs : 3\n  seed : 2\n  momentum : 0.9\nok",
        "lr = 0.1\nbatch_size = 16\nepochs = 3\nseed = 2\nmomentum = 0.9",
        "lr=0.1\nbatch_size=16\nepochs=3\nseed=2\nmomentum=0.9",
        "options: lr=0.1, batch_size=16, epochs=3, num_feat=24, x=1",
        "start lr=0.1 batch_size=16 epochs=3",
        "2026-11-18 05:17:24 INFO --lr 0.1 --batch_size 16 --epochs 3",
        "args: --lr 0.1 --batch_size 16 --epochs 3",
        "Args(lr=0.1, batch_size=16, epochs=3)",
        "settings {'lr': 0.1, 'batch_size': 16, 'epochs': 3}",
        "config: {'lr': 0.1, 'batch_size': 16, 'epochs': 3}",
        "\n".join(f"Thu 07 Mar 2024 10:00:00 INFO  {x}" for x in ("lr = 0.1", "batch_size = 16", "epochs = 3", "a = 1", "b = 2")),
    ],
)
def test_settings_as_logs_print_them(text: str) -> None:
    found = echoed(text)
    assert (found.get("lr"), found.get("batch_size"), found.get("epochs")) == (0.1, 16, 3)


@pytest.mark.parametrize(
    "text",
    [
        "  (0): Linear(in_features=64, out_features=32, bias=True)",
        "{'train_loss': '0.29', 'train_runtime': '27.29', 'epoch': '5'}",
        "best so far: a=1 b=2 c=3",
    ],
)
def test_what_is_printed_and_is_no_setting(text: str) -> None:
    assert echoed(text) == {}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("train.ini", "[optimizer]\ntype = sgd\nlr = 0.26\nl2 = 5e-4\n[training]\nepochs = 20\nbatch = 64\n"),
        ("ranker.properties", "# x\ntrain.rate=0.26\ntrain.epochs=20\ntrain.queries.per.batch=64\ntrain.l2=0.0005\noptimizer=sgd\n"),
        ("a.gin", "train.lr = 0.26\ntrain.epochs = 20\ntrain.batch_size = 64\noptimizer = @SGD\nSGD.weight_decay = 5e-4\n"),
        ("hp.json", '{"lr": 0.26, "epochs": 20, "batch": 64, "l2": 0.0005, "optimizer": "sgd"}'),
        ("notes.md", "| setting | value |\n|---|---|\n| lr | 0.26 |\n| epochs | 20 |\n| batch size | 64 |\n| weight decay | 5e-4 |\n| optimizer | sgd |\n"),
    ],
)
def test_settings_beside_a_log(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    run = run_of(tmp_path, "epoch,loss\n" + "".join(f"{i},{LOSS[i]}\n" for i in range(N)), "a.csv")
    knobs = read_knobs(run.configs)
    ids = ("optimizer.lr", "run.epochs", "batch.per_device", "optimizer.weight_decay")
    assert [knobs.value(id_) for id_ in ids] == [0.26, 20, 64, 0.0005]
    assert str(knobs.value("optimizer.name")).lower() == "sgd"
    assert knobs.place("optimizer.lr").line is not None


def test_a_row_of_results_is_no_configuration(tmp_path: Path) -> None:
    (tmp_path / "final.json").write_text('{"val_loss": 0.31, "val_acc": 0.9, "lr": 0.1, "epochs": 20}')
    assert not readings_of(tmp_path / "final.json")[0].configs


def test_shares_beside_named_losses_are_scores(tmp_path: Path) -> None:
    rows = [f"Epoch: {i:03d}, loss: {LOSS[i]:.4f}, val_loss: {HELD[i]:.4f}, Train: {ACC[i]:.4f}, Val: {ACC[i]:.4f}, Test: {ACC[i]:.4f}" for i in range(N)]
    run = run_of(tmp_path, "\n".join(rows) + "\n")
    assert {s.name: s.better for s in run.series.values()} == {
        "train/loss": "down", "val/loss": "down", "train/score": "up", "val/score": "up", "test/score": "up"
    }  # fmt: skip


def test_a_table_of_settings_above_the_rows(tmp_path: Path) -> None:
    table = "┏━━━━━━━━━━━━━┳━━━━━━━┓\n┃ setting     ┃ value ┃\n┡━━━━━━━━━━━━━╇━━━━━━━┩\n"
    table += "".join(f"│ {k:11} │ {v:>5} │\n" for k, v in (("lora_r", 4), ("lora_alpha", 8.0), ("lr", 0.003), ("bs", 32), ("steps", 400), ("seed", 1)))
    rows = "".join(f"  {10 * i + 10}/120  ce {LOSS[i]:.4f}  lr 1.25e-03  val_ce {HELD[i]:.4f}\n" for i in range(N))
    run = run_of(tmp_path, table + "└─────────────┴───────┘\n" + rows)
    assert told(run) == {"train/loss": (N, "step", 2.0), "val/loss": (N, "step", 2.2)}
    assert (read_knobs(run.configs).value("optimizer.lr"), read_knobs(run.configs).value("model.lora_rank")) == (0.003, 4)


def test_settings_in_a_dict_of_several_lines_and_behind_a_word_of_any_language() -> None:
    assert echoed("{'batch': 32,\n 'lr': 0.05,\n 'momentum': 0.5,\n 'epochs': 3,\n 'seed': 1}")["lr"] == 0.05
    assert echoed('設定: {"lr": 0.05, "batch": 48, "epochs": 16}')["lr"] == 0.05


def test_the_one_configuration_of_a_folder_beside_the_log(tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "a.yaml").write_text("lr: 0.03\nepochs: 12\n")
    run = run_of(tmp_path, "epoch,loss\n" + "".join(f"{i},{LOSS[i]}\n" for i in range(N)), "a.csv")
    assert read_knobs(run.configs).value("optimizer.lr") == 0.03
    (tmp_path / "configs" / "b.yaml").write_text("lr: 0.3\nepochs: 12\n")
    (run,) = read_runs(tmp_path)
    assert not run.configs  # of two, which one ran is not known


def test_the_command_of_a_readme_counts_where_nothing_else_sets(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# x\n\n    python train.py --lr 2e-3 --batch-size 128 --max-steps 1500\n")
    run = run_of(tmp_path, "".join(f"Steps: {100 * i + 100}/1500 step_loss={LOSS[i]:.4f} ema_x={HELD[i]:.4f}\n" for i in range(N)))
    assert (read_knobs(run.configs).value("optimizer.lr"), run.series["train/loss"].clock) == (0.002, "step")


def test_rows_in_files_of_their_own(tmp_path: Path) -> None:
    for i in range(N):
        (tmp_path / f"metrics_epoch_{i}.json").write_text(json.dumps({"epoch": i, "training_loss": LOSS[i], "validation_loss": HELD[i]}, indent=1))
    (run,) = read_runs(tmp_path)
    assert told(run) == {"train/loss": (N, "epoch", 2.0), "val/loss": (N, "epoch", 2.2)}
    assert len(run.segments) == 1


def test_curves_printed_as_lists_and_a_header_of_two_lines(tmp_path: Path) -> None:
    run = run_of(tmp_path, f"done\ntrain_losses = {LOSS}\nval_losses = {HELD}\n", "out.txt")
    assert told(run) == {"train/loss": (N, "row", 2.0), "val/loss": (N, "row", 2.2)}
    (tmp_path / "out.txt").unlink()
    head = "| Epoch | Iteration | Mini-batch | Validation | Mini-batch | Validation |\n|       |           |  Accuracy  |  Accuracy  |    Loss    |    Loss    |\n"
    rows = "".join(f"| {i + 1} | {50 * i + 1} | {100 * ACC[i]:.2f}% | {100 * ACC[i]:.2f}% | {LOSS[i]:.4f} | {HELD[i]:.4f} |\n" for i in range(N))
    assert {"train/loss", "val/loss", "train/accuracy", "val/accuracy"} <= set(told(run_of(tmp_path, head + rows, "matlab.txt")))


def test_two_models_in_one_table_are_two_runs(tmp_path: Path) -> None:
    rows = [f"{name},{100 * i},{LOSS[i] + j},{HELD[i] + j}" for j, name in enumerate(("char", "bpe")) for i in range(N)]
    (tmp_path / "comparison.csv").write_text("tokenizer,step,train_loss,val_loss\n" + "\n".join(rows) + "\n")
    assert [round(float(run.series["val/loss"].values[0]), 1) for run in read_runs(tmp_path)] == [2.2, 3.2]


def test_words_of_german_logs(tmp_path: Path) -> None:
    rows = "".join(f"{i + 1};{51 * i + 51};{LOSS[i]:.5f};{HELD[i]:.5f};1.0e-03\n".replace(".", ",", 2) for i in range(N))
    run = run_of(tmp_path, "Durchlauf;Schritte;Fehler_Lern;Fehler_Prüf;Lernrate\n" + rows, "verlauf.csv")
    assert told(run) == {"train/error": (N, "step", 2.0), "val/error": (N, "step", 2.2)}
