"""`slurmbridge bench daemon`: speed of the commands and the daemon, as ratios to baselines of the same run."""
