import gymnasium as gym
from stable_baselines3 import DQN


class Scaled(gym.RewardWrapper):
    def reward(self, reward):
        return 0.1 * reward


env = Scaled(gym.make("LunarLander-v2"))
model = DQN("MlpPolicy", env, learning_rate=5e-4, buffer_size=100_000, learning_starts=5_000, batch_size=128, gamma=0.99,
            train_freq=4, target_update_interval=1_000, exploration_fraction=0.2, exploration_final_eps=0.05, verbose=1)
model.learn(total_timesteps=300_000, log_interval=10)
