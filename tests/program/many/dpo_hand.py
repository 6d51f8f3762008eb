import copy
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer
from prefs import PreferenceSet, collate

def sequence_logp(model, ids, mask):
    logits = model(input_ids=ids).logits[:, :-1]
    logp = logits.log_softmax(-1).gather(-1, ids[:, 1:, None]).squeeze(-1)
    return (logp * mask[:, 1:]).sum(-1)

def main(beta=0.1, epochs=1):
    policy = AutoModelForCausalLM.from_pretrained("gpt2")
    reference = copy.deepcopy(policy)
    reference.eval()
    for p in reference.parameters():
        p.requires_grad_(False)
    opt = torch.optim.AdamW(policy.parameters(), lr=5e-7)
    loader = DataLoader(PreferenceSet("hh"), batch_size=8, shuffle=True, collate_fn=collate)
    for epoch in range(epochs):
        for step, batch in enumerate(loader):
            chosen = sequence_logp(policy, batch["chosen"], batch["chosen_mask"])
            rejected = sequence_logp(policy, batch["rejected"], batch["rejected_mask"])
            with torch.no_grad():
                ref_chosen = sequence_logp(reference, batch["chosen"], batch["chosen_mask"])
                ref_rejected = sequence_logp(reference, batch["rejected"], batch["rejected_mask"])
            margin = beta * ((chosen - ref_chosen) - (rejected - ref_rejected))
            loss = -F.logsigmoid(margin).mean()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
            print({"step": step, "loss": loss.item(), "acc": (margin > 0).float().mean().item()})

main()
