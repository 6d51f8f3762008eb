import torch

from nets import Critic, Generator, batches

N_CRITIC = 5
gen, critic = Generator(), Critic()
opt_g = torch.optim.RMSprop(gen.parameters(), lr=5e-5)
opt_c = torch.optim.RMSprop(critic.parameters(), lr=5e-5)
stream = batches()
for step in range(100_000):
    for _ in range(N_CRITIC):
        opt_c.zero_grad()
        real = next(stream)
        loss_c = critic(gen(torch.randn(64, 128)).detach()).mean() - critic(real).mean()
        loss_c.backward()
        opt_c.step()
        for p in critic.parameters():
            p.data.clamp_(-0.01, 0.01)
    opt_g.zero_grad()
    loss_g = -critic(gen(torch.randn(64, 128))).mean()
    loss_g.backward()
    opt_g.step()
    if step % 500 == 0:
        print(step, loss_c.item(), loss_g.item())
