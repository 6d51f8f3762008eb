import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

from shapes import ShapeBoxes

S, C = 8, 3


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        chans = [3, 32, 64, 128]
        self.body = nn.Sequential(*[nn.Sequential(nn.Conv2d(i, o, 3, 2, 1), nn.BatchNorm2d(o), nn.ReLU()) for i, o in zip(chans, chans[1:])])
        self.obj, self.cls, self.box = nn.Conv2d(128, 1, 1), nn.Conv2d(128, C, 1), nn.Conv2d(128, 4, 1)

    def forward(self, x):
        h = self.body(x)
        return self.obj(h).squeeze(1), self.cls(h), self.box(h).sigmoid()


def losses(out, obj_t, cls_t, box_t):
    obj, cls, box = out
    pos = obj_t > 0.5
    l_obj = F.binary_cross_entropy_with_logits(obj, obj_t, pos_weight=torch.tensor(5.0))
    l_cls = F.cross_entropy(cls.permute(0, 2, 3, 1)[pos], cls_t[pos])
    l_box = F.l1_loss(box.permute(0, 2, 3, 1)[pos], box_t[pos])
    return l_obj + l_cls + 5.0 * l_box, l_obj, l_cls, l_box


train_dl = DataLoader(ShapeBoxes("train", S), 32, shuffle=True)
val_dl = DataLoader(ShapeBoxes("val", S), 64)
model = Detector()
opts = [torch.optim.AdamW(model.body.parameters(), lr=5e-4), torch.optim.AdamW([*model.obj.parameters(), *model.cls.parameters(), *model.box.parameters()], lr=1e-3)]
for epoch in range(50):
    model.train()
    for x, obj_t, cls_t, box_t in train_dl:
        total, l_obj, l_cls, l_box = losses(model(x), obj_t, cls_t, box_t)
        for o in opts:
            o.zero_grad()
        total.backward()
        for o in opts:
            o.step()
    model.eval()
    val = 0.0
    with torch.no_grad():
        for x, obj_t, cls_t, box_t in val_dl:
            val += losses(model(x), obj_t, cls_t, box_t)[0].item()
    print(f"{epoch} obj {l_obj.item():.3f} cls {l_cls.item():.3f} box {l_box.item():.3f} val {val / len(val_dl):.3f}")
