#!/bin/bash
#SBATCH --job-name=fractions --output=%x-%j.out
#SBATCH --gres=gpu:2
#BRIDGE --gpu-fraction=0.25
echo "a quarter of each of the devices $CUDA_VISIBLE_DEVICES"
sleep 2
