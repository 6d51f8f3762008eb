import argparse
from itertools import count

import gymnasium as gym
import torch
from torch import nn, optim
from torch.distributions import Categorical

parser = argparse.ArgumentParser()
parser.add_argument("--gamma", type=float, default=0.99)
parser.add_argument("--seed", type=int, default=543)
parser.add_argument("--render", action="store_true")
parser.add_argument("--log-interval", type=int, default=10)
args = parser.parse_args()

env = gym.make("CartPole-v1", render_mode="human" if args.render else None)
env.reset(seed=args.seed)
policy = nn.Sequential(nn.Linear(4, 128), nn.Dropout(0.6), nn.ReLU(), nn.Linear(128, 2), nn.Softmax(dim=-1))
optimizer = optim.Adam(policy.parameters(), lr=1e-2)
for episode in count(1):
    state, _ = env.reset()
    logs, rewards = [], []
    for _ in range(1, 10000):
        m = Categorical(policy(torch.tensor(state)))
        action = m.sample()
        state, reward, done, _, _ = env.step(action.item())
        logs.append(m.log_prob(action))
        rewards.append(reward)
        if done:
            break
    returns, total = [], 0.0
    for r in reversed(rewards):
        total = r + args.gamma * total
        returns.insert(0, total)
    loss = torch.stack([-log * ret for log, ret in zip(logs, returns)]).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if episode % args.log_interval == 0:
        print(f"Episode {episode}\tLast reward: {sum(rewards):.2f}")
    if sum(rewards) > 475:
        break
