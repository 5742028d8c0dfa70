"""sinfo's answers. Layout and wording as Slurm 26.05.5 gives them to the command lines shown."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from slurmbridge.commands import sinfo
from slurmbridge.model.plan import Reservation
from slurmbridge.model.states import NodeFlag
from tests.commands.sample_site import NOW, Ran, SampleSite


def run(line: str, site: SampleSite | None = None, **call: object) -> Ran:
    return Ran(sinfo.main, line, site or SampleSite(), **call)


def test_nodes_of_a_partition_share_a_line_by_state() -> None:
    assert run("sinfo").out == (
        "PARTITION  AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
        "debug*        up   infinite      1    mix n1\n"
        "debug*        up   infinite      1  alloc n2\n"
        "debug*        up   infinite      2   idle n[3-4]\n"
        "gpu           up 1-00:00:00      2   idle g[1-2]\n"
        "small         up      30:00      1    mix n1\n"
        "small         up      30:00      1  alloc n2\n"
        "restricted  down   infinite      1    mix n1\n"
        "restricted  down   infinite      1  alloc n2\n"
        "restricted  down   infinite      2   idle n[3-4]\n"
    )


def test_the_summary_counts_nodes() -> None:
    assert run("sinfo -s -p debug").out == (
        "PARTITION AVAIL  TIMELIMIT   NODES(A/I/O/T) NODELIST\ndebug*       up   infinite          2/2/0/4 n[1-4]\n"
    )


def test_by_node_there_is_a_line_for_each_node_and_partition() -> None:
    assert run("sinfo -N -n n1").out == (
        "NODELIST   NODES  PARTITION STATE \n"
        "n1             1     debug* mix   \n"
        "n1             1      small mix   \n"
        "n1             1 restricted mix   \n"
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("sinfo -h -o %D", "6\n"),
        ("sinfo -h -p debug,gpu -o %c", "8+\n"),
        ("sinfo -h -p debug,gpu -o %N", "g[1-2],n[1-4]\n"),
        ("sinfo -h -p debug,gpu -o %F", "2/4/0/6\n"),
        ("sinfo -h -p debug,gpu -o %z", "2:4+:1\n"),
        ("sinfo -h -p debug,gpu -o %t", "mix\nalloc\nidle\n"),
        ("sinfo -h -p debug,gpu -o %G", "(null)\ngpu:a100:4\n"),
        ("sinfo -h -p debug,gpu -o %s", "1-infinite\n"),
        ("sinfo -h -p small -o %s", "1\n"),
        ("sinfo -h -p gpu -o %L", "1:00:00\n"),
        ("sinfo -h -p debug -o %E", "none\n"),
        ("sinfo -h -n n2 -p small -o %C", "8/0/0/8\n"),
        ("sinfo -h -p small -t idle", "small        up      30:00      0    n/a \n"),
        ("sinfo -h -p gpu -O gresused:30", "gpu:a100:0(IDX:N/A)           \n"),
        ("sinfo -T", "No reservations in the system\n"),
        ("sinfo -R", "REASON               USER      TIMESTAMP           NODELIST\n"),
        ("sinfo -p nosuch", "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"),
        ("sinfo -V", "slurm-wlm 26.05.5\n"),
    ],
)
def test_this_line_is_answered_so(line: str, expected: str) -> None:
    assert run(line).out == expected


def test_exact_keeps_nodes_of_different_size_apart() -> None:
    assert run("sinfo -h -e -p debug,gpu -o %c").out == "8\n16\n"


def test_reasons_are_listed_with_who_gave_them_and_when() -> None:
    site = SampleSite()
    site.node_list[3] = replace(
        site.node_list[3], flags=frozenset({NodeFlag.DRAIN}), reason="test drain", reason_uid=0, reason_time=NOW
    )
    assert run("sinfo -R", site).out.splitlines()[1] == "test drain           root      2026-11-29T21:20:00 n4"
    assert run("sinfo -R -l", site).out.splitlines()[2] == (
        "test drain           root(0)      2026-11-29T21:20:00 drain  n4"
    )
    assert run("sinfo -h -n n4 -p debug -o %t|%C|%A", site).out == "drain|0/0/8/8|0/0\n"


def test_reservations_have_a_listing_of_their_own() -> None:
    site = SampleSite()
    site.booked = [Reservation(name="r1", start_time=NOW + 3600, end_time=NOW + 7200, nodes=("n4",))]
    assert run("sinfo -T", site).out == (
        "RESV_NAME     STATE           START_TIME             END_TIME     DURATION  NODELIST\n"
        "r1         INACTIVE  2026-11-29T22:20:00  2026-11-29T23:20:00     01:00:00  n4\n"
    )


@pytest.mark.parametrize(
    ("line", "err", "code"),
    [
        ("sinfo -o %q", "Invalid node format specification: q\n", 0),
        ("sinfo -O nosuch", "sinfo: error: Invalid job format specification: nosuch\n", 0),
        ("sinfo -i 0", "sinfo: error: Error: invalid entry for --iterate=0\n", 1),
        ("sinfo -n n[1-", "sinfo: error: 'n[1-' invalid entry for --nodes\n", 1),
        ("sinfo --foo", "sinfo: unrecognized option '--foo'\nTry \"sinfo --help\" for more information\n", 1),
    ],
)
def test_mistakes_are_answered_in_slurms_words(line: str, err: str, code: int) -> None:
    ran = run(line)
    assert (ran.err, ran.rc) == (err, code)


def test_an_unknown_state_lists_the_valid_ones() -> None:
    lines = run("sinfo -t foo").err.splitlines()
    assert lines[0] == 'sinfo: error: Bad state string: "foo"'
    assert lines[1].startswith("sinfo: error: valid states: unknown,down,idle,")


def test_sort_may_turn_the_order_of_partitions() -> None:
    out = run("sinfo -h -o %P", env={"SINFO_SORT": "-P"}).out.split()
    assert out == ["small", "restricted", "gpu", "debug*"]


ENVIRONMENT = (
    # (variables, words, the columns that head the list), as Slurm 26.05.5 answers
    ({"SINFO_FORMAT": "%P"}, "", ["PARTITION"]),
    ({"SINFO_FORMAT": "%P"}, "-o %D", ["NODES"]),
    ({"SINFO_FORMAT": "%P"}, "-s", ["PARTITION", "AVAIL", "TIMELIMIT", "NODES(A/I/O/T)", "NODELIST"]),
    ({"SINFO_FORMAT": "%P"}, "-N", ["NODELIST", "NODES", "PARTITION", "STATE"]),
    ({"SINFO_FORMAT": "%P"}, "-R", ["REASON", "USER", "TIMESTAMP", "NODELIST"]),
)


@pytest.mark.parametrize(("env", "words", "heading"), ENVIRONMENT, ids=[f"{e} {w}" for e, w, _ in ENVIRONMENT])
def test_variables_give_way_to_options(env: dict[str, str], words: str, heading: list[str]) -> None:
    assert run(f"sinfo {words}", env=env).out.splitlines()[0].split() == heading


def test_a_list_is_headed_by_its_cluster_when_clusters_were_asked_for() -> None:
    name = SampleSite().config.cluster_name
    assert run(f"sinfo -M {name}").out.splitlines()[0] == f"CLUSTER: {name}"
    assert run("sinfo", env={"SLURM_CLUSTERS": name}).out.splitlines()[0] == f"CLUSTER: {name}"
    assert not run(f"sinfo -h -M {name}").out.startswith("CLUSTER")


def test_no_heading_means_no_date_either() -> None:
    assert run("sinfo -l -h").out.splitlines()[0].startswith("debug")
