#!/bin/bash
LEARNING_RATE=1e-4
BATCH_SIZE=4
GRAD_ACCUM=16
MAX_STEPS=450000
MIXED_PRECISION_FLAG="--mixed_precision true"
OUT=results/prior
mkdir -p "$OUT"
echo "Effective batch size: $((BATCH_SIZE * GRAD_ACCUM))"
python -u train_prior.py \
    --data_root data/tiles \
    --max_steps $MAX_STEPS \
    --batch_size $BATCH_SIZE \
    --learning_rate $LEARNING_RATE \
    --gradient_accumulation_steps $GRAD_ACCUM \
    $MIXED_PRECISION_FLAG \
    --output_dir "$OUT" > "$OUT/train.log" 2>&1
