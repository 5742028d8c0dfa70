"""The folder that a pod has at /opt/slurmbridge: a Python of its own, the supervisor, the Slurm commands."""
