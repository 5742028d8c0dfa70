"""scontrol: what it prints and asks for. Expected texts are those of Slurm 26.05.5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from slurmbridge.commands import scontrol
from slurmbridge.commands.effects import Alter, AlterOutcome, Call, Change, FileData, Outcome, Print, WriteFile
from slurmbridge.errors import SlurmErrno
from slurmbridge.model.cluster import LicenseConf
from slurmbridge.model.job import Allocation, DeviceShare, NodeShare
from slurmbridge.model.plan import Reservation
from tests.commands.sample_site import NOW, SampleSite, job, running

HELD = """\
JobId=12 JobName=held
   UserId=alice(1001) GroupId=alice(1001) MCS_label=N/A
   Priority=0 Nice=0 Account=physics QOS=normal
   JobState=PENDING Reason=JobHeldUser Dependency=(null)
   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0
   RunTime=00:00:00 TimeLimit=UNLIMITED TimeMin=N/A
   SubmitTime=2026-11-29T21:19:00 EligibleTime=Unknown
   AccrueTime=Unknown
   StartTime=Unknown EndTime=Unknown Deadline=N/A
   SuspendTime=None SecsPreSuspend=0 LastSchedEval=2026-11-29T21:19:00 Scheduler=Main
   Partition=debug AllocNode:Sid=ctl:0
   ReqNodeList=(null) ExcNodeList=(null)
   NodeList=
   NumNodes=1-1 NumCPUs=1 NumTasks=1 CPUs/Task=1 ReqB:S:C:T=0:0:*:*
   ReqTRES=cpu=1,mem=100M,node=1,billing=1
   AllocTRES=(null)
   Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*
   MinCPUsNode=1 MinMemoryCPU=100M MinTmpDiskNode=0
   Features=(null) DelayBoot=00:00:00
   OverSubscribe=NO Exclusive=NO Contiguous=0 Licenses=(null) LicensesAlloc=(null) Network=(null)
   Command=(null)
   SubmitLine=sbatch -H --wrap hostname
   WorkDir=/home/alice/w
   StdErr=
   StdIn=/dev/null
   StdOut=/home/alice/w/slurm-12.out

"""


class Run:
    """One command line with answers to its effects."""

    def __init__(self, line: str | Sequence[str], site: SampleSite, *answers: Any, **call: Any) -> None:
        argv = tuple(line.split()) if isinstance(line, str) else tuple(line)
        values = {"env": {}, "cwd": "/", "uid": 1001, "user": "alice", "now": NOW, "host": "ctl", **call}
        command = scontrol.main(Call(argv=argv, **values), site)  # type: ignore[arg-type]
        waiting = list(answers)
        self.out = self.err = ""
        self.asked: list[Any] = []
        answer: Any = None
        while True:
            try:
                effect = command.send(answer)
            except StopIteration as stop:
                self.rc = stop.value
                return
            answer = None
            if isinstance(effect, Print):
                if effect.fd == 1:
                    self.out += effect.text
                else:
                    self.err += effect.text
            else:
                self.asked.append(effect)
                answer = waiting.pop(0)


def held() -> SampleSite:
    return SampleSite([job(12, name="held", submit_line="sbatch -H --wrap hostname")])


def refused(errno: SlurmErrno, name: str = "12") -> Outcome:
    return Outcome(results=((name, errno),))


OK = Outcome(results=(("12", None),))


def test_a_waiting_job_is_shown_line_by_line() -> None:
    assert Run("scontrol show job 12", held()).out == HELD


def test_one_line_holds_the_same_words() -> None:
    assert Run("scontrol -o show job=12", held()).out.split() == HELD.split()


def test_details_show_where_a_job_runs_and_which_devices_it_holds() -> None:
    shares = tuple(
        NodeShare(node=name, cpus=1, cpu_ids=(0, 4), memory_mib=100, devices=(DeviceShare(index=0, type="a100"),))
        for name in ("g1", "g2")
    )
    run = running(14, ("g1", "g2"))
    run = type(run)(**{**{name: getattr(run, name) for name in run.__struct_fields__},
                       "allocation": Allocation(partition="gpu", nodes=shares)})  # fmt: skip
    lines = Run("scontrol -d show job 14", SampleSite([run])).out.split("\n")
    assert "   JOB_GRES=gpu:a100:2" in lines
    assert "     Nodes=g[1-2] CPU_IDs=0,4 Mem=100 GRES=gpu:a100:1(IDX:0)" in lines


def test_a_task_still_in_its_array_is_shown_alone() -> None:
    site = SampleSite([job(20, array_job_id=20, tasks=((0, 9, 1),), array_limit=3)])
    assert Run("scontrol show job 20_1", site).out.startswith(
        "JobId=20 ArrayJobId=20 ArrayTaskId=1 ArrayTaskThrottle=3 JobName=wrap\n"
    )
    assert Run("scontrol show job 20", site).out.startswith("JobId=20 ArrayJobId=20 ArrayTaskId=0-9%3 ")
    assert Run("scontrol show job 20_77", site).err == "Job 20_77 not found\n"


@pytest.mark.parametrize(
    ("line", "out", "err", "code"),
    [
        ("show job 999", "", "slurm_load_jobs error: Invalid job id specified\n", 1),
        ("show job abc", "", "scontrol_print_job error: Invalid job id specified\n", 1),
        ("show job 1 2", "", "too many arguments for keyword:show\n", 1),
        ("show foo", "", "invalid entity:foo for keyword:show\n", 1),
        ("show", "", "too few arguments for keyword:show\n", 1),
        ("show node n9", "Node n9 not found\n", "", 1),
        ("show partition nosuch", "Partition nosuch not found\n", "", 1),
        ("show res", "No reservations in the system\n", "", 0),
        ("show res nosuch", "Reservation nosuch not found\n", "", 1),
        ("show lic nosuch", "", 'scontrol: error: query "nosuch" matched zero licenses.\n', 1),
        ("show hostnames n[1-2],m", "n1\nn2\nm\n", "", 0),
        ("show hostname n1", "n1\n", "", 0),
        ("show hostnames", "", "scontrol: error: host list is empty\n", 0),
        ("show hostlist n3,n1,n2", "n[3,1-2]\n", "", 0),
        ("show hostlistsorted n3,n1,n2", "n[1-3]\n", "", 0),
        ("show step abc", "", "scontrol: error: scontrol_print_step: slurm_get_job_steps(abc) failed: JobID can not be zero\n", 1),
        ("frobnicate", "", "invalid keyword: frobnicate\n", 1),
        ("hold", "", "too few arguments for keyword:hold\n", 1),
        ("update", "", "too few arguments for update keyword\n", 1),
        ("update foo=bar", "", 'No valid entity in update command\nInput line must include "NodeName", "PartitionName",'
         ' "Reservation", "JobId", or "SlurmctldDebug"\n', 1),
        ("update jobid=12 foo=1", "", "Update of this parameter is not supported: foo=1\nRequest aborted\n", 1),
        ("update jobid=12 timelimit", "", "Invalid input: timelimit\nRequest aborted\n", 1),
        ("update jobid=12 timelimit=abc", "", "scontrol: error: Invalid TimeLimit value\n", 1),
        ("update jobid=12", "", "No changes specified\n", 1),
        ("update nodename=n3 state=drain", "",
         "You must specify a reason when DOWNING or DRAINING a node. Request denied\n", 1),
        ("update partition=debug state=foo", "", "scontrol: error: Invalid input: state=foo\n"
         "scontrol: error: Acceptable State values are UP, DOWN, DRAIN and INACTIVE\n", 1),
        ("create reservation=x duration=5", "",
         "scontrol: error: A start time must be given.  No reservation created.\n", 1),
        ("token lifespan=abc", "", 'scontrol: error: Invalid numeric value "abc" for lifespan.\n', 1),
        ("token username=bob", "", "scontrol: error: slurm_fetch_token: error with request: Invalid user id\n", 1),
        ("setdebug foo", "", "invalid debug level: foo\n", 1),
        ("version", "slurm-wlm 26.05.5\n", "", 0),
        ("-V", "slurm-wlm 26.05.5\n", "", 0),
    ],
)  # fmt: skip
def test_answers_without_the_controller(line: str, out: str, err: str, code: int) -> None:
    run = Run(f"scontrol {line}", held())
    assert (run.out, run.err, run.rc) == (out, err, code)


@pytest.mark.parametrize(
    ("line", "answer", "err"),
    [
        ("hold 12", SlurmErrno.INVALID_JOB_ID, "Invalid job id specified for job 12\nslurm_suspend error:Invalid job id specified\n"),
        ("hold 12", SlurmErrno.ALREADY_DONE, "Job has already finished for job 12\nslurm_suspend error:Job has already finished\n"),
        ("suspend 12", SlurmErrno.ACCESS_DENIED, "Access/permission denied for job 12\n"),
        ("resume 12", SlurmErrno.DISABLED, "Job is not suspended for job 12\n"),
        ("requeue 12", SlurmErrno.JOB_PENDING, "Job is pending execution for job 12\n"),
        ("notify 12 hello", SlurmErrno.JOB_PENDING, "job notify failure: Requested operation is presently disabled\n"),
        ("update jobid=12 nice=-5", SlurmErrno.ACCESS_DENIED, "Access/permission denied for job 12\n"),
    ],
)  # fmt: skip
def test_refusals_are_worded_by_the_request(line: str, answer: SlurmErrno, err: str) -> None:
    run = Run(f"scontrol {line}", held(), refused(answer))
    assert (run.err, run.rc) == (err, 1)


def test_refused_tasks_of_an_array_are_named_together() -> None:
    answer = Outcome(results=tuple((f"20_{task}", SlurmErrno.JOB_NOT_PENDING) for task in (1, 2, 4)))
    run = Run("scontrol update jobid=20_[1-2,4] numtasks=3", held(), answer)
    assert run.err == "20_[1-2,4]: Job is no longer pending execution\n"


def test_an_update_goes_out_typed() -> None:
    run = Run(
        "scontrol update job=12 TimeLimit=1-0 starttime=2030-02-02 numnodes=2-4 name=x gres=gpu:1 requeue=0", held(), OK
    )
    assert run.asked == [
        Change(
            verb="update",
            job_id=12,
            fields=(
                ("TimeLimit", 1440),
                ("StartTime", 1896220800),
                ("NumNodes", (2, 4)),
                ("Name", "x"),
                ("Gres", "gpu:1"),
                ("Requeue", False),
            ),
        )
    ]


def test_a_relative_limit_counts_from_the_present_one() -> None:
    site = SampleSite([job(12, time_limit=10)])
    assert Run("scontrol update jobid=12 timelimit=+5", site, OK).asked[0].fields == (("TimeLimit", 15),)
    assert Run("scontrol update jobid=12 timelimit-=3", site, OK).asked[0].fields == (("TimeLimit", 7),)


def test_jobs_are_held_by_name() -> None:
    run = Run("scontrol hold jobname=held", held(), OK)
    assert run.asked == [Change(verb="hold", job_id=12)]


def test_reservations_are_made_and_shown() -> None:
    site = held()
    line = (
        "scontrol create reservation reservationname=r1 starttime=2030-01-01T00:00:00 duration=60 users=alice nodes=n4"
    )
    run = Run(line, site, AlterOutcome(detail="r1"), uid=0)
    assert run.out == "Reservation created: r1\n"
    assert isinstance(run.asked[0], Alter) and run.asked[0].target == "r1"
    site.booked = [
        Reservation(
            name="r1",
            start_time=1893456000,
            end_time=1893459600,
            nodes=("n4",),
            users=("alice",),
            flags=("SPEC_NODES",),
        )
    ]
    assert Run("scontrol show res r1", site).out == (
        "ReservationName=r1 StartTime=2030-01-01T00:00:00 EndTime=2030-01-01T01:00:00 Duration=01:00:00\n"
        "   Nodes=n4 NodeCnt=1 CoreCnt=8 Features=(null) PartitionName=(null) Flags=SPEC_NODES\n"
        "   TRES=cpu=8\n"
        "   AllowedPartitions=(null) QOS=(null)\n"
        "   Users=alice Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null)\n"
        "   MaxStartDelay=(null)\n\n"
    )


def test_licences_are_listed_by_name() -> None:
    site = held()
    licences = (LicenseConf(name="matlab", total=10), LicenseConf(name="ansys", total=4))
    site.config = type(site.config)(licenses=licences)
    assert Run("scontrol show lic", site).out == (
        "LicenseName=ansys\n    Total=4 Used=0 Free=4 Reserved=0 Remote=no\n"
        "LicenseName=matlab\n    Total=10 Used=0 Free=10 Reserved=0 Remote=no\n"
    )


def test_the_configuration_is_listed_in_slurms_form() -> None:
    lines = Run("scontrol show config", held()).out.split("\n")
    assert "MinJobAge               = 300 sec" in lines
    assert "SchedulerType           = sched/backfill" in lines
    assert lines[-2] == "Slurmctld(primary) at localhost is UP"


def test_commands_are_read_from_standard_input() -> None:
    run = Run("scontrol", held(), FileData(data=b"ping\n"), FileData())
    assert run.out == "scontrol: ping\nSlurmctld(primary) at localhost is UP\nscontrol: \n"


@pytest.mark.parametrize("word", ["completing", "details", "exit", "oneliner", "ping", "quiet", "quit", "reconfigure"])
def test_words_that_mean_nothing_are_refused(word: str) -> None:
    run = Run(f"scontrol {word} extra", held())
    assert (run.rc, run.err) == (1, f"too many arguments for keyword:{word}\n")


def test_a_script_is_written_to_the_callers_file() -> None:
    run = Run("scontrol write batch_script 12", held(), b"#!/bin/sh\ntrue\n", FileData())
    assert run.asked[-1] == WriteFile(name="slurm-12.sh", data=b"#!/bin/sh\ntrue\n")
    assert (run.rc, run.out) == (0, "batch script for job 12 written to slurm-12.sh\n")
    run = Run("scontrol write batch_script 12 /nowhere/x", held(), b"#!/bin/sh\n", FileData(errno=2))
    assert (run.rc, run.err) == (0, "failed to open file `/nowhere/x`: No such file or directory\n")


def test_the_line_before_is_typed_again_by_two_marks() -> None:
    lines = (b"version\n", b"!!\n", b'version "open\n', b"quit\n")
    run = Run("scontrol", held(), *(FileData(data=line) for line in lines))
    assert run.out.count("slurm-wlm 26.05.5") == 2
    assert (run.rc, run.err) == (1, "too many arguments for version keyword\n")


def test_hidden_partitions_need_the_option() -> None:
    assert "PartitionName=debug" in Run("scontrol show partition", held()).out
    assert Run("scontrol -o show part small", held()).out.startswith("PartitionName=small AllowGroups=ALL ")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("scontrol hol 9", "invalid keyword: hol\n"),
        ("scontrol uhol 9", "invalid keyword: uhol\n"),
        ("scontrol requeuehol 9", "invalid keyword: requeuehol\n"),
        (
            "scontrol delete foo",
            "scontrol: error: Proper format is 'delete <ENTITY>=<ID>' or 'delete <ENTITY> <ID>'\n",
        ),
        ("scontrol delete foo=1", "Invalid deletion entity: foo=1\n"),
        ("scontrol delete p=1", "Invalid deletion entity: p=1\n"),
    ],
)
def test_keywords_are_no_shorter_than_slurms(line: str, told: str) -> None:
    run = Run(line, held())
    assert (run.rc, run.err) == (1, told)


@pytest.mark.parametrize(("words", "text"), [("2017", "Invalid job id specified"), ("2", "No such file or directory")])
def test_errnumstr_has_the_texts_of_both_tables(words: str, text: str) -> None:
    run = Run(f"scontrol errnumstr {words}", SampleSite())
    assert (run.rc, run.out, run.err) == (0, text + "\n", "")


def test_every_node_is_shown_in_the_order_of_names() -> None:
    lines = Run("scontrol -o show node", SampleSite()).out.splitlines()
    names = [line.split()[0] for line in lines]
    assert names == sorted(names)
