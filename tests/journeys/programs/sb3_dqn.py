"""CartPole with DQN of Stable-Baselines3."""
import torch
from stable_baselines3 import DQN
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import configure

torch.set_num_threads(1)
env = make_vec_env("CartPole-v1", n_envs=1, seed=0)
model = DQN(
    "MlpPolicy",
    env,
    learning_rate=2.3e-3,
    batch_size=64,
    buffer_size=100000,
    learning_starts=1000,
    gamma=0.99,
    target_update_interval=10,
    train_freq=256,
    gradient_steps=96,
    exploration_fraction=0.16,
    exploration_final_eps=0.04,
    policy_kwargs={"net_arch": [64, 64]},
    seed=0,
    device="cpu",
)
model.set_logger(configure("dqn", ["csv"]))
model.learn(total_timesteps=25000, log_interval=10)
model.save("dqn/model")
