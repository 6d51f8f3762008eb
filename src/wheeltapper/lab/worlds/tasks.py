"""The settings of each family that are its own: sizes of data and model, drawn at random."""

from __future__ import annotations

import random
from typing import Any

Config = dict[str, Any]


def tab(r: random.Random) -> Config:
    return {
        "n_train": r.choice([1500, 2500, 4000]),
        "n_val": 500,
        "n_features": r.randint(6, 20),
        "hidden": r.choice([48, 64, 96, 128]),
        "depth": r.randint(2, 3),
        "dropout": r.choice([0.0, 0.0, 0.1]),
        "target_noise": r.choice([0.1, 0.2, 0.4]),
    }


def cls(r: random.Random) -> Config:
    return {
        "n_train": r.choice([1000, 1500, 2000]),
        "n_val": 400,
        "n_classes": r.choice([5, 8, 10, 16]),
        "channels": r.choice([1, 3]),
        "image_size": 12,
        "hidden": r.choice([8, 12, 16]),
        "dropout": r.choice([0.0, 0.1, 0.2]),
        "pixel_noise": r.choice([1.5, 2.0, 2.6]),
        "label_noise": 0.0,
        "label_smoothing": 0.0,
    }


def seg(r: random.Random) -> Config:
    return {
        "n_train": r.choice([400, 600]),
        "n_val": 150,
        "n_classes": 3,
        "image_size": 16,
        "hidden": r.choice([6, 8]),
        "dropout": r.choice([0.0, 0.1]),
        "pixel_noise": r.choice([0.5, 0.8]),
        "ignore_index": r.choice([255, -100]),
    }


def det(r: random.Random) -> Config:
    return {
        "n_train": r.choice([1200, 2000]),
        "n_val": 300,
        "n_classes": r.choice([3, 4, 6]),
        "image_size": 16,
        "hidden": r.choice([8, 12]),
        "dropout": r.choice([0.0, 0.1]),
        "pixel_noise": r.choice([0.2, 0.4]),
        "box_weight": r.choice([5.0, 10.0]),
        "cls_weight": 1.0,
    }


def ctc(r: random.Random) -> Config:
    return {
        "n_train": r.choice([600, 1000]),
        "n_val": 100,
        "n_symbols": r.choice([5, 8, 10]),
        "n_features": r.choice([8, 12]),
        "n_frames": 26,
        "target_len": r.choice([4, 5]),
        "hidden": r.choice([24, 32]),
        "stride": r.choice([1, 2]),
        "dropout": r.choice([0.0, 0.1]),
        "feature_noise": r.choice([0.2, 0.4]),
    }


def forecast(r: random.Random) -> Config:
    return {
        "n_train": r.choice([1000, 1600]),
        "n_val": 300,
        "window": r.choice([24, 32]),
        "horizon": r.choice([4, 8]),
        "period": r.choice([12, 18, 24]),
        "series_noise": r.choice([0.1, 0.2]),
        "cell": r.choice(["gru", "mlp", "mlp"]),
        "hidden": r.choice([24, 32, 48]),
        "dropout": r.choice([0.0, 0.1]),
    }


def rec(r: random.Random) -> Config:
    return {
        "n_train": r.choice([8000, 12000]),
        "n_val": 1500,
        "n_users": r.choice([80, 150]),
        "n_items": r.choice([60, 100]),
        "hidden": r.choice([6, 8]),
        "dropout": r.choice([0.0, 0.1]),
        "rating_noise": r.choice([0.2, 0.4]),
    }


def gnn(r: random.Random) -> Config:
    nodes = r.choice([300, 400])
    return {
        "n_nodes": nodes,
        "n_train": nodes // 2,
        "n_val": nodes // 2,
        "n_classes": r.choice([3, 4, 6]),
        "n_features": r.choice([8, 16]),
        "hidden": r.choice([16, 32]),
        "depth": 2,
        "dropout": r.choice([0.2, 0.4, 0.5]),
        "p_inside": r.choice([0.05, 0.07]),
        "p_outside": 0.015,
    }


def inr(r: random.Random) -> Config:
    return {
        "n_train": 1400,
        "n_val": 600,
        "image_size": 48,
        "n_waves": r.choice([3, 5]),
        "max_freq": r.choice([3.0, 4.0]),
        "hidden": r.choice([48, 64]),
        "depth": r.choice([2, 3]),
        "dropout": 0.0,
    }


def language(r: random.Random) -> Config:
    return {
        "n_train": r.choice([1500, 2500]),
        "n_val": 150,
        "vocab": r.choice([12, 16, 20]),
        "seq_len": r.choice([16, 24]),
        "hidden": r.choice([32, 48]),
        "heads": r.choice([2, 4]),
        "depth": r.choice([1, 2]),
        "dropout": r.choice([0.0, 0.0, 0.1]),
    }


def mlm(r: random.Random) -> Config:
    return {
        **language(r),
        "vocab": r.choice([8, 10, 12]),
        "depth": 1,
        "hidden": 32,
        "mask_prob": r.choice([0.15, 0.2, 0.25]),
    }


def lora(r: random.Random) -> Config:
    return {
        **language(r),
        "depth": 1,
        "hidden": 32,
        "seq_len": 16,
        "pretrain_steps": 200,
        "lora_r": r.choice([4, 8]),
        "lora_alpha": r.choice([8, 16]),
    }


def dpo(r: random.Random) -> Config:
    return {
        **language(r),
        "n_train": 1200,
        "vocab": 12,
        "depth": 1,
        "hidden": 32,
        "seq_len": 16,
        "pretrain_steps": 200,
        "prompt_len": 4,
        "judge_noise": r.choice([0.02, 0.1]),
        "beta": r.choice([0.1, 0.2, 0.3]),
    }


def s2s(r: random.Random) -> Config:
    return {
        "n_train": r.choice([2500, 4000]),
        "n_val": 200,
        "vocab": r.choice([10, 14]),
        "seq_len": r.choice([7, 9]),
        "rule": r.choice(["sort", "reverse"]),
        "hidden": r.choice([32, 48]),
        "dropout": r.choice([0.0, 0.1]),
    }


def moe(r: random.Random) -> Config:
    return {
        "n_train": r.choice([2500, 4000]),
        "n_val": 500,
        "n_features": r.choice([8, 12]),
        "n_classes": r.choice([4, 6]),
        "n_regimes": r.choice([3, 4]),
        "n_experts": r.choice([4, 6]),
        "top_k": r.choice([1, 2]),
        "hidden": r.choice([24, 32]),
        "dropout": 0.0,
        "aux_weight": r.choice([0.01, 0.02]),
    }


def distill(r: random.Random) -> Config:
    return {
        "n_train": r.choice([2500, 4000]),
        "n_val": 500,
        "n_features": r.choice([8, 12]),
        "n_classes": r.choice([4, 6, 8]),
        "teacher_hidden": 128,
        "teacher_steps": 500,
        "hidden": r.choice([24, 32]),
        "depth": r.choice([1, 2]),
        "dropout": 0.0,
        "temperature": r.choice([2.0, 3.0, 4.0]),
        "alpha": r.choice([0.5, 0.7, 0.9]),
    }


def con(r: random.Random) -> Config:
    return {
        "n_train": r.choice([2000, 3000]),
        "n_val": 600,
        "n_classes": r.choice([6, 10]),
        "n_features": r.choice([24, 32]),
        "nuisance": r.choice([3.0, 4.0]),
        "hidden": r.choice([48, 64]),
        "embed_dim": r.choice([16, 32]),
        "dropout": 0.0,
        "temperature": r.choice([0.1, 0.2]),
    }


def vae(r: random.Random) -> Config:
    return {
        "n_train": r.choice([1500, 2500]),
        "n_val": 300,
        "image_size": 12,
        "hidden": r.choice([64, 96]),
        "latent": r.choice([4, 6, 8]),
        "dropout": 0.0,
        "pixel_noise": 0.05,
        "kl_weight": r.choice([0.02, 0.05]),
    }


def ddpm(r: random.Random) -> Config:
    return {
        "n_train": 3000,
        "n_val": 300,
        "shape": r.choice(["moons", "ring"]),
        "diffusion_steps": r.choice([30, 40]),
        "beta_start": 0.001,
        "beta_end": 0.2,
        "hidden": r.choice([48, 64]),
        "depth": 2,
        "dropout": 0.0,
    }


def gan(r: random.Random) -> Config:
    rate = r.choice([5e-4, 1e-3])
    return {
        "n_train": 4000,
        "n_val": 500,
        "shape": r.choice(["ring", "grid", "moons"]),
        "latent": r.choice([8, 16]),
        "hidden": r.choice([48, 64]),
        "depth": r.choice([2, 3]),
        "g_lr": rate,
        "d_lr": rate * r.choice([1, 1, 2]),
        "n_critic": 1,
        "batch_size": r.choice([64, 128]),
        "max_steps": 20 * r.randint(50, 75),
    }


def ppo(r: random.Random) -> Config:
    env = r.choice(["Reach-v0", "Pole-v0", "Grid-v0"])
    envs, steps = 16, {"Pole-v0": 64, "Reach-v0": 80, "Grid-v0": 64}[env]
    return {
        "env_id": env,
        "n_envs": envs,
        "n_steps": steps,
        "total_timesteps": envs * steps * r.randint(36, 55),
        "hidden": r.choice([32, 64]),
        "lr": r.choice([1e-3, 2e-3]),
        "adam_eps": 1e-5,
        "anneal_lr": r.choice([True, False]),
        "gamma": r.choice([0.95, 0.98]),
        "gae_lambda": r.choice([0.9, 0.95]),
        "batch_size": r.choice([128, 256]),
        "n_epochs": r.choice([4, 6]),
        "clip_range": 0.2,
        "ent_coef": r.choice([0.0, 0.005, 0.01]),
        "vf_coef": 0.5,
        "max_grad_norm": 0.5,
        "reward_scale": 0.1 if env == "Pole-v0" else 1.0,
    }


def dqn(r: random.Random) -> Config:
    env = r.choice(["Reach-v0", "Grid-v0"])
    return {
        "env_id": env,
        "n_envs": 4,
        "total_timesteps": 4 * 100 * r.randint(18, 26),
        "hidden": r.choice([32, 64]),
        "lr": r.choice([1e-3, 2e-3]),
        "gamma": r.choice([0.9, 0.95]),
        "batch_size": r.choice([64, 128]),
        "buffer_size": r.choice([5000, 10000]),
        "learning_starts": r.choice([200, 400]),
        "target_update_interval": r.choice([50, 100]),
        "exploration_fraction": r.choice([0.3, 0.5]),
        "epsilon_start": 1.0,
        "epsilon_end": 0.05,
        "max_grad_norm": 10.0,
        "reward_scale": 1.0,
    }
