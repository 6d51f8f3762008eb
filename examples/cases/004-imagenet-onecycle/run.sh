#!/bin/bash
# p4d.24xlarge: 8 GPUs, 96 vCPU
python main.py distributed \
  --use-ffcv \
  --batch-size 2048 \
  --epochs 60 \
  --lr 0.8 \
  --warmup-epochs 8 \
  --scheduler onecycle \
  --momentum 0.9 \
  --weight-decay 1e-4 \
  --label-smoothing 0.1 \
  --gradient-clip 1.0 \
  --progressive-resize \
  --use-ema \
  --amp \
  --world-size 8 \
  --num-workers 24
