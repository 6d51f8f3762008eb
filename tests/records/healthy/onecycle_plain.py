import torch
from torchvision.models import resnet18

from cifar import loaders

EPOCHS = 30
train_loader, val_loader = loaders(512)
model = resnet18(num_classes=10).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, epochs=EPOCHS, steps_per_epoch=len(train_loader))
criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
for epoch in range(EPOCHS):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        criterion(model(x.cuda()), y.cuda()).backward()
        optimizer.step()
        scheduler.step()
    model.eval()
    with torch.inference_mode():
        hits = sum((model(x.cuda()).argmax(1) == y.cuda()).sum().item() for x, y in val_loader)
    print(epoch, hits)
