import random
from collections import deque

import gymnasium as gym
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

total_steps = 60000
batch_size = 64
gamma = 0.99
lr = 5e-4
buffer_size = 50000
learning_starts = 1000
target_every = 500
eps_start, eps_end, eps_decay = 1.0, 0.05, 20000


def make_net(n_in, n_out):
    return nn.Sequential(nn.Linear(n_in, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, n_out))


env = gym.make("LunarLander-v2")
q_net = make_net(8, 4)
target_net = make_net(8, 4)
target_net.load_state_dict(q_net.state_dict())
optimizer = torch.optim.Adam(q_net.parameters(), lr=lr)
buffer = deque(maxlen=buffer_size)
state, _ = env.reset(seed=1)
episode_return = 0.0

for step in range(total_steps):
    eps = max(eps_end, eps_start - (eps_start - eps_end) * step / eps_decay)
    if random.random() < eps:
        action = env.action_space.sample()
    else:
        with torch.no_grad():
            action = q_net(torch.tensor(state).float().unsqueeze(0)).argmax(dim=1).item()
    next_state, reward, terminated, truncated, _ = env.step(action)
    buffer.append((state, action, reward, next_state, terminated))
    state = next_state
    episode_return += reward
    if terminated or truncated:
        print(f"step {step} episode_return {episode_return:.1f} eps {eps:.3f}")
        state, _ = env.reset()
        episode_return = 0.0
    if step < learning_starts:
        continue
    batch = random.sample(buffer, batch_size)
    s, a, r, s2, d = map(np.array, zip(*batch))
    s, s2 = torch.tensor(s).float(), torch.tensor(s2).float()
    a, r, d = torch.tensor(a).long(), torch.tensor(r).float(), torch.tensor(d).float()
    q = q_net(s).gather(1, a.unsqueeze(1)).squeeze(1)
    with torch.no_grad():
        target = r + gamma * (1 - d) * target_net(s2).max(dim=1).values
    loss = F.smooth_l1_loss(q, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % target_every == 0:
        target_net.load_state_dict(q_net.state_dict())
