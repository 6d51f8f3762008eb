"""Advantage actor-critic, one worker."""
import torch, gym
from torch import nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self, d, k):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(d, 128), nn.ReLU())
        self.pi = nn.Linear(128, k)
        self.v = nn.Linear(128, 1)

    def forward(self, s):
        h = self.trunk(s)
        return self.pi(h), self.v(h).squeeze(-1)


class A2C:
    def __init__(self, env, gamma=0.99, lr=7e-4, beta=0.01):
        self.env, self.gamma, self.beta = env, gamma, beta
        self.net = Net(env.observation_space.shape[0], env.action_space.n)
        self.opt = torch.optim.RMSprop(self.net.parameters(), lr=lr)

    def act(self, s):
        logits, v = self.net(torch.tensor(s, dtype=torch.float32))
        dist = torch.distributions.Categorical(logits=logits)
        a = dist.sample()
        return a, dist.log_prob(a), dist.entropy(), v

    def episode(self):
        s = self.env.reset()
        logps, ents, vals, rews = [], [], [], []
        done = False
        while not done:
            a, lp, ent, v = self.act(s)
            s, r, done, _ = self.env.step(a.item())
            logps.append(lp); ents.append(ent); vals.append(v); rews.append(r)
        G, rets = 0.0, []
        for r in reversed(rews):
            G = r + self.gamma * G
            rets.insert(0, G)
        rets, vals = torch.tensor(rets), torch.stack(vals)
        adv = rets - vals.detach()
        actor = -(torch.stack(logps) * adv).mean()
        critic = F.mse_loss(vals, rets)
        loss = actor + 0.5 * critic - self.beta * torch.stack(ents).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return sum(rews), loss.item()


if __name__ == "__main__":
    agent = A2C(gym.make("CartPole-v1"))
    for ep in range(1000):
        score, l = agent.episode()
        print(f"ep={ep} score={score} loss={l:.4f}")
