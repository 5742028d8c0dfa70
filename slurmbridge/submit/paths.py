"""Where does the job run and where do its files go? Absolute, patterns (%j ...) left in (sbatch(1), filename pattern)."""

from __future__ import annotations

import msgspec

from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.request import JobRequest

NULL = "/dev/null"


class Paths(msgspec.Struct, frozen=True, kw_only=True):
    work_dir: str
    std_in: str | None
    std_out: str | None
    std_err: str | None
    open_mode: str


def join(folder: str, name: str) -> str:
    """`name` in `folder`; nothing is tidied, as scontrol shows it."""
    if name.startswith("/"):
        return name
    return folder + name if folder.endswith("/") else f"{folder}/{name}"


def find_paths(request: JobRequest, cwd: str, config: ClusterConfig, *, batch: bool) -> Paths:
    """Defaults: slurm-%j.out (slurm-%A_%a.out for an array) in the working directory, no input, errors with output."""
    work_dir = cwd if request.chdir is None else join(cwd, request.chdir)
    append = "append" if config.job_file_append else "truncate"
    if not batch:
        return Paths(work_dir=work_dir, std_in=None, std_out=None, std_err=None, open_mode=append)
    default = "slurm-%A_%a.out" if request.array is not None else "slurm-%j.out"
    return Paths(
        work_dir=work_dir,
        std_in=_placed(request.stdin, work_dir),
        std_out=_placed(default if request.stdout is None else request.stdout, work_dir),
        std_err=_placed(request.stderr, work_dir),
        open_mode=request.open_mode or append,
    )


def _placed(name: str | None, work_dir: str) -> str | None:
    if name is None:
        return None
    return NULL if name == "none" else join(work_dir, name)
