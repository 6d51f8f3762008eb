torchrun --standalone --nproc_per_node=8 train.py --outdir=runs --data=ffhq-64x64.zip --cond=0 --arch=ddpmpp \
  --batch=256 --cres=1,2,2,2 --lr=2e-4 --dropout=0.05 --augment=0.15 --precond=edm --duration=200 --ls=1
