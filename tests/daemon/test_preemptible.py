"""Whose work may be ended for another's? What the job says, then its QOS."""

from __future__ import annotations

from tests.daemon.controlled import Site
from tests.daemon.rules import rule


async def quotas(made: Site) -> None:
    for line in (
        "add qos firm set preemptible=no",
        "add account ml DeservedTRES=cpu=4 qos=normal,firm",
        "add user alice account=ml",
    ):
        assert (await made.run(f"sacctmgr -i {line}", user="root")).code == 0, line


CASES = (
    ("", None, ""),
    ("--preemptible", "Preemptible=yes", ""),
    ("--preemptible=no", "Preemptible=no", "cpu=2,mem=200M"),
    ("--qos=firm", None, "cpu=2,mem=200M"),
    ("--qos=firm --preemptible=yes", "Preemptible=yes", ""),
)


@rule
async def test_the_job_says_it_before_its_qos(made: Site) -> None:
    await quotas(made)
    for options, shown, firm in CASES:
        job_id = await made.submit(f"-A ml -n2 {options}", "sleep 100")
        told = (await made.run(f"scontrol show job {job_id}")).out
        assert ("Preemptible" in told) is (shown is not None)
        assert shown is None or f"   {shown}\n" in told
        assert made.states(job_id) == ["RUNNING"]
        columns = await made.run("sshare -nP -A ml -u nobody -o pool,alloctres,firmtres", user="root")
        assert columns.out == f"default|cpu=2,mem=200M|{firm}\n"
        await made.run(f"scancel {job_id}")
        await made.advance(10)


@rule
async def test_where_nobody_has_a_quota_what_says_nothing_is_firm(made: Site) -> None:
    await made.run("sacctmgr -i add account ml", user="root")
    await made.run("sacctmgr -i add user alice account=ml", user="root")
    await made.submit("-A ml -n2", "sleep 100")
    columns = await made.run("sshare -nP -A ml -u nobody -o pool,firmtres", user="root")
    assert columns.out == "default|cpu=2,mem=200M\n"
