"""`slurmbridge logs` of jobs whose output the controller keeps: what sbatch says of it, who is shown what, until when."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from slurmbridge.daemon.output_shelf import Shelf
from slurmbridge.daemon.outputs import Outputs
from slurmbridge.model.capabilities import VIRTUAL_NODES, Capabilities
from slurmbridge.model.pods import Manifest, PodTemplate
from slurmbridge.model.retention import Retention, Span
from slurmbridge.model.run import RunKey
from slurmbridge.wire.supervisor import OF_STDERR, OF_STDOUT, OF_STEP, Output
from tests.daemon.controlled import CONF, Site

HOME: tuple[Manifest, ...] = ({"name": "home", "mountPath": "/home"},)
SHARED = PodTemplate(image="i", volumes=({"name": "home", "nfs": {}},), volume_mounts=HOME)
BARE = Capabilities(containers=True, base=PodTemplate(image="i"))
NOTE = (
    "sbatch: note: no shared file system holds /home/alice/{}: output goes to the controller, which keeps 64 MiB of it; "
    "`slurmbridge logs {}` shows it\n"
)


def on_site(
    folder: Path, test: Callable[[Site], Awaitable[None]], capabilities: Capabilities = BARE, conf: str = CONF
) -> None:
    async def run() -> None:
        made = Site(conf)
        made.runtime.capabilities = capabilities
        await made.start()
        await kept(made, folder)
        await test(made)

    asyncio.run(run())


async def kept(site: Site, folder: Path) -> None:
    made = Outputs(Shelf(str(folder / "output"), 1 << 20), site.controller.writer)
    site.controller.performer.outputs = site.controller.retaining.outputs = made


async def write(
    site: Site, job: int, data: bytes, *, restarts: int = 0, offset: int = 0, stream: int = 0, what: str = OF_STDOUT,
    path: str = "/gone", over: bool = False,
) -> None:  # fmt: skip
    """As a supervisor does."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    outputs = site.controller.performer.outputs
    assert outputs is not None
    piece = Output(stream, offset, 0 if over else -1, what, path, data)
    outputs.take(RunKey(job, restarts), 0, piece, lambda size, ended: done.set_result(None))
    await done


async def sbatch(site: Site, options: str) -> tuple[int, str]:
    answer = await site.run(f"sbatch {options} job.sh", files={"job.sh": b"#!/bin/sh\nsleep 10\n"})
    return int(answer.out.split()[-1]), answer.err


def test_sbatch_says_where_output_goes_that_no_shared_file_system_holds(tmp_path: Path) -> None:
    async def scenario(site: Site) -> None:
        job, said = await sbatch(site, "")
        assert said == NOTE.format(f"slurm-{job}.out", job)
        job, said = await sbatch(site, "-o out-%A-%a --array=1-2")
        assert said == NOTE.format("out-%A-%a", job)
        assert (await sbatch(site, "-o /dev/null"))[1] == ""
        answer = await site.run("sbatch -Q job.sh", files={"job.sh": b"#!/bin/sh\n"})
        assert (answer.out, answer.err) == ("", "")

    on_site(tmp_path, scenario)


@pytest.mark.parametrize(
    ("template", "is_kept"),
    [
        (SHARED, False),
        (replace(SHARED, volumes=({"name": "home", "hostPath": {}},)), False),
        (replace(SHARED, volumes=({"name": "home", "persistentVolumeClaim": {}},)), False),
        (replace(SHARED, volumes=({"name": "home", "emptyDir": {}},)), True),
        (replace(SHARED, volume_mounts=({"name": "home", "mountPath": "/home", "readOnly": True},)), True),
        (replace(SHARED, volume_mounts=({"name": "home", "mountPath": "/homes"},)), True),
        (replace(SHARED, volume_mounts=({"name": "home", "mountPath": "/"},)), False),
        (
            replace(
                SHARED,
                volumes=(*SHARED.volumes, {"name": "own", "emptyDir": {}}),
                volume_mounts=(*HOME, {"name": "own", "mountPath": "/home/alice/"}),
            ),
            True,
        ),
    ],
    ids=["nfs", "of the nodes", "claim", "emptyDir", "read-only", "another folder", "root", "a deeper one of the pod"],
)
def test_a_file_is_shared_below_a_mount_of_somebody_elses_volume(
    tmp_path: Path, template: PodTemplate, is_kept: bool
) -> None:
    async def scenario(site: Site) -> None:
        job, said = await sbatch(site, "")
        assert bool(said) == is_kept
        where = json.loads((await site.run(f"slurmbridge where {job}")).out)
        assert where == {
            "job": str(job), "path": f"/home/alice/slurm-{job}.out", "kept": is_kept, "begun": True, "over": False,
        }  # fmt: skip
        shown = (await site.run(f"scontrol show job {job}")).out
        assert f"StdOut=/home/alice/slurm-{job}.out" in shown

    on_site(tmp_path, scenario, Capabilities(containers=True, base=template))


def test_on_virtual_nodes_nothing_is_kept(tmp_path: Path) -> None:
    async def scenario(site: Site) -> None:
        job, said = await sbatch(site, "-e err-%j")
        assert said == ""
        answer = await site.run(f"slurmbridge logs {job}")
        assert answer.out == f"{job} stdout /home/alice/slurm-{job}.out\n{job} stderr /home/alice/err-{job}\n"
        answer = await site.run(f"slurmbridge logs --stderr {job}")
        assert answer.out == f"{job} stderr /home/alice/err-{job}\n"

    on_site(tmp_path, scenario, VIRTUAL_NODES)


def test_its_owner_and_operators_are_shown_what_is_kept_and_nobody_else(tmp_path: Path) -> None:
    async def scenario(site: Site) -> None:
        job, _ = await sbatch(site, "")
        assert (await site.run(f"slurmbridge logs {job}")).out == ""
        await write(site, job, b"out \xff\xc3")
        await write(site, job, b"\xa9\n", offset=6)
        for user in ("alice", "root"):
            answer = await site.run(f"slurmbridge logs {job}", user=user)
            assert answer.out.encode("utf-8", "surrogateescape") == b"out \xff\xc3\xa9\n"
        answer = await site.run(f"slurmbridge logs {job}", user="bob")
        assert (answer.code, answer.out) == (1, "")
        assert answer.err == f"slurmbridge: error: {job}: Access/permission denied\n"
        answer = await site.run(f"slurmbridge where {job}", user="bob")
        assert (answer.code, answer.out) == (1, "")

    on_site(tmp_path, scenario)


def test_stderr_apart_and_files_of_steps_are_shown_when_they_are_asked_for(tmp_path: Path) -> None:
    async def scenario(site: Site) -> None:
        job, _ = await sbatch(site, "-e err")
        await write(site, job, b"out\n")
        assert (await site.run(f"slurmbridge logs --stderr {job}")).out == "out\n"  # nothing came of it yet
        await write(site, job, b"err\n", stream=1, what=OF_STDERR, over=True)
        await write(site, job, b"first\n", stream=2, what=OF_STEP, path="/gone/step", over=True)
        await write(site, job, b"second\n", stream=3, what=OF_STEP, path="/gone/step")
        answer = await site.run(f"slurmbridge logs {job}")
        assert answer.out == "out\n"
        assert answer.err == (
            f"slurmbridge: files of its steps, shown by logs --file PATH {job}:\nslurmbridge:   /gone/step\n"
        )
        assert (await site.run(f"slurmbridge logs --stderr {job}")).out == "err\n"
        assert (await site.run(f"slurmbridge logs --file /gone/step {job}")).out == "second\n"
        answer = await site.run(f"slurmbridge logs --file /gone/other {job}")
        assert (answer.code, answer.err) == (1, f"slurmbridge: error: {job}: nothing is kept of /gone/other\n")

    on_site(tmp_path, scenario)


@pytest.mark.parametrize(("options", "shown"), [("", "second\n"), ("--open-mode=append", "first\nsecond\n")])
def test_a_job_that_ran_again_shows_its_last_run_or_all_where_they_add_up(
    tmp_path: Path, options: str, shown: str
) -> None:
    async def scenario(site: Site) -> None:
        job, _ = await sbatch(site, f"--requeue {options}")
        await write(site, job, b"first\n", over=True)
        assert (await site.run(f"scontrol requeue {job}")).code == 0
        await site.advance(200)
        await write(site, job, b"second\n", restarts=site.job(job).restarts, over=True)
        assert (await site.run(f"slurmbridge logs {job}")).out == shown

    on_site(tmp_path, scenario)


def test_following_goes_on_until_the_job_is_over(tmp_path: Path) -> None:
    async def scenario(site: Site) -> None:
        job, _ = await sbatch(site, "")
        await write(site, job, b"one\n")
        following = asyncio.create_task(site.run(f"slurmbridge logs --follow {job}"))
        await asyncio.sleep(0.1)
        await write(site, job, b"two\n", offset=4)
        await asyncio.sleep(0.1)
        assert not following.done()
        await write(site, job, b"three\n", offset=8, over=True)
        await site.advance(20)
        assert (await following).out == "one\ntwo\nthree\n"

    on_site(tmp_path, scenario)


def test_tasks_of_an_array_are_shown_one_after_the_other_or_one_alone(tmp_path: Path) -> None:
    async def scenario(site: Site) -> None:
        array, _ = await sbatch(site, "--array=1-2")
        tasks = {job.array_task_id: job.job_id for job in site.controller.memory.jobs_of_array(array)}
        for task in (1, 2):
            await write(site, tasks[task], b"of %d\n" % task)
        answer = await site.run(f"slurmbridge logs {array}")
        assert answer.out == f"==> {array}_1 <==\nof 1\n\n==> {array}_2 <==\nof 2\n"
        assert (await site.run(f"slurmbridge logs {array}_2")).out == "of 2\n"
        answer = await site.run(f"slurmbridge logs --follow {array}")
        assert answer.code == 1 and "name one of them" in answer.err

    on_site(tmp_path, scenario)


def test_what_is_kept_outlives_the_daemon_and_the_jobs_place_in_memory(tmp_path: Path) -> None:
    async def scenario(site: Site) -> None:
        job, _ = await sbatch(site, "")
        await write(site, job, b"out\n", over=True)
        await site.advance(400, step=50)
        site.controller.purge()
        assert site.controller.memory.job(job) is None
        await site.restart()
        await kept(site, tmp_path)
        assert (await site.run(f"slurmbridge logs {job}")).out == "out\n"
        answer = await site.run("slurmbridge logs 999")
        assert (answer.code, answer.err) == (1, "slurmbridge: error: 999: Invalid job id specified\n")

    on_site(tmp_path, scenario)


def test_it_goes_with_the_record_of_its_run(tmp_path: Path) -> None:
    async def scenario(site: Site) -> None:
        memory = site.controller.memory
        memory.config = replace(memory.config, retention=Retention(jobs=Span(1, "hours")))
        old, _ = await sbatch(site, "")
        await write(site, old, b"out\n", over=True)
        await site.advance(3 * 3600, step=600)
        young, _ = await sbatch(site, "")
        await write(site, young, b"out\n", over=True)
        site.controller.purge()
        assert await site.controller.retaining.forget() == 1
        assert [path.name for path in (tmp_path / "output").iterdir()] == [str(young)]

    on_site(tmp_path, scenario)


def test_it_goes_a_month_after_the_last_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(site: Site) -> None:
        purged, _ = await sbatch(site, "")
        await write(site, purged, b"out\n", over=True)
        await site.advance(20)
        forgotten = tmp_path / "output" / str(purged)
        await site.controller.retaining.forget()
        assert forgotten.exists()
        # the controller's clock is far ahead of the disk's: a month after the job has left memory
        await site.advance(400, step=50)
        site.controller.purge()
        monkeypatch.setattr("slurmbridge.daemon.retention.OUTPUT_S", -sys.float_info.max)
        lives, _ = await sbatch(site, "")
        await write(site, lives, b"out\n")
        await site.controller.retaining.forget()
        assert not forgotten.exists() and (tmp_path / "output" / str(lives)).exists()

    on_site(tmp_path, scenario)


@pytest.mark.parametrize("words", ["", "1 2", "--what 1", "--file"])
def test_what_makes_no_sense_is_refused_with_the_usage(tmp_path: Path, words: str) -> None:
    async def scenario(site: Site) -> None:
        answer = await site.run(f"slurmbridge logs {words}")
        assert answer.code == 1 and answer.err.startswith("slurmbridge: error: usage: slurmbridge logs")

    on_site(tmp_path, scenario)


def test_nobody_sees_what_a_job_of_the_same_number_wrote_for_another(tmp_path: Path) -> None:
    async def before(site: Site) -> None:
        job, _ = await sbatch(site, "")
        await write(site, job, b"her secret\n", over=True)
        await write(site, job, b"her file\n", stream=1, what=OF_STEP, path="/gone/file")
        assert (await site.run(f"slurmbridge logs {job}")).out == "her secret\n"

    async def after(site: Site) -> None:
        """A database restored from before: another user gets the number."""
        answer = await site.run("sbatch --hold job.sh", user="bob", files={"job.sh": b"#!/bin/sh\n"})
        job = int(answer.out.split()[-1])
        for words in (f"logs {job}", f"logs --file /gone/file {job}", f"logs --stderr {job}"):
            answer = await site.run(f"slurmbridge {words}", user="bob")
            assert "her secret" not in answer.out and "her file" not in answer.out
            assert "of its steps" not in answer.err

    on_site(tmp_path, before)
    on_site(tmp_path, after)
