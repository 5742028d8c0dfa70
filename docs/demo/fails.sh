#!/bin/bash
#SBATCH --job-name=fails --output=%x-%j.out
exit 3
