import torch
import typer

from regress import Table

app = typer.Typer()


@app.command()
def train(lr: float = 0.01, epochs: int = 20, batch: int = 32, weight_decay: float = 0.0, seed: int = 0):
    torch.manual_seed(seed)
    model = torch.nn.Linear(8, 1)
    opt = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=weight_decay)
    for _ in range(epochs):
        for x, y in Table().batches(batch):
            opt.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            opt.step()
    typer.echo(loss.item())


if __name__ == "__main__":
    app()
