"""slurmbridge: Slurm's commands and scripts on Kubernetes, or on virtual nodes of one machine."""

SLURM_VERSION = "26.05.5"
"""The Slurm release whose behaviour and wording the commands follow."""
