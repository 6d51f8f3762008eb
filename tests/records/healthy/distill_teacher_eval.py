"""A frozen teacher stays in eval mode; the student trains."""
import torch
import torch.nn.functional as F

from nets import student_net, teacher_net, train_loader, val_loader

T, ALPHA = 4.0, 0.7
student, teacher = student_net(), teacher_net()
teacher.eval()
optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [60, 120, 160], gamma=0.2)
for epoch in range(200):
    student.train()
    for x, y in train_loader:
        with torch.no_grad():
            soft = teacher(x)
        logits = student(x)
        kd = F.kl_div(F.log_softmax(logits / T, 1), F.softmax(soft / T, 1), reduction="batchmean") * T * T
        loss = ALPHA * kd + (1 - ALPHA) * F.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    student.eval()
    with torch.no_grad():
        print(epoch, sum((student(x).argmax(1) == y).sum().item() for x, y in val_loader))
