"""The environment of a batch script is what a real Slurm gave it."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest

from slurmbridge.manifest.environment import batch_env, fold, wants_login
from slurmbridge.manifest.launch import UserEntry, build_launch, pattern_values
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.job import Allocation, DeviceShare, Job, JobSpec, NodeShare
from slurmbridge.model.request import Exclusive, GresRequest, GresTerm, JobRequest, Memory, MemoryPer, Signal

GOLDEN: dict[str, Any] = json.loads((pathlib.Path(__file__).parent / "golden/batch_env.json").read_text())
CONFIG = ClusterConfig(cluster_name="oracle", kill_wait=5)
ALICE = UserEntry(name="alice", home="/home/alice", shell="/bin/bash")
PER_CPU = Memory(MemoryPer.CPU, 100)


def spec(**changes: Any) -> JobSpec:
    values: dict[str, Any] = {
        "request": JobRequest(), "uid": 1001, "gid": 1001, "user": "alice", "group": "alice", "account": "physics",
        "partitions": ("debug",), "name": "job.sh", "work_dir": "/home/alice/w", "submit_host": "ctl", "memory": PER_CPU,
    }  # fmt: skip
    values.update(changes)
    return JobSpec(**values)


def share(node: str, cpus: int, tasks: int = 1, gpus: int = 0) -> NodeShare:
    return NodeShare(
        node=node, cpus=cpus, tasks=tasks, devices=tuple(DeviceShare(index=index) for index in range(gpus))
    )


def job(shares: list[NodeShare], *, partition: str = "debug", job_id: int = 12, **changes: Any) -> Job:
    inner = {name: changes.pop(name) for name in list(changes) if name in JobSpec.__struct_fields__}
    return Job(
        job_id=job_id, spec=spec(**inner), submit_time=0.0, start_time=100.0,
        allocation=Allocation(partition=partition, nodes=tuple(shares)), **changes,
    )  # fmt: skip


GPU_PER_TASK = GresRequest(terms=(GresTerm(name="gpu", text="1"),), text="gres/gpu:1")
HET = (
    job([share("n3", 1)], ntasks_given=True, name="het.sh", het_job_id=12, het_offset=0),
    job([share("n1", 4, 2), share("n2", 2, 1)], ntasks_given=True, cpus_per_task=2, cpus_per_task_given=True,
        name="het.sh", het_job_id=12, het_offset=1, job_id=13),
)  # fmt: skip
JOBS = {
    "1_default": job([share("n1", 1)]),
    "2_mpi": job([share("n1", 6, 3), share("n2", 4, 2)], ntasks_given=True, cpus_per_task=2, cpus_per_task_given=True,
                 memory=Memory(MemoryPer.NODE, 300), name="mpi"),
    "3_array": job([share("n1", 1)], array_job_id=12, array_task_id=7, array_count=2, array_first=3, array_last=7,
                   array_step=4),
    "4_gpu": job([share("g1", 4, 2, 2), share("g2", 4, 2, 2)], partition="gpu", ntasks_per_node=2,
                 cpus_per_task=2, cpus_per_task_given=True, request=JobRequest(gpus_per_task=GPU_PER_TASK)),
    "5_exclusive_mem": job([share("n2", 8), share("n3", 8)], exclusive=Exclusive.NODE, memory=Memory(MemoryPer.CPU, 50),
                           account="ml", qos="high", request=JobRequest(distribution="cyclic")),
    "6_gres": job([share("g1", 1, 1, 3)], partition="gpu", ntasks_given=True),
    "7_pernode": job([share(f"n{index}", 2, 2) for index in (1, 2, 3)], ntasks_per_node=2),
    "het": HET[0],
}  # fmt: skip


@pytest.mark.parametrize("layout", sorted(JOBS))
def test_every_variable_of_a_recorded_layout(layout: str) -> None:
    expected = {
        name: value.replace("JOBID+1", "13").replace("JOBID", "12") for name, value in GOLDEN[layout]["env"].items()
    }
    components = HET if layout == "het" else ()
    launch = build_launch(
        JOBS[layout], script=b"#!/bin/sh\n", env=(), config=CONFIG, nodes={}, user=ALICE, components=components,
        daemon_addr="unix:/run/slurmbridge/socket",
    )  # fmt: skip
    env = dict(launch.env)
    env.pop("TMPDIR")
    seen = {name: value for name, value in env.items() if "_TIME" not in name and name.split("_")[0] in PREFIXES}
    if layout == "het":
        seen = {name: value for name, value in seen.items() if name.startswith("SLURM")}
    assert seen == expected


PREFIXES = {name.split("_")[0] for layout in JOBS for name in GOLDEN[layout]["env"]}


def test_a_job_without_limit_ends_in_a_year_by_its_environment() -> None:
    env = batch_env(JOBS["1_default"], CONFIG, daemon_addr="unix:/x/socket")
    assert (env["SLURM_JOB_START_TIME"], env["SLURM_JOB_END_TIME"]) == ("100", str(100 + 365 * 86400))


def test_the_daemon_is_named_unless_it_is_where_everybody_looks() -> None:
    assert batch_env(JOBS["1_default"], CONFIG, daemon_addr="unix:/x/socket")["SLURMBRIDGE_ADDR"] == "unix:/x/socket"
    env = batch_env(JOBS["1_default"], CONFIG, daemon_addr="unix:/run/slurmbridge/socket")
    assert "SLURMBRIDGE_ADDR" not in env


def test_a_fraction_of_a_device_is_told() -> None:
    part = NodeShare(node="g1", cpus=1, devices=(DeviceShare(index=2, milli=500),))
    env = batch_env(job([part]), CONFIG, daemon_addr="unix:/x")
    assert (env["CUDA_VISIBLE_DEVICES"], env["SLURM_GPUS_ON_NODE"], env["SLURMBRIDGE_GPU_FRACTION"]) == (
        "2",
        "1",
        "0.5",
    )


@pytest.mark.parametrize(
    ("export", "get_user_env", "login"),
    [(None, False, False), (None, True, True), ("NONE", False, True), ("FOO,BAR=1", False, True), ("ALL", False, False),
     ("ALL,A=1", False, False), ("NIL", False, False)],
)  # fmt: skip
def test_when_a_job_starts_from_the_login_environment(export: str | None, get_user_env: bool, login: bool) -> None:
    request = JobRequest(export=export, get_user_env=get_user_env)
    assert wants_login(spec(request=request)) is login


@pytest.mark.parametrize(("counts", "text"), [([2], "2"), ([2, 1, 1], "2,1(x2)"), ([], ""), ([3, 3], "3(x2)")])
def test_counts_are_folded_as_slurm_folds_them(counts: list[int], text: str) -> None:
    assert fold(counts) == text


def test_a_launch_carries_what_supervisors_need() -> None:
    described = job([share("n1", 2, 2), share("n2", 1, 1)], ntasks_given=True, time_limit=3, restarts=2,
                    signal=Signal(number=10, seconds=90, batch_only=True), std_out="/w/%j.out", open_mode="append")  # fmt: skip
    launch = build_launch(
        described, script=b"#!/bin/sh\n", env=(("A", "1"), ("SLURM_NTASKS", "old")), config=CONFIG, nodes={},
        user=ALICE, daemon_addr="unix:/x",
    )  # fmt: skip
    env = dict(launch.env)
    assert (env["A"], env["SLURM_NTASKS"], env["TMPDIR"], env["SLURM_RESTART_COUNT"]) == ("1", "3", "/tmp", "2")
    assert env["SLURM_SUBMIT_DIR"] == "/home/alice/w"
    assert [(node.rank, node.node, node.tasks) for node in launch.nodes] == [(0, "n1", 2), (1, "n2", 1)]
    assert (launch.time_limit_s, launch.kill_wait_s, launch.signal, launch.append) == (180, 5, (10, 90, True), True)


def test_letters_of_file_names_that_the_job_decides() -> None:
    assert dict(pattern_values(JOBS["1_default"]))["a"] == "4294967294"
    assert dict(pattern_values(JOBS["3_array"])) == {
        "j": "12", "J": "12", "A": "12", "a": "7", "b": "7", "x": "job.sh", "u": "alice",
    }  # fmt: skip
