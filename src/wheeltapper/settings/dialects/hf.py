"""Hugging Face TrainingArguments, with what accelerate and TRL add.

Table read from transformers 5.22.2 (2026-11) and, for keys marked `..4.x`, from the 4.x series. Unknown
keys: the parser refuses them, but every script adds dataclasses of its own, so one cannot tell from here.
"""

from __future__ import annotations

from wheeltapper.settings.dialects.schema import Layout, Policy, Problem, View, as_bool, names, place_of, share, table
from wheeltapper.settings.knobs import Found
from wheeltapper.settings.tree import ConfigTree

NAME = "hf"
TITLE = "Hugging Face Trainer"
UNKNOWN: Policy = "ignore"
REQUIRED: tuple[str, ...] = ()
LAYOUT = Layout(
    config=("training_args.bin", "adapter_config.json", "config.json"),
    metrics=("trainer_state.json", "checkpoint-*/trainer_state.json", "runs/*/events.out.tfevents.*"),
    checkpoints=("checkpoint-*/",),
    note="training_args.bin is a pickle and is not opened",
)
FORMATS = ("HF trainer_state", "LLaMA-Factory")
KEYS = {
    **table("""
    per_device_train_batch_size    int     8         batch.per_device
    per_gpu_train_batch_size       int     -         - - -..4.x
    gradient_accumulation_steps    int     1         batch.accumulation
    num_train_epochs               float   3.0
    max_steps                      int     -1
    learning_rate                  float   5e-05     optimizer.lr
    lr_scheduler_type              str     'linear'  schedule.name
    lr_scheduler_kwargs            map
    warmup_steps                   float   0
    warmup_ratio                   float?  0.0
    optim                          str     -         optimizer.name
    optim_args                     str?
    weight_decay                   float   0.0       optimizer.weight_decay
    adam_beta1                     float   0.9
    adam_beta2                     float   0.999
    adam_epsilon                   float   1e-08     optimizer.eps
    max_grad_norm                  float   1.0
    label_smoothing_factor         float   0.0       loss.label_smoothing
    bf16                           bool    False
    fp16                           bool    False
    tf32                           bool?
    fp16_opt_level                 str     -         - - -..4.x
    half_precision_backend         str     -         - - -..4.x
    gradient_checkpointing         bool    False     model.checkpointing
    torch_compile                  bool    False     model.compile
    logging_strategy               str     'steps'
    logging_steps                  float   500       log.every steps
    logging_nan_inf_filter         bool    True      logging.nan_filter
    eval_strategy                  str     'no'
    evaluation_strategy            str     -         - - -..4.x
    eval_steps                     float?
    per_device_eval_batch_size     int     8         eval.batch
    save_strategy                  str     'steps'
    save_steps                     float   500       checkpoint.every steps
    save_total_limit               int?    None      checkpoint.keep
    load_best_model_at_end         bool    False
    metric_for_best_model          str?
    greater_is_better              bool?
    seed                           int     42        run.seed
    data_seed                      int?
    full_determinism               bool    False     run.deterministic
    dataloader_drop_last           bool    False     data.drop_last
    dataloader_num_workers         int     0         data.workers
    resume_from_checkpoint         str?    None
    ignore_data_skip               bool    False
    # model and data arguments of the example scripts
    model_name_or_path             str     -         model.name
    dataset_name                   any     -         data.name
    block_size                     int     -         seq_len
    max_seq_length                 int     -         seq_len
    # TRL 1.16
    max_length                     int?    -         seq_len
    lora_r                         int     -         model.lora_rank
    """),
    **names(
        "any",
        "output_dir overwrite_output_dir do_train do_eval do_predict prediction_loss_only eval_delay "
        "eval_accumulation_steps torch_empty_cache_steps gradient_checkpointing_kwargs logging_dir logging_first_step "
        "log_level log_level_replica log_on_each_node save_safetensors save_on_each_node save_only_model "
        "restore_callback_states_from_checkpoint no_cuda use_cpu use_mps_device jit_mode_eval use_ipex bf16_full_eval "
        "fp16_full_eval local_rank ddp_backend tpu_num_cores debug dataloader_prefetch_factor past_index run_name "
        "disable_tqdm remove_unused_columns label_names fsdp fsdp_config fsdp_min_num_params accelerator_config "
        "deepspeed adafactor group_by_length length_column_name report_to ddp_find_unused_parameters ddp_bucket_cap_mb "
        "ddp_broadcast_buffers ddp_timeout dataloader_pin_memory dataloader_persistent_workers skip_memory_metrics "
        "push_to_hub hub_model_id hub_strategy hub_token hub_private_repo hub_always_push include_inputs_for_metrics "
        "include_for_metrics auto_find_batch_size ray_scope torchdynamo torch_compile_backend torch_compile_mode "
        "split_batches include_tokens_per_second include_num_input_tokens_seen neftune_noise_alpha "
        "optim_target_modules batch_eval_metrics eval_on_start use_liger_kernel eval_use_gather_object "
        "average_tokens_across_devices eval_do_concat_batches trackio_space_id project hub_revision "
        "parallelism_config train_sampling_strategy mp_parameters packing dataset_text_field dataset_num_proc "
        "lora_alpha lora_dropout lora_target_modules beta model_init_kwargs peft_config",
    ),
}
# Names the Trainer maps to torch optimizers.
_OPTIMIZERS = {"adamw_torch": "AdamW", "adamw_hf": "AdamW", "adamw_torch_fused": "AdamW", "adafactor": "Adafactor"}


def recognise(tree: ConfigTree) -> float:
    telling = (
        "per_device_train_batch_size",
        "num_train_epochs",
        "lr_scheduler_type",
        "logging_steps",
        "save_steps",
        "gradient_accumulation_steps",
        "adam_beta2",
        "dataloader_num_workers",
        "max_grad_norm",
        "warmup_ratio",
        "save_total_limit",
        "eval_strategy",
        "evaluation_strategy",
        "logging_nan_inf_filter",
        "model_name_or_path",
    )
    score = share(tree, telling, 3)
    sure = share(tree, ("per_device_train_batch_size", "num_train_epochs", "logging_nan_inf_filter"), 1)
    return score * (1.0 if sure else 0.6)


def knobs(view: View, found: Found) -> None:
    one, two = view.number("adam_beta1") or 0.9, view.number("adam_beta2") or 0.999
    given = view.first("adam_beta1", "adam_beta2")
    found.give("optimizer.betas", [one, two], given, default=given is None)
    for knob in ("optimizer.name", "schedule.name"):
        if knob in found:
            name = _plain(found[knob].value)
            found.give(knob, _OPTIMIZERS.get(name, name), found[knob].leaf, default=found[knob].default)
    _length(view, found)
    _warmup(view, found)
    _precision(view, found)
    clip = view.leaf("max_grad_norm")
    norm = view.number("max_grad_norm") if clip is not None else 1.0
    if norm is not None and norm > 0:
        found.give("clip.norm", norm, clip, default=clip is None)
    found.give("clip.enabled", bool(norm and norm > 0), clip, default=clip is None)
    strategy = view.first("eval_strategy", "evaluation_strategy")
    if strategy is not None and _plain(strategy.value) == "epoch":
        found.give("eval.every", 1, strategy, unit="epochs")
    elif strategy is not None and _plain(strategy.value) == "steps":
        # without eval_steps the Trainer evaluates as often as it logs
        found.take("eval.every", view, "eval_steps", "logging_steps", unit="steps")
    for key, knob in (("save_strategy", "checkpoint.every"), ("logging_strategy", "log.every")):
        leaf = view.leaf(key)
        if leaf is not None and _plain(leaf.value) == "epoch":
            found.give(knob, 1, leaf, unit="epochs")
        elif leaf is not None and _plain(leaf.value) == "no":
            found.drop(knob)
    for knob in ("checkpoint.every", "log.every", "eval.every"):  # a float under 1 is a share of all steps
        held = found.get(knob)
        if held is not None and 0 < held.value < 1:
            found.give(knob, held.value, held.leaf, unit="fraction", default=held.default)
    resume = view.leaf("resume_from_checkpoint")
    if resume is not None and resume.value is not None:
        flag = as_bool(resume.value)
        if flag is None:
            found.give("resume.from", resume.value, resume)
        elif flag:
            found.give("resume.auto", True, resume)


def _plain(value: object) -> str:
    """`SchedulerType.LINEAR`, as a print shows it, is `linear`."""
    text = str(value)
    return text.rsplit(".", 1)[-1].lower() if text[:1].isupper() and "." in text else text


def _length(view: View, found: Found) -> None:
    """max_steps, when positive, overrides num_train_epochs."""
    steps, epochs = view.number("max_steps"), view.leaf("num_train_epochs")
    if steps is not None and steps > 0:
        found.give("run.total_steps", steps, view.leaf("max_steps"), unit="steps")
        found.give("schedule.total", steps, view.leaf("max_steps"), unit="steps")
    else:
        found.give("run.epochs", 3.0 if epochs is None else epochs.value, epochs, default=epochs is None)


def _warmup(view: View, found: Found) -> None:
    """warmup_steps wins over warmup_ratio; since 5.0 a warmup_steps below 1 is the ratio."""
    steps = view.number("warmup_steps")
    ratio = view.number("warmup_ratio")
    if steps is not None and steps >= 1:
        found.give("schedule.warmup", steps, view.leaf("warmup_steps"), unit="steps")
    elif steps is not None and 0 < steps < 1:
        found.give("schedule.warmup", steps, view.leaf("warmup_steps"), unit="fraction")
    elif ratio is not None and ratio > 0:
        found.give("schedule.warmup", ratio, view.leaf("warmup_ratio"), unit="fraction")
    else:
        leaf = view.first("warmup_steps", "warmup_ratio")
        found.give("schedule.warmup", 0, leaf, unit="steps", default=leaf is None)


def _precision(view: View, found: Found) -> None:
    for key in ("bf16", "fp16"):
        leaf = view.leaf(key)
        if leaf is not None and as_bool(leaf.value):
            found.give("precision", key, leaf)
            found.give("amp.scaler", key == "fp16", leaf)
            return
    launcher = view.leaf("launcher.mixed_precision")
    if launcher is not None and launcher.value in ("fp16", "bf16"):
        found.give("precision", launcher.value, launcher)
        found.give("amp.scaler", launcher.value == "fp16", launcher)
        return
    leaf = view.first("bf16", "fp16")
    if not view.has("deepspeed"):  # DeepSpeed's own file may switch it on
        found.give("precision", "fp32", leaf, default=leaf is None)


def check(view: View) -> list[Problem]:
    out = []
    steps, ratio = view.number("warmup_steps"), view.number("warmup_ratio")
    leaf = view.leaf("warmup_ratio")
    if steps is not None and steps >= 1 and ratio is not None and ratio > 0 and leaf is not None:
        text = f"`warmup_ratio` {ratio:g} is not used: `warmup_steps` {steps:g} overrides it"
        out.append(Problem("overridden", text, place_of(leaf), "is", "Keep one of the two.", "warmup_ratio"))
    both = [view.leaf(key) for key in ("fp16", "bf16") if as_bool(view.value(key)) is True]
    if len(both) == 2 and both[1] is not None:
        text = "`fp16` and `bf16` are both on: TrainingArguments refuses that"
        out.append(Problem("conflict", text, place_of(both[1]), "is", "Keep one of the two.", "bf16"))
    return out
