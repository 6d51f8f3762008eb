"""Losses that follow from arithmetic alone: at initialisation, and the floors no training can pass (OUT-14)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from wheeltapper.errors import InputError


def cross_entropy_at_init(classes: int, logit_std: float = 0.0) -> float:
    """ln C, plus s²/2 for random logits of standard deviation s."""
    return math.log(classes) + logit_std**2 / 2


def logit_std_of(loss: float, classes: int) -> float | None:
    """The logit scale that explains a first loss above ln C; None below it."""
    excess = loss - math.log(classes)
    return math.sqrt(2 * excess) if excess >= 0 else None


def entropy_of_prior(counts: Sequence[float]) -> float:
    """Cross-entropy of always predicting the class frequencies."""
    p = np.asarray(counts, dtype=float)
    p = p[p > 0] / p.sum()
    return float(-(p * np.log(p)).sum())


def initial_loss(head: str, n: int | None = None, *, margin: float = 1.0, mean_square: float = 1.0) -> float:
    """The loss of an untrained network: `n` is the number of classes, of tokens or of candidates.

    >>> round(initial_loss("cross_entropy", 1000), 3), initial_loss("bce") == math.log(2)
    (6.908, True)
    """
    if head in ("cross_entropy", "lm", "info_nce"):
        if n is None or n < 2:
            raise InputError(f"the initial loss of {head} needs the number of classes, tokens or candidates.")
        return math.log(n)
    table = {
        "bce": math.log(2),
        "gan_discriminator": 2 * math.log(2),
        "triplet": margin,
        "mse": mean_square,  # of the targets, for an output of zero
        "epsilon": 1.0,
        "v_prediction": 1.0,
        "edm": 1.0,
    }
    if head not in table:
        known = ", ".join(["cross_entropy", "lm", "info_nce", *table])
        raise InputError(f"no initial loss known for {head!r}.", do=f"One of: {known}.")
    return table[head]


def label_smoothing_floor(classes: int, smoothing: float) -> float:
    """The entropy of the smoothed target: what the loss of a perfect classifier converges to."""
    if smoothing <= 0:
        return 0.0
    other = smoothing / classes
    true = 1 - smoothing + other
    return -(true * math.log(true) + (classes - 1) * other * math.log(other))


def double_softmax_floor(classes: int) -> float:
    """Cross-entropy fed with probabilities instead of logits cannot fall below ln(1 + (C-1)/e).

    >>> round(double_softmax_floor(10), 3)
    1.461
    """
    return math.log(1 + (classes - 1) / math.e)


def sedd_untrained_loss(tokens: int, sigma_max: float, sigma_min: float = 0.0, c: float = 1.0) -> float:
    """Per-token loss of an untrained absorbing SEDD over noise σ from sigma_min to sigma_max:
    ln V · ∫ (1 - e^(-cσ))/(e^σ - 1) dσ, which for c = 1 is ln V · (e^-σmin - e^-σmax).

    >>> [round(sedd_untrained_loss(36, s), 3) for s in (0.8, 0.5, 0.3)]
    [1.973, 1.41, 0.929]
    """
    if c == 1.0:
        return math.log(tokens) * (math.exp(-sigma_min) - math.exp(-sigma_max))
    nodes, weights = np.polynomial.legendre.leggauss(200)
    half = (sigma_max - sigma_min) / 2
    sigma = sigma_min + half * (nodes + 1)
    return math.log(tokens) * float(half * np.sum(weights * -np.expm1(-c * sigma) / np.expm1(sigma)))


def edm_initial_loss(sigma: float, data_rms: float, sigma_data: float = 0.5) -> float:
    """Weighted EDM loss of a network that outputs zero, at noise σ: 1 everywhere iff data_rms = sigma_data
    (DIF-02). At high σ it reads off (data_rms/sigma_data)²."""
    return (sigma**2 * data_rms**2 / sigma_data**2 + sigma_data**2) / (sigma**2 + sigma_data**2)


def edm_initial_loss_mean(data_rms: float, sigma_data: float = 0.5, p_mean: float = -1.2, p_std: float = 1.2) -> float:
    """The same averaged over ln σ ~ N(p_mean, p_std²), as EDM samples it."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    values = [edm_initial_loss(math.exp(p_mean + p_std * z), data_rms, sigma_data) for z in nodes]
    return float(np.sum(weights * np.array(values)) / np.sum(weights))
