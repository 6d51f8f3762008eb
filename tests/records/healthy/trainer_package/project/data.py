import torch


def loaders(batch_size):
    data = torch.utils.data.TensorDataset(torch.randn(512, 8), torch.randint(2, (512,)))
    train = torch.utils.data.DataLoader(data, batch_size=batch_size, shuffle=True)
    return train, torch.utils.data.DataLoader(data, batch_size=batch_size)
