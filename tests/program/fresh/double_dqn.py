import torch, random
import numpy as np
import gymnasium as gym


class QFunction(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.l1 = torch.nn.Linear(inputs, 64)
        self.l2 = torch.nn.Linear(64, outputs)

    def forward(self, o):
        return self.l2(torch.relu(self.l1(o)))


class Memory:
    def __init__(self, size):
        self.size, self.rows = size, []

    def push(self, *row):
        self.rows.append(row)
        if len(self.rows) > self.size:
            self.rows.pop(0)

    def draw(self, n):
        return [torch.as_tensor(np.stack(c), dtype=torch.float32) for c in zip(*random.sample(self.rows, n))]


def run(total=50_000, discount=0.98, batch=32):
    world = gym.make("Acrobot-v1")
    q, q_old = QFunction(6, 3), QFunction(6, 3)
    q_old.load_state_dict(q.state_dict())
    sgd = torch.optim.Adam(q.parameters(), 1e-3)
    mem = Memory(20_000)
    o, _ = world.reset()
    for t in range(total):
        greed = min(1.0, t / 10_000)
        if random.random() > greed:
            a = world.action_space.sample()
        else:
            with torch.no_grad():
                a = int(q(torch.as_tensor(o)).argmax())
        o2, r, end, cut, _ = world.step(a)
        mem.push(o, a, r, o2, end)
        o = world.reset()[0] if end or cut else o2
        if t < 1000:
            continue
        bo, ba, br, bo2, bend = mem.draw(batch)
        now = q(bo).gather(1, ba.long()[:, None])[:, 0]
        with torch.no_grad():
            best = q(bo2).argmax(1, keepdim=True)
            goal = br + discount * (1 - bend) * q_old(bo2).gather(1, best)[:, 0]
        loss = ((now - goal) ** 2).mean()
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        if t % 250 == 0:
            q_old.load_state_dict(q.state_dict())
            print("t", t, "td", loss.item())


run()
