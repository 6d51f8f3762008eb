import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from transformers import AutoModelForCausalLM, AutoTokenizer
from datasets import load_dataset
from torch.utils.data import DataLoader

RANK, ALPHA, LR, EPOCHS, MAX_LEN = 8, 16, 2e-4, 3, 256


class LoRALinear(nn.Module):
    def __init__(self, base, r, alpha):
        super().__init__()
        self.base = base
        self.A = nn.Parameter(torch.empty(r, base.in_features))
        self.B = nn.Parameter(torch.zeros(base.out_features, r))
        nn.init.kaiming_uniform_(self.A, a=math.sqrt(5))
        self.scale = alpha / r

    def forward(self, x):
        return self.base(x) + (x @ self.A.T @ self.B.T) * self.scale


tok = AutoTokenizer.from_pretrained("gpt2")
tok.pad_token = tok.eos_token
model = AutoModelForCausalLM.from_pretrained("gpt2-medium")
for p in model.parameters():
    p.requires_grad = False
for block in model.transformer.h:
    block.attn.c_attn = LoRALinear(block.attn.c_attn, RANK, ALPHA)
    block.mlp.c_fc = LoRALinear(block.mlp.c_fc, RANK, ALPHA)
trainable = [p for p in model.parameters() if p.requires_grad]
print("trainable", sum(p.numel() for p in trainable))
optimizer = torch.optim.AdamW(trainable, lr=LR)


def collate(rows):
    enc = tok([r["text"] for r in rows], padding=True, truncation=True, max_length=MAX_LEN, return_tensors="pt")
    labels = enc["input_ids"].clone()
    labels[enc["attention_mask"] == 0] = -100
    return enc["input_ids"], enc["attention_mask"], labels


data = load_dataset("json", data_files="alpaca.json")["train"].train_test_split(0.05, seed=0)
train_dl = DataLoader(data["train"], batch_size=8, shuffle=True, collate_fn=collate)
val_dl = DataLoader(data["test"], batch_size=8, collate_fn=collate)
for epoch in range(EPOCHS):
    model.train()
    for step, (ids, mask, labels) in enumerate(train_dl):
        loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trainable, 1.0)
        optimizer.step()
        if step % 20 == 0:
            print(f"epoch {epoch} step {step} loss {loss.item():.4f}")
    model.eval()
    total = 0.0
    with torch.no_grad():
        for ids, mask, labels in val_dl:
            total += model(input_ids=ids, attention_mask=mask, labels=labels).loss.item()
    print(f"epoch {epoch} val_loss {total / len(val_dl):.4f}")
