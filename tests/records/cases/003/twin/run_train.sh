#!/bin/bash
set -euo pipefail

CONFIG_FILE="config_stable.yaml"
DATAFILE="data/processed_uniref50.pt"   # 10,000 sequences
WANDBPROJ="uniref50_sedd"

python train_uniref50.py \
    --config "$CONFIG_FILE" \
    --datafile "$DATAFILE" \
    --wandb_project "$WANDBPROJ" \
    --device cpu
