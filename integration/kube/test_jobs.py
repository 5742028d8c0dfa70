"""Jobs as pods, from sbatch to sacct: in an image that has neither Python nor bash, on the nodes of a real cluster."""

import pwd
from pathlib import Path

import pytest
from cluster.driver import Cluster
from cluster.pods import Namespace, namespace

from .bridge import USER, Bridge, await_true, bridge

pytestmark = [pytest.mark.root, pytest.mark.slow]


@pytest.mark.scenario
def test_a_batch_job_runs_as_its_user_and_its_commands_reach_the_daemon(site: Bridge) -> None:
    job = site.submit(
        "id -u; pwd; squeue -h -o '%i %T %u'; sbatch --wrap=true --mem=32 --output=/dev/null; which python3; exit 3"
    )
    site.await_state(job, "FAILED")
    lines = site.output(job).splitlines()
    assert lines[:3] == [str(pwd.getpwnam(USER).pw_uid), str(site.share), f"{job} RUNNING {USER}"] and lines[
        3
    ].startswith("Submitted batch job ")
    assert not any("python3" in line for line in lines)
    assert site.command("sacct", "-X", "-n", "-P", "-o", "ExitCode", "-j", str(job)).strip() == "3:0"
    assert (site.share / f"{job}.out").owner() == USER


@pytest.mark.scenario
def test_a_gang_has_steps_on_all_nodes_and_its_files(site: Bridge) -> None:
    script = (
        "srun -l hostname | sort; srun -N1 -n1 -w $(scontrol show hostnames $SLURM_JOB_NODELIST | tail -1) "
        "srun --overlap -N2 -n2 hostname | sort; sbcast -f /etc/passwd /tmp/brought && srun -N2 -n2 test -s /tmp/brought && echo whole"
    )
    job = site.submit(script, "--nodes=2", "--ntasks=4")
    site.await_state(job, "COMPLETED", "FAILED")
    nodes = sorted(site.cluster.nodes)[:2]
    lines = site.output(job).splitlines()
    assert lines[:4] == [
        f"{task}: {node}" for task, node in zip(range(4), [nodes[0]] * 2 + [nodes[1]] * 2, strict=True)
    ]
    assert lines[4:] == [*nodes, "whole"]


def test_a_step_and_an_allocation_may_be_asked_for_from_outside(site: Bridge) -> None:
    nodes = sorted(site.cluster.nodes)[:2]
    assert sorted(site.command("srun", "-N2", "--mem=48", "hostname").split()) == nodes
    said = site.command("salloc", "-N2", "--mem=48", "srun", "-N2", "-n2", "sh", "-c", "echo $SLURM_NODEID $PATH")
    assert sorted(line.split(":")[0] for line in said.split("\n") if line) == [
        "0 /opt/slurmbridge/commands", "1 /opt/slurmbridge/commands",
    ]  # fmt: skip
    assert site.command("srun", "--mem=48", "sh", "-c", "exit 4", code=4) == ""


def test_a_full_node_takes_the_next_job_without_turning_it_away(site: Bridge) -> None:
    """Its pod is made when the kubelet has let the last one go, and nothing begins twice."""
    job = site.submit("true", "--exclusive", "--array=1-6")

    def states() -> list[str]:
        return site.command("sacct", "-X", "-n", "-P", "--duplicates", "-o", "State", "-j", str(job)).split()

    await_true(lambda: len(found := states()) >= 6 and not set(found) & {"PENDING", "RUNNING"}, states)
    assert states() == ["COMPLETED"] * 6


def test_cancel_ends_a_job_with_what_it_started(site: Bridge) -> None:
    job = site.submit("trap 'echo told; exit' TERM; echo begun; sleep 600 & wait")
    site.await_output(job, "begun")
    site.command("scancel", str(job))
    site.await_state(job, "CANCELLED")  # as soon as that is decided: what runs hears of it then
    site.await_output(job, "told")
    site.await_output(job, "CANCELLED AT")


def test_a_job_ends_while_the_daemon_is_away_and_nothing_of_it_is_lost(site: Bridge) -> None:
    """Its record waits in the status of its pod, or its supervisor dials in again, whichever comes first."""
    job = site.submit("echo begun; while [ ! -e go ]; do sleep 0.1; done; srun hostname; echo over; exit 5")
    stays = site.submit("echo begun; while [ ! -e stop ]; do sleep 0.1; done")
    for each in (job, stays):
        site.await_output(each, "begun")
    site.kill()
    (site.share / "go").touch()
    site.await_output(job, "over")
    site.up()
    site.await_state(job, "FAILED")
    assert site.command("sacct", "-n", "-P", "-o", "JobID,ExitCode", "-j", str(job)).split() == [
        f"{job}|5:0", f"{job}.batch|5:0", f"{job}.0|0:0",
    ]  # fmt: skip
    assert site.command("squeue", "-h", "-o", "%T", "-j", str(stays)).strip() == "RUNNING"
    (site.share / "stop").touch()
    site.await_state(stays, "COMPLETED")


def test_a_pod_that_somebody_deletes_is_a_node_that_failed(site: Bridge) -> None:
    job = site.submit("echo begun; sleep 600", "--no-requeue")
    site.await_output(job, "begun")
    pod = next(name for name in site.pods() if f"-{job}-0-0" in name)
    site.space.kubectl("delete", "pod", pod, "--wait=false")
    assert site.await_state(job, "NODE_FAIL", "FAILED") == "NODE_FAIL"


def test_a_folder_is_mounted_only_where_its_user_reaches_it(site: Bridge) -> None:
    (site.share / "part" / "file").write_text("of the part\n")
    job = site.submit("cat /elsewhere/file", f"--container-mounts={site.share}/part:/elsewhere:ro")
    site.await_state(job, "COMPLETED", "FAILED")
    assert site.output(job) == "of the part\n"
    closed = site.share / "closed" / "inner"
    closed.mkdir(exist_ok=True)
    job = site.submit("echo ran", "--no-requeue", f"--container-mounts={closed}:/elsewhere")
    assert site.await_state(job, "COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL") == "CANCELLED"
    assert site.output(job) == ""


def test_a_job_that_takes_more_memory_than_it_has_is_told_so(site: Bridge) -> None:
    job = site.submit("echo begun; tail /dev/zero; exit 1")
    assert site.await_state(job, "OUT_OF_MEMORY", "FAILED", "COMPLETED") == "OUT_OF_MEMORY"


def test_nothing_is_left_of_jobs_that_ended(site: Bridge) -> None:
    job = site.submit("true", "--nodes=2")
    site.await_state(job, "COMPLETED")

    def left() -> str:
        return site.space.kubectl("get", "pods,services", "--output=name").strip()

    await_true(lambda: not left(), left)


@pytest.mark.usefixtures("supervisor")
def test_gangs_on_their_nodes_own_network_meet_each_their_own(cluster: Cluster, space: Namespace) -> None:
    """Two at once: no name server knows their nodes, and one finds a port of the other's."""
    with bridge(cluster, space, hostNetwork=True) as site:
        jobs = [site.submit("srun -N2 -n2 hostname | sort; echo $SLURM_JOB_ID", "--nodes=2") for _ in range(2)]
        for job in jobs:
            assert site.await_state(job, "COMPLETED", "FAILED") == "COMPLETED"
            assert site.output(job).split() == [*sorted(cluster.nodes)[:2], str(job)]


@pytest.mark.usefixtures("supervisor")
@pytest.mark.parametrize("way", ["image", "copy"])
def test_a_job_runs_where_the_restricted_level_is_enforced_with_a_root_that_is_read_only(
    cluster: Cluster, space: Namespace, way: str
) -> None:
    with namespace(cluster, "sb-jobs-strict") as strict:
        cluster.kubectl("label", "namespace", strict.name, "pod-security.kubernetes.io/enforce=restricted")
        settings = {
            "volumes": [],
            "volumeMounts": [],
            "securityContext": {"readOnlyRootFilesystem": True},
            "supervisor": way,
        }
        with bridge(cluster, strict, **settings) as site:
            said = site.command("srun", "-N2", "--mem=48", "sh", "-c", "touch /no || touch /tmp/yes && squeue -h -o %T")
            assert said.split() == ["RUNNING", "RUNNING"]
            assert not Path("/tmp/yes").exists()
