#!/usr/bin/env bash
set -euo pipefail
export WANDB_MODE=offline
MODEL=${MODEL:-meta/llama-7b}
LR=2e-5          # peak
BS=2
ACC=16

accelerate launch --num_processes 8 --mixed_precision bf16 train_sft.py \
  --model_name_or_path "$MODEL" \
  --per_device_train_batch_size $BS --gradient_accumulation_steps ${ACC} \
  --learning_rate $LR --lr_scheduler_type cosine --warmup_ratio 0.03 \
  --num_train_epochs 3 --logging_steps 1 --save_steps 500 \
  --output_dir "runs/sft_${LR}"  2>&1 | tee log.txt
