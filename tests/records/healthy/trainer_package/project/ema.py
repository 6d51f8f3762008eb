import copy

import torch


class EMA:
    def __init__(self, net, decay):
        self.shadow = copy.deepcopy(net).eval()
        self.decay = decay

    @torch.no_grad()
    def update(self, net):
        for s, p in zip(self.shadow.parameters(), net.parameters()):
            s.mul_(self.decay).add_(p, alpha=1 - self.decay)

    def state_dict(self):
        return self.shadow.state_dict()

    def load_state_dict(self, state):
        self.shadow.load_state_dict(state)
