#!/bin/bash
#SBATCH --job-name=plain
#SBATCH --output=%x-%j.out
#SBATCH --cpus-per-task=2 --mem=200M
#SBATCH --time=5
echo "job $SLURM_JOB_ID runs on $SLURM_JOB_NODELIST with $SLURM_CPUS_PER_TASK CPUs in $PWD"
sleep 2
