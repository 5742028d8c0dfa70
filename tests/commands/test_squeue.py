"""squeue's answers. Layout and wording as Slurm 26.05.5 gives them to the command lines shown."""

from __future__ import annotations

import json

import pytest

from slurmbridge.commands import squeue
from slurmbridge.model.job import Step
from slurmbridge.model.states import JobState
from tests.commands.sample_site import NOW, Ran, SampleSite, ended, job, running

HEADING = "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"


def site() -> SampleSite:
    return SampleSite(
        [
            running(367, ["n1"], time_limit=30, name="runner", cpus=2, priority=10173),
            running(368, ["n1", "n2", "n3", "n4"], seconds=5, name="filler", priority=10174),
            job(369, partitions=("debug", "long"), name="held", qos="high", min_nodes=2, time_limit=1564),
            job(370, name="later", reason="BeginTime", start_time=NOW + 1000, priority=5),
            job(
                371, array_job_id=371, tasks=((0, 9, 1),), array_limit=3, reason="Resources", priority=10178, name="arr"
            ),
            job(372, array_job_id=372, tasks=((1, 5, 2), (10, 20, 5)), name="arrheld"),
            job(373, uid=1002, name="bobjob"),
            job(374, het_job_id=374, het_ids=(374, 375), name="het"),
            job(375, het_job_id=374, het_offset=1, het_ids=(374, 375), name="het"),
            ended(376, JobState.FAILED, 256, name="gone", reason="NonZeroExitCode"),
        ],
        steps=[Step(job_id=367, step_id=0, name="sleep", start_time=NOW - 8, nodes=("n1",), num_tasks=2, cpus=2)],
    )


def ids(line: str, **call: object) -> list[str]:
    return Ran(squeue.main, [*line.split(), "-h", "-o", "%i"], site(), **call).out.split()


def test_the_default_listing_is_by_partition_state_and_priority() -> None:
    ran = Ran(squeue.main, "squeue", site())
    assert ran.out == HEADING + (
        "       371_[0-9%3]     debug      arr    alice PD       0:00      1 (Resources)\n"
        "               370     debug    later    alice PD       0:00      1 (BeginTime)\n"
        "             374+1     debug      het    alice PD       0:00      1 (JobHeldUser)\n"
        "             374+0     debug      het    alice PD       0:00      1 (JobHeldUser)\n"
        "               373     debug   bobjob      bob PD       0:00      1 (JobHeldUser)\n"
        "372_[1,3,5,10,15,2     debug  arrheld    alice PD       0:00      1 (JobHeldUser)\n"
        "               368     debug   filler    alice  R       0:05      4 n[1-4]\n"
        "               367     debug   runner    alice  R       0:08      1 n1\n"
        "               369 debug,lon     held    alice PD       0:00      2 (JobHeldUser)\n"
    )
    assert (ran.rc, ran.err) == (0, "")


def test_start_lists_waiting_jobs_by_expected_start() -> None:
    ran = Ran(squeue.main, "squeue --start -j 370", site())
    assert ran.out.splitlines() == [
        "             JOBID PARTITION     NAME     USER ST          START_TIME  NODES SCHEDNODES           NODELIST(REASON)",
        "               370     debug    later    alice PD 2026-11-29T21:36:40      1 (null)               (BeginTime)",
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("squeue -u bob", ["373"]),
        ("squeue -u 1002", ["373"]),
        ("squeue -t R", ["368", "367"]),
        ("squeue -t F", ["376"]),
        ("squeue -t all -j 376", ["376"]),
        ("squeue -j 376", []),
        ("squeue -n held,arr", ["371_[0-9%3]", "369"]),
        ("squeue -q high", ["369"]),
        ("squeue -p long", ["369"]),
        ("squeue -w n2", ["368"]),
        ("squeue -A nosuch", []),
        ("squeue -j 371_1", ["371_1"]),
        ("squeue -j371_1", ["371_1"]),
        ("squeue --jobs 371_77", []),
        ("squeue -j 374", ["374+1", "374+0"]),
        ("squeue -j 374+1", ["374+1", "374+0"]),
        ("squeue -j 375", ["374+1"]),
        ("squeue -j 367.0", ["367"]),
        ("squeue -j 367,999999", ["367"]),
        ("squeue -r -j 372", ["372_1", "372_3", "372_5", "372_10", "372_15", "372_20"]),
        ("squeue -P -j 369", ["369", "369"]),
        ("squeue --notme", ["373"]),
        ("squeue -S -i -t R", ["368", "367"]),
        ("squeue -S i -t R", ["367", "368"]),
        ("squeue --running-over=0:06", ["367"]),
        ("squeue --running-under=0:06", ["368"]),
        ("squeue -p nosuch", []),
    ],
)
def test_filters_select_jobs(line: str, expected: list[str]) -> None:
    assert ids(line) == expected


def test_me_is_the_caller() -> None:
    assert ids("squeue --me", uid=1002) == ["373"]


@pytest.mark.parametrize(
    ("line", "err", "code"),
    [
        ("squeue -j 999999", "slurm_load_jobs error: Invalid job id specified\n", 1),
        ("squeue -j abc", "squeue: error: Invalid job id: abc\n", 1),
        ("squeue -j 371_[1-2]", "squeue: error: Invalid job id: 371_[1-2]\n", 1),
        ("squeue -u nosuch", "squeue: error: Invalid user: nosuch\n\n", 0),
        ("squeue -S %%", "squeue: error: Invalid sort specification: %\n", 1),
        ("squeue --foo", "squeue: unrecognized option '--foo'\nTry \"squeue --help\" for more information\n", 1),
        ("squeue -w n9", "squeue: error: Invalid node name n9\n", 1),
        ("squeue -w n[1-", "squeue: error: 'n[1-' invalid entry for --nodelist\n", 1),
        ("squeue -i abc", "squeue: error: --iterate=abc\n\n", 1),
        ("squeue -s 367", "squeue: error: Invalid job_step id: 367.??\n", 1),
        ("squeue --running-over=x", "squeue: fatal: Invalid time limit specification\n", 1),
        ("squeue -o %i -O jobid", "squeue: error: -O (--Format) is incompatible with -o (--format)\n", 1),
    ],
)
def test_mistakes_are_answered_in_slurms_words(line: str, err: str, code: int) -> None:
    ran = Ran(squeue.main, line, site())
    assert (ran.err, ran.rc) == (err, code)


def test_columns_by_name_have_widths_and_suffixes() -> None:
    ran = Ran(squeue.main, "squeue -j 367 -O jobid:10,name:.12,state:5", site())
    assert ran.out == "JOBID             NAMESTATE\n367             runnerRUNNI\n"


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("%a", ["physics", "physics"]),
        ("%B", ["n1", "n/a"]),
        ("%C", ["2", "1"]),
        ("%e", ["2026-11-29T21:49:52", "N/A"]),
        ("%L", ["29:52", "1-02:04:00"]),
        ("%m", ["100M", "100M"]),
        ("%p", ["0.00000236858614", "0.00000000000000"]),
        ("%S", ["2026-11-29T21:19:52", "N/A"]),
        ("%z", ["*:*:*", "*:*:*"]),
        ("%K", ["N/A", "N/A"]),
        ("%r", ["None", "JobHeldUser"]),
    ],
)
def test_values_of_a_running_and_a_held_job(column: str, expected: list[str]) -> None:
    assert Ran(squeue.main, ["squeue", "-h", "-j", "367,369", "-o", column], site()).out.split() == expected


def test_steps_are_listed_with_their_job() -> None:
    assert Ran(squeue.main, "squeue -s", site()).out == (
        "         STEPID     NAME PARTITION     USER      TIME NODELIST\n"
        "          367.0    sleep     debug    alice      0:08 n1\n"
    )


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"SQUEUE_FORMAT": "%i %j"}, "JOBID NAME\n367 runner\n"),
        ({"SQUEUE_FORMAT2": "jobid:5,name:6"}, "JOBIDNAME  \n367  runner\n"),
        ({"SQUEUE_STATES": "PD", "SQUEUE_FORMAT": "%i"}, "JOBID\n"),
        ({"SQUEUE_USERS": "bob", "SQUEUE_FORMAT": "%i"}, "JOBID\n"),
        ({"SLURM_TIME_FORMAT": "%d.%m.%Y", "SQUEUE_FORMAT": "%S"}, "START_TIME\n29.11.2026\n"),
    ],
)
def test_variables_stand_for_options(env: dict[str, str], expected: str) -> None:
    assert Ran(squeue.main, "squeue -j 367", site(), env=env).out == expected


def test_long_array_texts_are_cut_where_the_user_says() -> None:
    assert ids("squeue -j 372", env={"SLURM_BITSTR_LEN": "12"}) == ["372_[1,3,5,10...]"]
    assert ids("squeue -j 372", env={"SLURM_BITSTR_LEN": "0"}) == ["372_[1,3,5,10,15,20]"]


def test_what_is_left_of_a_split_array_stands_where_it_was_copied() -> None:
    split = [
        job(146, array_job_id=146, tasks=((0, 2, 1),), array_limit=0),
        job(147),
        running(153, ["n1"], array_job_id=146, array_task_id=3),
    ]
    out = Ran(squeue.main, ["squeue", "-h", "-t", "PD", "-o", "%i"], SampleSite(split)).out
    assert out.split() == ["146_[0-2]", "147"]


def test_listing_takes_one_pass_however_many_jobs_there_are() -> None:
    class Counted(SampleSite):
        looked_up = 0

        def user_name(self, uid: int) -> str:
            self.looked_up += 1
            return "alice"

        def job(self, job_id: int):  # type: ignore[no-untyped-def]
            raise AssertionError("a listing of all jobs looks none up")

    counted = Counted([job(1000 + index, priority=index % 7) for index in range(2000)])
    ran = Ran(squeue.main, "squeue", counted)
    assert ran.out.count("\n") == 2001
    assert counted.looked_up == 1
    assert not ran.effects


def test_json_has_slurms_frame_and_one_record_per_job() -> None:
    document = json.loads(Ran(squeue.main, "squeue --json -j 367,371", site()).out)
    found = {job["job_id"]: job for job in document["jobs"]}
    assert found[371]["job_state"] == ["PENDING"]
    assert found[371]["array_task_string"] == "0-9%3"
    assert found[367]["time_limit"] == {"set": True, "infinite": False, "number": 30}
    assert document["meta"]["plugin"]["data_parser"] == "data_parser/v0.0.45"
    assert {job["name"] for job in document["jobs"]} == {"runner", "arr"}


def test_a_data_parser_that_does_not_exist_is_refused() -> None:
    ran = Ran(squeue.main, "squeue --json=v0.0.1", site())
    assert ran.rc == 1
    assert "unable to find plugin: data_parser/v0.0.1" in ran.err


def test_several_waiting_tasks_of_an_array_stand_in_one_row() -> None:
    assert ids("squeue -j 371_0,371_3,371_4") == ["371_[0,3-4]"]
    assert ids("squeue -j 371_3") == ["371_3"]
