"""What a setting stands in: its optimizer, whether a pretrained network is tuned, how the rate is made."""

from __future__ import annotations

import re

from wheeltapper.settings.practice.features import optimizer_class
from wheeltapper.settings.sanity.sheet import Setting, Sheet
from wheeltapper.settings.words import word_set

_PRETRAINED = re.compile(
    r"(?i)(?:^|[/\s])(?:[\w.-]*(?:bert|roberta|electra|deberta|gpt-?2|gpt-?neo|llama|mistral|qwen|gemma|phi-\d|falcon|bloom|opt-\d|t5-|flan|bart-|whisper|"
    r"wav2vec2|hubert|pythia|zephyr|stable-diffusion|sdxl|vicuna|deepseek|internlm|mixtral|xlm)[\w.-]*)$"
)
_FROM = ("model_name_or_path", "base_model", "pretrained_model_name_or_path", "base_model_name_or_path", "hf_model")
_NAMED = word_set("model pretrained checkpoint init backbone base path name")
_ANOTHER = word_set("ref reward tokenizer teacher arch type valid output dir student judge draft class")


def optimizer_near(sheet: Sheet, setting: Setting) -> str | None:
    """The optimizer of this setting, by the name that stands nearest; where none is named, what its own settings tell."""
    named = [s for s in sheet.settings if _names_optimizer(s)]
    if named:
        known = {optimizer_class(s.text) for s in named}
        near = sheet.nearest(setting, named)
        if near is not None:
            return optimizer_class(near.text)
        return known.pop() if len(known) == 1 else None
    classes = {optimizer_class(name) for name in re.findall(r"(?:optim|optimizers?)\.(\w+)", sheet.raw)} - {None}
    if classes:
        return next((loose for loose in ("adadelta", "lbfgs", "sgd") if loose in classes), None) or sorted(map(str, classes))[0]
    by_key = {optimizer_class(part) for part in (*setting.path[:-1],)} - {None}
    if len(by_key) == 1:
        return by_key.pop()
    if any(s.has("beta/betas @adam/optim/optimizer/opt/betas", "diffusion kl") or re.search(r"adam_?(?:beta|eps)|opt_betas|^beta_?[12]$|^betas$", s.key) for s in sheet.settings):
        return "adam"
    if any(s.knob in ("optimizer.momentum", "optimizer.nesterov") for s in sheet.settings):
        return "sgd"
    if any(s.key in ("per_device_train_batch_size", "micro_batch_size", "model_name_or_path", "base_model") for s in sheet.settings):
        return "adamw"  # the default of the trainers that read these
    return "adam" if sheet.themes & {"rl", "forecast", "onpolicy"} else None


def _names_optimizer(setting: Setting) -> bool:
    if not setting.text or len(setting.text) > 80 or optimizer_class(setting.text) is None:
        return False
    if setting.knob == "optimizer.name":
        return True
    return setting.has("opt/optim/optimizer/learner/solver", "state path sched") or (
        setting.has("type/name/kind/class/target/algo/@opt @opt/optim/optimizer", "sched") and setting.own != frozenset()
    )


def is_noam(sheet: Sheet, setting: Setting) -> bool:
    """The rate is a factor: of Noam's schedule, of its like, or of an optimizer that finds its own."""
    texts = [s.text.lower() for s in sheet.settings if s.text and (s.around & {"sched", "decay", "lr", "method", "policy", "opt", "optimizer"})]
    keys = {word for s in sheet.settings for word in s.around}
    own = optimizer_near(sheet, setting)
    return own in ("prodigy", "adadelta") or "noam" in keys or sheet.mentions(r"(?i)noam|dadapt|inverse_?sqrt_?anneal") or any("noam" in t or "dadapt" in t or "rsqrt" in t for t in texts)


def scales_rate(setting: Setting) -> bool:
    """A factor on another rate, not a rate."""
    return bool(setting.own & {"mult", "multiplier", "scale", "coef", "factor"})


def is_tuned(sheet: Sheet) -> bool:
    """Whether a pretrained language, speech or diffusion model is the start."""
    for s in sheet.settings:
        if s.key in _FROM and s.text and not _scratch(sheet):
            return True
        if s.has("@model/pretrained/checkpoint/init/backbone/base") and s.own & _NAMED and not s.own & _ANOTHER and s.text and _PRETRAINED.search(s.text) and (s.own & {"pretrained", "init", "checkpoint"} or "/" in s.text or re.search(r"base|large|small|\db|medium", s.text.lower())):
            return not _scratch(sheet)
    return low_rank(sheet)


def _scratch(sheet: Sheet) -> bool:
    return any(s.has("scratch") and s.on for s in sheet.settings) or sheet.says("pretrain", "pretraining")


def low_rank(sheet: Sheet) -> bool:
    return any(s.knob in ("model.lora_rank", "lora.alpha") or s.own & {"lora", "peft"} for s in sheet.settings)
