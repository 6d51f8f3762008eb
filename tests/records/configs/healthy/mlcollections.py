import ml_collections


def get_config():
    config = ml_collections.ConfigDict()
    config.seed = 42
    config.training = training = ml_collections.ConfigDict()
    config.training.batch_size = 128
    config.training.n_iters = 1300001
    config.optim = ml_collections.ConfigDict()
    config.optim.lr = 2e-4
    config.optim.warmup = 5000
    config.optim.grad_clip = 1.
    config.model = ml_collections.ConfigDict()
    config.model.ema_rate = 0.9999
    return config
