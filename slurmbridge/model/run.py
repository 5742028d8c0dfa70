"""What is told to where runs happen (`runtime.protocol`): a run's key, its nodes, and all that its supervisors need."""

from __future__ import annotations

import msgspec

from slurmbridge.model.pods import ContainerWish


class RunKey(msgspec.Struct, frozen=True):
    job_id: int
    restarts: int


class LaunchNode(msgspec.Struct, frozen=True, kw_only=True):
    """One rank of a run."""

    rank: int
    node: str
    cpus: int
    cpu_ids: tuple[int, ...] = ()
    memory_mib: int = 0
    tasks: int = 1
    devices: tuple[tuple[int, int, int], ...] = ()  # (index, milli, mib)
    device_files: tuple[str, ...] = ()
    device_resources: tuple[str, ...] = ()  # by which pods ask for each; empty: the cluster's usual one
    topology: tuple[str, str] = ("", "")  # address and pattern; empty: the node's name


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """All that the supervisors of a run need; times in seconds from the start on the supervisor's boot clock."""

    key: RunKey
    uid: int
    gid: int
    groups: tuple[int, ...]
    user: str
    group: str = ""
    home: str
    shell: str
    nodes: tuple[LaunchNode, ...]
    script: bytes | None  # None: no batch script (salloc, srun)
    script_args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()  # complete environment of the batch script (manifest.environment)
    base_env: tuple[tuple[str, str], ...] = ()  # SLURM_* of the job for steps of foreign srun callers
    login_env: bool = False  # --export=NONE/list, --get-user-env: add the user's login environment first
    work_dir: str
    umask: int
    std_in: str  # absolute patterns, %-letters not yet replaced
    std_out: str
    std_err: str  # empty: with stdout
    append: bool
    pattern_values: tuple[tuple[str, str], ...]  # letter -> value: j A a x u J ...; N n t s are the supervisor's
    rlimits: tuple[tuple[str, int, int], ...] = ()
    time_limit_s: int | None = None
    kill_wait_s: int = 30
    over_time_s: int = 0
    signal: tuple[int, int, bool] | None = None  # (number, seconds before the end, batch shell only)
    kill_on_bad_exit: bool = False
    wait_time_s: int = 0
    task_prolog: str = ""  # programs of the site around each task
    task_epilog: str = ""
    mpi_default: str = "none"
    max_tasks_per_node: int = 512  # of a step
    max_steps: int = 40_000
    node_cpus: tuple[tuple[str, int], ...] = ()
    # of runs that are pods
    epoch: str = ""  # of this start: tells its pods from those of an earlier life of the same job and restart
    partition: str = ""
    job_name: str = ""
    account: str = ""
    comment: str = ""
    container: ContainerWish = ContainerWish()
