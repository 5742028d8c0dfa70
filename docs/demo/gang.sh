#!/bin/bash
#SBATCH --job-name=gang --output=%x-%j.out
#SBATCH --nodes=2 --ntasks-per-node=2
scontrol show hostnames "$SLURM_JOB_NODELIST"
srun --label bash -c 'echo "rank $SLURM_PROCID of $SLURM_NTASKS on $SLURMD_NODENAME"'
