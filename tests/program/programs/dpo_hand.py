import copy

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM

from prefs import PairDataset, collate

BETA = 0.1
policy = AutoModelForCausalLM.from_pretrained("sft-checkpoint")
ref = copy.deepcopy(policy)
ref.eval()
for p in ref.parameters():
    p.requires_grad_(False)
optim = torch.optim.AdamW(policy.parameters(), lr=5e-7, weight_decay=0.0)
train = DataLoader(PairDataset("train.jsonl"), batch_size=8, shuffle=True, collate_fn=collate)
held = DataLoader(PairDataset("val.jsonl"), batch_size=8, collate_fn=collate)


def seq_logp(model, ids, mask):
    logits = model(ids).logits[:, :-1]
    labels = ids[:, 1:]
    logp = torch.gather(F.log_softmax(logits, dim=-1), 2, labels.unsqueeze(-1)).squeeze(-1)
    return (logp * mask[:, 1:]).sum(-1)


def dpo_loss(batch):
    pi_c = seq_logp(policy, batch["chosen"], batch["chosen_mask"])
    pi_r = seq_logp(policy, batch["rejected"], batch["rejected_mask"])
    with torch.no_grad():
        ref_c = seq_logp(ref, batch["chosen"], batch["chosen_mask"])
        ref_r = seq_logp(ref, batch["rejected"], batch["rejected_mask"])
    margin = (pi_c - pi_r) - (ref_c - ref_r)
    return -F.logsigmoid(BETA * margin).mean(), (margin > 0).float().mean()


for epoch in range(1):
    policy.train()
    for i, batch in enumerate(train):
        loss, acc = dpo_loss(batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optim.step()
        optim.zero_grad(set_to_none=True)
        print(i, loss.item(), acc.item())
    policy.eval()
    with torch.no_grad():
        scores = [dpo_loss(b)[1].item() for b in held]
    print("val accuracy", sum(scores) / len(scores))
