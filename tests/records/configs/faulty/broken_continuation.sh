python train.py --lr 0.1 \ 
  --batch-size 64
