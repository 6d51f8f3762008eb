"""Plain tensors and torch.autograd.grad; no optimizer object."""
import torch

w = torch.randn(10, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
lr = 0.1
for step in range(200):
    x = torch.randn(64, 10)
    y = x.sum(1)
    loss = ((x @ w + b - y) ** 2).mean()
    grads = torch.autograd.grad(loss, (w, b))
    with torch.no_grad():
        for p, g in zip((w, b), grads):
            p -= lr * g
    if step % 50 == 0:
        print(step, loss.item())
