_base_ = ['../_base_/default_runtime.py']
max_epochs = 36
base_lr = 0.004
interval = 4
train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=max_epochs, val_interval=interval)
optim_wrapper = dict(
    type='AmpOptimWrapper',
    optimizer=dict(type='AdamW', lr=base_lr, weight_decay=0.05),
    clip_grad=dict(max_norm=35, norm_type=2),
    accumulative_counts=2)
param_scheduler = [
    dict(type='LinearLR', start_factor=1.0e-5, by_epoch=False, begin=0, end=1000),
    dict(type='CosineAnnealingLR', eta_min=base_lr * 0.05, begin=max_epochs // 2, end=max_epochs,
         T_max=max_epochs // 2, by_epoch=True, convert_to_iter_based=True),
]
train_dataloader = dict(batch_size=32, num_workers=10, dataset=dict(type='CocoDataset'))
val_dataloader = dict(batch_size=5)
default_hooks = dict(checkpoint=dict(interval=interval, max_keep_ckpts=3), logger=dict(type='LoggerHook', interval=50))
custom_hooks = [dict(type='EMAHook', ema_type='ExpMomentumEMA', momentum=0.0002, update_buffers=True, priority=49)]
model = dict(type='RTMDet', bbox_head=dict(type='RTMDetSepBNHead', num_classes=80))
load_from = None
randomness = dict(seed=21)
