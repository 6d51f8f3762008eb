model = dict(type='FasterRCNN', backbone=dict(type='ResNet', depth=50))
data = dict(samples_per_gpu=2, workers_per_gpu=2)
optimizer = dict(type='SGD', lr=0.02, momentum=0.9, weight_decay=0.0001)
optimizer_config = dict(grad_clip=None)
lr_config = dict(policy='step', warmup='linear', warmup_iters=500, warmup_ratio=0.001, step=[8, 11])
runner = dict(type='EpochBasedRunner', max_epochs=12)
checkpoint_config = dict(interval=1)
evaluation = dict(interval=1, metric='bbox')
log_config = dict(interval=50, hooks=[dict(type='TextLoggerHook')])
fp16 = dict(loss_scale=512.)
dist_params = dict(backend='nccl')
load_from = None
resume_from = None
workflow = [('train', 1)]
