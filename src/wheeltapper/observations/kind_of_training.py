"""What kind of training this is, by what is logged and set.

## Definition
0 a loss alone or numbers (MSE, R2), 1 classes and ranks (accuracy, F1, AUC, NDCG), 2 text (perplexity, bits, CER, WER, BLEU, a vocabulary),
3 pictures by pixel (IoU, Dice, mAP, PSNR), 4 latent variables (KL), 5 adversarial, 6 agents (return), 7 preferences, 8 noise levels (diffusion).

## Derivation
Causes belong to kinds: a discriminator cannot win where there is none, and labels cannot be shuffled where there are no labels. It
says nothing about whether anything is wrong.

## Healthy band
Every kind is healthy.

## When it misleads
Mixed trainings count as the last kind that fits.
"""

from __future__ import annotations

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.run.model import Run
from wheeltapper.settings.knobs import Knobs
from wheeltapper.study.curves import FEWEST, Task

ABOUT = "learning"
SETTING = True
EDGES = tuple(k + 0.5 for k in range(8))
BAND = (None, None)
KINDS = (
    (0, "numbers or a loss alone", ("loss", "mse", "rmse", "mae", "mape", "mase", "correlation", "relative_error")),
    (1, "classes or ranks", ("accuracy", "f1", "auc", "top5", "mcc", "precision", "recall", "error", "ndcg", "hit", "mrr")),
    (2, "text", ("perplexity", "bits", "cer", "wer", "bleu", "rouge")),
    (3, "pictures by pixel", ("iou", "dice", "map", "map50", "psnr", "ssim")),
    (4, "latent variables", ("kl",)),
)
TEXT, ADVERSARIAL, AGENTS, PREFERENCES, NOISE = 2, 5, 6, 7, 8


def observe(run: Run, task: Task, knobs: Knobs | None = None) -> Reading | Unknown:
    logged = {s.quantity for s in run.series.values() if s.quantity and int(s.finite.sum()) >= FEWEST}
    if not logged:
        return Unknown("nothing is logged that tells the kind of training", ("a log",))
    kind, words = _kind(logged, task, knobs)
    return Reading(float(kind), f"by what is logged this is a training of {words}")


def _kind(logged: set[str], task: Task, knobs: Knobs | None) -> tuple[int, str]:
    if task.reinforcement:
        return AGENTS, "an agent"
    if task.adversarial:
        return ADVERSARIAL, "a generator against a discriminator"
    if (knobs is not None and "dpo.beta" in knobs) or logged & {"reward_accuracy", "reward_margin"}:
        return PREFERENCES, "preferences"
    if task.diffusion:
        return NOISE, "noise levels"
    found = [(kind, words) for kind, words, named in KINDS if logged & set(named)]
    if knobs is not None and "vocab_size" in knobs and (not found or found[-1][0] == 0):
        return TEXT, "text"
    return found[-1] if found else KINDS[0][:2]
