"""The client behind every Slurm command: standard library only, almost no imports."""
