import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

env = VecNormalize(make_vec_env("HalfCheetah-v4", n_envs=8, seed=0), norm_obs=True, norm_reward=True)
eval_env = VecNormalize(make_vec_env("HalfCheetah-v4", n_envs=1, seed=100), norm_obs=True, norm_reward=False, training=False)
model = PPO("MlpPolicy", env, learning_rate=3e-4, n_steps=1024, batch_size=256, n_epochs=10, gamma=0.99, gae_lambda=0.95, clip_range=0.2, ent_coef=0.0, verbose=1, tensorboard_log="tb")
model.learn(total_timesteps=2_000_000, callback=EvalCallback(eval_env, eval_freq=10000, best_model_save_path="best"))
model.save("ppo_cheetah")
