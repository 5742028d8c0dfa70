#!/bin/bash
#SBATCH --job-name=fraction --output=%x-%j.out
#SBATCH --gres=gpu:0.5
echo "half of device $CUDA_VISIBLE_DEVICES"
sleep 2
