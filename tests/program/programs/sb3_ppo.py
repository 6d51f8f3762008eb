import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.env_util import make_vec_env

TOTAL = 1_000_000
env = make_vec_env("BipedalWalker-v3", n_envs=8, seed=0)
eval_env = gym.make("BipedalWalker-v3")
model = PPO("MlpPolicy", env, learning_rate=3e-4, n_steps=2048, batch_size=64, n_epochs=10, gamma=0.99,
            gae_lambda=0.95, clip_range=0.2, ent_coef=0.0, verbose=1, tensorboard_log="tb")
model.learn(total_timesteps=TOTAL, callback=EvalCallback(eval_env, eval_freq=10_000, best_model_save_path="best"))
model.save("ppo_walker")
