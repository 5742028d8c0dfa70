"""Output of jobs where no file system is shared: kept by the daemon, whole and once, whatever is killed meanwhile."""

import pwd
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster.driver import Cluster
from cluster.pods import Namespace
from cluster.processes import PATIENCE_S

from .bridge import BIN, USER, Bridge, await_true, bridge

INSIDE = "--chdir=/tmp"
"""The folder where a job is submitted is none of its pods', which would be the first that its output says."""
pytestmark = [pytest.mark.root, pytest.mark.slow]


@pytest.fixture(scope="module")
def bare(supervisor: None, cluster: Cluster, space: Namespace) -> Iterator[Bridge]:
    """Its pods have nothing that they share with anybody."""
    with bridge(cluster, space, volumes=[], volumeMounts=[]) as made:
        yield made


def logs(site: Bridge, *words: str) -> str:
    """As the user."""
    return site.command("slurmbridge", "logs", *words)


def await_logs(site: Bridge, job: int, word: str) -> None:
    """Before it has begun there are none, which is an error."""
    await_true(
        lambda: word in site.run("slurmbridge", "logs", str(job)).stdout,
        lambda: site.run("slurmbridge", "logs", str(job)),
    )


@pytest.mark.scenario
def test_output_is_shown_that_no_file_system_keeps(bare: Bridge) -> None:
    said = bare.run("sbatch", "--mem=48", "--output=%j.out", "--error=%j.err", "--wrap=echo out; echo err >&2; exit 3")
    job = int(said.stdout.split()[-1])
    assert f"output goes to the controller, which keeps 64 MiB of it; `slurmbridge logs {job}` shows it" in said.stderr
    bare.await_state(job, "FAILED")
    assert logs(bare, str(job)) == "out\n"
    assert logs(bare, "--stderr", str(job)).splitlines()[-1] == "err"
    assert f"StdOut={bare.share}/{job}.out" in bare.command("scontrol", "show", "job", str(job))
    assert not list(bare.share.glob(f"{job}*"))
    for path in (bare.state / "output", bare.state / "output" / str(job)):
        assert path.stat().st_mode & 0o777 == 0o700
    who = pwd.getpwnam("mail")
    refused = subprocess.run(
        [BIN / "slurmbridge", "logs", str(job)], capture_output=True, text=True, user=who.pw_uid, group=who.pw_gid,
        extra_groups=[], env={"PATH": "/usr/bin:/bin", "SLURMBRIDGE_ADDR": f"unix:{bare.state}/socket"}, cwd="/",
    )  # fmt: skip
    assert (refused.returncode, refused.stdout) == (1, "") and "Access/permission denied" in refused.stderr


@pytest.mark.scenario
def test_a_killed_daemon_loses_nothing_and_doubles_nothing(bare: Bridge) -> None:
    """One job ends while it is away, the other goes on writing through it."""
    ends = bare.submit("echo begun; sleep 2; seq 100000; exit 4", INSIDE)
    stays = bare.submit(
        "i=0; while [ $i -lt 4000 ]; do echo $i; i=$((i+1)); [ $((i % 200)) = 0 ] && sleep 0.2; done; true", INSIDE
    )
    for job, word in ((ends, "begun"), (stays, "300\n")):
        await_logs(bare, job, word)
    for pause in (4.0, 0.0):
        bare.kill()
        time.sleep(pause)
        bare.up()
    bare.await_state(ends, "FAILED")
    assert logs(bare, str(ends)) == "begun\n" + "".join(f"{number}\n" for number in range(1, 100001))
    bare.await_state(stays, "COMPLETED")
    assert logs(bare, str(stays)) == "".join(f"{number}\n" for number in range(4000))


@pytest.mark.scenario
def test_files_of_a_gangs_steps_are_kept_from_all_nodes(bare: Bridge) -> None:
    script = "srun -N2 -n2 --output=%j-%N sh -c 'echo on $SLURMD_NODENAME'; srun -N2 -n2 --output=/tmp/all hostname; echo here"
    job = bare.submit(script, "--nodes=2", "--ntasks=2", INSIDE)
    bare.await_state(job, "COMPLETED")
    assert logs(bare, str(job)) == "here\n"
    nodes = sorted(bare.cluster.nodes)[:2]
    for node in nodes:
        assert logs(bare, "--file", f"/tmp/{job}-{node}", str(job)) == f"on {node}\n"
    assert sorted(logs(bare, "--file", "/tmp/all", str(job)).split()) == nodes


def test_following_shows_lines_as_they_come_until_the_job_is_over(bare: Bridge) -> None:
    job = bare.submit("echo one; until [ -e /tmp/go ]; do sleep 0.1; done; echo two", INSIDE)
    who = pwd.getpwnam(USER)
    follows = subprocess.Popen(
        [BIN / "slurmbridge", "logs", "--follow", str(job)], stdout=subprocess.PIPE, text=True, user=who.pw_uid,
        group=who.pw_gid, extra_groups=[], cwd="/",
        env={"PATH": "/usr/bin:/bin", "SLURMBRIDGE_ADDR": f"unix:{bare.state}/socket"},
    )  # fmt: skip
    assert follows.stdout is not None and follows.stdout.readline() == "one\n"
    bare.kill()
    bare.up()
    bare.command("srun", f"--jobid={job}", "--overlap", "touch", "/tmp/go")
    assert follows.communicate(timeout=PATIENCE_S)[0] == "two\n"


def test_a_pod_that_is_deleted_ends_with_its_last_words_kept(bare: Bridge) -> None:
    job = bare.submit("trap 'echo told; exit' TERM; echo begun; sleep 600 & wait", "--no-requeue")
    await_logs(bare, job, "begun")
    pod = next(name for name in bare.pods() if f"-{job}-" in name)
    bare.space.kubectl("delete", "pod", pod, "--wait=false")
    bare.await_state(job, "NODE_FAIL")
    assert "told" in logs(bare, str(job))


def test_a_file_below_a_shared_mount_is_read_where_it_is(site: Bridge) -> None:
    job = site.submit("echo in a file")
    site.await_state(job, "COMPLETED")
    assert logs(site, str(job)) == "in a file\n" and (site.share / f"{job}.out").read_text() == "in a file\n"
    assert not Path(site.state / "output" / str(job)).exists()
