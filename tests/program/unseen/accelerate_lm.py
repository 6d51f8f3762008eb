import math
import torch
from accelerate import Accelerator
from datasets import load_dataset
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer, get_cosine_schedule_with_warmup

EPOCHS, LR, BS, ACC, LEN = 3, 2e-5, 4, 8, 512
acc = Accelerator(gradient_accumulation_steps=ACC)
tok = AutoTokenizer.from_pretrained("EleutherAI/pythia-410m")
tok.pad_token = tok.eos_token
lm = AutoModelForCausalLM.from_pretrained("EleutherAI/pythia-410m")
raw = load_dataset("wikitext", "wikitext-2-raw-v1")


def pack(rows):
    enc = tok(rows["text"], truncation=True, max_length=LEN, padding="max_length")
    enc["labels"] = [[t if m else -100 for t, m in zip(i, a)] for i, a in zip(enc["input_ids"], enc["attention_mask"])]
    return enc


data = raw.map(pack, batched=True, remove_columns=["text"])
data.set_format("torch")
train_dl = DataLoader(data["train"], batch_size=BS, shuffle=True)
val_dl = DataLoader(data["validation"], batch_size=BS)
optim = torch.optim.AdamW(lm.parameters(), lr=LR, weight_decay=0.01)
updates = EPOCHS * math.ceil(len(train_dl) / ACC)
sched = get_cosine_schedule_with_warmup(optim, int(0.03 * updates), updates)
lm, optim, train_dl, val_dl, sched = acc.prepare(lm, optim, train_dl, val_dl, sched)
for ep in range(EPOCHS):
    lm.train()
    for b in train_dl:
        with acc.accumulate(lm):
            loss = lm(**b).loss
            acc.backward(loss)
            if acc.sync_gradients:
                acc.clip_grad_norm_(lm.parameters(), 1.0)
            optim.step()
            sched.step()
            optim.zero_grad()
    lm.eval()
    tot = []
    for b in val_dl:
        with torch.no_grad():
            tot.append(acc.gather(lm(**b).loss.repeat(BS)))
    acc.print(f"epoch {ep} ppl {math.exp(torch.cat(tot).mean()):.2f}")
