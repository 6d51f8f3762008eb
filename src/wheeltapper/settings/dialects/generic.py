"""No framework known: settings by the spellings people use. Says nothing about defaults or unknown keys.

Other dialects call `fill` for what their own table leaves open.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from wheeltapper.settings.dialects._nearest import EVAL, SIDE, distance, settings_of
from wheeltapper.settings.dialects.schema import Key, Layout, Policy, View, as_bool, as_number, unresolved
from wheeltapper.settings.knob_table import KNOBS
from wheeltapper.settings.tree import ConfigTree, Leaf

if TYPE_CHECKING:
    from wheeltapper.settings.knobs import Found

NAME = "generic"
TITLE = "an unknown program"
UNKNOWN: Policy = "unknown"
REQUIRED: tuple[str, ...] = ()
KEYS: dict[str, Key] = {}
LAYOUT = Layout()
FORMATS: tuple[str, ...] = ()

# knob, unit of these spellings (- the knob's own, ? not told by the name), spellings
_SPELLINGS = """
optimizer.lr - lr learning_rate base_lr init_lr initial_lr lr0 peak_lr lr_g g_lr base_learning_rate max_learning_rate
optimizer.lr_base - blr lr_base
optimizer.lr_d - lr_d d_lr
optimizer.momentum - momentum sgd_momentum
optimizer.betas - betas adam_betas opt_betas
optimizer.eps - adam_eps adam_epsilon opt_eps optim_eps
optimizer.weight_decay - weight_decay wd adam_weight_decay l2_reg
optimizer.name - optimizer optim opt optimizer_name optim_name optimizer_type optim_type
optimizer.layer_decay - layer_decay llrd
schedule.name - scheduler lr_scheduler sched lr_schedule lr_scheduler_type lr_mode lr_policy
schedule.name - lr_decay_style scheduler_type scheduler_name lr_scheduler_name
schedule.warmup steps warmup_steps warmup_iters warmup_iter num_warmup_steps lr_warmup_steps warmup_updates
schedule.warmup steps lr_warmup_iters
schedule.warmup epochs warmup_epochs warmup_epoch num_warmup_epochs lr_warmup_epochs
schedule.warmup fraction warmup_ratio warmup_fraction lr_warmup_fraction warmup_proportion
schedule.warmup ? warmup lr_warmup
schedule.warmup_start - warmup_lr start_warmup warmup_start_lr warmup_init_lr
schedule.min_lr - min_lr final_lr eta_min lr_min end_lr min_learning_rate
schedule.milestones epochs lr_decay_epoch lr_decay_epochs
schedule.milestones ? milestones lr_milestones lr_steps
schedule.gamma - lr_gamma lr_decay_rate lr_decay_factor
schedule.t_max ? t_max
schedule.total steps lr_decay_iters lr_decay_steps
schedule.max_lr - max_lr
schedule.pct_start - pct_start
schedule.div_factor - div_factor
schedule.final_div_factor - final_div_factor
run.epochs epochs epochs num_epochs max_epochs n_epochs num_train_epochs total_epochs max_epoch nepochs nb_epochs
run.total_steps ? max_steps total_steps n_iters max_iters num_iterations total_iter total_iters train_iters max_iter
run.total_steps ? training_steps train_steps max_train_steps max_updates max_update num_training_steps num_train_steps
run.seed - seed manual_seed random_seed rng_seed
batch.per_device - batch_size_per_gpu per_device_train_batch_size micro_batch_size train_micro_batch_size_per_gpu
batch.per_device - batch_size_per_device device_batch_size samples_per_gpu per_gpu_batch_size
batch.global - global_batch_size total_batch_size train_batch_size effective_batch_size
batch.accumulation - gradient_accumulation_steps grad_accum grad_accum_steps accum accum_iter accumulate
batch.accumulation - accumulation_steps accumulate_grad_batches iters_to_accumulate update_freq
batch.accumulation - grad_accumulation_steps gradient_accumulation
world_size - world_size n_gpu num_gpus ngpus n_gpus num_gpu
clip.norm - grad_clip clip_grad max_grad_norm gradient_clip gradient_clip_norm grad_clip_norm clip_norm clip_grad_norm
clip.norm - gradient_clip_val grad_norm_clip gradient_clipping max_norm_clip grad_clip_max_norm
clip.value - clip_value grad_clip_value clip_grad_value
ema.decay - ema_decay model_ema_decay ema_rate ema_beta ema_momentum_old
ema.enabled - use_ema model_ema ema_enabled
ema.every - ema_every ema_update_every ema_interval ema_update_interval
ema.start steps ema_start ema_start_step ema_start_iter
loss.label_smoothing - label_smoothing smoothing label_smoothing_factor
loss.name - loss loss_type criterion loss_fn
augment.mixup - mixup_alpha mixup
augment.cutmix - cutmix_alpha cutmix
augment.mixup_prob - mixup_prob cutmix_prob
augment.dropout - dropout drop drop_rate dropout_rate
augment.drop_path - drop_path drop_path_rate
augment.progressive - progressive_resize progressive_resizing
model.name - model arch model_name architecture network model_name_or_path model_type
model.classes - num_classes nb_classes n_classes num_labels
model.image_size - img_size image_size input_size imgsz crop_size
vocab_size - vocab_size n_vocab num_tokens
seq_len - seq_len block_size max_seq_len seq_length max_seq_length context_length sequence_length n_ctx
data.name - dataset data_name dataset_name
data.workers - workers num_workers n_workers num_worker_per_gpu dataloader_num_workers
data.train_size - train_size num_train_samples n_train train_num_samples
data.shuffle - shuffle
data.drop_last - drop_last
eval.every ? eval_interval val_freq eval_every eval_freq val_interval val_every val_frequency valid_freq
eval.every steps eval_steps
checkpoint.every ? save_interval checkpoint_interval save_every checkpoint_freq save_freq save_frequency
checkpoint.every steps save_steps save_frequency_steps
log.every ? log_interval print_freq log_every log_freq
log.every steps logging_steps log_every_n_steps
resume.from - resume resume_from resume_checkpoint resume_from_checkpoint resume_path
resume.auto - auto_resume
finetune.from - pretrained finetune initial_checkpoint init_checkpoint pretrained_path pretrained_model
diffusion.sigma_min - sigma_min
diffusion.sigma_max - sigma_max
diffusion.sigma_data - sigma_data
diffusion.P_mean - p_mean
diffusion.P_std - p_std
sr.scale - upscale upscale_factor
model.compile - torch_compile use_compile
"""
# What a name means inside a section, where alone it would mean too many things.
_IN_SECTION = """
optim type optimizer.name
optim name optimizer.name
optim eps optimizer.eps
optim warmup schedule.warmup
sched type schedule.name
sched name schedule.name
sched gamma schedule.gamma
sched step_size schedule.step_size
ema decay ema.decay
ema enabled ema.enabled
ema update_every ema.every
curriculum enabled curriculum.enabled
curriculum preschool_time curriculum.steps
curriculum steps curriculum.steps
curriculum difficulty_ramp curriculum.ramp
noise type diffusion.noise
"""
_BATCH = {"batch_size", "batch", "bs", "batchsize"}


def _by_name() -> dict[str, tuple[str, str | None]]:
    out: dict[str, tuple[str, str | None]] = {}
    for line in _SPELLINGS.strip().splitlines():
        knob, unit, *spelled = line.split()
        for name in spelled:
            out[name] = (knob, {"-": None, "?": "unknown"}.get(unit, unit))
    return out


_NAMES = _by_name()
_SECTIONED = {(line.split()[0], line.split()[1]): line.split()[2] for line in _IN_SECTION.strip().splitlines()}


def known_names() -> list[str]:
    """Every spelling of the table."""
    return list(_NAMES)


def meaning_of(name: str) -> str | None:
    """The knob that a setting of this name usually is.

    >>> meaning_of("learning-rate")
    'optimizer.lr'
    """
    found = meaning_and_unit(name)
    return None if found is None else found[0]


def meaning_and_unit(name: str) -> tuple[str, str | None] | None:
    """The knob that a setting of this name usually is, and what it counts ("unknown": the name does not tell).

    >>> meaning_and_unit("warmup_epochs")
    ('schedule.warmup', 'epochs')
    """
    return _NAMES.get(name.lower().replace("-", "_"))


OF_A_ROLLOUT = ("n_steps", "n_epochs")


def recognise(tree: ConfigTree) -> float:  # noqa: ARG001  (never claimed: the fallback needs no claim)
    return 0.0


def knobs(view: View, found: Found) -> None:
    fill(view, found)


def fill(view: View, found: Found) -> None:
    """Knobs by spelling, for what is not found yet. Two different values for one knob: neither is believed."""
    found_here: dict[str, list[tuple[int, Any, Leaf, str | None]]] = {}
    if _learns_by_steps(view):
        total = view.first("total_timesteps")
        found.give("run.total_steps", None if total is None else total.value, total, unit="steps")
    for path, value, leaf in settings_of(view):
        if of_a_rollout(view, path):
            continue
        for knob, unit in meanings_of(path):
            if SIDE.search(".".join(path[:-1])) or takes(knob, value) is False:
                continue
            found_here.setdefault(knob, []).append((distance(path), value, leaf, unit))
    for knob, candidates in found_here.items():
        if knob in found:
            continue
        nearest = min(candidate[0] for candidate in candidates)
        best = [candidate for candidate in candidates if candidate[0] == nearest]
        if len({repr(value) for _, value, _, _ in best}) > 1:
            continue
        _, value, leaf, unit = best[0]
        if unit == "unknown" and knob == "schedule.warmup":
            number = as_number(value)
            unit = "fraction" if number is not None and 0 < number < 1 else unit
        found.give(knob, value, leaf, unit=unit)
    _pairs(view, found)
    _switches(view, found)
    fill_precision(view, found)
    _batch(view, found)


def meanings_of(path: tuple[str, ...]) -> list[tuple[str, str | None]]:
    name = path[-1].lower().replace("-", "_").replace(" ", "_")
    above = [part.lower() for part in path[:-1]]
    if any(EVAL.match(part) for part in above):
        return [("eval.batch", None)] if name in _BATCH else []
    for section, knob in ((s, k) for (s, n), k in _SECTIONED.items() if n == name):
        if above and section in above[-1] and not (section == "optim" and "sched" in above[-1]):
            return [(knob, "unknown" if knob in ("schedule.warmup", "curriculum.steps") else None)]
    if any("ema" in re.split(r"[_.]", part) for part in above) and name in ("momentum", "decay"):
        return []
    if any("lora" in part or "peft" in part for part in above) and name in ("dropout", "dropout_rate"):
        return []
    if any("sched" in part for part in above) and name in ("lr", "momentum", "optimizer"):
        return []
    return [_NAMES[name]] if name in _NAMES else []


def takes(knob: str, value: Any) -> bool:
    """Some names are a switch in one program and a number in another; the value says which."""
    if knob in ("clip.norm", "ema.decay", "augment.mixup", "augment.cutmix", "loss.label_smoothing"):
        return as_number(value) is not None
    if knob == "world_size":
        return (as_number(value) or 0) >= 1
    if knob in ("resume.from", "finetune.from"):
        return isinstance(value, str) and value.strip().lower() not in ("", "none", "null", "false", "true", "scratch")
    if knob == "loss.name":
        return isinstance(value, str)
    if knob in ("run.total_steps", "run.epochs"):
        return (as_number(value) or 0) > (1 if knob == "run.total_steps" else 0)  # one step is what a caller repeats
    return KNOBS[knob].kind != "name" or isinstance(value, str)


def of_a_rollout(view: View, path: tuple[str, ...]) -> bool:
    """`n_steps` and `n_epochs` beside the `total_timesteps` of a reinforcement learner: of one rollout, not of the run."""
    return path[-1] in OF_A_ROLLOUT and _learns_by_steps(view)


def _learns_by_steps(view: View) -> bool:
    """Whether these are the settings of a learner as Stable-Baselines3 has them, whose `learn` is given the length."""
    return view.first("total_timesteps") is not None and any(view.has(key) for key in ("n_steps", "learning_starts", "gamma"))


def _pairs(view: View, found: Found) -> None:
    for first, second in (("adam_beta1", "adam_beta2"), ("beta1", "beta2"), ("optim.beta1", "optim.beta2")):
        one, two = view.first(first), view.first(second)
        if one is not None and two is not None and "optimizer.betas" not in found:
            found.give("optimizer.betas", [one.value, two.value], one)


def _last(view: View, *spelled: str) -> Leaf | None:
    """A setting with one of these names, outside evaluation sections; the nearest to the top."""
    held: tuple[int, Leaf] | None = None
    for path, leaf in view.plain():
        name = path[-1].lower().replace("-", "_")
        if name not in spelled or leaf.value is None or unresolved(leaf):
            continue
        above = [part.lower() for part in path[:-1]]
        if any(EVAL.match(part) for part in above) or SIDE.search(".".join(above)):
            continue
        if held is None or distance(path) < held[0]:
            held = (distance(path), leaf)
    return None if held is None else held[1]


def _switches(view: View, found: Found) -> None:
    """Settings that are booleans, or numbers that mean "off"."""
    clip = found.get("clip.norm")
    if clip is not None and clip.value <= 0:
        found.give("clip.enabled", False, clip.leaf)
        found.drop("clip.norm")
    elif clip is not None:
        found.give("clip.enabled", True, clip.leaf)
    else:
        leaf = _last(view, "grad_clip", "clip_grad", "gradient_clip", "gradient_clipping")
        if leaf is not None and as_bool(leaf.value) is not None:
            found.give("clip.enabled", leaf.value, leaf)
    for name, knob in (("mixup", "augment.mixup"), ("cutmix", "augment.cutmix")):
        leaf = _last(view, name)
        if leaf is not None and leaf.value is False:
            found.give(knob, 0.0, leaf)  # `mixup=False, mixup_alpha=0.2`: the switch decides
    ema = _last(view, "ema")
    if ema is not None and "ema.decay" not in found and "ema.enabled" not in found:
        number = as_number(ema.value)
        if isinstance(ema.value, bool):
            found.give("ema.enabled", ema.value, ema)
        elif number is not None and 0 < number < 1:
            found.give("ema.decay", number, ema)
            found.give("ema.enabled", True, ema)
    resume = _last(view, "resume")
    if resume is not None and resume.value is True:
        found.give("resume.auto", True, resume)
    _negated(view, found)
    pretrained = _last(view, "pretrained")
    if pretrained is not None and pretrained.value is True and "finetune.from" not in found:
        found.give("finetune.from", "pretrained", pretrained)


def _negated(view: View, found: Found) -> None:
    """`--no-auto-resume`: argparse's and click's way to turn a switch off."""
    for path, leaf in view.plain():
        name = path[-1].lower().replace("-", "_")
        meant = _NAMES.get(name.removeprefix("no_")) if name.startswith("no_") and leaf.value is True else None
        if meant is not None and KNOBS[meant[0]].kind == "bool" and meant[0] not in found:
            found.give(meant[0], False, leaf)


_PRECISIONS = (
    ("bf16", re.compile(r"bf16|bfloat16")),
    ("fp16", re.compile(r"(?:fp|float|amp_fp)16|half|16-mixed|16-true|^16$|amp_fp16|mixed_float16")),
    ("tf32", re.compile(r"tf32")),
    ("fp32", re.compile(r"(?:fp|float)?32(?:-true)?|^no$|full|single")),
)


def precision_name(value: Any) -> str | None:
    """`bfloat16`, `16-mixed`, `no`, 32 ... as fp32, fp16, bf16 or tf32."""
    if isinstance(value, bool) or value is None:
        return None
    text = str(value).lower().removeprefix("torch.")
    for name, pattern in _PRECISIONS:
        if pattern.search(text):
            return name
    return None


def fill_precision(view: View, found: Found) -> None:
    if "precision" in found:
        return
    for name, spelled in (("bf16", ("bf16", "use_bf16")), ("fp16", ("fp16", "use_fp16", "half_precision"))):
        leaf = _last(view, *spelled) or view.leaf(f"{name}.enabled")  # DeepSpeed has a section of that name
        if leaf is not None and as_bool(leaf.value):
            found.give("precision", name, leaf)
            return
    for spelling in (
        "precision",
        "mixed_precision",
        "amp_dtype",
        "amp",
        "dtype",
        "torch_dtype",
        "math",
        "precision_mode",
    ):
        leaf = _last(view, spelling)
        if leaf is not None and precision_name(leaf.value):
            found.give("precision", precision_name(leaf.value), leaf)
            return
    leaf = _last(view, "amp", "use_amp", "mixed_precision", "native_amp")
    if leaf is not None:  # a switch does not say which type it switches to
        found.give("amp.enabled", leaf.value, leaf)


def _batch(view: View, found: Found) -> None:
    if "batch.per_device" in found or "batch.global" in found:
        return
    leaf = _last(view, *_BATCH)
    if leaf is not None and as_number(leaf.value) is not None:
        note = "the name does not say whether this is per device or in total"
        found.give("batch.per_device", leaf.value, leaf, note=note)
