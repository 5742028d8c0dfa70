"""What does a Slurm command say when no controller can be reached? Its words and exit code, as Slurm 26.05 has them.

Standard library only: in a job's pod there is nothing else, and `main` is all that a command can do there without a daemon.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

NO_CONTROLLER = "Unable to contact slurm controller (connect failure)"
SILENT = "Socket timed out on send/recv operation"
NO_DATABASE = "Unable to contact the accounting storage: no slurmbridge daemon answers"

LOADS = {  # what `scontrol show KEYWORD` says, by the keyword's beginning
    "job": "slurm_load_jobs error: ",
    "node": "slurm_load_node error: ",
    "partition": "slurm_load_partitions error: ",
    "config": "slurm_load_ctl_conf error:",
    "step": "scontrol: error: scontrol_print_step: slurm_get_job_steps((null)) failed: ",
    "licenses": "slurm_load_license error: ",
    "reservation": "slurm_load_reservations error: ",
}
PREFIXES = {  # command -> (what stands before NO_CONTROLLER, exit code), as Slurm 26.05 prints it
    "sbatch": ("sbatch: error: Batch job submission failed: ", 1),
    "squeue": ("slurm_load_jobs error: ", 1),
    "sinfo": ("slurm_load_partitions: ", 1),
    "sshare": ("Couldn't get shares from controller: ", 255),
    "sprio": ("Couldn't get priority factors from controller: ", 255),
    "srun": ("srun: error: Unable to allocate resources: ", 1),
    "salloc": ("salloc: error: Job submit/allocate failed: ", 1),
}


def unreachable(argv: Sequence[str]) -> tuple[str, str, int]:
    """(stdout, stderr, exit code) of a command that cannot reach the controller."""
    name, words = argv[0], [word for word in argv[1:] if not word.startswith("-")]
    if name == "sbatch" and "--test-only" in argv:
        return "", f"allocation failure: {NO_CONTROLLER}\n", 1
    if name == "scancel":
        jobs = [word for word in words if word.replace("_", "").isdecimal()]
        plain = all(not word.startswith("-") for word in argv[1:])
        if jobs and plain:
            return "", "".join(f"scancel: error: Kill job error on job id {job}: {NO_CONTROLLER}\n" for job in jobs), 8
        return "", f"slurm_load_jobs error: {NO_CONTROLLER}\n", 1
    if name == "scontrol" and words:
        return of_scontrol(words)
    if name in ("sacct", "sacctmgr", "sreport"):
        return "", f"{name}: error: {NO_DATABASE}\n", 1
    prefix, code = PREFIXES.get(name, (f"{name}: error: ", 1))
    return "", f"{prefix}{NO_CONTROLLER}\n", code


def of_scontrol(words: Sequence[str]) -> tuple[str, str, int]:
    verb = words[0].lower()
    if "ping".startswith(verb):
        return f"Slurmctld(primary) at {os.uname().nodename} is DOWN\n", "", 1
    if "show".startswith(verb) and len(words) > 1:
        for keyword, text in LOADS.items():
            if keyword.startswith(words[1].lower().rstrip("s")) or words[1].lower().startswith(keyword):
                return "", f"{text}{NO_CONTROLLER}\n", 1
    return "", f"scontrol: error: {NO_CONTROLLER}\n", 1


def show(argv: Sequence[str], *, silent: bool) -> int:
    """Print it. `silent`: there is a daemon, which answers nobody."""
    out, err, code = unreachable(argv)
    if silent:
        sys.stderr.write((out + err).replace(NO_CONTROLLER, SILENT))
        return code
    sys.stdout.write(out)
    sys.stdout.flush()
    sys.stderr.write(err)
    return code


def main() -> int:
    """argv: mode, path of the thin client, command, arguments. See `cli.local`, which does more where all is installed."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]
    mode, client, argv = sys.argv[1], sys.argv[2], sys.argv[3:]
    if mode == "first":  # it may come back
        os.execv(sys.executable, [sys.executable, "-I", "-S", client, "--retry", *argv])
    return show(argv, silent=mode == "silent")
