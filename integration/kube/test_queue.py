"""Many jobs as pods: arrays, chains and time limits, held against the cluster's own objects and against sacct."""

import itertools
import json

import pytest
from cluster.pods import Namespace

from .bridge import Bridge, await_true

pytestmark = [pytest.mark.root, pytest.mark.slow]
TASKS = 50


def runs(site: Bridge, job: int) -> list[list[str]]:
    """[id, state, exit code, start, end] of each task, by sacct."""
    said = site.command("sacct", "-X", "-n", "-P", "-o", "JobID,State,ExitCode,Start,End", "-j", str(job))
    return [line.split("|") for line in said.splitlines()]


def events(space: Namespace) -> set[str]:
    """Pods that kubelets started."""
    found = json.loads(space.kubectl("get", "events", "--field-selector=reason=Started", "--output=json"))
    return {event["involvedObject"]["uid"] for event in found["items"]}


def test_an_array_is_one_pod_a_task_and_each_runs_once(site: Bridge) -> None:
    before = events(site.space)
    job = site.submit(
        "echo $SLURM_ARRAY_TASK_ID >> ran; exit $((SLURM_ARRAY_TASK_ID % 2))",
        f"--array=0-{TASKS - 1}",
        "--output=/dev/null",
    )
    await_true(
        lambda: len([run for run in runs(site, job) if run[1] in ("COMPLETED", "FAILED")]) == TASKS,
        lambda: runs(site, job),
    )
    states = {int(run[0].partition("_")[2]): (run[1], run[2]) for run in runs(site, job)}
    assert states == {task: ("FAILED", "1:0") if task % 2 else ("COMPLETED", "0:0") for task in range(TASKS)}
    assert sorted(map(int, (site.share / "ran").read_text().split())) == list(range(TASKS))
    assert len(events(site.space) - before) == TASKS
    await_true(lambda: not site.pods(), site.pods)


def test_a_chain_of_dependent_jobs_has_one_pod_after_the_other(site: Bridge) -> None:
    first = site.submit("echo 1 >> chain")
    second = site.submit("echo 2 >> chain; exit 1", f"--dependency=afterok:{first}")
    third = site.submit("echo 3 >> chain", f"--dependency=afternotok:{second}")
    never = site.submit("echo no >> chain", f"--dependency=afterok:{second}", "--kill-on-invalid-dep=yes")
    assert [site.await_state(job, "COMPLETED", "FAILED", "CANCELLED") for job in (first, second, third, never)] == [
        "COMPLETED", "FAILED", "COMPLETED", "CANCELLED",
    ]  # fmt: skip
    assert (site.share / "chain").read_text().split() == ["1", "2", "3"]
    times = [run[3:5] for job in (first, second, third) for run in runs(site, job)]
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(times)), times


def test_a_time_limit_ends_the_pod(site: Bridge) -> None:
    job = site.submit("echo begun; sleep 600", "--time=1", "--no-requeue")
    site.await_output(job, "begun")
    (pod,) = (name for name in site.pods() if f"-{job}-0-" in name)
    assert site.await_state(job, "TIMEOUT", "FAILED") == "TIMEOUT"
    assert "DUE TO TIME LIMIT" in site.output(job)
    await_true(lambda: pod not in site.pods(), site.pods)
