import gymnasium as gym
import torch
import torch.nn as nn
from torch.distributions import Categorical

class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 128), nn.Tanh())
        self.pi = nn.Linear(128, 4)
        self.v = nn.Linear(128, 1)

    def forward(self, x):
        h = self.body(x)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)

env = gym.make("LunarLander-v2")
policy = Policy()
opt = torch.optim.Adam(policy.parameters(), lr=3e-4)
gamma, beta = 0.99, 0.01

def returns_of(rewards):
    out, running = [], 0.0
    for r in reversed(rewards):
        running = r + gamma * running
        out.insert(0, running)
    return torch.tensor(out)

for episode in range(2000):
    obs, _ = env.reset()
    logps, values, entropies, rewards = [], [], [], []
    done = False
    while not done:
        dist, value = policy(torch.as_tensor(obs).float())
        action = dist.sample()
        obs, reward, terminated, truncated, _ = env.step(action.item())
        logps.append(dist.log_prob(action))
        values.append(value)
        entropies.append(dist.entropy())
        rewards.append(reward)
        done = terminated or truncated
    returns = returns_of(rewards)
    values = torch.stack(values)
    logps = torch.stack(logps)
    advantage = returns - values.detach()
    policy_loss = -(logps * advantage).mean()
    value_loss = (returns - values).pow(2).mean()
    entropy = torch.stack(entropies).mean()
    loss = policy_loss + 0.5 * value_loss - beta * entropy
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"ep {episode} ret {sum(rewards):.2f} ent {entropy.item():.3f}")
