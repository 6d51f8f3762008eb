"""Ultralytics YOLO (args.yaml, `yolo train key=value`). Facts as of 8.4.190 (2026-11); keys of older ones kept.

`check_dict_alignment` refuses a key it does not know. The loop accumulates to `nbs`, clips at norm 10, keeps
an EMA of decay 0.9999 with a rise of tau 2000, and with optimizer=auto it ignores lr0 and momentum.
"""

from __future__ import annotations

from wheeltapper.settings.dialects.generic import fill
from wheeltapper.settings.dialects.schema import Layout, Policy, Problem, View, names, place_of, share, table
from wheeltapper.settings.knobs import Found
from wheeltapper.settings.tree import ConfigTree

NAME = "ultralytics"
TITLE = "Ultralytics"
UNKNOWN: Policy = "refuse"
REQUIRED: tuple[str, ...] = ()
LAYOUT = Layout(
    config=("args.yaml",),
    metrics=("results.csv", "results.txt", "events.out.tfevents.*"),
    checkpoints=("weights/last.pt", "weights/best.pt", "weights/epoch*.pt"),
    note="metrics are those of the average; a .pt file holds a pickled model",
)
FORMATS = ("ultralytics", "YOLO")
KEYS = {
    **table("""
    model            any     -       model.name
    data             any     -       data.name
    epochs           int     100     run.epochs  epochs
    patience         int     100     run.early_stop  epochs
    batch            any     16      batch.global
    imgsz            any     640     model.image_size
    save_period      int     -1
    workers          int     8       data.workers
    pretrained       any     True
    optimizer        str     'auto'
    seed             int     0       run.seed
    deterministic    bool    True    run.deterministic
    cos_lr           bool    False
    resume           any     False
    amp              bool    True
    dropout          float   0.0     augment.dropout
    lr0              float   0.01    optimizer.lr
    lrf              float   0.01    schedule.min_lr_ratio
    momentum         float   0.937   optimizer.momentum
    weight_decay     float   0.0005  optimizer.weight_decay
    warmup_epochs    float   3.0     schedule.warmup  epochs
    warmup_momentum  float   0.8
    warmup_bias_lr   float   0.1
    nbs              int     64      batch.nominal
    mixup            float   0.0     augment.mixup
    cutmix           float   0.0     augment.cutmix
    label_smoothing  float   0.0     loss.label_smoothing - -..8.3
    erasing          float   0.4     augment.random_erasing
    """),
    **names(
        "any",
        "task mode time save cache device project name exist_ok cls_remap verbose single_cls rect close_mosaic "
        "fraction profile freeze multi_scale compile channels_last overlap_mask mask_ratio val split save_json conf "
        "iou max_det quantize dnn plots nms source vid_stride stream_buffer visualize augment agnostic_nms classes "
        "retina_masks embed show save_frames save_txt save_conf save_crop show_labels show_conf show_boxes line_width "
        "format optimize dynamic simplify opset workspace distill_model dis box cls cls_pw dfl pose kobj rle angle "
        "dlog dgrad dlam hsv_h hsv_s hsv_v degrees translate scale shear perspective flipud fliplr bgr mosaic "
        "copy_paste copy_paste_mode auto_augment cfg tracker save_dir "
        # keys that older versions had
        "half int8 keras save_hybrid crop_fraction boxes hide_labels hide_conf line_thickness image_weights v5loader "
        "fl_gamma session end2end "
        # hyperparameter files of YOLOv5
        "obj obj_pw cls_pw iou_t anchor_t anchors paste_in",
    ),
}


def recognise(tree: ConfigTree) -> float:
    tops = {str(leaf.path[0]) for leaf in tree if leaf.path}
    if tops & {"backbone", "head"} or {"names", "path"} <= tops:
        return 0.0
    if tree.format in ("argv", "shell"):
        return 1.0 if tree.get("program") == "yolo" else 0.0
    settings = share(tree, ("lr0", "lrf", "warmup_bias_lr", "warmup_momentum", "hsv_h", "fliplr", "mosaic"), 3)
    run = share(tree, ("imgsz", "close_mosaic", "nbs", "task", "mode", "save_period", "cos_lr"), 2)
    return settings * (0.5 + 0.5 * run)


def knobs(view: View, found: Found) -> None:
    if view.has("anchor_t") or view.has("obj_pw"):
        _yolov5(view, found)
        return
    batch = view.number("batch")
    if batch is not None and (batch < 1 or batch != int(batch)):  # -1 or a fraction: chosen by free memory
        found.drop("batch.global")
    optimizer = str(view.value("optimizer", "auto"))
    leaf = view.leaf("optimizer")
    if optimizer != "auto":
        found.give("optimizer.name", optimizer, leaf)
    else:
        found.drop("optimizer.lr", "optimizer.momentum")
    cosine = view.leaf("cos_lr")
    named = "cosine" if cosine is not None and cosine.value is True else "linear"
    found.give("schedule.name", named, cosine, default=cosine is None)
    found.give("schedule.interval", "epochs", default=True)
    amp = view.value("amp", True)
    found.give("precision", "fp16" if amp is True else "fp32", view.leaf("amp"), default=view.leaf("amp") is None)
    found.give("amp.scaler", amp is True, default=True)
    found.give("clip.norm", 10.0, default=True)
    found.give("clip.enabled", True, default=True)
    found.give("ema.enabled", True, default=True)
    found.give("ema.decay", 0.9999, default=True)
    found.give("ema.impl", "ultralytics", default=True)
    period = view.number("save_period")
    if period is not None and period > 0:
        found.give("checkpoint.every", period, view.leaf("save_period"), unit="epochs")
    pretrained = view.leaf("pretrained")
    if pretrained is not None and pretrained.value and str(view.value("model", "")).endswith(".pt"):
        found.give("finetune.from", view.value("model"), view.leaf("model"))
    elif pretrained is not None and isinstance(pretrained.value, str):
        found.give("finetune.from", pretrained.value, pretrained)
    resume = view.leaf("resume")
    if resume is not None and resume.value:
        found.give("resume.auto" if resume.value is True else "resume.from", resume.value, resume)


def _yolov5(view: View, found: Found) -> None:
    """YOLOv5 prints its options and its hyperparameters apart; the optimizer is SGD unless told otherwise."""
    found.drop(*[id_ for id_, value in found.items() if value.default])
    found.take("optimizer.lr", view, "lr0")
    found.take("optimizer.momentum", view, "momentum")
    adam = view.leaf("adam")
    if adam is not None:
        found.give("optimizer.name", "Adam" if adam.value is True else "SGD", adam)
    else:
        found.take("optimizer.name", view, "optimizer")
    linear, cosine = view.leaf("linear_lr"), view.leaf("cos_lr")
    if linear is not None:  # until v6.0 the cosine was the default
        found.give("schedule.name", "linear" if linear.value is True else "cosine", linear)
    elif cosine is not None:
        found.give("schedule.name", "cosine" if cosine.value is True else "linear", cosine)
    found.give("schedule.interval", "epochs", default=True)
    found.give("batch.nominal", 64, default=True)
    found.give("ema.enabled", True, default=True)
    found.give("ema.decay", 0.9999, default=True)
    found.take("batch.global", view, "total_batch_size", "batch_size")
    fill(view, found)


def check(view: View) -> list[Problem]:
    out = []
    if str(view.value("optimizer", "auto")) == "auto" and not view.has("anchor_t"):
        lr0 = view.leaf("lr0")
        if lr0 is not None and lr0.value not in (0.01, None):
            text = f"`lr0` {lr0.raw} is not used: with optimizer=auto the optimizer and its rate are chosen for you"
            hint = "Name an optimizer, for instance optimizer=SGD."
            out.append(Problem("overridden", text, place_of(lr0), "is", hint, "lr0"))
    return out
