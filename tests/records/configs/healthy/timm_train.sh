torchrun --nproc_per_node=4 train.py /data/imagenet --model resnet50 --sched multistep --decay-milestones 30 60 80 \
  --decay-rate 0.1 --epochs 90 --lr 0.5 --warmup-epochs 5 --opt sgd --momentum 0.9 --weight-decay 5e-5 -b 256 \
  --amp --checkpoint-hist 2 --reprob 0.2 --aug-splits 0 --lr-cycle-limit 1 --model-ema --model-ema-decay 0.9998 --recovery-interval 0
