#!/bin/bash
# Launches the denoising prior of case 000 on one GPU.
MIXED_PRECISION_FLAG="--mixed_precision"
LEARNING_RATE="1e-4"
BATCH_SIZE="4"
GRAD_ACCUM="16"
MODEL_CHANNELS="320"
NUM_BLOCKS="8"
MAX_STEPS="450000"

python train_unified_prior_clean.py \
    --data_root data/prior_clean \
    --max_steps "$MAX_STEPS" \
    --batch_size "$BATCH_SIZE" \
    --learning_rate "$LEARNING_RATE" \
    --gradient_accumulation_steps "$GRAD_ACCUM" \
    --model_channels "$MODEL_CHANNELS" \
    --num_blocks "$NUM_BLOCKS" \
    --resume_checkpoint results/prior_clean/checkpoint_step_0025000.pth \
    $MIXED_PRECISION_FLAG
