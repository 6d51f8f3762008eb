import copy, random
from collections import deque
import numpy as np
import torch
from torch import nn

TAU, DISCOUNT, BS, CAP = 0.005, 0.99, 256, 1_000_000


def mlp(i, o, act=nn.Identity):
    return nn.Sequential(nn.Linear(i, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, o), act())


class Critic(nn.Module):
    def __init__(self, s, a):
        super().__init__()
        self.q = mlp(s + a, 1)

    def forward(self, s, a):
        return self.q(torch.cat([s, a], 1))


def train(env, steps=300_000):
    s_dim, a_dim = env.observation_space.shape[0], env.action_space.shape[0]
    actor, critic = mlp(s_dim, a_dim, nn.Tanh), Critic(s_dim, a_dim)
    actor_t, critic_t = copy.deepcopy(actor), copy.deepcopy(critic)
    a_opt = torch.optim.Adam(actor.parameters(), lr=1e-4)
    c_opt = torch.optim.Adam(critic.parameters(), lr=1e-3)
    memory = deque(maxlen=CAP)
    s, _ = env.reset()
    for t in range(steps):
        with torch.no_grad():
            a = actor(torch.as_tensor(s, dtype=torch.float32)).numpy() + 0.1 * np.random.randn(a_dim)
        s2, r, term, trunc, _ = env.step(a)
        memory.append((s, a, r, s2, float(term)))
        s = env.reset()[0] if term or trunc else s2
        if len(memory) < 10_000:
            continue
        bs, ba, br, bs2, bd = (torch.as_tensor(np.array(z), dtype=torch.float32) for z in zip(*random.sample(memory, BS)))
        with torch.no_grad():
            y = br.unsqueeze(1) + DISCOUNT * (1 - bd.unsqueeze(1)) * critic_t(bs2, actor_t(bs2))
        c_loss = nn.functional.mse_loss(critic(bs, ba), y)
        c_opt.zero_grad(); c_loss.backward(); c_opt.step()
        a_loss = -critic(bs, actor(bs)).mean()
        a_opt.zero_grad(); a_loss.backward(); a_opt.step()
        with torch.no_grad():
            for net, tgt in ((actor, actor_t), (critic, critic_t)):
                for p, q in zip(net.parameters(), tgt.parameters()):
                    q.copy_(TAU * p + (1 - TAU) * q)
        if t % 1000 == 0:
            print(t, c_loss.item(), a_loss.item())


if __name__ == "__main__":
    import gymnasium
    train(gymnasium.make("Pendulum-v1"))
