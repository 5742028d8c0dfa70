"""Rules of sbatch: who wins, where values come from, what goes along, what is refused."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmbridge.errors import SlurmErrno
from slurmbridge.model.accounts import Limits
from slurmbridge.model.job import GpuNeed, GpuScope, JobSpec
from slurmbridge.submit.exporting import exported, read_file
from slurmbridge.submit.policy import check
from tests.submit.submit_player import play
from tests.submit.submit_site import SubmitSite, read_config

SITE = SubmitSite()
FREE = SubmitSite(msgspec.structs.replace(read_config(), gres_types=("gpu", "shard", "mps")))


def script(*directives: str) -> dict[str, str]:
    return {"job.sh": "#!/bin/bash\n" + "".join(f"{line}\n" for line in directives) + "true\n"}


def spec_of(*words: str, site: SubmitSite = SITE, **more: object) -> JobSpec:
    played = play(["sbatch", *words, "--wrap", "true"], site, **more)  # type: ignore[arg-type]
    assert played.code == 0, played.stderr
    return played.jobs[0].spec


def origin(spec: JobSpec, field: str) -> tuple[str, str]:
    found = dict(spec.request.provenance)[field]
    return found.source, found.place


def test_the_command_line_wins_over_the_environment_and_that_over_directives() -> None:
    files = script("#SBATCH -t 20 -J script --comment=script")
    env = {"SBATCH_TIMELIMIT": "10", "SBATCH_JOB_NAME": "env"}
    spec = play(["sbatch", "-t", "30", "job.sh"], SITE, env=env, files=files).jobs[0].spec
    assert (spec.time_limit, spec.name, spec.comment) == (30, "env", "script")
    assert origin(spec, "time_limit") == ("command line", "")
    assert origin(spec, "name") == ("environment", "SBATCH_JOB_NAME")
    assert origin(spec, "comment") == ("directive", "job.sh:2:25")


def test_bridge_lines_carry_our_options_and_nothing_else_needs_them() -> None:
    spec = play(["sbatch", "job.sh"], SITE, files=script("#BRIDGE --gpu-memory=40G", "#SBATCH -p gpu --gres=gpu:2"))
    assert spec.jobs[0].spec.gpu == GpuNeed(scope=GpuScope.NODE, count=2, mib=40 * 1024)


@pytest.mark.parametrize(
    ("words", "need", "milli"),
    [
        (["--gres=gpu:0.5"], GpuNeed(scope=GpuScope.NODE, count=1, milli=500), 500),
        (["--gres=gpu:a100:0.25"], GpuNeed(scope=GpuScope.NODE, count=1, type="a100", milli=250), 250),
        (["--gpu-fraction=0.5"], GpuNeed(scope=GpuScope.NODE, count=1, milli=500), 500),
        (["--gres=gpu:2", "--gpu-fraction=0.5"], GpuNeed(scope=GpuScope.NODE, count=2, milli=500), 1000),
        (["--gpus=3", "--gpu-memory=20G"], GpuNeed(scope=GpuScope.JOB, count=3, mib=20480), 750),
        (["--gpus-per-task=1", "-n4"], GpuNeed(scope=GpuScope.TASK, count=1), 4000),
        (["--gres=mps:30"], GpuNeed(scope=GpuScope.NODE, count=1, milli=300), 300),
        (["--ntasks-per-gpu=2", "-n4"], GpuNeed(scope=GpuScope.JOB, count=2), 2000),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_shares_of_devices_are_counted_exactly(words: list[str], need: GpuNeed, milli: int) -> None:
    spec = spec_of("-p", "gpu", *words, site=FREE)
    assert spec.gpu == need
    assert dict(spec.req_tres)["gres/gpu"] == milli


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--gpu-fraction=1.5"], "Invalid --gpu-fraction"),
        (["--gpu-fraction=0"], "Invalid --gpu-fraction"),
        (["--gpu-memory=x"], "Invalid --gpu-memory specification"),
        (["--gpu-fraction=0.5", "--gpu-memory=1G"], "two ways to say the same"),
        (["--container-image=ubuntu"], "images are not available"),
        (["--container=/x"], "container bundles are not available"),
        (["--gres=gpu:a100:0.5,gpu:v100:1"], "beside GPUs of other types"),
        (["--preemptible=perhaps"], "Invalid --preemptible specification"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_done_is_refused_with_a_reason(words: list[str], text: str) -> None:
    played = play(["sbatch", *words, "--wrap", "true"], SITE)
    assert played.code != 0
    assert text in played.stderr
    assert not played.jobs


def test_our_options_take_no_abbreviation_from_slurms() -> None:
    assert spec_of("--gpu-f=high").tres_freq == "gpu:high"
    assert play(["sbatch", "--gpu-fract=0.5", "--wrap", "true"], SITE).code == 255


def test_a_wrong_value_comes_out_before_a_missing_script() -> None:
    assert play(["sbatch", "-n", "x", "nofile"], SITE).stderr.startswith('sbatch: error: Invalid numeric value "x"')


def test_only_the_leader_of_a_heterogeneous_job_sends_mail() -> None:
    played = play(["sbatch", "--mail-type=END", ":", "-n2", "--mail-type=FAIL", "--wrap", "true"], SITE)
    assert [job.spec.mail_type for job in played.jobs] == [("END",), ()]


@dataclass
class Ended:
    exit_code: int


@pytest.mark.parametrize(
    ("statuses", "code"),
    [([0], 0), ([3 << 8, 1 << 8, 2 << 8], 3), ([9], 1), ([0, 15], 1)],
    ids=["success", "highest task", "signal", "one signalled"],
)
def test_waiting_ends_with_the_highest_exit_code_and_one_for_a_signal(statuses: list[int], code: int) -> None:
    played = play(["sbatch", "-W", "--wrap", "true"], SITE, ended=tuple(Ended(status) for status in statuses))
    assert played.code == code


def test_a_nonzero_slurm_exit_error_replaces_the_exit_code_of_refusals_only() -> None:
    env = {"SLURM_EXIT_ERROR": "77"}
    assert play(["sbatch", "-A", "nosuch", "--wrap", "true"], SITE, env=env).code == 77
    assert play(["sbatch", "--mem=x", "--wrap", "true"], SITE, env=env).code == 255


ENV = {"FOO": "bar", "BAZ": "x", "SLURM_JOB_ID": "5"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, {"FOO": "bar", "BAZ": "x", "SLURM_JOB_ID": "5"}),
        ("ALL", {"FOO": "bar", "BAZ": "x", "SLURM_JOB_ID": "5"}),
        ("ALL,A=1", {"FOO": "bar", "BAZ": "x", "SLURM_JOB_ID": "5", "A": "1"}),
        ("NONE", {"SLURM_JOB_ID": "5"}),
        ("NIL", {"SLURM_JOB_ID": "5"}),
        ("FOO,A=1", {"FOO": "bar", "SLURM_JOB_ID": "5", "A": "1"}),
        ("MISSING", {"SLURM_JOB_ID": "5"}),
    ],
)
def test_export_chooses_what_goes_along(text: str | None, expected: dict[str, str]) -> None:
    found = exported(text, ENV, "/w")
    assert isinstance(found, tuple)
    assert dict(found) == {**expected, "SLURM_SUBMIT_DIR": "/w"}


def test_an_export_file_holds_strings_ended_by_nul() -> None:
    assert read_file(b"A=1\0B=x\ny\0") == {"A": "1", "B": "x\ny"}
    assert read_file(b"A=1\nB=2\n") == {"A": "1", "B": "2"}


def test_submit_limits_hold_whatever_the_qos_says() -> None:
    qos = msgspec.structs.replace(SITE.accounting.qos[0], limits=Limits(max_submit=5))
    refused = check((), 1, "alice", 3, qos, None, SITE.accounting, SITE.config, lambda user, account, name: 3)
    assert refused is not None
    assert (refused.errno, refused.before) == (SlurmErrno.ACCOUNTING_POLICY, ("QOSMaxSubmitJobPerUserLimit",))
    assert check((), 1, "alice", 2, qos, None, SITE.accounting, SITE.config, lambda user, account, name: 3) is None


@pytest.mark.parametrize(
    ("mode", "words", "code"),
    [
        ("NO", ["-p", "small", "-t", "60"], 0),
        ("ALL", ["-p", "small", "-t", "60"], 1),
        ("ALL", ["-p", "small,debug", "-t", "60"], 1),
        ("ANY", ["-p", "small,debug", "-t", "60"], 0),
        ("ANY", ["-p", "small", "-N2"], 1),
        ("ALL", ["-p", "restricted"], 1),
        ("ALL", ["-p", "long", "-q", "high"], 1),
    ],
)
def test_enforce_part_limits_refuses_what_would_only_wait(mode: str, words: list[str], code: int) -> None:
    site = SubmitSite(read_config(f"EnforcePartLimits={mode}\n"))
    assert play(["sbatch", *words, "--wrap", "true"], site).code == code


def test_a_dependency_on_an_unknown_job_is_refused() -> None:
    played = play(["sbatch", "-d", "afterok:9999999", "--wrap", "true"], SITE)
    assert played.stderr == "sbatch: error: Batch job submission failed: Job dependency problem\n"


def test_a_user_without_an_association_is_refused() -> None:
    assert "Invalid account" in play(["sbatch", "--wrap", "true"], SITE, user="carol").stderr


def test_root_may_submit_as_somebody_else() -> None:
    spec = spec_of("--uid=alice", user="root")
    assert (spec.uid, spec.user, spec.account, spec.gid) == (1001, "alice", "physics", 0)


WORDS = st.sampled_from(
    ["-n", "-N", "2", "1-3", "--mem=", "--gres=gpu:", "a100:2", ":", "--exclusive", "-p", "gpu", "debug,long", "-t", "--",
     "--gpus-per-task=1", "--ntasks-per-node=3", "-a", "1-5%2", "-d", "afterok:1", "-C", "cpu&", "--wrap", "x", "-w", "n[1-",
     "--signal=B:USR1@5", "--export=ALL,A='", "-B", "2:2", "--segment=2", "-m", "plane=2", "--cpus-per-gpu=2", "-L", "matlab"]
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(WORDS | st.text(max_size=6), max_size=9))
def test_no_command_line_makes_it_raise(words: list[str]) -> None:
    played = play(["sbatch", *words], SITE, stdin="#!/bin/sh\n")
    assert (played.code == 0) == bool(played.jobs) or played.code in (0, 255)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from(["#SBATCH ", "#PBS ", "#BSUB ", "#BRIDGE ", ""]), max_size=4), st.lists(WORDS, max_size=9)
)
def test_no_script_makes_it_raise(kinds: list[str], words: list[str]) -> None:
    files = script(*(kind + " ".join(words[at : at + 3]) for at, kind in enumerate(kinds)))
    assert play(["sbatch", "job.sh"], SITE, files=files).code in (0, 1, 255)
