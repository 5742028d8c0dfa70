#!/bin/bash
#SBATCH -J array
#SBATCH -o %x-%A_%a.out
#SBATCH --array=1-4%2
echo "task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT: $((SLURM_ARRAY_TASK_ID ** 2))"
