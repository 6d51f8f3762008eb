import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
import torchvision
from torchvision import transforms

T, ALPHA, EPOCHS = 4.0, 0.7, 100
stats = ((0.4914, 0.4822, 0.4465), (0.247, 0.243, 0.261))
train_tf = transforms.Compose([transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(), transforms.ToTensor(), transforms.Normalize(*stats)])
test_tf = transforms.Compose([transforms.ToTensor(), transforms.Normalize(*stats)])
train_set = torchvision.datasets.CIFAR10("data", train=True, transform=train_tf)
test_set = torchvision.datasets.CIFAR10("data", train=False, transform=test_tf)
train_loader = DataLoader(train_set, 128, shuffle=True)
test_loader = DataLoader(test_set, 512)
teacher = torchvision.models.resnet50(num_classes=10).cuda()
teacher.load_state_dict(torch.load("teacher.pt"))
teacher.eval()
student = torchvision.models.resnet18(num_classes=10).cuda()
optimizer = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)
for epoch in range(EPOCHS):
    student.train()
    for x, y in train_loader:
        x, y = x.cuda(), y.cuda()
        with torch.no_grad():
            t_logits = teacher(x)
        s_logits = student(x)
        soft = F.kl_div(F.log_softmax(s_logits / T, dim=1), F.softmax(t_logits / T, dim=1), reduction="batchmean") * T * T
        hard = F.cross_entropy(s_logits, y)
        loss = ALPHA * soft + (1 - ALPHA) * hard
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    student.eval()
    correct = 0
    with torch.no_grad():
        for x, y in test_loader:
            correct += (student(x.cuda()).argmax(1).cpu() == y).sum().item()
    print(f"epoch {epoch} loss {loss.item():.4f} acc {correct / len(test_set):.4f}")
