import argparse

import torch
from transformers import AutoModelForCausalLM, get_cosine_schedule_with_warmup

from mylib import token_loader

parser = argparse.ArgumentParser()
parser.add_argument("--grad_accum", type=int, default=8)
parser.add_argument("--lr", type=float, default=2e-5)
parser.add_argument("--warmup_steps", type=int, default=100)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--max_grad_norm", type=float, default=1.0)
args = parser.parse_args()

model = AutoModelForCausalLM.from_pretrained("gpt2").cuda()
loader = token_loader()
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
total_updates = args.epochs * (len(loader) // args.grad_accum)
scheduler = get_cosine_schedule_with_warmup(optimizer, args.warmup_steps, total_updates)

model.train()
optimizer.zero_grad()
for epoch in range(args.epochs):
    for i, batch in enumerate(loader):
        loss = model(**batch).loss / args.grad_accum
        loss.backward()
        if (i + 1) % args.grad_accum == 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.max_grad_norm)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    print(f"epoch {epoch} effective batch {args.grad_accum * loader.batch_size}")
