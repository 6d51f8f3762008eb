"""Twins for the checks of research code: id, text, what is healthy in it, the fault in its place."""

from __future__ import annotations

HEAD = """
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F
"""
VAE = (
    HEAD
    + """
from pictures import faces
class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Linear(256, 64)
        self.place, self.width = nn.Linear(64, 8), nn.Linear(64, 8)
        self.up = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 256))
    def forward(self, x):
        h = F.relu(self.down(x))
        m, lv = self.place(h), self.width(h)
        z = m + torch.exp(0.5 * lv) * torch.randn_like(m)
        return self.up(z), m, lv
coder = Coder()
adam = torch.optim.Adam(coder.parameters(), lr=1e-3)
for epoch in range(20):
    for x in faces():
        back, m, lv = coder(x)
        fit = F.mse_loss(back, x, reduction="sum") / len(x)
        away = 0.5 * (lv.exp() + m ** 2 - 1 - lv).sum(1).mean()
        adam.zero_grad()
        (fit + away).backward()
        adam.step()
"""
)
ACTOR = (
    HEAD
    + """
from world import Env, Memory
class Act(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 4)
    def forward(self, s):
        mid, spread = self.body(s).chunk(2, -1)
        law = torch.distributions.Normal(mid, spread.clamp(-4, 2).exp())
        u = law.rsample()
        return torch.tanh(u), (law.log_prob(u) - torch.log(1 - torch.tanh(u) ** 2 + 1e-6)).sum(-1)
class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
    def forward(self, s, a):
        return self.net(torch.cat([s, a], -1)).squeeze(-1)
act, one, two = Act(), Judge(), Judge()
slow_one, slow_two = copy.deepcopy(one), copy.deepcopy(two)
act_opt = torch.optim.Adam(act.parameters(), lr=3e-4)
judge_opt = torch.optim.Adam([*one.parameters(), *two.parameters()], lr=3e-4)
env, memory = Env(), Memory(100000)
state = env.reset()
for step in range(100000):
    with torch.no_grad():
        action, _ = act(torch.as_tensor(state))
    after, reward, done, _ = env.step(action.numpy())
    memory.add(state, action, reward, after, done)
    state = env.reset() if done else after
    s, a, r, s2, done_b = memory.draw(256)
    with torch.no_grad():
        a2, lp2 = act(s2)
        least = torch.minimum(slow_one(s2, a2), slow_two(s2, a2))
        goal = r + 0.99 * (1 - done_b) * (least - 0.2 * lp2)
    judge_loss = F.mse_loss(one(s, a), goal) + F.mse_loss(two(s, a), goal)
    judge_opt.zero_grad()
    judge_loss.backward()
    judge_opt.step()
    new, lp = act(s)
    act_loss = (0.2 * lp - torch.minimum(one(s, new), two(s, new))).mean()
    act_opt.zero_grad()
    act_loss.backward()
    act_opt.step()
    with torch.no_grad():
        for p, q in zip(one.parameters(), slow_one.parameters()):
            q.lerp_(p, 0.005)
        for p, q in zip(two.parameters(), slow_two.parameters()):
            q.lerp_(p, 0.005)
"""
)
ROLLOUT = (
    HEAD
    + """
from world import Envs
class Brain(nn.Module):
    def __init__(self):
        super().__init__()
        self.policy, self.worth = nn.Linear(8, 4), nn.Linear(8, 1)
    def decide(self, s, a=None):
        law = torch.distributions.Categorical(logits=self.policy(s))
        a = law.sample() if a is None else a
        return a, law.log_prob(a), law.entropy(), self.worth(s).squeeze(-1)
brain, envs, T = Brain(), Envs(16), 64
adam = torch.optim.Adam(brain.parameters(), lr=3e-4)
states, acts = torch.zeros(T, 16, 8), torch.zeros(T, 16)
logs, pays, ends, worths = torch.zeros(T, 16), torch.zeros(T, 16), torch.zeros(T, 16), torch.zeros(T, 16)
now, over = envs.reset(), torch.zeros(16)
for turn in range(1000):
    for k in range(T):
        states[k], ends[k] = now, over
        with torch.no_grad():
            a, lp, _, w = brain.decide(now)
        acts[k], logs[k], worths[k] = a, lp, w
        now, pay, over, _ = envs.step(a)
        pays[k] = pay
    with torch.no_grad():
        last, gains = 0, torch.zeros_like(pays)
        beyond = brain.worth(now).squeeze(-1)
        for k in reversed(range(T)):
            if k == T - 1:
                alive, ahead = 1.0 - over, beyond
            else:
                alive, ahead = 1.0 - ends[k + 1], worths[k + 1]
            delta = pays[k] + 0.99 * ahead * alive - worths[k]
            gains[k] = last = delta + 0.99 * 0.95 * alive * last
        goals = gains + worths
    _, lp, spread, w = brain.decide(states.reshape(-1, 8), acts.reshape(-1))
    ratio = torch.exp(lp - logs.reshape(-1))
    gain = gains.reshape(-1)
    better = torch.max(-gain * ratio, -gain * torch.clamp(ratio, 0.8, 1.2)).mean()
    loss = better + 0.5 * (w - goals.reshape(-1)).pow(2).mean() - 0.01 * spread.mean()
    adam.zero_grad()
    loss.backward()
    adam.step()
"""
)
GAME = (
    HEAD
    + """
from pictures import faces
class Maker(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 64), nn.Tanh())
    def forward(self, z):
        return self.net(z)
class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 128), nn.LeakyReLU(0.2), nn.Linear(128, 1))
    def forward(self, x):
        return self.net(x).squeeze(1)
def fine(critic, real, fake):
    e = torch.rand(len(real), 1)
    between = (e * real + (1 - e) * fake).requires_grad_(True)
    slope = torch.autograd.grad(critic(between).sum(), between, create_graph=True)[0]
    return ((slope.norm(2, dim=1) - 1) ** 2).mean()
maker, critic = Maker(), Critic()
maker_opt = torch.optim.Adam(maker.parameters(), lr=1e-4)
critic_opt = torch.optim.Adam(critic.parameters(), lr=1e-4)
for epoch in range(100):
    for real in faces():
        fake = maker(torch.randn(len(real), 16)).detach()
        critic_loss = critic(fake).mean() - critic(real).mean() + 10 * fine(critic, real, fake)
        critic_opt.zero_grad()
        critic_loss.backward()
        critic_opt.step()
        maker_loss = -critic(maker(torch.randn(len(real), 16))).mean()
        maker_opt.zero_grad()
        maker_loss.backward()
        maker_opt.step()
"""
)
VIEWS = (
    HEAD
    + """
from pictures import faces
class Pairs(torch.utils.data.Dataset):
    def __init__(self):
        self.rows = faces()
    def __len__(self):
        return len(self.rows)
    def __getitem__(self, i):
        a = self.rows[i] + 0.1 * torch.randn(64)
        b = self.rows[i] + 0.1 * torch.randn(64)
        return a, b
net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32))
adam = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(50):
    for a, b in torch.utils.data.DataLoader(Pairs(), batch_size=256, shuffle=True):
        z = F.normalize(torch.cat([net(a), net(b)]), dim=1)
        alike = z @ z.t() / 0.1
        alike.fill_diagonal_(float("-inf"))
        n = len(a)
        loss = F.cross_entropy(alike, torch.cat([torch.arange(n) + n, torch.arange(n)]))
        adam.zero_grad()
        loss.backward()
        adam.step()
"""
)
DENOISE = (
    HEAD
    + """
from nets import UNet
from pictures import faces
class Process:
    def __init__(self, steps):
        betas = torch.linspace(1e-4, 0.02, steps)
        self.single = 1 - betas
        self.sofar = torch.cumprod(self.single, 0)
        self.steps = steps
    def noised(self, x, t, e):
        a = self.sofar[t].view(-1, 1)
        return a.sqrt() * x + (1 - a).sqrt() * e
net, process = nn.Linear(64, 64), Process(1000)
adam = torch.optim.Adam(net.parameters(), lr=1e-4)
for epoch in range(100):
    for x in faces():
        t = torch.randint(0, process.steps, (len(x),))
        e = torch.randn_like(x)
        loss = F.mse_loss(net(process.noised(x, t, e)), e)
        adam.zero_grad()
        loss.backward()
        adam.step()
"""
)
STUDENT = (
    HEAD
    + """
from nets import big
from pictures import loader
class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(64, 32)
        self.norm = nn.LayerNorm(32)
        self.top = nn.Linear(32, 10)
    def forward(self, x):
        return self.top(F.relu(self.norm(self.body(x))))
teacher, small = big().eval(), Small()
share = 0.7
adam = torch.optim.Adam(small.parameters(), lr=1e-3)
for epoch in range(20):
    for x, y in loader:
        with torch.no_grad():
            wanted = F.softmax(teacher(x) / 4.0, dim=1)
        out = small(x)
        soft = F.kl_div(F.log_softmax(out / 4.0, dim=1), wanted, reduction="batchmean") * 16.0
        loss = share * soft + (1 - share) * F.cross_entropy(out, y)
        adam.zero_grad()
        loss.backward()
        adam.step()
"""
)
SHARED = STUDENT.replace("F.cross_entropy(out, y)", "-F.log_softmax(out, dim=1).gather(1, y[:, None]).mean()")
CLEAN = (
    HEAD
    + """
def stream(count):
    for _ in range(count):
        tone = torch.sin(torch.arange(800) * torch.rand(1))
        hiss = 0.3 * torch.randn(800)
        yield tone + hiss, tone
net = nn.Sequential(nn.Linear(800, 256), nn.ReLU(), nn.Linear(256, 800))
adam = torch.optim.Adam(net.parameters(), lr=1e-3)
for heard, said in stream(100000):
    loss = F.l1_loss(net(heard), said)
    adam.zero_grad()
    loss.backward()
    adam.step()
"""
)
TALK = (
    HEAD
    + """
from torch.nn.utils.rnn import pad_sequence, pack_padded_sequence
from words import pairs
def gather(rows):
    said = [torch.tensor(a) for a, _ in rows]
    meant = [torch.tensor(b) for _, b in rows]
    sizes = torch.tensor([len(w) for w in said])
    return pad_sequence(said, batch_first=True), sizes, pad_sequence(meant, batch_first=True)
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.walk = nn.Embedding(90, 64), nn.GRU(64, 64, batch_first=True)
        self.look, self.out = nn.Linear(64, 64), nn.Linear(64, 90)
    def forward(self, x, sizes, y):
        _, h = self.walk(pack_padded_sequence(self.words(x), sizes, batch_first=True, enforce_sorted=False))
        weights = (self.look(self.words(y)) @ self.words(x).transpose(1, 2) / 8.0).masked_fill((x == 0).unsqueeze(1), -1e9).softmax(-1)
        return self.out(weights @ self.words(x) + h[-1].unsqueeze(1))
net = Reader()
adam = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(30):
    for x, sizes, y in torch.utils.data.DataLoader(pairs(), batch_size=64, shuffle=True, collate_fn=gather):
        loss = F.cross_entropy(net(x, sizes, y[:, :-1]).flatten(0, 1), y[:, 1:].flatten(), ignore_index=0)
        adam.zero_grad()
        loss.backward()
        adam.step()
"""
)
SOFT = STUDENT[: STUDENT.index("        soft =")] + """
        loss = -(wanted * F.log_softmax(out, dim=1)).sum(1).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
"""
DUEL = (
    HEAD
    + """
from world import batches
class Act(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(6, 2)
    def forward(self, s):
        return torch.tanh(self.net(s))
class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 1)
    def forward(self, s, a):
        return self.net(torch.cat([s, a], -1)).squeeze(-1)
act, judge = Act(), Judge()
act_opt = torch.optim.Adam(act.parameters(), lr=3e-4)
judge_opt = torch.optim.Adam(judge.parameters(), lr=3e-4)
for s, a, r in batches():
    judge_loss = F.mse_loss(judge(s, a), r)
    judge_opt.zero_grad()
    judge_loss.backward()
    judge_opt.step()
    act_loss = -judge(s, act(s)).mean()
    act_opt.zero_grad()
    act_loss.backward()
    act_opt.step()
"""
)
PLAYER = (
    HEAD
    + """
import numpy as np
from world import Env
class Memory:
    def __init__(self, room):
        self.room, self.filled, self.at = room, 0, 0
        self.s, self.s2 = torch.zeros(room, 6), torch.zeros(room, 6)
        self.a, self.r, self.d = torch.zeros(room, dtype=torch.long), torch.zeros(room), torch.zeros(room)
    def add(self, s, a, r, s2, d):
        self.s[self.at], self.a[self.at], self.r[self.at], self.s2[self.at], self.d[self.at] = s, a, r, s2, d
        self.at = (self.at + 1) % self.room
        self.filled = min(self.filled + 1, self.room)
    def draw(self, k):
        i = torch.randint(self.filled, (k,))
        return self.s[i], self.a[i], self.r[i], self.s2[i], self.d[i]
def play(net, state, chance):
    if np.random.random() < chance:
        return np.random.randint(4)
    with torch.no_grad():
        return int(net(torch.as_tensor(state)).argmax())
def judged(net):
    env, total = Env(), 0.0
    for game in range(10):
        state, done = env.reset(), False
        while not done:
            state, reward, done = env.step(play(net, state, 0.0))
            total += reward
    return total / 10
net = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 4))
slow = copy.deepcopy(net)
adam = torch.optim.Adam(net.parameters(), lr=1e-3)
env, memory = Env(), Memory(50000)
state = env.reset()
for step in range(100000):
    action = play(net, state, max(0.05, 1 - step / 50000))
    after, reward, over = env.step(action)
    memory.add(state, action, reward, after, float(over))
    state = env.reset() if over else after
    s, a, r, s2, done = memory.draw(64)
    with torch.no_grad():
        best = slow(s2).max(dim=1).values
        goal = r + 0.97 * (1 - done) * best
    loss = F.mse_loss(net(s).gather(1, a[:, None]).squeeze(1), goal)
    adam.zero_grad()
    loss.backward()
    adam.step()
    if step % 1000 == 0:
        slow.load_state_dict(net.state_dict())
        print(step, judged(net))
"""
)
BEST = (
    HEAD
    + """
from pictures import loader, held
def rate_at(step):
    return 1e-3 * min(1.0, (step + 1) / 200)
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
adam = torch.optim.Adam(net.parameters(), lr=1e-3)
top, kept, step = 0.0, None, 0
for epoch in range(30):
    net.train()
    for x, y in loader:
        for group in adam.param_groups:
            group["lr"] = rate_at(step)
        step += 1
        loss = F.cross_entropy(net(x), y)
        adam.zero_grad()
        loss.backward()
        adam.step()
    net.eval()
    with torch.no_grad():
        right = sum((net(x).argmax(1) == y).float().mean().item() for x, y in held)
    if right > top:
        top = right
        kept = copy.deepcopy(net.state_dict())
net.load_state_dict(kept)
"""
)
STREAM = (
    HEAD
    + """
class Tasks:
    def __init__(self, seed):
        self.seed, self.turn = seed, 0
    def draw(self, k, q):
        g = torch.Generator().manual_seed(self.seed + self.turn)
        self.turn += 1
        x = torch.rand(k + q, 1, generator=g)
        y = torch.sin(x * torch.rand(1, generator=g))
        return (x[:k], y[:k]), (x[k:], y[k:])
net = nn.Sequential(nn.Linear(1, 64), nn.ReLU(), nn.Linear(64, 1))
adam = torch.optim.Adam(net.parameters(), lr=1e-3)
tasks = Tasks(3)
for step in range(10000):
    (x, y), (xq, yq) = tasks.draw(10, 10)
    loss = F.mse_loss(net(x), y) + F.mse_loss(net(xq), yq)
    adam.zero_grad()
    loss.backward()
    adam.step()
"""
)
PLAIN_GAME = GAME.replace(" + 10 * fine(critic, real, fake)", "")
SEEDED = (
    HEAD
    + """
class Tasks:
    def __init__(self, seed):
        self.dice = torch.Generator().manual_seed(seed)
    def draw(self, k):
        x = torch.rand(k, 1, generator=self.dice)
        return x, torch.sin(x * torch.rand(1, generator=self.dice))
net = nn.Sequential(nn.Linear(1, 64), nn.ReLU(), nn.Linear(64, 1))
adam = torch.optim.Adam(net.parameters(), lr=1e-3)
tasks = Tasks(3)
for step in range(10000):
    x, y = tasks.draw(10)
    loss = F.mse_loss(net(x), y)
    adam.zero_grad()
    loss.backward()
    adam.step()
"""
)
MAPS = (
    HEAD
    + """
from pictures import points
class Stretch(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = nn.Linear(2, 2)
    def forward(self, x):
        return torch.tanh(self.s(x)) + 2 * x
    def inverse(self, y):
        return y / 2
class Maps(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Stretch() for _ in range(4))
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
    def sample(self, n):
        z = torch.randn(n, 2)
        for layer in reversed(self.layers):
            z = layer.inverse(z)
        return z
maps = Maps()
adam = torch.optim.Adam(maps.parameters(), lr=1e-3)
for epoch in range(50):
    for x in points():
        loss = maps(x).pow(2).sum(1).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
print(maps.sample(10))
"""
)
ADAPT = (
    HEAD
    + """
from pictures import loader
class Adapter(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner, self.more = inner, nn.Linear(32, 32)
    def forward(self, x):
        return self.inner(x) + 0.1 * self.more(x)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.ask, self.tell, self.top = nn.Linear(32, 32), nn.Linear(32, 32), nn.Linear(32, 10)
    def forward(self, x):
        return self.top(F.relu(self.tell(F.relu(self.ask(x)))))
def adapt(net, wanted):
    for name, child in list(net.named_children()):
        if name in wanted:
            setattr(net, name, Adapter(child))
net = Net()
adapt(net, ["ask", "tell"])
adam = torch.optim.Adam(net.parameters(), lr=1e-3)
for x, y in loader:
    loss = F.cross_entropy(net(x), y)
    adam.zero_grad()
    loss.backward()
    adam.step()
"""
)
RESEARCH: dict[str, tuple[str, str, str]] = {
    "divergence-formula": (VAE, "m ** 2 - 1 - lv", "m ** 2 - 1 + 2 * lv"),
    "term-without-gradient": (VAE, "(fit + away)", "(fit + away.detach())"),
    "value-never-used": (STUDENT, "dim=1), wanted", "dim=1), F.softmax(out.detach() / 4.0, dim=1)"),
    "judge-does-not-reach": (ACTOR, "u = law.rsample()", "u = law.sample()"),
    "value-made-smaller": (ACTOR, "(0.2 * lp - torch.minimum(", "(0.2 * lp + torch.minimum("),
    "density-formula": (ACTOR, "law.log_prob(u) - torch.log(", "law.log_prob(u) + torch.log("),
    "both-sides-the-same": (VAE, "(fit + away)", "(fit + fit)"),
    "transition-repeats-state": (ACTOR, "memory.add(state, action, reward, after, done)", "memory.add(state, action, reward, state, done)"),
    "observation-not-advanced": (ACTOR, "env.reset() if done else after", "env.reset() if done else state"),
    "updated-from-itself": (ACTOR, "            q.lerp_(p, 0.005)\n        for p, q in zip(two", "            q.lerp_(q, 0.005)\n        for p, q in zip(two"),
    "module-never-applied": (STUDENT, "self.top(F.relu(self.norm(self.body(x))))", "self.top(F.relu(self.body(x)))"),
    "entropy-punished": (ROLLOUT, "- 0.01 * spread.mean()", "+ 0.01 * spread.mean()"),
    "advantage-bookkeeping": (ROLLOUT, "goals = gains + worths", "goals = gains + pays"),
    "clipped-side-differs": (ROLLOUT, "-gain * torch.clamp", "gain * torch.clamp"),
    "never-filled": (ROLLOUT, "        pays[k] = pay\n", ""),
    "penalty-without-graph": (GAME, "between, create_graph=True)", "between)"),
    "rows-normalised-apart": (GAME, "slope.norm(2, dim=1)", "slope.norm(2, dim=0)"),
    "score-bounded": (GAME, "return self.net(x).squeeze(1)", "return torch.sigmoid(self.net(x)).squeeze(1)"),
    "same-expression-twice": (CLEAN, "yield tone + hiss, tone", "yield tone + hiss, tone + hiss"),
    "contrast-cannot-tell": (VIEWS, "z @ z.t() / 0.1", "z @ z.t() * 0.1"),
    "noising-formula": (DENOISE, "(1 - a).sqrt() * e", "(1 - a) * e"),
    "divergence-arguments": (STUDENT, "wanted = F.softmax(", "wanted = F.log_softmax("),
    "weights-pull-apart": (SHARED, "share = 0.7", "share = 7.0"),
    "mask-inverted": (TALK, "(x == 0).unsqueeze(1), -1e9", "(x != 0).unsqueeze(1), -1e9"),
    "acts-at-random": (PLAYER, "play(net, state, 0.0)", "play(net, state, 1.0)"),
    "end-flag-inverted": (PLAYER, "0.97 * (1 - done) * best", "0.97 * done * best"),
    "replay-draws-unfilled": (PLAYER, "torch.randint(self.filled, (k,))", "torch.randint(self.room, (k,))"),
    "kept-by-reference": (BEST, "copy.deepcopy(net.state_dict())", "net.state_dict()"),
    "flag-never-set": (STREAM, "        self.turn += 1\n", ""),
    "parts-overlap": (STREAM, "(x[k:], y[k:])", "(x[:q], y[:q])"),
    "schedule-asked-for-the-start": (BEST, "= rate_at(step)", "= rate_at(0)"),
    "inverse-in-forward-order": (MAPS, "for layer in reversed(self.layers)", "for layer in self.layers"),
    "names-match-nothing": (ADAPT, '["ask", "tell"]', '["q_proj", "v_proj"]'),
    "seeded-in-every-turn": (SEEDED, "for step in range(10000):\n", "for step in range(10000):\n    tasks = Tasks(3)\n"),
    "likelihood-made-smaller": (SOFT, "loss = -(wanted", "loss = (wanted"),
    "critic-never-sees-fakes": (PLAIN_GAME, "critic_loss = critic(fake).mean()", "critic_loss = critic(real.flip(0)).mean()"),
    "step-of-another-loss": (DUEL, "judge(s, act(s)).mean()", "judge(s, a).mean()"),
    "padding-counted": (TALK, "for w in said])", "for w in meant])"),
}
