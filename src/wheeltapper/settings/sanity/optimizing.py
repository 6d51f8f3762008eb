"""Rates, decays and moments, each for its optimizer and for what is trained: from scratch, tuned, or by adapters."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from wheeltapper.settings.practice.features import optimizer_class
from wheeltapper.settings.sanity.context import is_noam, is_tuned, low_rank, optimizer_near, scales_rate
from wheeltapper.settings.sanity.sheet import Doubt, Setting, Sheet
from wheeltapper.settings.words import word_set

# Where a rate stops to make sense: highest, lowest.
LIMITS = {
    "sgd": (60.0, 1e-9), "lars": (40.0, 1e-4), "lion": (2e-2, 1e-9), "adafactor": (1.5, 1e-9), "adagrad": (5.0, 1e-7),
    "adadelta": (10.0, 1e-5), "lbfgs": (10.0, 1e-5), "prodigy": (10.0, 1e-5), "muon": (1.0, 1e-7), "lamb": (0.2, 1e-8), "rmsprop": (4.0, 1e-9),
}  # fmt: skip
ADAPTIVE = (0.25, 1e-9)
UNNAMED = (20.0, 1e-10)
TUNED = 5e-3  # a pretrained network is lost above
ADAPTERS = 0.05
PREFERENCES = 5e-4  # a policy that is tuned by preferences or rewards
_OF_A_RATE = word_set("""lr lrs lrate learning rate learningrate learn base peak max init initial start actor critic policy value q unet text encoder decoder backbone
    head g d gen disc generator discriminator net opt optim optimizer adam adamw sgd main model lora embedding embed bert global target nominal default
    alpha hidden blr network trunk pretrained new cls classifier teacher student entropy temperature vf pi""")
_DECAY = "lr mult norm bias n step rate start_ power coef_ skip no exclude layers type style ema layer"
_BETA = r"(?:.*_)?(?:beta_?{0}|b{0})"
_BOOSTED = {"xgboost", "lightgbm", "lgbm", "gbdt", "catboost", "leaves", "boosting", "colsample", "xgb"}


def rates(sheet: Sheet) -> Iterator[Doubt]:
    """Learning rates beyond what the optimizer can bear."""
    for setting in sheet.settings:
        rate = setting.number
        if rate is None or isinstance(setting.value, bool) or not _is_rate(setting):
            continue
        if rate < 0 and rate != -1:
            yield Doubt("lr-too-high", f"`{setting.name}` is {rate:g}: a negative rate climbs the loss", (setting,))
            continue
        if sheet.says(*_BOOSTED):
            if rate > 1:
                yield Doubt("lr-too-high", f"`{setting.name}` is {rate:g}: the shrinkage of boosted trees is a share, and above 1 the ensemble diverges", (setting,))
            continue
        if rate == 0 or is_noam(sheet, setting) or scales_rate(setting):
            continue
        yield from _against_limits(sheet, setting, rate)


def _is_rate(setting: Setting) -> bool:
    if setting.key in ("eta", "eta0") and not setting.above & {"diffusion", "ddim", "sampler", "sched", "scheduler"}:
        return True
    if not setting.own & {"lr", "lrs", "blr", "lrate"} or not set(re.findall(r"[a-z]+", setting.key)) <= _OF_A_RATE:
        return False
    return not setting.above & {"probe", "linear_probe", "lincls", "finder", "find", "warmup", "sched", "scheduler"}


def _against_limits(sheet: Sheet, setting: Setting, rate: float) -> Iterator[Doubt]:
    optimizer = optimizer_near(sheet, setting)
    high, low = LIMITS.get(optimizer or "", ADAPTIVE if optimizer else UNNAMED)
    what = f"with {optimizer}" if optimizer else "with any optimizer"
    adaptive = optimizer is not None and optimizer not in LIMITS
    if is_tuned(sheet) and adaptive and not sheet.says("prompt_tuning", "prefix", "probe"):
        high = ADAPTERS if low_rank(sheet) else PREFERENCES if sheet.themes & {"dpo", "onpolicy"} else TUNED
        what = "for a pretrained network"
    if rate > high:
        text = f"`{setting.name}` is {rate:g}: {what} the weights are thrown away above {high:g}"
        yield Doubt("lr-too-high", text, (setting,), "hint" if rate > 10 * high else "range")
    elif rate < low:
        yield Doubt("lr-too-low", f"`{setting.name}` is {rate:g}: {what} nothing moves below {low:g}", (setting,), "range")


def lower_rates(sheet: Sheet) -> Iterator[Doubt]:
    """A floor or a start of the rate that lies above its peak."""
    peaks = [s for s in sheet.settings if s.knob in ("optimizer.lr", "schedule.max_lr") and s.number and not isinstance(s.value, bool)]
    for setting in sheet.settings:
        low = setting.number
        if low is None or not setting.has("lr/eta") or not setting.own & {"min", "end", "warmup", "start", "eta_min", "final"}:
            continue
        if setting.own & {"ratio", "coef", "factor", "step", "epoch", "div", "mult", "scale", "bias", "gamma", "decay", "power", "sample", "samples", "fraction"} or any(part.isdigit() for part in setting.path) or "lr_rate" in setting.key or setting.knob == "optimizer.lr":
            continue
        peak = sheet.nearest(setting, peaks)
        if peak is None or peak.number is None or low <= 1.0001 * peak.number or is_noam(sheet, peak):
            continue
        what = "starts" if setting.own & {"warmup", "start"} else "ends"
        yield Doubt("lr-too-high", f"the rate {what} at {low:g} (`{setting.name}`), above its peak of {peak.number:g} (`{peak.name}`)", (setting, peak))


def decays(sheet: Sheet) -> Iterator[Doubt]:
    """Weight decay beyond what the optimizer can bear, or so strong that one step turns the weights over."""
    for setting in sheet.settings:
        decay = setting.number
        if decay is None or isinstance(setting.value, bool) or not _is_decay(setting):
            continue
        optimizer = optimizer_near(sheet, setting)
        limit = 30.0 if optimizer in ("lion", "muon") else 6.0 if optimizer in ("adamw", "lamb", "adan", "sophia") else 0.95
        limit = 6.0 if optimizer is None or (optimizer == "adam" and sheet.says("megatron", "transformers", "decoupled", "tensor")) else limit
        limit = limit if optimizer != "lars" else 1.0
        if decay < 0 and decay != -1:
            yield Doubt("weight-decay-too-strong", f"`{setting.name}` is {decay:g}: a negative decay lets the weights grow", (setting,))
        elif decay > limit:
            named = f"with {optimizer} " if optimizer else ""
            yield Doubt("weight-decay-too-strong", f"`{setting.name}` is {decay:g}: {named}it pulls every weight to zero above {limit:g}", (setting,), "hint" if decay > 5 * limit else "range")
        else:
            yield from _turned_over(sheet, setting, decay)


def _is_decay(setting: Setting) -> bool:
    return bool(setting.own & {"wd"} or {"weight", "decay"} <= setting.own) and not setting.own & set(_DECAY.split())


def _turned_over(sheet: Sheet, setting: Setting, decay: float) -> Iterator[Doubt]:
    rate = sheet.nearest(setting, [s for s in sheet.of_knob("optimizer.lr") if s.number])
    if rate is not None and rate.number and rate.number * decay > 1 and not is_noam(sheet, rate):
        text = f"rate times decay is {rate.number * decay:g} (`{rate.name}` {rate.number:g}, `{setting.name}` {decay:g}): above 1 every step turns the weights over"
        yield Doubt("weight-decay-too-strong", text, (setting, rate))


def moments(sheet: Sheet) -> Iterator[Doubt]:
    """Adam's two decay rates: both below 1, the second the longer one."""
    for first, second, one, two in _pairs(sheet):
        named = sheet.nearest(one, [s for s in sheet.settings if s.knob == "optimizer.name"])
        if not (0 <= first < 1 and 0 <= second < 1):
            wrong = one if not 0 <= first < 1 else two
            yield Doubt("momentum-too-high", f"`{wrong.name}`: a decay rate of the moments lies between 0 and 1 ({first:g}, {second:g})", (wrong,))
        elif second < first - 1e-9 and not sheet.mentions(r"(?i)novograd") and not (named is not None and optimizer_class(named.text) == "adafactor"):
            text = f"the second moment ({second:g}) forgets sooner than the first ({first:g}): the two are swapped or mistyped"
            yield Doubt("setting-beyond-practice", text, tuple(dict.fromkeys((two, one))))
        elif first > 0.997:
            yield Doubt("momentum-too-high", f"the first moment remembers {1 / (1 - first):,.0f} steps (`{one.name}`)", (one,), "range")


def _pairs(sheet: Sheet) -> Iterator[tuple[float, float, Setting, Setting]]:
    for setting in sheet.settings:
        if setting.own & {"betas"} and not setting.around & {"diffusion", "noise"} and len(setting.numbers) == 2:
            yield setting.numbers[0], setting.numbers[1], setting, setting
        found = re.fullmatch(_BETA.format(2), setting.key)
        if not found or setting.number is None or setting.has("diffusion"):
            continue
        firsts = [s for s in sheet.settings if re.fullmatch(_BETA.format(1), s.key) and s.number is not None]
        partner = sheet.nearest(setting, firsts)
        if partner is not None and partner.number is not None:
            yield partner.number, setting.number, partner, setting
        elif not firsts:
            yield 0.9, setting.number, setting, setting


def momenta(sheet: Sheet) -> Iterator[Doubt]:
    """Momentum of the optimizer at or above 1, or so near that nothing is forgotten."""
    for setting in sheet.settings:
        value = setting.number
        if value is None or isinstance(setting.value, bool) or not setting.own & {"momentum", "mom"}:
            continue
        if setting.own & {"warmup", "n", "epoch", "step", "final", "max", "min", "base", "correction", "decay", "sched", "schedule"}:
            continue
        norm = setting.around & {"bn", "batchnorm", "norm", "layernorm"}
        if value >= 1 or value < 0:
            if not norm:
                yield Doubt("momentum-too-high", f"`{setting.name}` is {value:g}: at 1 nothing is ever forgotten, and nothing is below 0", (setting,))
        elif value > 0.9965 and not norm and not setting.around & {"teacher", "ema", "target", "key", "encoder", "center", "m", "ma"} and setting.knob == "optimizer.momentum":
            yield Doubt("momentum-too-high", f"`{setting.name}` is {value:g}: the velocity remembers {1 / (1 - value):,.0f} steps", (setting,), "range")


def epsilons(sheet: Sheet) -> Iterator[Doubt]:
    """Adam's epsilon larger than any second moment."""
    for setting in sheet.settings:
        value = setting.number
        adam = setting.has("eps/epsilon/epsilon1 @opt/optim/optimizer/adam/adamw/optimizers", "norm layer greedy clip label smoothing exploration discriminator_loss")
        if value is None or not adam or optimizer_near(sheet, setting) in ("rmsprop", "adagrad", "adadelta", "adafactor"):
            continue
        if value > 0.05 or value < 0:
            yield Doubt("adam-eps-too-large", f"`{setting.name}` is {value:g}: larger than the root of the second moment, and every step shrinks by as much", (setting,), "hint" if value >= 0.5 else "range")


def factored(sheet: Sheet) -> Iterator[Doubt]:
    """Adafactor's least scale of a parameter (epsilon2) multiplies its rate."""
    for setting in sheet.settings:
        if re.fullmatch(r"eps(?:ilon)?_?2", setting.key) and setting.number is not None and setting.number > 0.5:
            yield Doubt("lr-too-high", f"`{setting.name}` is {setting.number:g}: the least scale of a parameter, which multiplies the rate", (setting,))


def clipping(sheet: Sheet) -> Iterator[Doubt]:
    """Gradients cut to almost nothing."""
    for setting in sheet.settings:
        if setting.knob not in ("clip.norm", "clip.value") or setting.number is None or isinstance(setting.value, bool):
            continue
        if 0 < setting.number < (1e-3 if setting.knob == "clip.norm" else 2e-5):
            yield Doubt("clip-too-small", f"`{setting.name}` is {setting.number:g}: gradients are cut to almost nothing", (setting,), "range")


def growth(sheet: Sheet) -> Iterator[Doubt]:
    """The factor of a schedule's cuts: above 1 the rate grows, at 1 it stays."""
    for setting in sheet.settings:
        value = setting.number
        if value is None or isinstance(setting.value, bool) or not _is_cut(setting) or any(part.isdigit() for part in setting.path):
            continue
        if value > 1.0 and not (value == 1000 or value >= 1e3 or setting.own & {"step", "epoch", "interval"}):
            yield Doubt("lr-too-high", f"`{setting.name}` is {value:g}: a factor above 1 makes the rate grow at every cut", (setting,))
        elif value < 0:
            yield Doubt("lr-too-high", f"`{setting.name}` is {value:g}: a negative factor turns the rate over", (setting,))


def _grows(sheet: Sheet, setting: Setting) -> list[float]:
    """Factors of a schedule that stand under a name of their own: Composer's alpha_f, a plateau's factor, Darknet's scales."""
    if setting.key in ("alpha_f", "lr_final_ratio") and setting.number is not None:
        return [setting.number]
    if setting.key == "factor" and setting.number is not None and any(re.search(r"(?i)plateau|reduce_?lr", part) for part in setting.path[:-1]):
        return [setting.number]
    if setting.key in ("reduce_lr_factor", "lr_reduce_factor", "plateau_factor", "lr_factor") and setting.number is not None:
        return [setting.number]
    if setting.key not in ("scales", "lr_scales"):
        return []
    beside = any(o.key in ("steps", "milestones", "lr_steps") and o.numbers for o in sheet.settings if o.path[:-1] == setting.path[:-1])
    return setting.numbers if beside else []


def final_factors(sheet: Sheet) -> Iterator[Doubt]:
    """A last or repeated factor of the rate above 1."""
    for setting in sheet.settings:
        above = [value for value in _grows(sheet, setting) if value > 1]
        if above and math.prod(_grows(sheet, setting)) > 1:
            yield Doubt("lr-too-high", f"`{setting.name}` is {above[0]:g}: a factor above 1 makes the rate grow", (setting,))


def partial_rates(sheet: Sheet) -> Iterator[Doubt]:
    """The rate of a pretrained part far above that of the whole."""
    for setting in sheet.settings:
        part = setting.own & {"backbone", "encoder", "bert", "unet", "text", "pretrained", "trunk"}
        if not part or not setting.own & {"lr"} or setting.number is None or setting.own & {"mult", "ratio", "coef", "decay", "scale", "step", "epoch"}:
            continue
        main = next((o for o in sheet.settings if o.path[:-1] == setting.path[:-1] and o.key in ("lr", "learning_rate", "base_lr") and o.number), None)
        if main is not None and main.number and setting.number > 100 * main.number:
            yield Doubt("lr-too-high", f"`{setting.name}` is {setting.number:g}, {setting.number / main.number:,.0f} times `{main.name}`", (setting, main))


def adapters(sheet: Sheet) -> Iterator[Doubt]:
    """The scale of an adapter is alpha over rank."""
    for setting in sheet.settings:
        named = setting.key in ("lora_alpha", "network_alpha") or (setting.key == "alpha" and setting.above & {"lora", "peft", "adapter"})
        if not named:
            continue
        ranks = [o for o in sheet.settings if o.key in ("lora_r", "lora_rank", "network_dim") or (o.key in ("r", "rank") and o.path[:-1] == setting.path[:-1])]
        rank = sheet.nearest(setting, [o for o in ranks if o.number])
        if setting.number and rank is not None and rank.number and setting.number > 64 * rank.number:
            text = f"alpha over rank is {setting.number / rank.number:g} (`{setting.name}` {setting.number:g}, `{rank.name}` {rank.number:g}): the adapter's rate is multiplied by it"
            yield Doubt("lr-too-high", text, (setting, rank))


def _is_cut(setting: Setting) -> bool:
    if setting.own & {"step", "epoch", "interval", "warmup", "min", "style", "iters", "type", "layer", "policy", "mode", "power", "ratio", "wd", "weight", "ema"}:
        return False
    if setting.knob == "schedule.gamma" and setting.around & {"lr", "sched", "scheduler", "schedule", "solver", "decay"}:
        return True
    return setting.has("gamma @sched/scheduler/schedule/lr/param", "rl focal snr loss agent") or setting.key in ("lr_decay", "lr_gamma", "lr_decay_factor", "decay_factor", "lr_factor")


CHECKS = (rates, lower_rates, decays, moments, momenta, epsilons, factored, clipping, growth, final_factors, partial_rates, adapters)
