for lr in 1e-3 1e-4; do
  if [ "$lr" = 1e-3 ]; then WD=0.1; fi
  CUDA_VISIBLE_DEVICES=0 python train.py --lr $lr --wd ${WD} --name run_$lr "$@" <<EOF
not --an option
EOF
done
