import torch
from lightning.fabric import Fabric

from net import Net, loader_of


def main(lr=1e-3, accumulate=4, epochs=2):
    fabric = Fabric(devices=2, precision="16-mixed")
    fabric.launch()
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    model, optimizer = fabric.setup(model, optimizer)
    loader = fabric.setup_dataloaders(loader_of())
    for _ in range(epochs):
        for i, (x, y) in enumerate(loader):
            accumulating = (i + 1) % accumulate != 0
            with fabric.no_backward_sync(model, enabled=accumulating):
                loss = torch.nn.functional.mse_loss(model(x), y)
                fabric.backward(loss / accumulate)
            if not accumulating:
                fabric.clip_gradients(model, optimizer, max_norm=1.0)
                optimizer.step()
                optimizer.zero_grad()


if __name__ == "__main__":
    main()
