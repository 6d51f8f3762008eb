"""Shapes met in public records, in logs of our own making: what they must be called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wheeltapper.api import diagnose
from wheeltapper.judge.model import Diagnosis


def told(tmp_path: Path, text: str, name: str = "train.log") -> Diagnosis:
    (tmp_path / name).write_text(text, encoding="utf-8")
    (diagnosis,) = diagnose(tmp_path / name)
    return diagnosis


def ids(diagnosis: Diagnosis) -> set[str]:
    return {f.id for f in diagnosis.findings if f.severity == "ill"}


def test_a_loss_that_moved_by_one_percent_is_no_sign_of_learning(tmp_path: Path) -> None:
    rows = "epoch,train_loss\n" + "\n".join(f"{i},{0.25 + 0.0022 * 0.9**i:.6f}" for i in range(120))
    assert told(tmp_path, rows, "metrics.csv").verdict == "cannot-tell"


@pytest.mark.xfail(strict=False, reason="known miss of the fitted judge: ill is said; the cause is not named first: no labelled run has it")
def test_a_loss_of_zero_beside_a_norm_of_nan_is_a_hidden_nan(tmp_path: Path) -> None:
    rows = [
        f"{{'loss': 0.0, 'grad_norm': nan, 'learning_rate': {1e-4 + 1e-5 * i}, 'epoch': {i / 50}}}" for i in range(20)
    ]
    diagnosis = told(tmp_path, "\n".join(rows))
    assert diagnosis.verdict == "ill"
    assert diagnosis.causes[0].id == "nan-hidden-by-logger"


@pytest.mark.xfail(strict=False, reason="known miss of the fitted judge: left open: a short record with a collapsed scale")
def test_no_loss_scale_left(tmp_path: Path) -> None:
    rows = [
        f"| epoch {e:03} | loss {9 - 0.1 * e:.3f} | nll_loss {8 - 0.1 * e:.3f} | ppl 99.0 | num_updates {100 * e} | lr 0.0006 | gnorm 0.4 | loss_scale 0.5"
        for e in range(1, 8)
    ]
    rows += [f"| WARNING: overflow detected, setting loss scale to: {0.25 / 2**i}" for i in range(11)]
    rows += ["Traceback (most recent call last):", '  File "train.py", line 3, in <module>']
    rows += ["FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding."]
    diagnosis = told(tmp_path, "\n".join(rows))
    assert "scale-collapse" in ids(diagnosis)
    assert diagnosis.causes[0].id == "fp16-overflow"


def test_an_agent_that_never_rises_and_one_that_rises_at_once(tmp_path: Path) -> None:
    def rows(level: float, later: float) -> str:
        head = "rollout/ep_rew_mean,rollout/exploration_rate,train/loss,time/total_timesteps\n"
        lines = []
        for i in range(300):
            reward = (level if i < 6 else later) + ((i * 7919) % 13 - 6) * 0.3
            lines.append(f"{reward:.3f},{max(0.05, 1 - i / 50):.3f},{0.5 + 0.01 * (i % 3):.3f},{100 * (i + 1)}")
        return head + "\n".join(lines)

    assert "return-never-rose" in ids(told(tmp_path, rows(21.0, 21.0), "progress.csv"))
    assert told(tmp_path, rows(21.0, 190.0), "progress.csv").verdict != "ill"


def test_a_loss_that_wanders_through_ln_c_is_not_at_chance(tmp_path: Path) -> None:
    values = [0.694, 2.1, 4.7, 3.5, 2.7, 6.5, 3.1, 4.2, 2.9, 3.6, 4.4, 3.53]
    rows = ["epoch,accuracy,loss,val_accuracy,val_loss"]
    rows += [f"{i},0.03,0.6932,{0.01 + 0.002 * (i % 3):.4f},{v}" for i, v in enumerate(values)]
    assert "at-chance" not in ids(told(tmp_path, "\n".join(rows), "training_log.csv"))


def test_an_accuracy_and_a_loss_that_meet_at_one_third(tmp_path: Path) -> None:
    rows = ["epoch,train_loss,val_acc,val_loss"]
    rows += [f"{i},{3.0 - 0.002 * i:.4f},{0.04 + 0.0024 * i:.4f},{1.1 + 0.36 * 0.96**i:.4f}" for i in range(100)]
    assert "at-chance" not in ids(told(tmp_path, "\n".join(rows), "metrics.csv"))


def test_a_certain_policy_has_no_loss(tmp_path: Path) -> None:
    rows = [
        f"[step={i + 1}] episode={i + 1}.0000 return={100 + min(i, 60) + (i * 7) % 5:.4f} loss={max(0.0, 1 - i / 50):.4f} entropy=0.0000"
        for i in range(200)
    ]
    assert told(tmp_path, "\n".join(rows)).verdict != "ill"


def test_parts_of_a_loss_that_miss_a_row_are_summed(tmp_path: Path) -> None:
    """One part of six creeps up by as much as another falls: the sum is flat, and nobody's loss diverges."""
    header = "epoch,train/box_loss,train/obj_loss,val/box_loss,metrics/mAP_0.5"
    rows = [header]
    for i in range(60):
        box, obj = f"{0.9 - 0.012 * i:.4f}", f"{0.1 + 0.003 * i:.4f}"
        rows.append(f"{i},{'' if i == 7 else box},{obj},{0.5 - 0.004 * i:.4f},{0.1 + 0.01 * i:.4f}")
    diagnosis = told(tmp_path, "\n".join(rows), "results.csv")
    assert diagnosis.verdict != "ill"


def test_a_score_beside_both_losses_is_of_the_held_out_set(tmp_path: Path) -> None:
    """fastai names no split for its metrics; Keras names none for those of training."""

    def table(loss: str) -> str:
        rows = [
            f"{e},{0.8 * 0.9**e:.4f},{0.5 + 0.02 * e:.4f},{0.92 - 0.3 * 0.7**e:.4f},04:3{e % 10}" for e in range(20)
        ]
        return f"epoch,{loss},valid_loss,accuracy,time\n" + "\n".join(rows)

    fastai = told(tmp_path, table("train_loss"), "history.csv")
    assert "accuracy held its level" in " ".join(f.summary for f in fastai.findings)
    assert fastai.verdict != "ill"
    keras = told(tmp_path, table("loss"), "history.csv")
    assert "accuracy held" not in " ".join(f.summary for f in keras.findings)


def test_every_step_skipped_at_the_lowest_scale_is_ill_without_a_loss(tmp_path: Path) -> None:
    line = "[2021-11-27 00:36:5{i},800] [INFO] [stage2.py:1628:step] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {a}, reducing to {b}"
    floor = told(tmp_path, "\n".join(line.format(i=i, a=1, b=1) for i in range(6)))
    assert floor.verdict == "ill"
    assert "lowest loss scale" in floor.headline
    few = [line.format(i=i, a=1, b=1) for i in range(3)] + [f"step: {10 * i}, loss: {3.0 * 0.97**i:.4f}" for i in range(60)]
    assert told(tmp_path, "\n".join(few)).verdict != "ill"
    search = "\n".join(line.format(i=i, a=2.0 ** (16 - i), b=2.0 ** (15 - i)) for i in range(6))
    assert told(tmp_path, search).verdict != "ill"


def test_a_scale_below_one_is_no_collapse_while_the_loss_falls(tmp_path: Path) -> None:
    def log(losses: list[float]) -> str:
        return "\n".join(
            f"| epoch {e:03} | loss {loss:.3f} | nll_loss 2.1 | ppl 4.5 | num_updates {254 * e} | lr 0.0008 | gnorm 0.3 | loss_scale {max(0.25, 8 / 2**e):.3f}"
            for e, loss in enumerate(losses, 1)
        )

    assert "scale-collapse" not in ids(told(tmp_path, log([4.5 - 0.1 * e for e in range(12)])))
    assert "scale-collapse" in ids(told(tmp_path, log([4.5, 4.4, 4.3, *[4.6] * 9])))


def test_a_loss_that_is_mostly_nan_is_ill_though_it_comes_back(tmp_path: Path) -> None:
    def rows(losses: list[str]) -> str:
        return "step,train_loss\n" + "\n".join(f"{10 * i},{loss}" for i, loss in enumerate(losses))

    assert told(tmp_path, rows(["nan", "nan", "0.4", "nan", "nan", "nan"]), "metrics.csv").verdict == "ill"
    assert told(tmp_path, rows(["0.6", "nan", "0.5", "0.4", "0.35", "0.3"]), "metrics.csv").verdict != "ill"


def test_a_term_that_is_mostly_undefined_is_not_the_loss(tmp_path: Path) -> None:
    rows = [f"{10 * i},{2.0 * 0.97**i:.4f},{'0.1' if i % 4 == 1 else 'nan'}" for i in range(60)]
    table = "step,train_loss,train_mask_loss\n" + "\n".join(rows)  # no mask in most batches
    assert told(tmp_path, table, "metrics.csv").verdict != "ill"


@pytest.mark.xfail(strict=False, reason="known miss of the fitted judge: left open")
def test_distortion_may_fall_where_looks_hold(tmp_path: Path) -> None:
    def table(lpips: float) -> str:
        rows = [
            f"{100 * i},{1.0 * 0.98**i:.4f},{24 + 4 * (1 - 0.8**i) - 0.04 * i:.3f},{0.4 - lpips * i:.4f}" for i in range(60)
        ]
        return "step,train_loss,val_psnr,val_lpips\n" + "\n".join(rows)

    assert told(tmp_path, table(0.002), "metrics.csv").verdict != "ill"
    assert told(tmp_path, table(-0.002), "metrics.csv").verdict == "ill"


def test_one_last_evaluation_without_a_value_is_no_lost_run(tmp_path: Path) -> None:
    losses = [(2.2 - 0.04 * e, 3.0 - 0.05 * e) for e in range(20)]
    rows = [f"{e},{a:.3f},{b:.3f}" for e, (a, b) in enumerate(losses)]
    table = "epoch,train_loss,val_loss\n" + "\n".join(rows)
    assert told(tmp_path, f"{table}\n20,1.38,nan\n", "metrics.csv").verdict != "ill"
    assert told(tmp_path, f"{table}\n20,nan,nan\n", "metrics.csv").verdict == "ill"


def test_a_score_that_repeats_at_its_best_while_the_loss_moves_has_converged(tmp_path: Path) -> None:
    def table(first: float) -> str:
        rows = [f"{e},{0.5 * 0.8**e:.4f},{0.2 + 0.01 * (e % 3):.4f},{first if e < 3 else 0.96}" for e in range(12)]
        return "epoch,loss,val_loss,val_accuracy\n" + "\n".join(rows)

    assert "constant-metric" not in ids(told(tmp_path, table(0.9733), "history.csv"))
    fell = table(0.9733).replace(",0.96", ",0.213")
    assert "constant-metric" in ids(told(tmp_path, fell, "history.csv"))


def test_only_opponents(tmp_path: Path) -> None:
    rows = "epoch,d_loss,g_loss\n" + "\n".join(f"{e},{0.6 + 0.01 * (e % 5)},{0.9 + 0.02 * (e % 7)}" for e in range(60))
    assert "two opponents" in told(tmp_path, rows, "history.csv").headline


def test_a_floor_under_the_sum_of_a_loss_hides_what_is_learned(tmp_path: Path) -> None:
    def table(recon: float) -> str:
        rows = [
            f"{e},{16 + 4 * 0.8**e + 0.1 * recon**e + 0.01 * (e % 7):.5f},{0.1 * recon**e + 0.002:.5f},{16 + 0.01 * (e % 7):.5f}"
            for e in range(400)
        ]
        return "step,train_loss,train_recon_loss,train_kl_loss\n" + "\n".join(rows)

    assert "plateau" in {f.id for f in told(tmp_path, table(1.0), "metrics.csv").findings}
    assert "plateau" not in {f.id for f in told(tmp_path, table(0.99), "metrics.csv").findings}


@pytest.mark.xfail(strict=False, reason="known miss of the fitted judge: ill is said; another cause is named first")
def test_a_policy_that_no_longer_tries_has_collapsed(tmp_path: Path) -> None:
    rows = [f"{200 * i},{-100.0 + (3.0 if i < 2 else 0.0)},{0.0 if i > 3 else -0.6},0.0" for i in range(400)]
    table = "timesteps,rollout/ep_rew_mean,train/entropy_loss,train/policy_gradient_loss\n" + "\n".join(rows)
    diagnosis = told(tmp_path, table, "progress.csv")
    assert diagnosis.verdict == "ill"
    assert diagnosis.causes[0].id == "policy-collapse"
    rows = [f"{200 * i},{-100.0 + (i * 7919) % 5},0.0" for i in range(400)]  # a column that is never computed
    idle = told(tmp_path, "timesteps,rollout/ep_rew_mean,train/approx_kl\n" + "\n".join(rows), "progress.csv")
    assert "policy-collapse" not in {c.id for c in idle.causes if c.probability > 0.1}


def test_a_job_that_was_cancelled_did_not_crash(tmp_path: Path) -> None:
    text = "loading data\nslurmstepd: error: *** JOB 25883692 ON gr015 CANCELLED AT 2022-10-13T04:10:12{why} ***\n"
    assert told(tmp_path, text.format(why="")).verdict != "ill"


@pytest.mark.xfail(strict=False, reason="known miss of the fitted judge: left open")
def test_a_first_evaluation_of_blown_up_weights_is_no_start_to_have_learned_from(tmp_path: Path) -> None:
    def verdict(first: float) -> str:
        losses = [0.93, 2.5, 1.8, *[0.95 + 0.01 * (i % 5) for i in range(60)]]
        stands = [first, *[21.4 + 0.001 * (i % 3) for i in range(62)]]
        psnr = stands if first < 20 else [first + 0.2 * i for i in range(63)]
        rows = [
            f"{10 * i},{loss:.4f},{f'{psnr[i // 5]:.3f}' if i % 5 == 4 else ''}" for i, loss in enumerate(losses)
        ]
        return told(tmp_path, "step,train_loss,val_psnr\n" + "\n".join(rows), "metrics.csv").verdict

    assert verdict(17.0) == "cannot-tell"
    assert verdict(21.0) == "sound"  # a score that goes on rising is learned from, whatever the training loss does


def test_lengths_of_bonds_are_no_perceptual_score(tmp_path: Path) -> None:
    rows = [f"{10 * i},{0.9 * 0.97**i + 0.2:.4f},{4.9 + 1.2 * (1 - 0.9**i):.4f}" for i in range(60)]
    table = "step,train_loss,valid/avg_c4_bond_dists\n" + "\n".join(rows)
    assert told(tmp_path, table, "metrics.csv").verdict != "ill"
    named = told(tmp_path, table.replace("avg_c4_bond_dists", "dists"), "metrics.csv")
    assert "declined-after-peak" in {f.id for f in named.findings}


def test_a_loss_that_crosses_zero_has_no_factors(tmp_path: Path) -> None:
    values = [50_000 * 0.9**i - 1700 + 900 * ((i * 7919) % 13 - 6) / 6 for i in range(200)]
    rows = "step,train_loss\n" + "\n".join(f"{50 * i},{v:.1f}" for i, v in enumerate(values))
    assert told(tmp_path, rows, "metrics.csv").verdict != "ill"


def test_a_score_that_is_zero_throughout_is_not_sound(tmp_path: Path) -> None:
    rows = "epoch,train_loss,val_map\n" + "\n".join(f"{e},{2.0 * 0.9**e:.4f},0.0" for e in range(4))
    assert told(tmp_path, rows, "metrics.csv").verdict == "cannot-tell"


def test_curves_behind_a_list_of_words_are_read(tmp_path: Path) -> None:
    losses = [round(2.0 * 0.9**i, 4) for i in range(20)]
    text = json.dumps({"classes": ["Happy", "Sad"], "test_acc": 72.7, "train_loss": losses, "val_loss": losses}, indent=2)
    assert "train/loss" in told(tmp_path, text, "training_history.json").run.series


@pytest.mark.xfail(strict=False, reason="known miss of the fitted judge: the cause is not named first: no labelled run has it")
def test_a_metric_out_of_range_does_not_make_a_loss_diverge(tmp_path: Path) -> None:
    def table(losses: list[float], score: str = "val_iou") -> str:
        return f"step,train_loss,{score}\n" + "\n".join(f"{i},{v:.4f},{190 + i % 7}" for i, v in enumerate(losses))

    falls = [2.0 * 0.95**i + 0.1 for i in range(60)]
    calm = told(tmp_path, table(falls), "metrics.csv")
    counts = told(tmp_path, table(falls, "val_acc"), "metrics.csv")
    assert counts.verdict != "ill"  # right answers that are counted are no broken share
    assert any("counts right answers" in line for line in counts.why)
    broke = told(tmp_path, table([0.3] * 20 + [0.3 * 1.15**i for i in range(40)]), "metrics.csv")
    assert calm.causes[0].id == "metric-numerically-broken"
    assert {c.id: c.probability for c in broke.causes}.get("metric-numerically-broken", 0.0) < 0.5


@pytest.mark.xfail(strict=False, reason="known miss of the fitted judge: overfitting is not told from its neighbours on a made curve")
def test_no_overfitting_while_the_validation_loss_is_at_its_best(tmp_path: Path) -> None:
    def overfits(val: float) -> float:
        rows = [
            f"{e},{2.0 * 0.97**e:.4f},{1.5 * val**e:.4f},{0.58 - (0.012 * (40 - e) if e < 40 else 0.003 * (e - 40)) + 0.002 * (e % 3):.4f}"
            for e in range(80)
        ]
        said = told(tmp_path, "epoch,train_loss,val_loss,val_accuracy\n" + "\n".join(rows), "metrics.csv")
        return {c.id: c.probability for c in said.causes}.get("overfitting", 0.0)

    assert overfits(1.01) > 0.8
    assert overfits(0.985) < 0.6
