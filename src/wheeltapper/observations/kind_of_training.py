"""What kind of training this is, by what is logged and set.

## Definition
0 plain supervised training with a loss alone, 1 classes (accuracy, F1, AUC), 2 numbers (MSE, R2), 3 tokens (perplexity, bits, a
vocabulary), 4 transcripts and translations (CER, WER, BLEU), 5 pictures by pixel (IoU, Dice, mAP, PSNR), 6 ranking (NDCG, hits),
7 latent variables (KL), 8 adversarial, 9 agents (return), 10 preferences, 11 noise levels (diffusion).

## Derivation
Causes belong to kinds: a discriminator cannot win where there is none, and labels cannot be shuffled where there are no labels. It
says nothing about whether anything is wrong.

## Healthy band
Every kind is healthy.

## When it misleads
Mixed trainings count as the last kind that fits.
"""

from __future__ import annotations

from wheeltapper.observations import Reading
from wheeltapper.run.model import Run
from wheeltapper.settings.knobs import Knobs
from wheeltapper.study.curves import FEWEST, Task

ABOUT = "learning"
SETTING = True
EDGES = tuple(k + 0.5 for k in range(11))
BAND = (None, None)
KINDS = (
    (0, "a loss alone", ()),
    (1, "classes", ("accuracy", "f1", "auc", "top5", "mcc", "precision", "recall", "error")),
    (2, "numbers", ("mse", "rmse", "mae", "mape", "mase", "correlation", "relative_error")),
    (3, "tokens", ("perplexity", "bits")),
    (4, "transcripts or translations", ("cer", "wer", "bleu", "rouge")),
    (5, "pictures by pixel", ("iou", "dice", "map", "map50", "psnr", "ssim")),
    (6, "ranking", ("ndcg", "hit", "mrr")),
    (7, "latent variables", ("kl",)),
)
ADVERSARIAL, AGENTS, PREFERENCES, NOISE = 8, 9, 10, 11


def observe(run: Run, task: Task, knobs: Knobs | None = None) -> Reading:
    kind, words = _kind(run, task, knobs)
    return Reading(float(kind), f"by what is logged this is a training of {words}")


def _kind(run: Run, task: Task, knobs: Knobs | None) -> tuple[int, str]:
    logged = {s.quantity for s in run.series.values() if s.quantity and int(s.finite.sum()) >= FEWEST}
    if task.reinforcement:
        return AGENTS, "an agent"
    if task.adversarial:
        return ADVERSARIAL, "a generator against a discriminator"
    if (knobs is not None and "dpo.beta" in knobs) or logged & {"reward_accuracy", "reward_margin"}:
        return PREFERENCES, "preferences"
    if task.diffusion:
        return NOISE, "noise levels"
    found = [(kind, words) for kind, words, named in KINDS if logged & set(named)]
    if not found and knobs is not None and "vocab_size" in knobs:
        return 3, "tokens"
    return found[-1] if found else KINDS[0][:2]
