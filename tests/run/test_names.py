"""The table of names: what frameworks really write, and what must stay unknown."""

from __future__ import annotations

import pytest

from wheeltapper.run.names import QUANTITIES, meaning_of

TABLE = [
    # raw, quantity, split, part, better
    ("loss", "loss", "train", None, "down"),
    ("eval_loss", "loss", "val", None, "down"),
    ("test_acc1", "accuracy", "test", None, "up"),
    ("eval_top1", "accuracy", "val", None, "up"),
    ("train_lr", "lr", None, None, "neither"),
    ("lr/pg0", "lr", None, None, "neither"),
    ("metrics/mAP50-95(B)", "map", "val", None, "up"),
    ("metrics/mAP50(B)", "map50", "val", None, "up"),
    ("train/box_om", "loss", "train", "box_om", "down"),
    ("loss_rpn_cls", "loss", "train", "rpn_cls", "down"),
    ("bbox_mAP_50", "map50", "val", None, "up"),
    ("test_coco_eval_bbox[0]", "map", "test", None, "up"),
    ("Loss/G/loss", "gan_g", "train", None, "neither"),
    ("fid50k_full", "fid", "val", None, "down"),
    ("lm loss", "loss", "train", None, "down"),
    ("loss scale", "loss_scale", None, None, "neither"),
    ("trl", "loss", "train", None, "down"),
    ("tel", "loss", "val", None, "down"),
    ("l_g_l1", "loss", "train", "l1", "down"),
    ("grad_norm_g", "grad_norm", None, None, "neither"),
    ("CrossEntropy", "loss", "train", "cross_entropy", "down"),
    ("mIoU", "iou", "val", None, "up"),
    ("r", "return", None, None, "up"),
]


@pytest.mark.parametrize(("raw", "quantity", "split", "part", "better"), TABLE, ids=[row[0] for row in TABLE])
def test_known_names(raw: str, quantity: str, split: str | None, part: str | None, better: str) -> None:
    meaning = meaning_of(raw)
    assert (meaning.quantity, meaning.split, meaning.part, meaning.better) == (quantity, split, part, better)


@pytest.mark.parametrize(
    "raw", ["fancy_index", "glossy", "cost", "dynamic_weight_l_g_l1", "dynamic_weight_l_g_ssim", "temperature"]
)
def test_what_is_not_known_has_no_direction(raw: str) -> None:
    assert meaning_of(raw).better in ("unknown", "neither")
    assert meaning_of(raw).quantity is None


def test_a_bare_split_in_percent_is_an_accuracy() -> None:
    meaning = meaning_of("Val", "val", "%")
    assert (meaning.quantity, meaning.split) == ("accuracy", "val")
    assert meaning_of("Val", "val", None).quantity is None


def test_a_windows_suffix_is_no_part() -> None:
    assert meaning_of("train_loss_epoch").window == "epoch"
    assert meaning_of("Loss (avg)").window == "running"


def test_no_alias_belongs_to_two_quantities() -> None:
    seen: dict[str, str] = {}
    for quantity in QUANTITIES:
        for alias in quantity.aliases:
            assert seen.setdefault(alias, quantity.name) == quantity.name, alias


def test_a_part_of_a_box_with_the_name_of_its_loss() -> None:
    for name in ("CenterRegL1", "WHL1", "HeatmapFocal", "boxSmoothL1"):
        assert meaning_of(name).quantity == "loss"
        assert meaning_of(name).part
    for name in ("model1", "col1", "LEVEL1", "Level2", "vocal"):
        assert meaning_of(name).quantity is None
    assert (meaning_of("RCNNAcc").quantity, meaning_of("RCNNAcc").split) == ("accuracy", "train")


def test_names_met_in_public_logs() -> None:
    assert meaning_of("metrics/HBBmAP.5").quantity == "map50"
    assert meaning_of("metrics/HBBmAP.5:.95").quantity == "map"
    assert meaning_of("R").quantity == "recall"
    assert meaning_of("r").quantity == "return"
    assert meaning_of("loss scale to").quantity == "loss_scale"
    assert meaning_of("cycle_A").part == "cycle_a"
    assert meaning_of("cycle_length").quantity is None
    assert meaning_of("Loss is").quantity == "loss"
    assert meaning_of("IS").quantity == "inception_score"
    assert meaning_of("mean 100 episode reward").part is None
    assert (meaning_of("L1").quantity, meaning_of("L1").split) == ("loss", "train")


def test_a_score_on_held_out_data_is_no_return() -> None:
    assert meaning_of("val_score").quantity == "score"
    assert meaning_of("score").quantity == "return"
    assert meaning_of("rollout/return_history").part is None


def test_a_word_for_the_window_before_the_name() -> None:
    found = meaning_of("epoch_loss")
    assert (found.quantity, found.split, found.part, found.window) == ("loss", "train", None, "epoch")
    assert (meaning_of("Iter acc").quantity, meaning_of("Iter acc").window) == ("accuracy", "batch")
    assert meaning_of("batch_loss").part is None
    assert (meaning_of("epoch_loss", "val").split, meaning_of("Training Phase Loss").part) == ("val", None)
    # What only begins with such a word keeps its own meaning.
    assert meaning_of("epoch_time").quantity == "duration"
    assert meaning_of("batch_d_loss").part == "batch_d"
    for counter in ("epoch", "epochs", "epoch_num", "iter", "iteration", "iter_id"):
        assert (meaning_of(counter).quantity, meaning_of(counter).better) == (None, "neither")


def test_what_a_detector_counts_on_its_training_batches() -> None:
    assert meaning_of("fast_rcnn/cls_accuracy").split == "train"
    assert meaning_of("bbox/AP").split == "val"


def test_the_score_of_a_map_is_no_mean_average_precision() -> None:
    found = meaning_of("iou_shrink_map")
    assert (found.quantity, found.part) == ("iou", "shrink_map")
    assert meaning_of("bbox_mAP").quantity == "map"


def test_a_score_of_something_else_than_an_episode_is_no_return() -> None:
    assert meaning_of("sample_q_score").better == "unknown"
    assert meaning_of("return code").quantity is None
    for name in ("avg_score", "average reward score", "Episode Score", "mean score"):
        assert meaning_of(name).quantity == "return", name


def test_the_two_opponents_by_all_their_names() -> None:
    for name in ("val_disc_loss", "dloss", "loss/dis_loss", "Discriminator", "d_loss"):
        assert meaning_of(name).quantity == "gan_d", name
    for name in ("val_gen_loss", "gloss", "loss/gan_loss", "Generator", "adversarial_loss"):
        assert meaning_of(name).quantity == "gan_g", name


def test_how_two_stand_to_each_other_is_neither_of_them() -> None:
    for name in ("MAE_skill_vs_persistence", "loss_ratio", "accuracy improvement"):
        assert meaning_of(name).quantity is None, name
    assert meaning_of("diff_loss").quantity == "loss"  # of a diffusion
    assert (meaning_of("loss/dis_vid_fake").quantity, meaning_of("loss/dis_vid_real").quantity) == ("gan_fake", "gan_real")
