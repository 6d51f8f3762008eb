#!/bin/bash
# 8x A100, p4d.24xlarge (96 vCPUs)

BATCH_SIZE=2048   # 256 per GPU
EPOCHS=60
LR=0.8            # 0.1 x (2048 / 256)

python main.py distributed \
  --use-ffcv \
  --ffcv-dir /data/ffcv \
  --batch-size $BATCH_SIZE \
  --epochs $EPOCHS \
  --lr $LR \
  --warmup-epochs 8 \
  --scheduler onecycle \
  --momentum 0.9 \
  --weight-decay 1e-4 \
  --label-smoothing 0.1 \
  --gradient-clip 1.0 \
  --progressive-resize \
  --use-ema \
  --amp \
  --checkpoint-interval 5 \
  --no-auto-resume \
  --target-accuracy 78 \
  --num-workers 3
