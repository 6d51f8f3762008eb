"""THE table of names: what a logged name means, its unit, and which way is better.

A name is cut into a split (train, val, test) and a rest; the rest is looked up whole, then by pattern.
What the table does not know stays unknown: `better` is then "unknown", and rules that need a direction
answer Unknown. Directions are never guessed from a substring such as "loss" inside another word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from wheeltapper.run.model import Better, Split
from wheeltapper.sources.record import Window


@dataclass(frozen=True, slots=True)
class Quantity:
    name: str
    better: Better
    unit: str | None
    aliases: tuple[str, ...]  # whole names, lower case, words joined by "_"
    home: Split | None = None  # the split meant when a log names none


@dataclass(frozen=True, slots=True)
class Meaning:
    quantity: str | None
    split: Split | None
    part: str | None
    unit: str | None
    better: Better
    window: Window | None = None


def _q(name: str, better: Better, unit: str | None, aliases: str, home: Split | None = None) -> Quantity:
    return Quantity(name, better, unit, (name, *aliases.split()), home)


# fmt: off
QUANTITIES: tuple[Quantity, ...] = (
    # objectives
    _q("loss", "down", None, "total_loss loss_total lm_loss training_loss validation_loss evaluation_loss "
       "avg_loss average_loss mean_loss l_total l_g_total l_pix loss_tok objective loss_loss", "train"),
    _q("nll", "down", "nats", "neg_log_likelihood negative_log_likelihood", None),
    _q("perplexity", "down", None, "ppl", None),
    _q("bits", "down", "bits", "bpc bpb bpd bits_per_dim bits_per_byte bits_per_char", None),
    _q("mse", "down", None, "l2 mean_squared_error", None),
    _q("rmse", "down", None, "root_mean_squared_error", None),
    _q("mae", "down", None, "mean_absolute_error", None),
    _q("mape", "down", None, "mean_absolute_percentage_error smape", None),
    # classification
    _q("accuracy", "up", "share", "acc acc1 acc_1 top1 top_1 top1_acc acc_top1 prec1 prec_1 accuracy_top_1 "
       "accuracy_top1 top_1_accuracy categorical_accuracy binary_accuracy sparse_categorical_accuracy "
       "mean_accuracy masked_lm_accuracy mlm_accuracy multiclassaccuracy pixacc pix_acc pixel_accuracy macc aacc "
       "balanced_accuracy accuracy_score test_accuracy exact_match em", None),
    _q("top5", "up", "share", "acc5 acc_5 top_5 top5_acc acc_top5 prec5 prec_5 accuracy_top_5 accuracy_top5 "
       "top_k_categorical_accuracy acc2 acc3", None),
    _q("error", "down", "share", "err error_rate class_error err_top1 err_top_1 top1_err top1_error test_error", None),
    _q("top5_error", "down", "share", "err_top5 err_top_5 top5_err top5_error", None),
    _q("f1", "up", "share", "f1_score macro_f1 micro_f1 f1_macro f1_micro weighted_f1 fscore f_score", "val"),
    _q("precision", "up", "share", "prec p_b metrics_precision", "val"),
    _q("recall", "up", "share", "rec r_b metrics_recall", "val"),
    _q("auc", "up", "share", "roc_auc auroc mauc auc_roc auprc average_precision", "val"),
    _q("similarity", "up", None, "cos cosine cos_sim cosine_sim cosine_similarity", "val"),
    _q("mcc", "up", None, "matthews_correlation matthews_corrcoef", "val"),
    _q("correlation", "up", None, "pearson pearsonr spearman spearmanr corr r2 r2_score", "val"),
    # detection and segmentation
    _q("map", "up", "share", "map50_95 map_50_95 map_0_5_0_95 map_5_95 bbox_map segm_map box_map mask_map ap "
       "coco_bbox_map coco_segm_map coco_eval_bbox_0 coco_eval_masks_0 bbox_ap segm_ap pascal_voc_map map_0_50_0_95 "
       "voc_map", "val"),
    _q("map50", "up", "share", "map_50 map_0_5 map_5 ap50 bbox_map_50 segm_map_50 coco_bbox_map_50 "
       "coco_eval_bbox_1 bbox_ap50 map_0_50", "val"),
    _q("map75", "up", "share", "map_75 ap75 bbox_map_75 segm_map_75 coco_bbox_map_75 coco_eval_bbox_2", "val"),
    _q("iou", "up", "share", "miou mean_iou jaccard meaniou", "val"),
    _q("dice", "up", "share", "mean_dice mdice pseudo_dice dsc dice_score mean_fg_dice ema_fg_dice", "val"),
    # images, sound, text
    _q("psnr", "up", "dB", "val_psnr", "val"),
    _q("baseline", "neither", None, "input_psnr noisy_psnr bicubic_psnr baseline_psnr", "val"),
    _q("ssim", "up", None, "ms_ssim msssim", "val"),
    _q("lpips", "down", None, "", "val"),
    _q("dists", "down", None, "", "val"),
    _q("niqe", "down", None, "", "val"),
    _q("fid", "down", None, "fid50k fid50k_full fid5k fid10k fid_50k frechet_inception_distance", "val"),
    _q("kid", "down", None, "kid50k kid50k_full", "val"),
    _q("inception_score", "up", None, "is is50k is_mean", "val"),
    _q("bleu", "up", None, "sacrebleu bleu_score bleu4 bleu_4", "val"),
    _q("rouge", "up", None, "rouge1 rouge2 rougel rougelsum rouge_1 rouge_2 rouge_l", "val"),
    _q("meteor", "up", None, "", "val"),
    _q("cider", "up", None, "", "val"),
    _q("wer", "down", "share", "word_error_rate", "val"),
    _q("cer", "down", "share", "character_error_rate char_error_rate", "val"),
    _q("pesq", "up", None, "", "val"),
    # reinforcement learning
    _q("return", "up", None, "reward r ep_rew_mean rollout_ep_rew_mean eprewmean ep_reward episode_reward "
       "mean_reward mean_episode_reward mean_100_episode_reward average_reward avg_reward total_reward return_history episodic_return charts_episodic_return eval_mean_reward avg_return average_return episode_return "
       "score", None),
    _q("episode_length", "neither", None, "l ep_len_mean rollout_ep_len_mean eplenmean ep_len episodic_length", None),
    _q("success", "up", "share", "success_rate rollout_success_rate is_success", None),
    _q("policy_loss", "neither", None, "policy_gradient_loss pg_loss actor_loss losses_policy_loss", "train"),
    _q("value_loss", "neither", None, "critic_loss vf_loss qf_loss losses_value_loss value_function_loss", "train"),
    _q("entropy", "neither", None, "entropy_loss policy_entropy", "train"),
    _q("kl", "neither", None, "approx_kl kl_div kl_divergence kl_loss", "train"),
    # adversarial
    _q("gan_d", "neither", None, "d_loss loss_d disc disc_loss d_a d_b l_d l_d_total l_d_gan dis_loss dloss discriminator_loss "
       "loss_discriminator loss_disc loss_dis loss_d_loss discriminator errd", "train"),
    _q("gan_g", "neither", None, "g_loss loss_g g_a g_b g_gan l_g_gan gen_loss gloss generator_loss loss_generator "
       "loss_gen loss_g_loss generator errg gan_loss loss_gan adv_loss loss_adv adversarial_loss", "train"),
    _q("gan_real", "neither", None, "d_real l_d_real out_d_real loss_scores_real scores_real d_x", "train"),
    _q("gan_fake", "neither", None, "d_fake l_d_fake out_d_fake loss_scores_fake scores_fake d_g_z", "train"),
    # optimisation
    _q("lr", "neither", None, "learning_rate base_lr lr_pg0 lr_0 current_lr x_lr learning_rates optim_lr "
       "lr_end_of_epoch lr_adam lr_adamw lr_sgd train_lr opt_lr", None),
    _q("momentum", "neither", None, "beta1", None),
    _q("weight_decay", "neither", None, "wd", None),
    _q("grad_norm", "neither", None, "gnorm gradient_norm global_grad_norm total_norm grad_norm_g grad_norm_total "
       "global_norm gradnorm grad_2_0_norm_total grad_norm_avg grad_norms_grad_norm_g", None),
    _q("clip_threshold", "neither", None, "grad_clip_threshold clip_value", None),
    _q("loss_scale", "neither", None, "scale_g scale_d scale amp_scale grad_scale scaler_scale lossscale "
       "loss_scaler_scale lg_loss_scale", None),
    _q("weight_norm", "neither", None, "param_norm params_norm l2_norm", None),
    _q("update_ratio", "neither", None, "update_to_weight", None),
    _q("skipped", "neither", None, "number_of_skipped_iterations skipped_steps skipped_iterations overflows", None),
    _q("nan_count", "neither", None, "number_of_nan_iterations", None),
    # machine
    _q("throughput", "neither", None, "samples_per_second steps_per_second it_s its perf performance img_s imgs_s "
       "images_per_sec images_per_second tokens_per_second tok_s tflops train_samples_per_second "
       "train_steps_per_second eval_samples_per_second eval_steps_per_second mfu speed samples_sec fps wps ups "
       "wpb time_fps", None),
    _q("duration", "neither", "s", "time runtime train_runtime eval_runtime batch_time step_time iter_time time_ms dt "
       "data data_time elapsed_time_per_iteration epoch_time elapsed elapsed_time walltime wall_time eta t total_time "
       "epoch_duration time_per_iteration train_wall timing_total_sec timing_sec_per_tick sec_tick sec_kimg "
       "timing_sec_per_kimg maintenance time_elapsed training_speed", None),
    _q("memory", "neither", None, "gpu_mem gpu_memory mem memory_mb memory_gb vram current_vram_gb peak_vram gpumem "
       "cpumem gpu_memory_allocated max_mem peak_memory reserved gb resources_cpu_mem_gb resources_peak_gpu_mem_gb "
       "resources_peak_gpu_mem_reserved_gb", None),
    _q("total_flos", "neither", None, "flos", None),
)
# fmt: on

_BY_ALIAS: dict[str, Quantity] = {alias: q for q in QUANTITIES for alias in q.aliases}

_SPLITS: dict[str, Split] = {
    "train": "train", "training": "train", "trn": "train",
    "val": "val", "valid": "val", "validation": "val", "eval": "val", "evaluation": "val", "dev": "val",
    "test": "test", "testing": "test",
}  # fmt: skip
# Counters and constants that logs repeat on every row: positions or settings, not measurements.
_NOT_MEASURES = re.compile(
    r"^(n_?param\w*|num_tokens|tokens|samples|consumed_\w+|global_batch_size|batch_size|num_zeros|iters?|iteration\w*|"
    r"epochs?|(iter|epoch)_?(\d+|num|number|count|idx|index|id|no|total|left|step|steps)|"
    r"global_step|step|steps|labels|img_size|instances|targets|size|num_updates|progress_\w+|total_timesteps|"
    r"n_updates|iterations|bs|best\w*|is_best|patience)$"
)
_HEADS = {
    "metrics",
    "metric",
    "losses",
    "performance",
    "charts",
    "rollout",
    "stats",
    "scalar",
    "scalars",
    "scales",
    "norms",
}
# ultralytics spells some components of the loss without the word: "train/box_om", "val/dfl".
_BARE_LOSS = re.compile(r"^(box|cls|dfl|obj|seg|pose|kobj|l1|l2)(_(om|oo))?$")
# A weight of a loss is not that loss: "dynamic_weight_l_g_ssim" is a setting that changes.
_SETTING_WORDS = {"weight", "weights", "lambda", "coef", "coeff", "factor", "threshold", "target"}
# Objectives that logs call by their own name.
_LOSS_NAMES = re.compile(
    r"^((sparse_|binary_|softmax_|rcnn_|rpn_)*cross_?entropy|smooth_?l1|(rcnn_|rpn_)smooth_?l1|bce|ce|xent|focal|hinge|huber|"
    r"log_?loss|kl_?div_?loss|giou|diou|ciou|triplet|info_?nce|contrastive|elbo|recon(struction)?)(_\w{1,12})?$|"
    r"^((cycle|idt|identity)(_[ab])?|[gz]_l1)$"  # CycleGAN, pix2pix, BicycleGAN
)
# A part of the model or of a box before the name of its loss: "CenterRegL1", "WHL1", "HeatmapFocal" (GluonCV's CenterNet).
_LOSS_TAIL = re.compile(r"(?:[a-z]|^WH|^XY)(?:Smooth)?L[12]$|[a-z](?:Focal|CrossEntropy|Huber|Hinge|BCE)$")
_ACCURACY_TAIL = re.compile(r"^[A-Z]+Acc$")  # "RCNNAcc": of one head, on training batches
# Detectron2 counts these on the batches it trains on: "fast_rcnn/cls_accuracy", "mask_rcnn/accuracy".
_OF_TRAINING = re.compile(r"(fast_rcnn|mask_rcnn|keypoint_rcnn|roi_head|rpn)/")
# The words by which an agent's score is told: "average reward score", "mean_score", "Episode Score".
_OF_EPISODES = {
    *("score", "episode", "episodes", "ep", "reward", "rewards", "game", "agent", "train", "eval", "test"),
    *("avg", "average", "mean", "max", "min", "total", "final", "last", "current", "running", "moving", "top", "high", "100"),
}
_COMPARES = {"skill", "vs", "versus", "ratio", "improvement", "reduction"}
_NO_SPLIT = {"lr", "momentum", "weight_decay", "loss_scale", "clip_threshold", "grad_norm", "weight_norm"}
_WINDOWS: dict[str, Window] = {"step": "batch", "epoch": "epoch", "avg": "running", "running": "running"}
# "Training Phase Loss", "Test set loss", "loss in train": words that only join the others.
_LINKS = {"phase", "set", "in", "on"}
# "epoch_loss", "Iter acc": the word before the name says what the number is a mean of.
_BEFORE: dict[str, Window] = {"epoch": "epoch", "iter": "batch", "iteration": "batch", "batch": "batch", "step": "batch"}


@lru_cache(maxsize=4096)
def meaning_of(raw: str, split: str | None = None, unit: str | None = None) -> Meaning:
    """What a logged name means. `split` and `unit` are what the format itself states, if it does.

    >>> meaning_of("eval_loss")
    Meaning(quantity='loss', split='val', part=None, unit=None, better='down', window=None)
    >>> meaning_of("train/loss_rpn_cls").part, meaning_of("metrics/mAP50-95(B)").quantity
    ('rpn_cls', 'map')
    >>> meaning_of("CenterRegL1").part, meaning_of("fancy_index").better
    ('center_regl1', 'unknown')
    """
    words = _words(raw)
    found: Split | None = "train" if _OF_TRAINING.match(raw) else _SPLITS.get(split or "")
    rest: list[str] = []
    cut = False  # only the first word that names a split is one; "test_coco_eval_bbox" keeps its "eval"
    for word in words:
        if word in _SPLITS and not cut and len(words) > 1:
            cut = True
            found = found or _SPLITS[word]
        else:
            rest.append(word)
    window: Window | None = None
    if len(rest) > 1 and rest[-1] in _WINDOWS and rest[-2] not in {"per", "global"}:
        window = _WINDOWS[rest.pop()]
    while len(rest) > 1 and rest[0] in _HEADS:
        rest = rest[1:]
    if (len(rest) > 1 and "phase" in rest) or (cut and not _LINKS.isdisjoint(rest)):
        rest = [word for word in rest if word not in _LINKS] or rest
    if len(rest) > 1 and rest[0] == "avg" and "_".join(rest) not in _BY_ALIAS:
        rest = rest[1:]
    if len(rest) > 1 and rest[0] in _BEFORE and "_".join(rest) not in _BY_ALIAS and _is_result(rest[1:]):
        window = window or _BEFORE[rest[0]]
        rest = rest[1:]
    if unit == "%" and len(words) == 1 and words[0] in _SPLITS:  # "Train: 41.43% | Val: 40.47%"
        return Meaning("accuracy", _SPLITS[words[0]], None, unit, "up", window)
    if rest == ["score"] and found in ("val", "test"):  # of a competition, not of an episode
        return Meaning("score", found, None, unit or "share", "up", window)
    if raw in {"P", "R"}:  # YOLO's table; the "r" of a monitor is a return
        return Meaning("precision" if raw == "P" else "recall", found or "val", None, unit or "share", "up", window)
    if raw in {"trl", "tel"}:  # llm.c: training loss, test loss
        return Meaning("loss", "train" if raw == "trl" else "val", None, unit, "down", window)
    if split and (domain := re.fullmatch(r"([DG])\[(\d+)\]", raw)):  # ComboGAN: of each of its domains
        return Meaning("gan_d" if domain[1] == "D" else "gan_g", found, domain[2], unit, "neither", window)
    if raw == "L1":  # EDSR prints the loss by its kind: "[1600/16000] [L1: 5.9633]"
        return Meaning("loss", found or "train", "l1", unit, "down", window)
    known = _look_up(rest, found, unit, window)
    if known.quantity == "dists" and not re.search(r"(^|[/. ])dists$", raw, re.IGNORECASE):
        return Meaning(None, found, None, unit, "unknown", window)  # "bond_dists": lengths, not the perceptual score
    if known.quantity is None and known.better == "unknown" and _LOSS_TAIL.search(raw):
        return Meaning("loss", found or "train", "_".join(rest), unit, "down", window)
    if known.quantity is None and known.better == "unknown" and _ACCURACY_TAIL.match(raw):
        return Meaning("accuracy", found or "train", "_".join(rest).removesuffix("acc"), unit or "share", "up", window)
    return known


def _is_result(words: list[str]) -> bool:
    """A loss or a score by its whole name: "loss", "acc", "val_loss" without its split."""
    known = _BY_ALIAS.get("_".join(words))
    return known.better in ("up", "down") if known else words[-1] == "loss"


def _look_up(words: list[str], split: Split | None, unit: str | None, window: Window | None) -> Meaning:
    key = "_".join(words)
    if _NOT_MEASURES.match(key):
        return Meaning(None, split, None, unit, "neither", window)
    known = _BY_ALIAS.get(key)
    if known is None and len(words) > 2 and words[0] == "loss" and words[-1] == "loss":  # "loss/dis_loss"
        known = _BY_ALIAS.get("_".join(words[1:]))
    if known is not None:
        where = None if known.name in _NO_SPLIT else split or known.home
        return Meaning(known.name, where, None, unit or known.unit, known.better, window)
    if _SETTING_WORDS & set(words):
        return Meaning(None, split, None, unit, "neither", window)
    if "loss_scale" in key:  # "setting loss scale to: 0.5"
        return Meaning("loss_scale", None, None, unit, "neither", window)
    if {"dis", "disc", "discriminator"} & set(words) and {"real", "fake"} & set(words):  # "loss/dis_vid_fake"
        return Meaning("gan_real" if "real" in words else "gan_fake", split or "train", key, unit, "neither", window)
    if _COMPARES & set(words):  # "MAE_skill_vs_persistence", "loss_ratio": how two stand to each other, not one of them
        return Meaning(None, split, None, unit, "unknown", window)
    # "loss" as a word of its own, or as the head or tail of one: a component of the loss.
    for i, word in enumerate(words):
        if word in {"loss", "losses"} or (word.endswith("loss") and word not in {"ploss", "closs"}):
            stem = word.removesuffix("loss").removesuffix("losses") if word != "losses" else ""
            part = "_".join(w for w in [*words[:i], stem, *words[i + 1 :]] if w)
            return Meaning("loss", split or "train", part or None, unit, "down", window)
        if word in {"ploss", "closs"}:
            return Meaning("loss", split or "train", key, unit, "down", window)
    if len(words) > 2 and words[0] == "l" and words[1] in {"g", "d"}:  # traiNNer: l_g_l1, l_g_ssim
        return Meaning("loss", split or "train", "_".join(words[2:]), unit, "down", window)
    if _LOSS_NAMES.match(key):
        return Meaning("loss", split or "train", key, unit, "down", window)
    # A known quantity with a data set, class or box name around it: "metrics/CC0_Val/psnr", "map_bbox".
    for size in (3, 2, 1):
        for start in (len(words) - size, 0):
            chunk = "_".join(words[start : start + size]) if start >= 0 else ""
            known = _BY_ALIAS.get(chunk)
            if chunk in {"generator", "discriminator"} and len(words) > size:
                continue  # "batch-generator" is a timer of Megatron's
            if chunk == "map" and start > 0 and any(word in {"iou", "dice", "acc", "mae", "mse"} for word in words):
                continue  # "iou_shrink_map": the score of a map, not the mean of average precisions
            if chunk == "return" and {"code", "status", "value"} & set(words):
                continue  # of a program
            if chunk == "score" and not _OF_EPISODES.issuperset(words):
                continue  # "sample_q_score": of something else than an episode, and who knows which way
            if known is not None and len(chunk) > 1 and chunk != "is" and len(words) > size:  # "loss is" is no score
                part = "_".join(words[:start] + words[start + size :])
                return Meaning(known.name, split or known.home, part, unit or known.unit, known.better, window)
    if split and _BARE_LOSS.match(key):
        return Meaning("loss", split, key, unit, "down", window)
    if re.fullmatch(r"(x_)?lr_?\d*(_?pg_?\d+)?", key) or (words and words[0] == "lr" and len(words) <= 3):
        return Meaning("lr", None, key if key[-1:] not in {"r", "0"} else None, unit, "neither", window)
    if "norm" in words and ("grad" in words or "gradient" in words):
        return Meaning("grad_norm", split, key, unit, "neither", window)
    return Meaning(None, split, None, unit, "unknown", window)


def _words(raw: str) -> list[str]:
    text = raw.strip().replace("mAP", "_map").replace("mIoU", "miou").replace("pixAcc", "pixacc").replace("%", "")
    text = re.sub(r"([a-z0-9])([A-Z][a-z])", r"\1_\2", text)
    text = re.sub(r"\((?:B|M|P|O)\)$", "", text)  # ultralytics: box, mask, pose
    words = [w for w in re.split(r"[^0-9A-Za-z]+", text.lower().replace("'s ", " ")) if w]  # "valid_0's auc"
    return words or [raw.strip().lower()]


def canonical(meaning: Meaning, raw: str, about: str | None) -> str:
    """The name a series goes by: split/quantity, then what sets it apart."""
    if meaning.quantity is None:
        return raw
    head = f"{meaning.split}/{meaning.quantity}" if meaning.split else meaning.quantity
    extra = "_".join(x for x in (about, meaning.part) if x)
    return f"{head}.{extra}" if extra else head
