from dataclasses import dataclass, field

@dataclass
class Hyperparameters:
    batch_size : int = 8*64
    device_batch_size : int = 64
    sequence_length : int = 1024
    num_iterations : int = 5100
    learning_rate : float = 0.0036
    warmup_iters : int = 0
    weight_decay : float = 0
    betas: tuple = field(default=(0.9, 0.95))

args = Hyperparameters()
