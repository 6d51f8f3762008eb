"""Protein-like sequences made by formula, and the truth about how good a generated one is.

A family has a preferred residue or two at each position; a sequence is of one family. To predict a hidden
residue a model must find out the family from the others, so there is something to learn beyond
frequencies. Because the families are known, the quality of generated sequences can be measured exactly.
"""

from __future__ import annotations

import torch

RESIDUES = 20
FAMILIES = 3


def profiles(length: int) -> torch.Tensor:
    """The residue probabilities of each family at each position: families x length x residues."""
    generator = torch.Generator().manual_seed(7)
    logits = 3.0 * torch.randn(FAMILIES, length, RESIDUES, generator=generator)
    return logits.softmax(-1)


def make_sequences(n: int, length: int, seed: int) -> torch.Tensor:
    """`n` sequences sorted by family, as a data base dump is."""
    generator = torch.Generator().manual_seed(seed)
    family = torch.arange(n) * FAMILIES // n
    chances = profiles(length)[family].reshape(-1, RESIDUES)
    return torch.multinomial(chances, 1, generator=generator).view(n, length)


def quality(sequences: torch.Tensor) -> float:
    """Nats per residue by which the true families explain the sequences better than pure chance does.

    Real sequences score about 1.6, random ones about -2.
    """
    length = sequences.shape[1]
    logs = profiles(length).log().clamp_min(-8)
    picked = logs[:, torch.arange(length), sequences.clamp(0, RESIDUES - 1)]  # families x n x length
    explained = torch.logsumexp(picked.sum(-1), 0) - torch.tensor(float(FAMILIES)).log()
    chance = -length * torch.tensor(float(RESIDUES)).log()
    return float((explained - chance).mean() / length)
