#!/bin/bash
# Launch the prior training in a tmux session.

tmux kill-session -t prior_training 2>/dev/null
tmux new-session -d -s prior_training

LEARNING_RATE="1e-4"        # Higher rate for large batches
BATCH_SIZE="4"              # Safe for the large model
GRAD_ACCUM="16"             # Effective batch = 64
MODEL_CHANNELS="320"
NUM_BLOCKS="8"
MAX_STEPS="450000"

STABLE_CHECKPOINT=""
if [ -f "results/prior/interrupted_checkpoint.pth" ]; then
    STABLE_CHECKPOINT="--resume_checkpoint results/prior/interrupted_checkpoint.pth"
    echo "Resuming from interrupted checkpoint"
fi

echo "  Batch Strategy: ${BATCH_SIZE} physical x ${GRAD_ACCUM} accumulation = $((BATCH_SIZE * GRAD_ACCUM)) effective"

tmux send-keys -t prior_training "
source .venv/bin/activate && \\
python train_prior.py \\
    --data_root /data/prior_clean \\
    --max_steps ${MAX_STEPS} \\
    --batch_size ${BATCH_SIZE} \\
    --gradient_accumulation_steps ${GRAD_ACCUM} \\
    --learning_rate $LEARNING_RATE \\
    --model_channels ${MODEL_CHANNELS} \\
    --num_blocks ${NUM_BLOCKS} \\
    --mixed_precision \\
    --num_workers 8 \\
    --seed 42 \\
    $STABLE_CHECKPOINT
" C-m
