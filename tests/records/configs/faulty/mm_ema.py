optim_wrapper = dict(optimizer=dict(type='SGD', lr=0.01))
param_scheduler = [dict(type='MultiStepLR', milestones=[8, 11], end=12)]
train_cfg = dict(max_epochs=12)
custom_hooks = [dict(type='EMAHook', momentum=0.9999)]
