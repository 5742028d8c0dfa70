"""A Slurm command without a daemon: by all that is installed or, in a job's pod, by the words of an unreachable controller."""

try:
    from slurmbridge.cli.local import main
except ModuleNotFoundError:  # a pod has the standard library and what needs no more
    from slurmbridge.cli.unreachable import main

__all__ = ["main"]
