"""Causes that a sentence names: phrases of the field, the causes and folk rules they mean, and what they presuppose.

The table is data. `needs` are conditions of the plan without which the cause cannot be at work (answer_causes.NEEDS).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from wheeltapper.review.model import AnyClaim, Blame


@dataclass(frozen=True, slots=True)
class _Phrase:
    pattern: re.Pattern[str]
    causes: tuple[str, ...]
    needs: tuple[str, ...] = ()


def _phrase(pattern: str, causes: str, needs: str = "") -> _Phrase:
    within = pattern.replace("[^.;]", r"(?:[^.;]|\.(?=\d))")  # a point in a number ends no sentence
    return _Phrase(re.compile(within, re.I), tuple(causes.split()), tuple(needs.split()))


PHRASES: tuple[_Phrase, ...] = (
    # learning rate and schedule
    _phrase(r"(?:learning rate|\blr\b)[^.;]{0,40}\btoo (?:high|large)|too (?:high|large) (?:a )?(?:learning rate|lr)\b", "lr-too-high rate-never-reached", "rate-reached"),
    _phrase(r"(?:learning rate|\blr\b)[^.;]{0,30}\btoo (?:low|small)", "lr-too-low"),
    _phrase(r"(?:because|due to|caused by)[^.;]{0,40}\b(?:no|without|missing|lack of) (?:a )?warm-?up", "no-warmup", "no-warmup"),
    _phrase(r"warm-?up\b[^.;]{0,40}(?:never ends|longer than|too long)", "warmup-longer-than-run"),
    _phrase(r"(?:longer|extend\w*|increase\w*) warm-?up|warm-?up\b[^.;]{0,20}longer", "longer-warmup"),
    _phrase(r"(?:because|due to|since|caused by)[^.;]{0,30}(?:learning rate|\blr\b)[^.;]{0,20}(?:decays?|falls|drops|is decayed|is cut)", "schedule-too-short", "rate-falls"),
    _phrase(r"(?:learning rate|\blr\b)[^.;]{0,20}(?:climbs|goes|rises|comes) back", "schedule-too-short"),
    _phrase(r"milestones[^.;]{0,60}(?:first|too early)", "schedule-too-short cut-too-early"),
    _phrase(r"milestones[^.;]{0,40}for EMA stability|compatible with EMA", "average-against-schedule"),
    _phrase(r"stepped once (?:per|an|each) epoch", "schedule-unit-mismatch"),
    _phrase(r"CosineAnnealing\w*\**[^.;]{0,30}(?:reduced|reduces|incompatib)|cosine\w*\W+(?:\+|and|with) EMA", "average-against-schedule", "cosine"),
    _phrase(r"pre-?step\w*[^.;]{0,60}(?:helps|harmless|acceptable)|does not impact reaching|progresses normally despite", "pre-step-harmless onecycle-overrun"),
    _phrase(r"(?:start|begin)s? at [\d.]+ instead of", "rate-of-an-epoch's-end"),
    # precision
    _phrase(r"(?:scale_g|loss scale|scale factor|scaling|scaler)\b[^.;]{0,60}(?:explo\w+|underflow|overflow|extremely high|huge|could not cope|abnormal)|huge loss scale", "high-loss-scale loss-scale-collapse", "scaler"),
    _phrase(r"normal range: *1e3", "high-loss-scale", "scaler"),
    _phrase(r"(?:float16|fp16|half precision|mixed precision|AMP|bf16|amp_bf16)\b[^;]{0,60}(?:overflow|underflow|precision (?:issue|problem)|instab\w+|inaccura\w+|numerical)", "fp16-overflow pure-fp16 loss-scale-collapse fp16-imprecise", "fp16"),
    # average of the weights
    _phrase(r"EMA\b[^.;]{0,40}(?:decay|horizon)[^.;]{0,30}(?:too (?:high|long|slow)|horizon of)|(?:EMA|averaged?|moving average)\b[^.;]{0,30}\blags?\b", "ema-horizon-too-long", "ema"),
    _phrase(r"(?:EMA|average)[^.;]{0,60}(?:batch ?norm\w*|buffers|normali[sz]ation)|batch ?norm[^.;]{0,40}(?:EMA|average)", "ema-buffers-stale batch-norm-of-average", "ema"),
    _phrase(r"only updated on rank 0|updated (?:by|on) one (?:process|rank)", "average-on-one-rank"),
    _phrase(r"EMA model was used for validation|validat\w+ us(?:es|ing) (?:the )?(?:broken )?EMA", "ema-is-evaluated", "ema"),
    # loss, batch, clipping
    _phrase(r"(?:dynamic[ _]loss\w*|loss[ _]weight\w*|adaptation[ _]rate)[^;]{0,120}(?:instab\w+|sluggish|too (?:high|slow|conservative)|delayed|unstable)", "loss-weights-shift loss-weight-runaway"),
    _phrase(r"gradient(?:s)? explo\w+|exploding gradients|prevent gradient explosion", "clip-as-cure high-loss-scale"),
    _phrase(r"(?:gentler|harder|smaller|tighter)\W+(?:gradient )?clipping", "clip-as-cure"),
    _phrase(r"(?:aggressive|tight|too (?:strong|hard|small|low))[^.;]{0,20}clipping|clipping\b[^.;]{0,30}(?:too (?:strong|hard|small|low|aggressive)|aggressive)", "clip-too-small", "clipping"),
    _phrase(r"gradient accumulation (?:issues?|errors?|problems?)", "accumulated-gradients"),
    _phrase(r"(?:zero[_ ]?grad|never zeroed|never cleared|gradients (?:pile|add) up)", "zero-grad-missing"),
    # data, objective, evaluation
    _phrase(r"overfit(?:s|ting)?|memori[sz]es", "overfitting over-confidence overfit-by-training-loss no-new-best"),
    _phrase(r"dropout\b[^.;]{0,20}too (?:high|strong)|too much dropout", "dropout-too-high", "dropout"),
    _phrase(r"memory leak", "memory-leak"),
    _phrase(r"(?:bad|broken|corrupt) (?:batch|sample)\b", "nan-batch bad-data-from-step"),
    _phrase(r"data (?:is|are|was) corrupt|corrupt(?:ed)? data|bad shard", "bad-data-from-step"),
    _phrase(r"targets?[^.;]{0,20}belong to other|labels? (?:are )?shuffled|wrong labels", "labels-shuffled"),
    _phrase(r"(?:validation|eval\w*)[^.;]{0,40}(?:preprocess\w*|normali[sz]ed) differently", "eval-normalisation-mismatch"),
    _phrase(r"softmax before|double softmax|softmax twice", "double-softmax"),
    _phrase(r"log-uniform\w*|noise (?:schedule|levels?)[^.;]{0,30}(?:narrow|wider)", "noise-levels"),
    _phrase(r"curriculum[^.;]{0,60}(?:faster than|too (?:aggressive|fast|hard))", "curriculum-too-hard curriculum-outruns"),
    _phrase(r"(?:reduc\w+|lower|smaller) (?:noise|sigma_?max)", "less-noise"),
    _phrase(r"training degradation|severe degradation|(?:experiencing|shows) (?:\w+ )?degradation", "degradation"),
    _phrase(r"\bdivergence\b|\b(?:loss|it) diverge[sd]\b", "diverged last-value-high"),
    _phrase(r"sigma values mostly between", "noise-share"),
    _phrase(r"progressive resize (?:causes|works)", "resize-works"),
)  # fmt: skip
_DENIED = re.compile(
    r"\b(?:no|no sign of|not|isn't|is no|no evidence of|without|rather than|nothing|never|fix(?:es|ed)? the)\b[^.;]{0,20}$",
    re.I,
)


def read_causes(text: str, line: int, context: str = "") -> list[AnyClaim]:
    """One claim for each cause that is named; `context` is what the sentence hangs on (the section of a key, a heading): a
    phrase may begin in it, and must reach into the sentence."""
    out: list[AnyClaim] = []
    whole = f"{context}: {text}" if context else text
    for phrase in PHRASES:
        match = next((m for m in phrase.pattern.finditer(whole) if m.end() > len(whole) - len(text)), None)
        if match is None or _DENIED.search(whole[: match.start()]) or re.search(r"\bnothing\b", match.group(), re.I):
            continue
        out.append(Blame(text=text, line=line, causes=phrase.causes, needs=phrase.needs))
    return out
