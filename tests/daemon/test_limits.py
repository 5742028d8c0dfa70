"""Limits of associations and QOS, at submission and when jobs start: answers of Slurm 26.05.5 to the same jobs.

Each case sets limits, submits jobs in turn, and names what became of each: R runs, a word is the reason for waiting,
a word behind `!` is what sbatch refused it with.
"""

from __future__ import annotations

import asyncio
import shlex

import pytest

from tests.daemon.controlled import CONF, Site, check_use, site
from tests.daemon.rules import on

ENFORCED = CONF + "AccountingStorageEnforce=associations,limits,qos,safe\n"
SETUP = (
    "add cluster test",
    "add account lab",
    "add account only parent=lab",
    "add account other parent=lab",
    "add user alice account=only",
    "add user bob account=only",
    "add qos extra",
    "modify account root set qos=normal,extra",
)
REFUSAL = (
    "Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
)
USER, ACCOUNT, QOS = "user alice set", "account only set", "qos normal set"
SAFE = "qos normal set flags=UsageFactorSafe"
DENY = "qos normal set flags=DenyOnLimit"

# (limits, jobs, what becomes of them)
CASES = (
    (f"{USER} maxjobs=1", "-n1|-n1", "R AssocMaxJobsLimit"),
    (f"{ACCOUNT} maxjobs=1", "-n1|-n1", "R AssocMaxJobsLimit"),
    ("account lab set maxjobs=1", "-n1|-n1", "R AssocMaxJobsLimit"),
    (f"{ACCOUNT} grpjobs=1", "-n1|-n1", "R AssocGrpJobsLimit"),
    ("account lab set grpjobs=1", "-n1|-n1", "R AssocGrpJobsLimit"),
    (f"{ACCOUNT} maxsubmit=1", "-n1|-n1", "R !AssocMaxSubmitJobLimit"),
    (f"{ACCOUNT} grpsubmit=1", "-n1|-n1", "R !AssocGrpSubmitJobsLimit"),
    (f"{ACCOUNT} maxsubmit=2", "-a1-3|-a1-2|-n1", "!AssocMaxSubmitJobLimit R !AssocMaxSubmitJobLimit"),
    (f"{ACCOUNT} grptres=cpu=3", "-n2|-n2|-n4", "R AssocGrpCpuLimit AssocGrpCpuLimit"),
    (f"{ACCOUNT} grptres=mem=300", "-n1 --mem=200|-n1 --mem=200", "R AssocGrpMemLimit"),
    (f"{ACCOUNT} grptres=node=1", "-N1|-N2", "R AssocGrpNodeLimit"),
    (f"{ACCOUNT} maxtres=cpu=2", "-n2|-n3", "R AssocMaxCpuPerJobLimit"),
    (f"{ACCOUNT} maxtres=node=1", "-N1|-N2", "R AssocMaxNodePerJobLimit"),
    (f"{ACCOUNT} maxtres=mem=150", "-n1|--mem=200", "R AssocMaxMemPerJob"),
    (f"{ACCOUNT} maxtrespn=cpu=2", "-n2|-N1 -n3", "R AssocMaxCpuPerNode"),
    (f"{ACCOUNT} maxtresmins=cpu=10", "-t5 -n2|-t6 -n2|-n1", "R AssocMaxCpuMinutesPerJobLimit AssocMaxCpuMinutesPerJobLimit"),
    (f"{ACCOUNT} maxwall=10", "-t10|-t11|-n1", "R AssocMaxWallDurationPerJobLimit R"),
    (f"{ACCOUNT} grptresrunmins=cpu=10", "-t5 -n1|-t6 -n1|-n1", "R AssocGrpCPURunMinutesLimit AssocGrpCPURunMinutesLimit"),
    (f"{ACCOUNT} grptresmins=cpu=10", "-t5 -n1|-t20 -n1|-n1", "R AssocGrpCPUMinutesLimit AssocGrpCPUMinutesLimit"),
    (f"{ACCOUNT} grptresmins=cpu=10", "-t5 -n1|-t5 -n1|-t5 -n1", "R R AssocGrpCPUMinutesLimit"),
    (f"{ACCOUNT} grpwall=10", "-t5 -n1|-t20 -n1|-n1", "R AssocGrpWallLimit R"),
    (f"{QOS} maxjobspu=1", "-n1|-n1", "R QOSMaxJobsPerUserLimit"),
    (f"{QOS} maxjobspa=1", "-n1|-n1", "R MaxJobsPerAccount"),
    (f"{QOS} grpjobs=1", "-n1|-n1", "R QOSGrpJobsLimit"),
    (f"{QOS} maxsubmitjobspu=1", "-n1|-n1", "R !QOSMaxSubmitJobPerUserLimit"),
    (f"{QOS} maxsubmitjobspa=1", "-n1|-n1", "R !MaxSubmitJobsPerAccount"),
    (f"{QOS} grpsubmit=1", "-n1|-n1", "R !QOSGrpSubmitJobsLimit"),
    (f"{QOS} grptres=cpu=3", "-n2|-n2|-n4", "R QOSGrpCpuLimit QOSGrpCpuLimit"),
    (f"{QOS} maxtrespu=cpu=3", "-n2|-n2|-n4", "R QOSMaxCpuPerUserLimit QOSMaxCpuPerUserLimit"),
    (f"{QOS} maxtrespu=node=1", "-N1|-N2", "R QOSMaxNodePerUserLimit"),
    (f"{QOS} maxtrespu=mem=150", "-n1|-n1", "R QOSMaxMemoryPerUser"),
    (f"{QOS} maxtrespa=cpu=3", "-n2|-n2|-n4", "R MaxCpuPerAccount MaxCpuPerAccount"),
    (f"{QOS} maxtresperjob=cpu=2", "-n2|-n3", "R QOSMaxCpuPerJobLimit"),
    (f"{QOS} maxtrespn=cpu=2", "-n2|-N1 -n3", "R QOSMaxCpuPerNode"),
    (f"{QOS} maxtresmins=cpu=10", "-t5 -n2|-t6 -n2|-n1", "R QOSMaxCpuMinutesPerJobLimit QOSMaxCpuMinutesPerJobLimit"),
    (f"{QOS} maxwall=10", "-t10|-t11|-n1", "R QOSMaxWallDurationPerJobLimit R"),
    (f"{QOS} grptresrunmins=cpu=10", "-t5 -n1|-t6 -n1|-n1", "R QOSGrpCPURunMinutesLimit QOSGrpCPURunMinutesLimit"),
    (f"{QOS} maxtresrunminspu=cpu=10", "-t5 -n1|-t6 -n1|-n1", "R MaxCpuRunMinsPerUser MaxCpuRunMinsPerUser"),
    (f"{QOS} maxtresrunminspa=cpu=10", "-t5 -n1|-t6 -n1|-n1", "R MaxCpuRunMinsPerAccount MaxCpuRunMinsPerAccount"),
    (f"{QOS} mintres=cpu=2", "-n1|-n2", "QOSMinCpuNotSatisfied R"),
    # a QOS with DenyOnLimit: what can never run is refused, what must only wait is not
    (f"{DENY} maxtresperjob=cpu=2", "-n2|-n3", "R !QOSMaxCpuPerJobLimit"),
    (f"{DENY} maxwall=10", "-t10|-t11|-n1", "R !QOSMaxWallDurationPerJobLimit R"),
    (f"{DENY} maxtrespu=cpu=3", "-n2|-n2|-n4", "R QOSMaxCpuPerUserLimit !QOSMaxCpuPerUserLimit"),
    (f"{DENY} maxtrespa=cpu=3", "-n2|-n4", "R !MaxCpuPerAccount"),
    (f"{DENY} grptres=cpu=3", "-n2|-n2|-n4", "R QOSGrpCpuLimit !QOSGrpCpuLimit"),
    (f"{DENY} maxjobspu=1", "-n1|-n1", "R QOSMaxJobsPerUserLimit"),
    (f"{DENY} mintres=cpu=2", "-n1|-n2", "!QOSMinCpuNotSatisfied R"),
    (f"{DENY} maxtresmins=cpu=10", "-t5 -n2|-t6 -n2", "R !QOSMaxCpuMinutesPerJobLimit"),
    (f"{DENY} maxtrespn=cpu=2", "-n2|-N1 -n3", "R !QOSMaxCpuPerNode"),
    (f"{DENY};{ACCOUNT} maxtres=cpu=2", "-n2|-n3", "R !AssocMaxCpuPerJobLimit"),
    (f"{DENY};{ACCOUNT} maxwall=10", "-t10|-t11", "R !AssocMaxWallDurationPerJobLimit"),
    (f"{DENY};{ACCOUNT} grptres=cpu=3", "-n2|-n4", "R !AssocGrpCpuLimit"),
    # what was used, or will be, of a QOS
    (f"{QOS} grptresmins=cpu=10", "-t5 -n1|-t20 -n1|-n1", "R QOSGrpCPUMinutesLimit QOSGrpCPUMinutesLimit"),
    (f"{QOS} grptresmins=cpu=0", "-n1", "QOSGrpCPUMinutesLimit"),
    (f"{ACCOUNT} grptresmins=cpu=0", "-n1", "AssocGrpCPUMinutesLimit"),
    (f"{QOS} grptresmins=mem=1000", "-t20 -n1", "QOSGrpMemoryMinutes"),
    (f"{QOS} grptresmins=node=10", "-t20 -n1", "QOSGrpNodeMinutes"),
    (f"{QOS} grptresmins=billing=10", "-t20 -n1", "QOSGrpBillingMinutes"),
    (f"{ACCOUNT} grptresmins=mem=10", "-t20 -n1", "AssocGrpMemMinutes"),
    (f"{ACCOUNT} grptresmins=node=10", "-t20 -n1", "AssocGrpNodeMinutes"),
    (f"{ACCOUNT} grptresmins=billing=10", "-t20 -n1", "AssocGrpBillingMinutes"),
    (f"{QOS} grptresrunmins=billing=10", "-t20 -n1", "QOSGrpBillingRunMinutes"),
    (f"{QOS} grptresrunmins=node=10", "-t20 -n1", "QOSGrpNodeRunMinutes"),
    (f"{QOS} grptresrunmins=mem=1000", "-t20 -n1", "QOSGrpMemoryRunMinutes"),
    (f"{ACCOUNT} grptresrunmins=billing=10", "-t20 -n1", "AssocGrpBillingRunMinutes"),
    (f"{QOS} maxtresmins=billing=10", "-t20 -n1", "QOSMaxBillingMinutesPerJob"),
    (f"{ACCOUNT} maxtresmins=billing=10", "-t20 -n1", "AssocMaxBillingMinutesPerJob"),
    (f"{QOS} maxtresrunminspu=billing=10", "-t20 -n1", "MaxBillingRunMinsPerUser"),
    (f"{QOS} maxtresrunminspa=billing=10", "-t20 -n1", "MaxBillingRunMinsPerAccount"),
    (f"{QOS} grpwall=10", "-t5 -n1|-t20 -n1|-n1", "R QOSGrpWallLimit R"),
    (f"{DENY} grpwall=10", "-t5 -n1|-t20 -n1|-n1", "R !QOSGrpWallLimit R"),
    (f"{DENY} grptresmins=cpu=10", "-t5 -n1|-t20 -n1|-n1", "R !QOSGrpCPUMinutesLimit QOSGrpCPUMinutesLimit"),
    # TRES of each kind
    (f"{QOS} maxtres=billing=1", "-n2", "QOSMaxBillingPerJob"),
    (f"{QOS} grptres=billing=1", "-n2", "QOSGrpBilling"),
    (f"{QOS} maxtrespu=billing=1", "-n2", "QOSMaxBillingPerUser"),
    (f"{QOS} maxtrespa=billing=1", "-n2", "MaxBillingPerAccount"),
    (f"{QOS} maxtrespa=mem=150", "-n1|-n1", "R MaxMemoryPerAccount"),
    (f"{QOS} mintres=cpu=2,node=2", "-n2|-N2", "QOSMinNode R"),
    (f"{QOS} grpjobs=0", "-n1", "QOSGrpJobsLimit"),
    (f"{QOS} grpsubmit=0", "-n1", "!QOSGrpSubmitJobsLimit"),
    # counts and times are looked at before TRES
    (f"{QOS} maxjobspu=1 grptres=cpu=1", "-n1|-n1", "R QOSMaxJobsPerUserLimit"),
    (f"{QOS} maxwall=10 grptres=cpu=1", "-n2 -t20", "QOSMaxWallDurationPerJobLimit"),
    (f"{ACCOUNT} maxjobs=1;{QOS} grptres=cpu=1", "-n1|-n1", "R AssocMaxJobsLimit"),
    (f"{ACCOUNT} grpjobs=1 grptres=cpu=1", "-n1|-n1", "R AssocGrpJobsLimit"),
    (f"{QOS} maxtresmins=cpu=4 maxjobspu=1", "-t1|-t5", "R QOSMaxJobsPerUserLimit"),
    # UsageFactor counts what was used; with UsageFactorSafe also what will be
    (f"{QOS} usagefactor=2 grptresmins=cpu=10", "-t5 -n1|-t6 -n1", "R QOSGrpCPUMinutesLimit"),
    (f"{QOS} usagefactor=0.5;{ACCOUNT} grptresmins=cpu=10", "-t20 -n1", "AssocGrpCPUMinutesLimit"),
    (f"{SAFE} usagefactor=0.5;{ACCOUNT} grptresmins=cpu=10", "-t20 -n1", "R"),
    (f"{SAFE} usagefactor=2 grptresrunmins=cpu=10", "-t6 -n1|-t4 -n1", "QOSGrpCPURunMinutesLimit R"),
    (f"{SAFE} usagefactor=2;{ACCOUNT} grpwall=10", "-t6 -n1|-t4 -n1|-t2", "AssocGrpWallLimit R R"),
    (f"{SAFE} usagefactor=2 grpwall=10", "-t6 -n1|-t4 -n1|-t2", "QOSGrpWallLimit R R"),
    (f"{SAFE} usagefactor=2 maxwall=10", "-t6", "QOSMaxWallDurationPerJobLimit"),
    (f"{SAFE} usagefactor=2 maxtresmins=cpu=10", "-t5 -n1|-t6 -n1", "R QOSMaxCpuMinutesPerJobLimit"),
    (f"{SAFE} usagefactor=2;{ACCOUNT} maxtresmins=cpu=10", "-t6", "AssocMaxCpuMinutesPerJobLimit"),
    (f"{SAFE} usagefactor=2 maxtresrunminspu=cpu=10", "-t6", "MaxCpuRunMinsPerUser"),
    (f"{SAFE} usagefactor=2;{ACCOUNT} grptresrunmins=cpu=10", "-t6 -n1|-t4 -n1", "AssocGrpCPURunMinutesLimit R"),
    # LimitFactor stretches what associations may have in use, and nothing else
    (f"{QOS} limitfactor=2;{ACCOUNT} grptres=cpu=2", "-n4|-n1", "R AssocGrpCpuLimit"),
    (f"{QOS} limitfactor=2;{ACCOUNT} maxtres=cpu=2", "-n4|-n5", "R AssocMaxCpuPerJobLimit"),
    (f"{QOS} limitfactor=0.5;{ACCOUNT} grptres=cpu=4", "-n2|-n1", "R AssocGrpCpuLimit"),
    (f"{QOS} limitfactor=2;{ACCOUNT} maxtrespn=cpu=2", "-N1 -n4", "AssocMaxCpuPerNode"),
    (f"{QOS} limitfactor=2;{ACCOUNT} maxtresmins=cpu=10", "-t10 -n2", "AssocMaxCpuMinutesPerJobLimit"),
    (f"{QOS} limitfactor=2;{ACCOUNT} grptresmins=cpu=10", "-t20 -n1", "AssocGrpCPUMinutesLimit"),
    (f"{QOS} limitfactor=2;{ACCOUNT} grptresrunmins=cpu=10", "-t20 -n1", "AssocGrpCPURunMinutesLimit"),
    (f"{QOS} limitfactor=2;{ACCOUNT} maxjobs=1", "-n1|-n1|-n1", "R AssocMaxJobsLimit AssocMaxJobsLimit"),
    (f"{QOS} limitfactor=2;{ACCOUNT} grpwall=10", "-t20", "AssocGrpWallLimit"),
    (f"{QOS} limitfactor=2;{ACCOUNT} maxwall=10", "-t20", "AssocMaxWallDurationPerJobLimit"),
    (f"{DENY} limitfactor=2;{ACCOUNT} maxtres=cpu=2", "-n4|-n5", "R !AssocMaxCpuPerJobLimit"),
    # a threshold that no share reaches
    (f"{QOS} usagethreshold=2.0 flags=EnforceUsageThreshold", "-n1", "QOSUsageThreshold"),
    (f"{QOS} usagethreshold=2.0", "-n1", "R"),
    # what a QOS limits, associations do not limit again; each limit for itself
    (f"{QOS} grptresmins=cpu=100;{ACCOUNT} grptresmins=cpu=10", "-t20 -n1", "R"),
    (f"{QOS} grpwall=100;{ACCOUNT} grpwall=10", "-t20 -n1", "R"),
    (f"{QOS} grptresrunmins=cpu=100;{ACCOUNT} grptresrunmins=cpu=10", "-t20 -n1", "R"),
    (f"{QOS} maxtresmins=cpu=100;{ACCOUNT} maxtresmins=cpu=10", "-t20 -n1", "R"),
    (f"{QOS} maxtresperjob=cpu=4;{ACCOUNT} grptres=cpu=2", "-n3", "AssocGrpCpuLimit"),
    (f"{QOS} maxtrespu=cpu=4;{ACCOUNT} maxtres=cpu=2", "-n3", "AssocMaxCpuPerJobLimit"),
    (f"{QOS} maxjobspu=4;{ACCOUNT} grpjobs=0", "-n3", "AssocGrpJobsLimit"),
    # the nearest limit counts, a QOS goes before associations
    (
        f"{ACCOUNT} maxtres=cpu=2 maxjobs=1;{USER} maxtres=cpu=4 maxjobs=2",
        "-n4|-n1|-n1|-n5",
        "R R AssocMaxJobsLimit AssocMaxJobsLimit",
    ),
    (f"{ACCOUNT} grptres=cpu=2;{QOS} grptres=cpu=6", "-n4|-n3", "R QOSGrpCpuLimit"),
)  # fmt: skip


async def limited(*limits: str, conf: str = ENFORCED) -> Site:
    made = await site(conf)
    for line in (*SETUP, *(f"modify {each}" for each in limits)):
        answer = await made.run(f"sacctmgr -i {line}", user="root")
        assert answer.code == 0, (line, answer)
    return made


async def became(made: Site, jobs: str) -> list[str]:
    """What the jobs became, in the words of `CASES`."""
    ids: list[int | str] = []
    for options in jobs.split("|"):
        answer = await made.run(f"sbatch --parsable {options} job.sh", files={"job.sh": b"#!/bin/sh\nsleep 100\n"})
        if answer.code == 0:
            ids.append(int(answer.out))
        else:
            first, last = answer.err.splitlines()
            assert last == f"sbatch: error: {REFUSAL}"
            ids.append("!" + first.removeprefix("sbatch: error: "))
    await made.settle()
    found = []
    for each in ids:
        if isinstance(each, str):
            found.append(each)
            continue
        tasks = list(made.controller.memory.jobs_of_array(each)) or [made.job(each)]
        is_running = all(job.state.name == "RUNNING" for job in tasks)
        found.append("R" if is_running else tasks[0].reason)
    return found


@pytest.mark.parametrize(("limits", "jobs", "expected"), CASES, ids=[f"{limits} {jobs}" for limits, jobs, _ in CASES])
def test_limits_hold_as_in_slurm(limits: str, jobs: str, expected: str) -> None:
    async def whole() -> None:
        made = await limited(*limits.split(";"))
        assert " ".join(await became(made, jobs)) == expected
        check_use(made)

    asyncio.run(whole())


def test_a_place_that_is_given_back_is_used_again() -> None:
    async def whole() -> None:
        made = await limited(f"{ACCOUNT} maxsubmit=1", f"{USER} maxjobs=1")
        assert await became(made, "-n1") == ["R"]
        await made.advance(110)
        assert await became(made, "-n1") == ["R"]

    asyncio.run(whole())


PARTITIONS = ENFORCED.replace("PartitionName=debug", "{}\nPartitionName=debug")


@pytest.mark.parametrize(
    ("words", "options", "outcome"),
    [
        ("AllowAccounts=other", "-p p", "AccountNotAllowed"),
        ("AllowAccounts=only", "-p p", "R"),
        ("DenyAccounts=only", "-p p", "AccountNotAllowed"),
        ("AllowQos=extra", "-p p", "QOSNotAllowed"),
        ("AllowQos=extra", "-p p -q extra", "R"),
        ("DenyQos=normal", "-p p", "QOSNotAllowed"),
        ("MaxTime=10", "-p p -t 11", "PartitionTimeLimit"),
        ("MaxNodes=1", "-p p -N2", "PartitionNodeLimit"),
        ("MinNodes=2", "-p p -N1-1", "PartitionNodeLimit"),
        ("State=DOWN", "-p p", "PartitionDown"),
        ("State=INACTIVE", "-p p", "PartitionInactive"),
    ],
)
def test_without_enforcement_a_partition_lets_wait_what_it_does_not_take(
    words: str, options: str, outcome: str
) -> None:
    async def whole() -> None:
        made = await limited(conf=PARTITIONS.format(f"PartitionName=p Nodes=n[1-4] {words}"))
        assert await became(made, options) == [outcome]

    asyncio.run(whole())


@pytest.mark.parametrize(
    ("flags", "options", "outcome"),
    [
        ("PartitionTimeLimit", "-p p -t60|-p p -N2", "R PartitionNodeLimit"),
        ("PartitionMaxNodes", "-p p -t60|-p p -N2", "PartitionTimeLimit R"),
        ("PartitionMinNodes", "-p two -N1-1|-p two -N2", "R R"),
        ("PartitionTimeLimit,PartitionMaxNodes", "-p p -t60 -N2|-p two -N1-1", "R PartitionNodeLimit"),
        ("OverPartQOS", "-p over -n4|-p over -n6", "R QOSGrpCpuLimit"),
        ("DenyOnLimit", "-p over -n4|-p over -n3", "QOSGrpCpuLimit R"),
    ],
)
def test_a_qos_lifts_limits_of_partitions(flags: str, options: str, outcome: str) -> None:
    async def whole() -> None:
        conf = PARTITIONS.format(
            "PartitionName=p Nodes=n[1-2] MaxNodes=1 MaxTime=30\n"
            "PartitionName=two Nodes=n[1-4] MinNodes=2\n"
            "PartitionName=over Nodes=n[1-4] QOS=extra"
        )
        made = await limited(f"{QOS} flags={flags} grptres=cpu=6", "qos extra set grptres=cpu=3", conf=conf)
        assert " ".join(await became(made, options)) == outcome

    asyncio.run(whole())


@pytest.mark.parametrize(
    ("enforce", "options", "refusal"),
    [
        ("ALL", "-p small -t 20", "Requested time limit is invalid (missing or exceeds some limit)"),
        ("ALL", "-p small,debug -t 20", "Requested time limit is invalid (missing or exceeds some limit)"),
        ("ANY", "-p small,debug -t 20", ""),
        ("ANY", "-p small -t 20", "Requested time limit is invalid (missing or exceeds some limit)"),
        ("ALL", "-p small -N3", "Node count specification invalid"),
        ("ANY", "-p small,debug -N3", ""),
        ("ALL", "-p closed", "Invalid account or account/partition combination specified"),
        ("ANY", "-p closed,debug", ""),
        ("NO", "-p small -t 20 -N3", ""),
    ],
)
def test_enforced_partition_limits_refuse(enforce: str, options: str, refusal: str) -> None:
    async def whole() -> None:
        extra = (
            "PartitionName=small Nodes=n[1-2] MaxTime=10 MaxNodes=2\nPartitionName=closed Nodes=n1 AllowAccounts=other"
        )
        made = await limited(conf=PARTITIONS.format(f"EnforcePartLimits={enforce}\n{extra}"))
        answer = await made.run(f"sbatch {options} --wrap true")
        if refusal:
            assert answer.code == 1 and answer.err.endswith(f"Batch job submission failed: {refusal}\n"), answer
        else:
            assert answer.code == 0, answer

    asyncio.run(whole())


@on(ENFORCED)
async def test_who_has_no_association_is_refused(made: Site) -> None:
    await made.run("sacctmgr -i add cluster test", user="root")
    answer = await made.run("sbatch --wrap true")
    assert (answer.code, answer.err.splitlines()[-1]) == (
        1,
        "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified",
    )


def test_coordinators_rule_their_accounts_and_operators_all_jobs() -> None:
    async def whole() -> None:
        made = await limited()
        for line in ("add coordinator account=lab names=bob",):
            assert (await made.run(f"sacctmgr -i {line}", user="root")).code == 0
        mine = await made.submit("-n1", "sleep 100", user="alice")
        assert (await made.run(f"scancel {mine}", user="bob")).code == 0  # lab is above alice's account
        await made.advance(2)
        assert made.states(mine) == ["CANCELLED"]
        again = await made.submit("-H", user="alice")
        assert (await made.run(f"scontrol release {again}", user="bob")).code == 0
        add = shlex.join(("sacctmgr", "-i", "modify", "user", "alice", "set", "maxjobs=1"))
        assert (await made.run(add, user="bob")).code == 0
        assert (await made.run(add, user="alice")).code == 1
        assert (await made.run("sacctmgr -i add account new parent=lab", user="bob")).code == 0
        assert (await made.run("sacctmgr -i add account new2", user="bob")).code == 1
        await made.run("sacctmgr -i delete coordinator account=lab names=bob", user="root")
        other = await made.submit("-n1", "sleep 100", user="alice")
        assert (await made.run(f"scancel {other}", user="bob")).code == 210
        await made.run("sacctmgr -i modify user bob set adminlevel=operator", user="root")
        assert (await made.run(f"scancel {other}", user="bob")).code == 0

    asyncio.run(whole())
