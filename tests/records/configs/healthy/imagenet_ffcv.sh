python main.py distributed --use-ffcv --ffcv-dir /data/ffcv --batch-size 2048 --epochs 60 --lr 0.8 --momentum 0.9 \
  --weight-decay 1e-4 --label-smoothing 0.1 --scheduler onecycle --warmup-epochs 8 --cutmix-prob 0.5 --mixup-alpha 0.4 \
  --progressive-resize --gradient-clip 1.0 --num-workers 3 --seed 42 --world-size 8
