#!/bin/bash
#SBATCH --job-name=after --output=%x-%j.out
echo "the array has ended: $(cat array-*.out | grep -c '^task')"
