import torch


def loaders(batch_size):
    data = torch.utils.data.TensorDataset(torch.randn(512, 8), torch.randint(2, (512,)))
    first, held = torch.utils.data.random_split(data, [448, 64])
    train = torch.utils.data.DataLoader(first, batch_size=batch_size, shuffle=True)
    return train, torch.utils.data.DataLoader(held, batch_size=batch_size)
