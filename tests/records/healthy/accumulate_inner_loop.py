"""Accumulation as an inner loop over micro-batches."""
import click
import torch

from gpt import GPT, get_batch


@click.command()
@click.option("--lr", default=6e-4)
@click.option("--micro-steps", "micro_steps", default=4)
@click.option("--max-iters", default=1000)
@click.option("--clip", default=1.0)
def main(lr, micro_steps, max_iters, clip):
    model = GPT().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.95))
    for step in range(max_iters):
        for _ in range(micro_steps):
            x, y = get_batch("train")
            _, loss = model(x, y)
            (loss / micro_steps).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 100 == 0:
            click.echo(f"{step}: {loss.item()}")


if __name__ == "__main__":
    main()
