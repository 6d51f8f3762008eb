import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical

SEED, STEPS, ROLLOUT, EPOCHS, MB = 3, 200_000, 2048, 10, 64
GAMMA, LAM, CLIP, LR, ENT, VF = 0.99, 0.95, 0.2, 3e-4, 0.01, 0.5


class ActorCritic(nn.Module):
    def __init__(self, obs_dim, n_act):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(obs_dim, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, n_act))
        self.critic = nn.Sequential(nn.Linear(obs_dim, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))

    def forward(self, obs):
        return Categorical(logits=self.actor(obs)), self.critic(obs).squeeze(-1)


torch.manual_seed(SEED)
env = gym.make("CartPole-v1")
agent = ActorCritic(4, 2)
opt = torch.optim.Adam(agent.parameters(), lr=LR, eps=1e-5)
obs, _ = env.reset(seed=SEED)
ep_ret, returns_log = 0.0, []

for update in range(STEPS // ROLLOUT):
    O, A, R, D, LP, V = [], [], [], [], [], []
    for t in range(ROLLOUT):
        with torch.no_grad():
            dist, value = agent(torch.as_tensor(obs, dtype=torch.float32))
            action = dist.sample()
            logp = dist.log_prob(action)
        nxt, reward, term, trunc, _ = env.step(action.item())
        done = term or trunc
        O.append(obs); A.append(action); R.append(reward); D.append(done); LP.append(logp); V.append(value)
        ep_ret += reward
        obs = nxt
        if done:
            returns_log.append(ep_ret)
            ep_ret = 0.0
            obs, _ = env.reset()
    with torch.no_grad():
        _, last = agent(torch.as_tensor(obs, dtype=torch.float32))
    adv = torch.zeros(ROLLOUT)
    gae = 0.0
    for t in reversed(range(ROLLOUT)):
        nv = last if t == ROLLOUT - 1 else V[t + 1]
        delta = R[t] + GAMMA * nv * (1.0 - D[t]) - V[t]
        gae = delta + GAMMA * LAM * (1.0 - D[t]) * gae
        adv[t] = gae
    b_obs = torch.as_tensor(np.array(O), dtype=torch.float32)
    b_act, b_logp, b_val = torch.stack(A), torch.stack(LP), torch.stack(V)
    ret = adv + b_val
    for epoch in range(EPOCHS):
        perm = torch.randperm(ROLLOUT)
        for s in range(0, ROLLOUT, MB):
            idx = perm[s:s + MB]
            dist, value = agent(b_obs[idx])
            ratio = (dist.log_prob(b_act[idx]) - b_logp[idx]).exp()
            a = adv[idx]
            a = (a - a.mean()) / (a.std() + 1e-8)
            surr = torch.min(ratio * a, torch.clamp(ratio, 1 - CLIP, 1 + CLIP) * a)
            pg_loss = -surr.mean()
            v_loss = ((value - ret[idx]) ** 2).mean()
            entropy = dist.entropy().mean()
            loss = pg_loss + VF * v_loss - ENT * entropy
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            opt.step()
    print(f"update {update} return {np.mean(returns_log[-20:]):.1f} loss {loss.item():.4f}")
