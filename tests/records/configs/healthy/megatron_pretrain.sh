#!/bin/bash
#SBATCH --nodes=2
GPUS_PER_NODE=8
NNODES=2
WORLD_SIZE=$(($GPUS_PER_NODE*$NNODES))

DISTRIBUTED_ARGS="--nproc_per_node $GPUS_PER_NODE --nnodes $NNODES --node_rank 0"
GPT_ARGS="
    --num-layers 24 \
    --hidden-size 1024 \
    --num-attention-heads 16 \
    --seq-length 1024 \
    --micro-batch-size 4 \
    --global-batch-size 256 \
    --lr 0.00015 \
    --train-iters 500000 \
    --lr-decay-iters 320000 \
    --lr-decay-style cosine \
    --min-lr 1.0e-5 \
    --weight-decay 1e-2 \
    --lr-warmup-fraction .01 \
    --clip-grad 1.0 \
    --fp16
"
OUTPUT_ARGS=(--log-interval 100 --save-interval 10000 --eval-interval 1000)

torchrun $DISTRIBUTED_ARGS pretrain_gpt.py \
    $GPT_ARGS "${OUTPUT_ARGS[@]}" \
    --tensor-model-parallel-size 2 --distributed-backend nccl
