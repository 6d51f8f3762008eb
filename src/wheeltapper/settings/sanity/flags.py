"""Switches that exclude each other, and switches that turn the training off."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wheeltapper.settings.sanity.sheet import Doubt, Setting, Sheet, same_section

# Pairs of switches of which one can be on.
EXCLUSIVE = (("fp16", "bf16"), ("load_in_8bit", "load_in_4bit"), ("float16", "bfloat16"), ("use_fp16", "use_bf16"), ("qlora", "full_finetune"))
_PRECISION = {"fp16": ("fp16", "float16", "half"), "bf16": ("bf16", "bfloat16")}
ONLY = re.compile(r"^(?:.*_)?(?:eval|evaluate|test|validate|inference|predict|debug_overfit)_only$|^only_(?:eval|test|evaluate)$|^fast_dev_run$|^overfit_batches$")
DUMP = 70  # settings: a file with more is written by the framework, defaults and all
OVERFLOWS = re.compile(r"(?i)(?:^|/)(?:m?t5|flan-t5|umt5|gemma)")


def both_on(sheet: Sheet) -> Iterator[Doubt]:
    """Two switches of which at most one can be on."""
    on = [s for s in sheet.settings if _on(s)]
    for a in on:
        for b in on:
            if a is not b and (a.key, b.key) in EXCLUSIVE and a.leaf.file == b.leaf.file:
                yield Doubt("setting-beyond-practice", f"`{a.name}` and `{b.name}` are both on: the program refuses, or takes one of them", (a, b) if a.line > b.line else (b, a))
    only = [s for s in on if s.key.endswith("_only")]
    for at, a in enumerate(only):
        for b in only[:at]:
            if same_section(a, b) and a.key.rsplit("_", 2)[0] != "" and _kind(a) == _kind(b):
                yield Doubt("frozen-parameters", f"`{a.name}` and `{b.name}` are both on: nothing is left to train", (a, b))


def _on(setting: Setting) -> bool:
    return setting.value is True or setting.text.lower() in ("true", "yes")


def _kind(setting: Setting) -> str:
    """`network_train_unet_only`, `network_train_text_encoder_only`: the same kind of switch."""
    return "_".join(setting.key.split("_")[:2])


def not_trained(sheet: Sheet) -> Iterator[Doubt]:
    """A run that is told to evaluate only, or not to train."""
    for s in sheet.settings:
        if re.search(r"(?i)eval|test|infer|predict|sample", s.leaf.file.rsplit("/", 1)[-1]):
            continue
        if s.key == "do_train" and s.on is False and len([o for o in sheet.settings if o.leaf.file == s.leaf.file]) < DUMP:
            yield Doubt("stuck-eval-mode", f"`{s.name}` is off: nothing is trained", (s,))
        elif s.on and isinstance(s.value, bool) and ONLY.match(s.key):
            yield Doubt("stuck-eval-mode", f"`{s.name}` is on: nothing is trained, or next to nothing", (s,))
        elif s.key == "eval" and s.value is True and any(o.key == "resume" for o in sheet.settings) and any(o.knob == "run.epochs" for o in sheet.settings):
            yield Doubt("stuck-eval-mode", f"`{s.name}` is on: the program evaluates and ends", (s,), "range")
        elif s.key == "mode" and s.text.lower() in ("eval", "test", "evaluate", "inference", "predict", "infer") and len(s.path) <= 2 and s.above <= {"run", "main", "experiment", "general", "trainer"} and any(o.knob in ("run.epochs", "run.total_steps") for o in sheet.settings):
            yield Doubt("stuck-eval-mode", f"`{s.name}` is {s.text}: nothing is trained", (s,), "range")


def all_frozen(sheet: Sheet) -> Iterator[Doubt]:
    """A network of which everything is frozen."""
    on = [s for s in sheet.settings if _on(s) and (s.own & {"freeze", "frozen"})]
    for s in on:
        part = s.own - {"freeze", "frozen", "is", "model", "weights", "coef"}
        if part & {"all", "everything", "params", "parameters", "decoder"} or s.key in ("freeze_model", "freeze_all"):
            yield Doubt("frozen-parameters", f"`{s.name}` is on: what is to be trained is frozen", (s,), "range")
    parts = {next(iter(s.own & {"encoder", "decoder", "text", "image", "vision"}), "") for s in on} - {""}
    if {"encoder", "decoder"} <= parts:
        yield Doubt("frozen-parameters", "encoder and decoder are both frozen: nothing is left to train", tuple(on))
    for s in sheet.settings:
        if s.has("requires grad", "norm bn") and s.on is False and not s.above & {"norm", "bn", "norm_cfg", "teacher", "ref"}:
            yield Doubt("frozen-parameters", f"`{s.name}` is off: nothing is trained", (s,), "range")


def probe_trains(sheet: Sheet) -> Iterator[Doubt]:
    """A linear probe measures features: with the backbone trained it does not."""
    for s in sheet.settings:
        if s.on is False and s.has("freeze/frozen @probe/lincls/linear/knn"):
            yield Doubt("params-not-in-optimizer", f"`{s.name}` is off: a probe that trains the backbone measures something else", (s,), "range")


def half_overflows(sheet: Sheet) -> Iterator[Doubt]:
    """T5's activations do not fit into 16 bits; its weights were trained in bfloat16."""
    half = next((s for s in sheet.settings if s.key in ("fp16", "use_fp16") and _on(s)), None)
    model = next((s for s in sheet.settings if s.has("model", "output dir tokenizer ref teacher") and OVERFLOWS.search(s.text)), None)
    if half is not None and model is not None:
        yield Doubt("fp16-overflow", f"`{half.name}` with {model.text}: its activations overflow in fp16", (half, model), "range")


def embeddings_not_normalised(sheet: Sheet) -> Iterator[Doubt]:
    """A contrastive loss with a small temperature needs vectors of length one."""
    for s in sheet.settings:
        if s.on is False and s.has("normalize/normalise/norm/normalized @embedding/embeddings/embed/feature/features/loss") and sheet.mentions(r"(?i)simclr|nt_?xent|contrastive|info_?nce|moco|arcface"):
            yield Doubt("temperature-too-high", f"`{s.name}` is off: without vectors of length one the similarities have no bound", (s,), "range")


def greedy_rollouts(sheet: Sheet) -> Iterator[Doubt]:
    """A policy that always takes its best answer never sees another."""
    learns = sheet.themes & {"rl", "onpolicy"} or sheet.says("grpo", "ppo", "rloo", "reinforce", "rollout")
    for s in sheet.settings:
        if not learns or s.around & {"val", "valid", "eval", "test"}:
            continue
        if s.key == "do_sample" and s.on is False:
            yield Doubt("policy-collapse", f"`{s.name}` is off: the policy sees only its best answer", (s,))
        if s.has("temperature @rollout/gen/generation/sampling/generate/sample/actor") and s.number == 0:
            yield Doubt("policy-collapse", f"`{s.name}` is 0: the policy sees only its best answer", (s,))
        if s.key in ("padding_side",) and s.text == "right":
            yield Doubt("target-misaligned", f"`{s.name}` is right: a decoder that generates for a batch goes on after the padding", (s,), "range")


CHECKS = (both_on, not_trained, all_frozen, probe_trains, half_overflows, embeddings_not_normalised, greedy_rollouts)
