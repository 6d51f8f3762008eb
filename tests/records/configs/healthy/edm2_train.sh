torchrun --standalone --nproc_per_node=8 train_edm2.py \
    --outdir=training-runs/00000-edm2-img512-xs --data=datasets/img512-sd.zip \
    --preset=edm2-img512-xs --batch-gpu=32 --duration=2Gi --batch=2048 --lr=0.012 --P_mean=-0.4 --P_std=1.0
