"""Weights of loss terms: a sign that rewards what is to be punished, a weight that drowns the others, a term that is off."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wheeltapper.settings.sanity.sheet import Doubt, Setting, Sheet, same_section
from wheeltapper.settings.words import word_set

_WEIGHT = word_set("coef weight weights lambda lam alpha c beta gain cost")
_TERM = word_set("""loss losses rec recon reconstruction kl adv adversarial perceptual percep lpips cycle identity idt dice ce bce cls box bbox giou iou obj dfl mel fm
    feature style content tv l1 l2 mse aux auxiliary codebook commitment commit distill kd mlm cos cosine ntp reg regularizer pl gp r1 entropy ent value vf
    critic policy consistency contrastive triplet center centering mask balance z router disc gan quant vq ssim edge depth smooth smoothness eikonal
    background class cost coord noobj conf pixel gen generator dur pitch energy stop attention guided reward rewards length path mim cl""")
_OTHER = word_set("""decay wd init lr file path dir name type dtype norm bias scale_pos class_weights sample ema warmup start end schedule size precision bit bits dropout
    smoothing target temperature momentum frozen pretrained weights_path rank alphas lora embed network dim diffusion adam betas beta1 beta2 mixup cutmix step steps epoch epochs n num focal min max
    lm wer sil word score kenlm ctc_decode decode std mean eps tie share tied layer skip standardization only every huber""")
# A term without which the method does not work.
CORE = {"box": "boxes", "bbox": "boxes", "cls": "classes", "rec": "the reconstruction", "recon": "the reconstruction", "reconstruction": "the reconstruction", "codebook": "the codes", "commitment": "the codes", "mel": "the spectrum"}


def weights(sheet: Sheet) -> list[Setting]:
    """Settings that weigh a term of the loss."""
    return [s for s in sheet.settings if s.number is not None and not isinstance(s.value, bool) and _weighs(s, sheet)]


def _weighs(s: Setting, sheet: Sheet) -> bool:
    if s.own & _OTHER or (s.own & {"gamma", "class"} and not s.own & {"cost", "loss"}):
        return False
    if s.own & _WEIGHT and (s.own & _TERM or s.key.startswith("lambda") or s.above & {"loss", "losses"} or re.fullmatch(r"(?:lambda|alpha)_\w{1,12}", s.key)):
        return not (s.key.startswith("alpha") and not s.own & _TERM)
    return (s.key in ("box", "cls", "dfl", "obj") and any(o.key == "box" for o in sheet.settings)) or s.has("loss weight")


def negative(sheet: Sheet) -> Iterator[Doubt]:
    """A weight below zero drives the network away from what the term asks for."""
    for s in weights(sheet):
        if ((s.number or 0) < 0 and s.number != -1) or (s.number == -1 and s.own & {"weight", "loss", "lambda", "cost", "alpha"}):
            yield Doubt("wrong-loss-sign", f"`{s.name}` is {s.number:g}: a negative weight rewards what the term punishes", (s,))


def overwhelming(sheet: Sheet) -> Iterator[Doubt]:
    """A weight so large that the other terms have no say."""
    found = weights(sheet)
    for s in found:
        value = s.number or 0
        others = sorted(o.number or 0 for o in found if o is not s and (o.number or 0) > 0)
        typical = others[len(others) // 2] if others else 1.0
        twins = any(o.key == s.key for o in found if o is not s)
        if value >= (300 if twins else 2000) * max(typical, 1.0) and (others or value >= 20_000):
            yield Doubt("loss-weight-runaway", f"`{s.name}` is {value:g}: beside it the other terms of the loss have no say", (s,), "hint" if value >= 5000 else "range")
        elif s.own & {"identity", "idt"} and value >= 10:
            yield Doubt("loss-weight-runaway", f"`{s.name}` is {value:g}: it is a share of the cycle's weight, and copying would be cheapest", (s,), "range")
        elif s.own & {"reward", "rewards"} and s.own & {"coef", "coefficient"} and s.own & {"center", "centering"} and value >= 10:
            yield Doubt("loss-weight-runaway", f"`{s.name}` is {value:g}: it pulls every reward to zero", (s,), "range")
        elif s.own & {"disc", "adv", "adversarial", "gan", "commitment", "codebook"} and value >= 100:
            yield Doubt("loss-weight-runaway", f"`{s.name}` is {value:g}: beside it the reconstruction has no say", (s,), "range")


def switched_off(sheet: Sheet) -> Iterator[Doubt]:
    """A term that the method rests on has no weight; of two that belong together one has none."""
    for s in weights(sheet):
        if s.number != 0:
            continue
        core = next((what for word, what in CORE.items() if word in s.own), None)
        if core is not None and not s.own & {"aux", "cost"}:
            yield Doubt("objective-mismatch", f"`{s.name}` is 0: {core} are not trained", (s,))
        twin = re.sub(r"_a$", "_b", s.key) if s.key.endswith("_a") else re.sub(r"_b$", "_a", s.key)
        other = next((o for o in sheet.settings if o.key == twin and same_section(o, s) and (o.number or 0) > 0), None)
        if other is not None and twin != s.key:
            yield Doubt("objective-mismatch", f"`{s.name}` is 0 and `{other.name}` is {other.number:g}: the two belong together", (s, other))
    distilled = next((s for s in sheet.settings if s.key in ("alpha_ce", "alpha_kd", "distill_weight", "kd_weight", "distillation_alpha", "alpha_distil") and s.number == 0), None)
    if distilled is not None and sheet.themes & {"distill"}:
        yield Doubt("objective-mismatch", f"`{distilled.name}` is 0: the teacher has no say", (distilled,))
    balance = next((s for s in sheet.settings if s.has("coef/weight/alpha/lambda aux/balance/load", "z") and s.number == 0), None)
    if balance is not None and "moe" in sheet.themes:
        yield Doubt("setting-beyond-practice", f"`{balance.name}` is 0: nothing keeps the router from choosing the same experts", (balance,), "range")


def matching_costs(sheet: Sheet) -> Iterator[Doubt]:
    """The costs of a matcher are positive."""
    for s in sheet.settings:
        if "cost" in s.own and s.own & {"class", "bbox", "giou", "box", "set", "mask", "dice"} and s.number is not None and s.number < 0:
            yield Doubt("wrong-loss-sign", f"`{s.name}` is {s.number:g}: the matcher prefers what fits least", (s,))


CHECKS = (negative, overwhelming, switched_off, matching_costs)
