import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision.models as models
from torch.utils.data import DataLoader
from data_pipe import make_sets

TEMP, ALPHA = 4.0, 0.7

def kd_loss(student_logits, teacher_logits, labels):
    soft = F.kl_div(F.log_softmax(student_logits / TEMP, dim=1), F.softmax(teacher_logits / TEMP, dim=1), reduction="batchmean") * TEMP * TEMP
    hard = F.cross_entropy(student_logits, labels)
    return ALPHA * soft + (1 - ALPHA) * hard

def train(student, teacher, loader, opt, device):
    student.train()
    teacher.eval()
    running = 0.0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        with torch.no_grad():
            t_out = teacher(x)
        s_out = student(x)
        loss = kd_loss(s_out, t_out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        running += loss.item()
    return running / len(loader)

@torch.no_grad()
def accuracy(net, loader, device):
    net.eval()
    hits = count = 0
    for x, y in loader:
        hits += (net(x.to(device)).argmax(1).cpu() == y).sum().item()
        count += y.size(0)
    return hits / count

if __name__ == "__main__":
    device = "cuda"
    train_set, test_set = make_sets()
    train_loader = DataLoader(train_set, 128, shuffle=True, num_workers=4)
    test_loader = DataLoader(test_set, 256, num_workers=4)
    teacher = models.resnet50(num_classes=100).to(device)
    teacher.load_state_dict(torch.load("teacher.pt"))
    student = models.resnet18(num_classes=100).to(device)
    opt = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, nesterov=True)
    sched = torch.optim.lr_scheduler.MultiStepLR(opt, milestones=[60, 80], gamma=0.1)
    for epoch in range(100):
        loss = train(student, teacher, train_loader, opt, device)
        sched.step()
        print(f"Epoch [{epoch}/100] loss={loss:.4f} acc={accuracy(student, test_loader, device):.4f}")
