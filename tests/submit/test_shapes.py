"""Rules of Slurm 26.05 that generated scripts showed, each stated once: counts, hints, GPUs, limits, components."""

from __future__ import annotations

import msgspec
import pytest

from slurmbridge.errors import SlurmErrno
from slurmbridge.model.job import JobSpec
from slurmbridge.model.request import Exclusive
from slurmbridge.model.verdict import Refused
from slurmbridge.submit.components import keep_apart
from tests.submit.submit_player import play
from tests.submit.submit_site import SubmitSite

SITE = SubmitSite()
BAD_GRES = "sbatch: error: Invalid generic resource (gres) specification\n"


def spec_of(*words: str) -> JobSpec:
    played = play(["sbatch", "--hold", *words, "--wrap", "true"], SITE)  # what is held may be of any size
    assert played.code == 0, played.stderr
    return played.jobs[0].spec


def refusal(*words: str) -> str:
    played = play(["sbatch", *words, "--wrap", "true"], SITE)
    assert played.code != 0
    return played.stderr


@pytest.mark.parametrize(
    ("words", "cpus"),
    [
        ("-N1-2 --ntasks-per-node=2 -c2", 2),
        ("-N1-2 --ntasks-per-node=4 -c2", 8),
        ("-N2-4 --ntasks-per-node=8 -c8", 128),
        ("-N1-2 --ntasks-per-node=4 -c16", 16),
        ("-N1-4 --ntasks-per-node=4", 4),
        ("-N1-3 -c3", 3),
        ("-N0 -c2", 2),
        ("-N0", 0),
    ],
)
def test_cpus_of_an_open_number_of_nodes_count_tasks_that_are_more_than_their_cpus(words: str, cpus: int) -> None:
    assert spec_of(*words.split()).min_cpus == cpus


def test_an_array_of_jobs_without_nodes_is_refused() -> None:
    assert SlurmErrno.INVALID_NODE_COUNT.text in refusal("-N0", "--array=1-2")


@pytest.mark.parametrize(("words", "nodes"), [("-N0 -n3", (1, 3)), ("-N0-0 -n2", (1, 2)), ("-N0-3 -n2", (1, 2))])
def test_no_nodes_with_tasks_means_as_many_as_the_tasks_want(words: str, nodes: tuple[int, int]) -> None:
    spec = spec_of(*words.split())
    assert (spec.min_nodes, spec.max_nodes) == nodes


@pytest.mark.parametrize(
    ("words", "shape"),
    [
        ("--hint=compute_bound --hint=memory_bound", (1, 1)),
        ("--hint=memory_bound --hint=compute_bound", (None, 1)),
        ("--hint=memory_bound --cores-per-socket=2", (2, None)),
        ("--cores-per-socket=2 --hint=memory_bound", (2, None)),
        ("--hint=nomultithread --threads-per-core=2", (None, 2)),
        ("--hint=memory_bound --ntasks-per-core=1", (None, None)),
        ("--hint=memory_bound --ntasks-per-socket=2", (1, 1)),
    ],
)
def test_a_hint_gives_way_to_cores_and_threads_wherever_they_stand(
    words: str, shape: tuple[int | None, int | None]
) -> None:
    spec = spec_of(*words.split())
    assert (spec.cores_per_socket, spec.threads_per_core) == shape


def test_a_hint_holds_for_the_components_that_follow() -> None:
    files = {"job.sh": "#!/bin/bash\n#SBATCH --hint=compute_bound\n#SBATCH hetjob\n#SBATCH -n1\n"}
    specs = [job.spec for job in play(["sbatch", "job.sh"], SITE, files=files).jobs]
    assert [spec.threads_per_core for spec in specs] == [1, 1]


@pytest.mark.parametrize(("words", "most"), [("-N1-2 --gpus=1", 1), ("-N1-2 --gpus=2", 2), ("-N1-4 --gpus=3 -n4", 3)])
def test_a_job_has_no_more_nodes_than_devices(words: str, most: int) -> None:
    assert spec_of("-p", "gpu", *words.split()).max_nodes == most


@pytest.mark.parametrize("words", ["-N1 -c1", "-N2 -c2", "-N1-2", ""])
def test_devices_per_task_need_a_number_of_tasks(words: str) -> None:
    assert refusal("-p", "gpu", "--gpus-per-task=1", *words.split()).endswith(BAD_GRES)


@pytest.mark.parametrize("words", ["-N1", "-N1 -c2 --ntasks-per-node=2", "-n2 -c2"])
def test_devices_per_task_are_counted_with_a_number_of_tasks(words: str) -> None:
    assert spec_of("-p", "gpu", "--gpus-per-task=1", *words.split()).gpu is not None


@pytest.mark.parametrize("words", ["-d afterok", "-a 5-1", "-p nowhere", "-A nobody", "-q none-such", "-L none:1"])
def test_devices_that_can_not_be_are_said_before_what_the_controller_checks(words: str) -> None:
    assert refusal("--gres=fpga:1", *words.split()) == BAD_GRES


@pytest.mark.parametrize("words", ["--reservation=x", "-L none:1"])
def test_a_least_time_that_exceeds_the_limit_is_said_before_licences_and_reservations(words: str) -> None:
    assert SlurmErrno.INVALID_TIME_MIN.text in refusal("--time-min=10-0", "-t1", *words.split())


@pytest.mark.parametrize("limit", ["-1", "UNLIMITED", "10-0"])
def test_a_limit_must_end_before_the_deadline(limit: str) -> None:
    assert SlurmErrno.INVALID_TIME_LIMIT.text in refusal("--deadline=now+2days", "-t", limit)


def test_a_deadline_without_a_limit_is_fine() -> None:
    assert spec_of("--deadline=now+2days").deadline is not None


@pytest.mark.parametrize("wckey", ["*", "*a"])
def test_a_wckey_never_begins_with_a_star(wckey: str) -> None:
    assert (
        refusal(f"--wckey={wckey}", "-p", "nowhere")
        == "sbatch: error: Batch job submission failed: Invalid wckey specification\n"
    )


@pytest.mark.parametrize("word", ["exclusive", "EXCLUSIVE"])
def test_exclusive_may_be_said_twice(word: str) -> None:
    assert spec_of(f"--exclusive={word}").exclusive is Exclusive.NODE


@pytest.mark.parametrize("nodes", ["-N1", "-N4", "-N1-3"])
def test_a_segment_larger_than_the_job_or_dividing_it_is_fine(nodes: str) -> None:
    assert spec_of("--segment=2", nodes).request.segment == 2


def test_a_segment_that_does_not_divide_the_nodes_is_refused() -> None:
    assert "--segment=2 does not fit the job size (3)" in refusal("--segment=2", "-N3")


@pytest.mark.parametrize(("number", "accepted"), [(64, True), (99, True), (65535, True), (65536, False), (0, False)])
def test_any_short_number_is_a_signal_to_send(number: int, accepted: bool) -> None:
    assert (play(["sbatch", f"--signal={number}@1", "--wrap", "true"], SITE).code == 0) is accepted


def test_cpus_per_task_said_twice_is_noticed_before_a_missing_count() -> None:
    assert "please use one or the other" in refusal("--tres-per-task=cpu", "-c2")
    assert "Invalid --tres-per-task=cpu=0" in refusal("--tres-per-task=cpu")


def component(req: str = "", exc: str = "") -> JobSpec:
    blank = spec_of()
    return msgspec.structs.replace(blank, req_nodes=tuple(req.split()), exc_nodes=tuple(exc.split()))


def test_nodes_that_a_component_requires_are_excluded_for_the_others() -> None:
    order = ("n1", "n2", "n3", "n4")
    kept = keep_apart([component("n1"), component("n2"), component(exc="n4")], order)
    assert not isinstance(kept, Refused)
    assert [spec.exc_nodes for spec in kept] == [("n2",), ("n1",), ("n1", "n2", "n4")]


def test_two_components_can_not_require_one_node() -> None:
    assert keep_apart([component("n1"), component("n1")], ("n1",)) == Refused(errno=SlurmErrno.INVALID_NODE_NAME)
