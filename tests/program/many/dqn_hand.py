import random
from collections import deque
import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn

class Q(nn.Module):
    def __init__(self, obs, acts):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, acts))

    def forward(self, x):
        return self.net(x)

env = gym.make("CartPole-v1")
q = Q(4, 2)
target = Q(4, 2)
target.load_state_dict(q.state_dict())
optimizer = torch.optim.Adam(q.parameters(), lr=5e-4)
memory = deque(maxlen=50000)
gamma, batch_size, sync_every = 0.99, 64, 500

def act(state, eps):
    if random.random() < eps:
        return env.action_space.sample()
    with torch.no_grad():
        return q(torch.as_tensor(state).float()[None]).argmax(1).item()

def learn():
    s, a, r, s2, done = zip(*random.sample(memory, batch_size))
    s = torch.as_tensor(np.array(s)).float()
    s2 = torch.as_tensor(np.array(s2)).float()
    a = torch.as_tensor(a)
    r = torch.as_tensor(r).float()
    done = torch.as_tensor(done).float()
    value = q(s).gather(1, a[:, None]).squeeze(1)
    with torch.no_grad():
        best = target(s2).max(1)[0]
        goal = r + gamma * best * (1 - done)
    loss = nn.functional.smooth_l1_loss(value, goal)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(q.parameters(), 10.0)
    optimizer.step()
    return loss.item()

step = 0
for episode in range(600):
    state, _ = env.reset(seed=episode)
    total, ended = 0.0, False
    while not ended:
        eps = max(0.05, 1.0 - step / 10000)
        action = act(state, eps)
        nxt, reward, terminated, truncated, _ = env.step(action)
        memory.append((state, action, reward, nxt, terminated))
        state = nxt
        total += reward
        ended = terminated or truncated
        step += 1
        if len(memory) > 1000:
            loss = learn()
        if step % sync_every == 0:
            target.load_state_dict(q.state_dict())
    print(f"episode={episode} return={total:.1f} eps={eps:.3f}")
