import math
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from minigpt import GPT, TokenSet

class LoRALinear(nn.Module):
    def __init__(self, base, r=8, alpha=16):
        super().__init__()
        self.base = base
        self.A = nn.Parameter(torch.empty(r, base.in_features))
        self.B = nn.Parameter(torch.zeros(base.out_features, r))
        nn.init.kaiming_uniform_(self.A, a=math.sqrt(5))
        self.scale = alpha / r

    def forward(self, x):
        return self.base(x) + self.scale * F.linear(F.linear(x, self.A), self.B)

def add_adapters(model):
    for p in model.parameters():
        p.requires_grad = False
    for block in model.blocks:
        block.attn.q = LoRALinear(block.attn.q)
        block.attn.v = LoRALinear(block.attn.v)

def main():
    model = GPT.from_pretrained("gpt-mini")
    add_adapters(model)
    trainable = [p for p in model.parameters() if p.requires_grad]
    opt = torch.optim.AdamW(trainable, lr=1e-4, weight_decay=0.0)
    train_loader = DataLoader(TokenSet("train.bin"), batch_size=16, shuffle=True)
    val_loader = DataLoader(TokenSet("val.bin"), batch_size=16)
    for epoch in range(3):
        model.train()
        for step, tokens in enumerate(train_loader):
            logits = model(tokens[:, :-1])
            loss = F.cross_entropy(logits.reshape(-1, logits.size(-1)), tokens[:, 1:].reshape(-1), ignore_index=0)
            loss.backward()
            opt.step()
            opt.zero_grad(set_to_none=True)
            if step % 20 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}")
        model.eval()
        with torch.no_grad():
            losses = [F.cross_entropy(model(t[:, :-1]).flatten(0, 1), t[:, 1:].flatten(), ignore_index=0).item() for t in val_loader]
        print(f"epoch {epoch} val_loss {sum(losses) / len(losses):.4f}")

main()
