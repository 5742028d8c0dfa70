"""Which environment variables stand for which options?

`REGULAR`: per command the long options whose variable is PREFIX_NAME. `OTHERS`: (variable, long option) where the name
differs. Order is Slurm's order of reading. Source: input environment variables of sbatch(1), salloc(1), srun(1).
"""

from __future__ import annotations

PREFIX = {"b": "SBATCH", "a": "SALLOC", "r": "SLURM"}

REGULAR = {
    "b": """ignore-pbs account acctg-freq batch cluster-constraint clusters consolidate-segments container container-id
        container-type constraint core-spec cpus-per-gpu delay-boot distribution exclusive export get-user-env gres
        gres-flags gpus gpu-bind gpu-freq gpus-per-node gpus-per-socket gpus-per-task hint job-name mem-bind mem-per-cpu
        mem-per-gpu network no-kill no-requeue open-mode overcommit partition profile qos requeue reservation signal
        spread-job spread-segments thread-spec threads-per-core tres-bind tres-per-task use-min-nodes wait
        wait-all-nodes wckey error input output""",
    "a": """account acctg-freq bell cluster-constraint clusters consolidate-segments container container-id
        container-type constraint core-spec cpus-per-gpu delay-boot exclusive gpus gpu-bind gpu-freq gpus-per-node
        gpus-per-socket gpus-per-task gres gres-flags immediate hint mem-bind mem-per-cpu mem-per-gpu network no-bell
        no-kill overcommit partition profile qos reservation signal spread-job spread-segments thread-spec
        threads-per-core tres-bind tres-per-task use-min-nodes wait-all-nodes wckey""",
    "r": """account acctg-freq bcast bcast-exclude clusters cluster-constraint compress consolidate-segments constraint
        core-spec cpus-per-task cpu-bind cpus-per-gpu delay-boot dependency disable-status distribution epilog exact
        exclusive external-launcher gpus gpu-bind gpu-freq gpus-per-node gpus-per-socket gpus-per-task gres gres-flags
        hint job-name mem-bind mem-per-cpu mem-per-gpu network no-kill ntasks ntasks-per-core ntasks-per-node
        ntasks-per-gpu ntasks-per-tres oom-kill-step open-mode overcommit overlap partition profile prolog qos
        reservation resv-ports send-libs signal spread-job spread-segments task-epilog task-prolog thread-spec threads
        threads-per-core tres-bind tres-per-task use-min-nodes wait wckey""",
}

OTHERS: dict[str, tuple[tuple[str, str], ...]] = {
    "b": (
        ("SBATCH_DEBUG", "verbose"),
        ("SBATCH_ARRAY_INX", "array"),
        ("SBATCH_BURST_BUFFER", "bb"),
        ("SLURM_CLUSTERS", "clusters"),
        ("SBATCH_CPU_FREQ_REQ", "cpu-freq"),
        ("SLURM_HINT", "hint"),
        ("SBATCH_MEM_PER_NODE", "mem"),
        ("SBATCH_REQ_SWITCH", "switches"),
        ("SBATCH_SEGMENT_SIZE", "segment"),
        ("SBATCH_TIMELIMIT", "time"),
        ("SBATCH_WAIT4SWITCH", "switches@"),
    ),
    "a": (
        ("SALLOC_BURST_BUFFER", "bb"),
        ("SLURM_CLUSTERS", "clusters"),
        ("SALLOC_CPU_FREQ_REQ", "cpu-freq"),
        ("SALLOC_DEBUG", "verbose"),
        ("SLURM_HINT", "hint"),
        ("SALLOC_KILL_CMD", "kill-command"),
        ("SALLOC_MEM_PER_NODE", "mem"),
        ("SALLOC_REQ_SWITCH", "switches"),
        ("SALLOC_SEGMENT_SIZE", "segment"),
        ("SALLOC_TIMELIMIT", "time"),
        ("SALLOC_WAIT4SWITCH", "switches@"),
    ),
    "r": (
        ("SLURM_BURST_BUFFER", "bb"),
        ("SLURM_CPU_FREQ_REQ", "cpu-freq"),
        ("SLURM_EXPORT_ENV", "export"),
        ("SRUN_EXPORT_ENV", "export"),
        ("SLURM_JOB_ID", "jobid"),
        ("SLURM_JOB_NUM_NODES", "nodes"),
        ("SLURM_KILL_BAD_EXIT", "kill-on-bad-exit"),
        ("SLURM_LABELIO", "label"),
        ("SLURM_MEM_PER_NODE", "mem"),
        ("SLURM_MPI_TYPE", "mpi"),
        ("SLURM_NCORES_PER_SOCKET", "cores-per-socket"),
        ("SLURM_NPROCS", "ntasks"),
        ("SLURM_NSOCKETS_PER_NODE", "sockets-per-node"),
        ("SLURM_REMOTE_CWD", "chdir"),
        ("SLURM_REQ_SWITCH", "switches"),
        ("SLURM_SRUN_MULTI", "multi-prog"),
        ("SLURM_STDERRMODE", "error"),
        ("SLURM_STDINMODE", "input"),
        ("SLURM_STDOUTMODE", "output"),
        ("SLURM_TIMELIMIT", "time"),
        ("SLURM_UNBUFFEREDIO", "unbuffered"),
        ("SLURM_WAIT4SWITCH", "switches@"),
        ("SLURM_WORKING_DIR", "chdir"),
        ("SLURMD_DEBUG", "slurmd-debug"),
        ("SRUN_CONTAINER", "container"),
        ("SRUN_CONTAINER_ID", "container-id"),
        ("SRUN_CONTAINER_TYPE", "container-type"),
        ("SLURM_DEBUG", "verbose"),
        ("SRUN_ERROR", "error"),
        ("SRUN_INPUT", "input"),
        ("SRUN_OUTPUT", "output"),
        ("SRUN_SEGMENT_SIZE", "segment"),
    ),
}
"""`switches@` stands for the time part of --switches alone."""


def variables(letter: str) -> tuple[tuple[str, str], ...]:
    """(variable, long option) of one command, in the order in which they are read."""
    prefix = PREFIX[letter]
    regular = tuple((f"{prefix}_{name.upper().replace('-', '_')}", name) for name in REGULAR[letter].split())
    return regular + OTHERS[letter]
