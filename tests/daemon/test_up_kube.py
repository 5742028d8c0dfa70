"""`slurmbridge up --kube` whole: daemon, supervisors and commands are real, the API server is on paper."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.paper_kubelet import Installation, installation
from tests.patience import until

pytestmark = [pytest.mark.processes, pytest.mark.slow]


@pytest.fixture
def made(tmp_path: Path, commands: Path) -> Iterator[Installation]:
    with installation(tmp_path, commands) as there:
        yield there


def test_a_job_and_the_commands_in_it(made: Installation) -> None:
    made.up()
    job = made.submit("squeue -h -o %i; sbatch --parsable --wrap='echo inner'; srun -n2 echo step; exit 3", "-n2")
    assert made.ended(job) == "FAILED"
    assert made.output(job).split() == ["1", "2", "step", "step"]
    assert made.job(job, "exitcode") == "3:0"
    assert made.ended(2) == "COMPLETED" and made.output(2) == "inner\n"
    until(lambda: not made.paper.objects["pods"], "pods are left")


def test_a_step_from_outside_goes_through_the_daemon(made: Installation) -> None:
    made.up()
    done = made.command("srun", "-n2", "-l", "sh", "-c", "cat; echo $SLURM_PROCID; exit 5")
    assert (sorted(done.stdout.split("\n")), done.returncode) == (["", "0: 0", "1: 1"], 5), done
    job = made.submit("sleep 1000")
    until(lambda: made.job(job) == "RUNNING")
    assert made.command("srun", f"--jobid={job}", "--overlap", "echo", "beside").stdout == "beside\n"
    refused = made.command("srun", "--jobid=77", "true")
    assert refused.returncode == 1 and "Unable to confirm allocation for job 77: Invalid job id" in refused.stderr
    made.run("scancel", str(job))
    assert made.ended(job).startswith("CANCELLED")


def test_a_daemon_that_was_killed_finds_its_pods_where_they_look_for_it(made: Installation) -> None:
    made.up()
    waits = made.submit(
        "echo begun; while [ ! -e go ]; do sleep 0.1; done; squeue -h -o %i-%T -j $SLURM_JOB_ID; exit 4"
    )
    ends = made.submit("echo begun; while [ ! -e end ]; do sleep 0.1; done; exit 6")
    until(lambda: made.has_begun(waits) and made.has_begun(ends))
    pods = set(made.kubelet.containers)
    made.kill()
    (made.work / "end").touch()
    until(lambda: any('"status":1536' in words for words in made.kubelet.words()), "no end")
    made.up()
    assert (made.ended(ends), made.job(ends, "exitcode")) == ("FAILED", "6:0")
    (made.work / "go").touch()
    assert (made.ended(waits), made.job(waits, "exitcode")) == ("FAILED", "4:0")
    assert made.output(waits).split() == ["begun", f"{waits}-RUNNING"]
    assert set(made.kubelet.containers) == pods, "nothing began twice"


def test_a_daemon_that_dies_at_any_moment_starts_no_job_twice_and_loses_none(made: Installation) -> None:
    made.up()
    jobs = []
    for pause in (0.0, 0.1, 0.2, 0.4, 0.8):
        jobs.append(made.submit("echo once; exit 2", "--mem=100"))
        time.sleep(pause)
        made.kill()
        made.up()
    for job in jobs:
        assert (made.ended(job), made.job(job, "exitcode"), made.output(job)) == ("FAILED", "2:0", "once\n")
    until(lambda: not made.paper.objects["pods"], "pods are left")
    assert len(made.paper.created) == len(jobs)


def test_down_with_jobs_leaves_no_pod(made: Installation) -> None:
    made.up()
    job = made.submit("sleep 1000")
    until(lambda: made.job(job) == "RUNNING")
    assert made.run("slurmbridge", "shutdown", "jobs").code == 0
    until(lambda: made.is_over)
    assert not made.paper.objects["pods"]


def test_missing_rights_are_named_before_anything_runs(made: Installation) -> None:
    made.paper.denied = {("create", "pods"), ("watch", "nodes")}
    said = made.up(fails=True)
    assert said.startswith("slurmbridge: error: rights are missing")
    assert "create of pods in the namespace of jobs" in said and "watch of nodes in all namespaces" in said


def test_another_namespace_needs_another_state_folder(made: Installation) -> None:
    made.up()
    made.stop()
    made.paper.put("namespaces", {"metadata": {"name": "other"}})
    assert "are in namespace jobs, not in other" in made.up("--namespace", "other", fails=True)


def test_a_site_that_does_not_say_how_supervisors_come_is_refused(made: Installation) -> None:
    made.site.write_text("defaults: {image: base}\n")
    assert "supervisorImage" in made.up(fails=True)


def test_nodes_that_cannot_be_listed_are_told_and_the_daemon_ends(made: Installation) -> None:
    made.paper.fail = lambda method, path: (403, "nodes is forbidden") if path == "/api/v1/nodes" else None
    said = made.up(fails=True)
    assert "cannot be listed" in said and "nodes is forbidden" in said
