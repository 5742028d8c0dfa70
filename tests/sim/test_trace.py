"""Traces of every format become the same records, and a broken line is an error with its place."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmbridge.sim import machines, trace, trace_csv
from slurmbridge.sim.pool import Pool
from slurmbridge.sim.workload import Machine, TraceError, TraceJob

SWF = """\
; Version: 2.2
; MaxNodes: 4
; MaxProcs: 16
  1   0  10  100   4  -1  -1   4  200  -1  1  7  3  -1 -1 -1 -1 -1
  2  50  -1   60  16  -1  -1  -1   -1  -1  1  8  3  -1 -1 -1 -1 -1
  3  60   0    0   2  -1  -1   2  100  -1  5  7  3  -1 -1 -1 -1 -1
  4  65   0   30   2  -1  -1   2  100  -1  3  7  3  -1 -1 -1 -1 -1
  4  70   0  300   2  -1 2048   2  100  -1  1  7 -1  -1 -1 -1 -1 -1
"""


def test_swf_jobs_ask_for_processors_that_may_lie_anywhere() -> None:
    found = trace.read(SWF, "log.swf")
    first = found.jobs[0]
    assert (first.id, first.submit_s, first.run_s, first.limit_s) == ("1", 0, 100, 200)
    assert (first.nodes, first.cpus, first.user, first.account, first.start_s) == (0, 4, "user7", "group3", 10)


def test_swf_without_a_requested_time_or_size_uses_what_was_used() -> None:
    second = trace.read(SWF, "log.swf").jobs[1]
    assert (second.cpus, second.limit_s, second.start_s) == (16, 60, None)


def test_swf_limits_are_never_below_run_times_and_only_whole_jobs_that_ran_count() -> None:
    found = trace.read(SWF, "log.swf")
    assert [job.id for job in found.jobs] == ["1", "2", "4"] and found.left_out == 2
    assert found.jobs[2].limit_s == found.jobs[2].run_s == 300


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("; MaxNodes: 4\n; MaxProcs: 16\n", (4, 4)),
        ("; MaxProcs: 128\n", (2, 64)),
        ("; MaxNodes: 100\n", (100, 1)),
        ("; MaxNodes: 128\n; MaxProcs: 128\n", (2, 64)),
    ],
)
def test_swf_header_gives_the_cluster(header: str, expected: tuple[int, int]) -> None:
    line = "1 0 0 10 1 -1 -1 1 20 -1 1 1 1 -1 -1 -1 -1 -1\n"
    (machine,) = machines.for_trace(trace.read(header + line, "x.swf"))
    assert (machine.count, machine.cpus) == expected


def test_swf_processors_that_do_not_divide_keep_their_number() -> None:
    line = "1 0 0 10 1 -1 -1 1 20 -1 1 1 1 -1 -1 -1 -1 -1\n"
    found = machines.for_trace(trace.read("; MaxProcs: 430\n" + line, "x.swf"))
    assert sum(each.count * each.cpus for each in found) == 430


SACCT = """\
JobID|User|Account|Partition|Submit|Start|End|Elapsed|Timelimit|NNodes|NCPUS|ReqTRES|State
12|Alice|Physics|gpu|2026-01-01T00:00:00|2026-01-01T00:01:00|2026-01-01T01:01:00|01:00:00|1-00:00:00|2|16|billing=16,cpu=16,gres/gpu=8,gres/gpu:a100=8,mem=62.50G,node=2|COMPLETED
12.batch|||||2026-01-01T00:01:00|2026-01-01T01:01:00|01:00:00||1|8||COMPLETED
13|bob|physics|debug|2026-01-01T00:00:05|Unknown|Unknown|00:00:00|UNLIMITED|1|1|cpu=1,node=1|CANCELLED
14_7|bob|chem|debug|2026-01-01T00:00:09|2026-01-01T00:00:10|2026-01-01T00:00:40|00:00:30|UNLIMITED|1|1|billing=1,cpu=1,gres/gpu=0.25,mem=500M,node=1|COMPLETED
"""  # fmt: skip


def test_sacct_rows_of_jobs_count_and_those_of_steps_do_not() -> None:
    found = trace.read(SACCT, "sacct.txt")
    assert [job.id for job in found.jobs] == ["12", "14_7"] and found.left_out == 1
    gang, fraction = found.jobs
    assert (gang.user, gang.account, gang.nodes, gang.cpus, gang.gpus, gang.gpu_type) == (
        "alice", "physics", 2, 8, 4, "a100",
    )  # fmt: skip
    assert (gang.mem_mib, gang.run_s, gang.limit_s) == (32000, 3600, 86400)
    assert (fraction.gpus, fraction.gpu_milli, fraction.mem_mib) == (1, 250, 500)
    assert fraction.limit_s == fraction.run_s == 30


OPENB = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p0,12000,16384,1,1000,,LS,Running,0,100,0
p1,6000,12288,1,460,V100M32,BE,Running,5,205,7
p2,88000,327680,8,1000,V100M16|V100M32,Burstable,Succeeded,6,60,10
p3,500,1024,0,0,,LS,Pending,8,60,
"""
HELIOS = """\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
1,uA,vcX,16,64,2,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:11,2020-06-09 18:42:51,100,10
2,uA,vcX,1,1,1,CANCELLED,2020-06-09 18:41:02,None,None,0,0
"""
PHILLY = """[
 {"status": "Pass", "vc": "ee9e8c", "jobid": "application_1", "submitted_time": "2017-10-07 01:11:39", "user": "ce2f4c",
  "attempts": [
   {"start_time": "2017-10-07 01:12:09", "end_time": "2017-10-07 01:12:19", "detail": [{"ip": "m47", "gpus": ["gpu0", "gpu1"]}]},
   {"start_time": "2017-10-07 01:12:30", "end_time": "2017-10-07 01:13:09", "detail": [{"ip": "m48", "gpus": ["gpu0", "gpu1"]}]}]},
 {"status": "Killed", "vc": "ee9e8c", "jobid": "application_2", "submitted_time": "2017-10-07 01:11:40", "user": "ce2f4c", "attempts": []}
]"""  # fmt: skip


def test_openb_pods_may_share_devices_and_unbound_ones_are_left_out() -> None:
    found = trace.read(OPENB, "openb_pod_list_default.csv")
    whole, part, many = found.jobs
    assert found.left_out == 1
    assert (whole.cpus, whole.gpus, whole.gpu_milli, whole.run_s) == (12, 1, 1000, 100)
    assert (part.gpu_milli, part.gpu_type, part.account, part.run_s) == (460, "V100M32", "be", 198)
    assert (many.gpus, many.gpu_milli, many.gpu_type) == (8, 1000, "")


def test_helios_counts_are_of_the_whole_job() -> None:
    (job,) = trace.read(HELIOS, "cluster_log.csv").jobs
    assert (job.nodes, job.gpus, job.cpus, job.run_s, job.account) == (2, 8, 32, 100, "vcx")


def test_philly_attempts_are_one_run() -> None:
    found = trace.read(PHILLY, "cluster_job_log")
    (job,) = found.jobs
    assert (job.id, job.gpus, job.nodes, job.run_s, job.account) == ("application_1", 2, 1, 60, "ee9e8c")
    assert found.left_out == 1


@pytest.mark.parametrize(
    ("name", "text", "line", "word"),
    [
        ("a.swf", "; MaxProcs: 4\n1 0 0 10 1\n", 2, "5 fields"),
        ("a.swf", "1 0 0 x 1 -1 -1 1 20 -1 1 1 1 -1 -1 -1 -1 -1\n", 1, "'x'"),
        ("a.swf", "1 0 0 inf 1 -1 -1 1 20 -1 1 1 1 -1 -1 -1 -1 -1\n", 1, "out of range"),
        ("a.swf", "1 0 0 10 1 -1 -1 nan 20 -1 1 1 1 -1 -1 -1 -1 -1\n", 1, "out of range"),
        ("a.csv", "id,submit_s,run_s\nj,0,5\nk,zero,5\n", 3, "submit_s"),
        ("a.csv", "id,submit_s,run_s\nj,inf,5\n", 2, "out of range"),
        ("a.csv", "id,submit_s,run_s\nj,0,1e400\n", 2, "out of range"),
        ("a.csv", "id,submit_s,run_s\nj,0,5\nj,1,5\n", 3, "also that of line 2"),
        ("a.csv", "id,submit_s,run_s\nj,0\n", 2, "2 columns"),
        ("a.csv", "id,submit_s,run_s,colour\nj,0,1,red\n", 1, "colour"),
        ("a.csv", "id,submit_s,run_s,nodes\nj,0,1,0\n", 2, "at least 1"),
        ("a.csv", "id,submit_s,run_s,gpu_milli\nj,0,1,1200\n", 2, "more than a device"),
        ("a.csv", "id,submit_s,run_s,preemptible\nj,0,1,perhaps\n", 2, "perhaps"),
        ("a.csv", "what,is,this\n1,2,3\n", 1, "no layout"),
        ("a.txt", SACCT.replace("1-00:00:00", "tomorrow"), 2, "Timelimit"),
        ("a.txt", SACCT.replace("mem=62.50G", "mem=much"), 2, "size"),
        ("a.txt", SACCT.replace("mem=62.50G", "gres/gpu=1e999"), 2, "out of range"),
        ("a.csv", OPENB.replace("p1,6000", "p1,six"), 3, "cpu_milli"),
        ("a.csv", HELIOS.replace("2020-06-09 18:41:01", "yesterday"), 2, "submit_time"),
        ("a.csv", "id,submit_s,run_s\n", 1, "no job"),
    ],
)  # fmt: skip
def test_a_line_that_cannot_be_read_is_an_error_with_its_place(name: str, text: str, line: int, word: str) -> None:
    with pytest.raises(TraceError) as caught:
        trace.read(text, name)
    assert str(caught.value).startswith(f"{name}:{line}: ") and word in str(caught.value)


NAMES = st.from_regex(r"[a-z][a-z0-9]{0,7}", fullmatch=True)


@st.composite
def jobs(draw: st.DrawFn) -> list[TraceJob]:
    found = []
    for number in range(draw(st.integers(1, 3))):
        run = float(draw(st.integers(0, 10_000))) / 4
        found.append(
            TraceJob(
                id=f"j{number}",
                submit_s=float(number),
                run_s=run,
                limit_s=run + draw(st.integers(0, 100)),
                user=draw(NAMES),
                account=draw(NAMES),
                partition=draw(st.sampled_from(["", "gpu"])),
                nodes=draw(st.integers(1, 9)),
                cpus=draw(st.integers(1, 99)),
                mem_mib=draw(st.integers(0, 1 << 30)),
                gpus=draw(st.integers(0, 8)),
                gpu_milli=draw(st.integers(1, 1000)),
                gpu_mem_mib=draw(st.integers(0, 81_920)),
                gpu_type=draw(st.sampled_from(["", "a100"])),
                preemptible=draw(st.booleans()),
                priority=draw(st.integers(0, 200)),
            )
        )
    return found


@settings(max_examples=30, deadline=None)
@given(found=jobs())
def test_our_csv_read_back_is_what_was_written(found: list[TraceJob]) -> None:
    words = [job for job in found if job.user not in trace_csv.NOTHING and job.account not in trace_csv.NOTHING]
    if words:
        assert list(trace.read(trace_csv.write(words), "trace.csv").jobs) == words


def test_a_cluster_file_gives_nodes_with_devices() -> None:
    text = "node,count,cpus,mem_mib,gpus,gpu_type,gpu_mem_mib\ng,2,96,786432,8,a100,81920\nn,1,32,65536,0,,\n"
    found = machines.read(text, "cluster.csv")
    assert found == (
        Machine(node="g", count=2, cpus=96, mem_mib=786432, gpus=8, gpu_type="a100", gpu_mem_mib=81920),
        Machine(node="n", cpus=32, mem_mib=65536),
    )
    assert machines.read(machines.write(found), "again.csv") == found
    assert [(node.name, len(node.devices)) for node in machines.nodes_of(found)] == [("g0", 8), ("g1", 8), ("n", 0)]


@pytest.mark.parametrize(
    ("text", "line"),
    [("node,count,cpus\nn,1,0\n", 2), ("node,cpus,colour\nn,1,red\n", 1), ("node,count\nn,1\n", 1), ("node,cpus\n", 1)],
)
def test_a_wrong_cluster_file_is_an_error_with_its_place(text: str, line: int) -> None:
    with pytest.raises(TraceError, match=f"^c.csv:{line}: "):
        machines.read(text, "c.csv")


def test_the_node_list_of_openb_is_a_cluster() -> None:
    found = machines.read("sn,cpu_milli,memory_mib,gpu,model\nx-1,96000,786432,8,V100M32\n", "nodes.csv")
    assert found == (Machine(node="x-1", cpus=96, mem_mib=786432, gpus=8, gpu_type="V100M32"),)


@settings(max_examples=30, deadline=None)
@given(found=jobs())
def test_a_cluster_made_for_a_trace_holds_each_of_its_jobs(found: list[TraceJob]) -> None:
    pool = Pool(machines.derived(found))
    assert all(pool.place(pool.need(job), pool.room) is not None for job in found)
