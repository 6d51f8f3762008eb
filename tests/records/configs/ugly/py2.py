print "training"
lr = 0.1
opts = dict(a=1, b=[1, 2])
exec "x = 1"
epochs = 10
