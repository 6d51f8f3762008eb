#!/bin/bash
# one node, 8 GPUs, 96 CPUs
torchrun --nproc_per_node=8 train.py /data/imagenet --batch-size 64 --workers 8 --lr 0.025
