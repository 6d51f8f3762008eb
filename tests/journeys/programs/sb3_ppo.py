"""CartPole with PPO of Stable-Baselines3."""
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import configure

torch.set_num_threads(1)
env = make_vec_env("CartPole-v1", n_envs=8, seed=0)
model = PPO(
    "MlpPolicy",
    env,
    learning_rate=1e-3,
    n_steps=128,
    batch_size=128,
    n_epochs=6,
    gamma=0.98,
    ent_coef=0.0,
    clip_range=0.2,
    seed=0,
    device="cpu",
)
model.set_logger(configure("ppo", ["csv"]))
model.learn(total_timesteps=40000)
model.save("ppo/model")
