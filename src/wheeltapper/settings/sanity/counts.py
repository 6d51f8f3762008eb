"""Batches, steps and groups that must divide each other or the whole."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wheeltapper.settings.sanity.sheet import Doubt, Setting, Sheet


def _by_key(sheet: Sheet, *patterns: str) -> Setting | None:
    return next((s for pattern in patterns for s in sheet.settings if re.fullmatch(pattern, s.key) and (s.number or 0) > 0 and not isinstance(s.value, bool)), None)


def global_batch(sheet: Sheet) -> Iterator[Doubt]:
    """The batch of all devices is made of whole micro-batches."""
    whole = _by_key(sheet, "global_batch_size", "global_batch", "global_train_batch_size", "batch_size(?=$)") if _by_key(sheet, "batch_gpu") else _by_key(sheet, "global_batch_size", "global_batch", "global_train_batch_size")
    micro = _by_key(sheet, "micro_batch_size", "device_train_microbatch_size", "batch_gpu", "micro_batch")
    copies = _by_key(sheet, "data_parallel_size", "dp_size", "num_gpus")
    if whole is None or micro is None or whole.number is None or micro.number is None:
        return
    each = micro.number * ((copies.number or 1) if copies is not None else 1)
    if whole.number % each:
        parts = f"{micro.number:g} (`{micro.name}`)" + (f" times {copies.number:g} (`{copies.name}`)" if copies is not None else "")
        yield Doubt("accumulation-not-done", f"a batch of {whole.number:g} (`{whole.name}`) is no multiple of {parts}", (whole, micro))
    if whole.number < micro.number:
        yield Doubt("accumulation-not-done", f"the batch of all ({whole.number:g}, `{whole.name}`) is smaller than that of one ({micro.number:g}, `{micro.name}`)", (whole, micro))


def deepspeed_batch(sheet: Sheet) -> Iterator[Doubt]:
    """DeepSpeed refuses a batch that is not micro-batch times accumulation times devices."""
    whole = _by_key(sheet, "train_batch_size")
    micro = _by_key(sheet, "train_micro_batch_size_per_gpu")
    accumulation = _by_key(sheet, "gradient_accumulation_steps")
    if whole is None or micro is None or accumulation is None:
        return
    each = (micro.number or 0) * (accumulation.number or 0)
    if each and (whole.number or 0) % each:
        yield Doubt("accumulation-not-done", f"`{whole.name}` is {whole.number:g}, no multiple of {micro.number:g} times {accumulation.number:g} (`{micro.name}`, `{accumulation.name}`)", (whole, micro, accumulation))


def parts_of_a_batch(sheet: Sheet) -> Iterator[Doubt]:
    """A mini-batch larger than the batch that it is a part of; a group of a norm larger than the batch."""
    for s in sheet.settings:
        mini = re.search(r"mini_?batch", s.key) and s.own & {"size", "batch"} and (s.number or 0) > 0 and not s.own & {"n", "num"}
        if mini:
            whole = _by_key(sheet, "train_batch_size", "rollout_batch_size", "batch_size")
            if whole is not None and whole is not s and (s.number or 0) > (whole.number or 0) and s.own & {"mini", "minibatch"}:
                yield Doubt("accumulation-not-done", f"a part of {s.number:g} (`{s.name}`) of a batch of {whole.number:g} (`{whole.name}`)", (s, whole))
        if s.own & {"mbstd"} and s.own & {"group"}:
            batch = _by_key(sheet, "batch_gpu", "batch_size_per_gpu", "batch_size")
            if batch is not None and s.number and (batch.number or 0) < s.number:
                yield Doubt("batch-norm-small-batch", f"a group of {s.number:g} (`{s.name}`) of batches of {batch.number:g} (`{batch.name}`)", (batch, s))


def queues(sheet: Sheet) -> Iterator[Doubt]:
    """A queue of negatives is filled by whole batches."""
    for s in sheet.settings:
        if not (s.knob == "contrast.queue" or (s.key in ("moco_k", "queue_size", "queue_length") and "contrast" in sheet.themes)) or not s.number:
            continue
        batch = sheet.nearest(s, [o for o in sheet.settings if o.key in ("batch_size", "batch", "global_batch_size") and o.number])
        if batch is not None and batch.number and s.number % batch.number:
            yield Doubt("setting-beyond-practice", f"a queue of {s.number:g} (`{s.name}`) is no multiple of the batch of {batch.number:g} (`{batch.name}`)", (s, batch))


def few_pairs(sheet: Sheet) -> Iterator[Doubt]:
    """A contrastive loss without a queue learns from the other samples of its batch."""
    queue = any(s.knob == "contrast.queue" or s.own & {"queue", "moco", "memory"} for s in sheet.settings)
    losses = " ".join(s.text.lower() for s in sheet.settings if s.text and s.around & {"loss", "criterion", "method", "algorithm", "experiment", "name"})
    if queue or not re.search(r"simclr|nt_?-?xent|info_?nce|clip_(?:softmax|loss)|contrastive|siglip|supcon", losses):
        return
    for s in sheet.settings:
        if s.has("batch", "valid val test probe lincls n norm eval grad accum") and s.own & {"size", "gpu", "global", "per", "batch"} and s.number and 1 <= s.number < 16 and isinstance(s.number, int) and not s.own & {"gather"}:
            yield Doubt("setting-beyond-practice", f"`{s.name}` is {s.number:g}: so few other samples are hardly to be told apart from", (s,), "range")


def token_batches(sheet: Sheet) -> Iterator[Doubt]:
    """A batch counted in tokens that holds hardly a sentence."""
    kind = next((s for s in sheet.settings if s.key in ("batch_type", "batch_unit") and s.text in ("tokens", "token")), None)
    size = _by_key(sheet, "batch_size")
    if kind is not None and size is not None and (size.number or 0) < 256:
        yield Doubt("schedule-unit-mismatch", f"`{size.name}` is {size.number:g} and counts tokens (`{kind.name}`): hardly a sentence", (size, kind))


def few_steps(sheet: Sheet) -> Iterator[Doubt]:
    """A number of steps that cuts the epochs off at once."""
    steps = next((s for s in sheet.settings if s.key in ("max_steps", "max_train_steps") and (s.number or 0) > 0), None)
    epochs = _by_key(sheet, "num_train_epochs", "num_epochs", "max_epochs", "epochs")
    if steps is not None and epochs is not None and (steps.number or 0) < 50 and (epochs.number or 0) >= 1:
        yield Doubt("too-few-updates", f"`{steps.name}` of {steps.number:g} ends the run long before its {epochs.number:g} epochs (`{epochs.name}`)", (steps, epochs), "range")


def no_predictions(sheet: Sheet) -> Iterator[Doubt]:
    """Nothing of a sequence is to be predicted."""
    for s in sheet.settings:
        if re.search(r"max_pred(?:iction)?s?_per_seq", s.key) and s.number is not None and s.number < 1:
            yield Doubt("all-labels-masked", f"`{s.name}` is {s.number:g}: nothing is to be predicted", (s,))
        if s.has("span length/len", "max_ n stride") and s.own & {"mean", "noise", "span"} and s.number:
            whole = next((o for o in sheet.settings if o.key in ("inputs_length", "max_seq_length", "seq_length", "input_length") and o.number), None)
            if whole is not None and s.number > (whole.number or 0) / 4:
                yield Doubt("all-labels-masked", f"spans of {s.number:g} (`{s.name}`) in inputs of {whole.number:g} (`{whole.name}`)", (s, whole))


def empty_filters(sheet: Sheet) -> Iterator[Doubt]:
    """Filters that leave nothing, and mask ratios of nothing."""
    for s in sheet.settings:
        if s.key in ("mask_ratio", "masking_ratio", "mask_rate") and s.number is not None and not isinstance(s.value, bool) and ((s.number == 0 and sheet.mentions(r"(?i)mae|mim|beit|masked_autoencoder")) or 0.97 < s.number <= 1) and not sheet.says("yolo", "overlap"):
            yield Doubt("all-labels-masked", f"`{s.name}` is {s.number:g}: nothing is hidden, or nothing is left to see", (s,))
        found = re.fullmatch(r"[\[(](\d+(?:\.\d+)?),\s*inf[\])]", s.text) if s.around & {"rating", "ratings"} else None
        if found and float(found[1]) > 10:
            yield Doubt("too-few-updates", f"`{s.name}` is {s.text}: ratings end at 5 or 10", (s,))


CHECKS = (global_batch, deepspeed_batch, parts_of_a_batch, queues, few_pairs, token_batches, few_steps, no_predictions, empty_filters)
