"""A small score-entropy model, its noise, its loss with a curriculum, and an EMA with warm-up."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class SEDD(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        width = cfg.model.hidden_size
        self.scale_by_sigma = cfg.model.scale_by_sigma
        self.embed = nn.Embedding(cfg.tokens, width)
        layer = nn.TransformerEncoderLayer(width, cfg.model.n_heads, dropout=cfg.model.dropout, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, cfg.model.n_blocks)
        self.out = nn.Linear(width, cfg.tokens)
        self.length = cfg.model.length

    def forward(self, tokens, sigma):
        scores = self.out(self.blocks(self.embed(tokens[:, : self.length])))
        return scores - sigma.log().view(-1, 1, 1) if self.scale_by_sigma else scores


class Noise:
    def __init__(self, cfg):
        self.low, self.high, self.eps = cfg.noise.sigma_min, cfg.noise.sigma_max, cfg.noise.eps
        self.cosine = cfg.noise.type == "cosine"

    def __call__(self, t):
        if self.cosine:
            return self.low + (self.high - self.low) * (1 - torch.cos(t * math.pi / 2)) + self.eps * self.low
        return self.low + (self.high - self.low) * t


def curriculum_factor(step, preschool_time, curriculum_type):
    progress = min(1.0, step / preschool_time)
    return 1 - math.exp(-3 * progress) if curriculum_type == "exponential" else progress


def curriculum_loss(model, noise, tokens, step, preschool_time, curriculum_type):
    t = torch.rand(tokens.shape[0], device=tokens.device)
    sigma = noise(t)
    factor = curriculum_factor(step, preschool_time, curriculum_type)
    hidden = sigma * (0.1 + 0.9 * factor)
    mask = torch.rand(tokens.shape, device=tokens.device) < (1 - torch.exp(-hidden)).view(-1, 1)
    noisy = torch.where(mask, torch.zeros_like(tokens), tokens)
    scores = model(noisy, sigma)
    return F.cross_entropy(scores[mask], tokens[mask])


class ExponentialMovingAverage:
    def __init__(self, parameters, decay):
        self.decay = decay
        self.num_updates = 0
        self.shadow = [p.clone().detach() for p in parameters]

    def update(self, parameters):
        self.num_updates += 1
        decay = min(self.decay, (1 + self.num_updates) / (10 + self.num_updates))
        for s, p in zip(self.shadow, parameters, strict=True):
            s.sub_((1 - decay) * (s - p.detach()))

    def state_dict(self):
        return {"decay": self.decay, "num_updates": self.num_updates, "shadow": self.shadow}

    def load_state_dict(self, state):
        self.decay, self.num_updates, self.shadow = state["decay"], state["num_updates"], state["shadow"]
