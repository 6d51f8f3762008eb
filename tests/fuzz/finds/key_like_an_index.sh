python train.py a.999999999=1 lr=0.1
