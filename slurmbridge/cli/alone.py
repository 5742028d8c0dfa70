"""A Slurm command without a daemon: by all that is installed or, in a job's pod, by the words of an unreachable controller."""

try:
    from slurmbridge.cli.local import main
except ModuleNotFoundError as absent:
    if absent.name != "slurmbridge.cli.local":  # a pod has none; with one, it is the installation that is broken
        raise
    from slurmbridge.cli.unreachable import main

__all__ = ["main"]
