torchrun --standalone --nproc_per_node=4 train.py config/finetune.py --init_from=gpt2 --batch_size=8 --block_size=512 \
  --gradient_accumulation_steps=32 --learning_rate=3e-5 --decay_lr=False --max_iters=2000 --eval_iters=40 \
  --always_save_checkpoint=False --dtype=float16 --grad_clip=0.0
