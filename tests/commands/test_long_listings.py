"""No command hands out a long listing in one piece: between pieces others are served, and a slow reader is waited for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import msgspec
import pytest

from slurmbridge.commands.effects import Call, History, JobRow, Print, PriorityFactors, Site
from slurmbridge.commands.table import find
from slurmbridge.model.cluster import Partition
from slurmbridge.model.plan import Factors
from slurmbridge.model.states import JobState
from tests.commands.sample_site import NOW, SampleSite, ended, job, nodes

COUNT = 450


class Wide(SampleSite):
    """Many jobs, nodes and finished runs."""

    def __init__(self) -> None:
        waiting = [job(number, priority=5, eligible_time=NOW - 10) for number in range(1, COUNT + 1)]
        super().__init__(
            waiting, rows=[JobRow(job=ended(number, JobState.COMPLETED)) for number in range(1, COUNT + 1)]
        )
        like = nodes()[2]
        names = [f"w{number}" for number in range(COUNT)]
        self.node_list = [
            msgspec.structs.replace(like, conf=msgspec.structs.replace(like.conf, name=name, weight=number))
            for number, name in enumerate(names)
        ]
        self._partitions = (Partition(name="debug", nodes=tuple(names), default=True),)

    def partitions(self) -> Sequence[Partition]:
        return self._partitions


def pieces(line: str) -> list[str]:
    call = Call(argv=tuple(line.split()), env={}, cwd="/", uid=1001, user="alice", now=NOW)
    main = find(call.argv[0])
    assert main is not None
    site = Wide()
    command = main(call, cast(Site, site))
    found: list[str] = []
    answer: object = None
    while True:
        try:
            effect = command.send(answer)
        except StopIteration as stop:
            assert stop.value == 0
            return found
        answer = None
        if isinstance(effect, Print):
            assert effect.fd == 1, effect
            found.append(effect.text)
        elif isinstance(effect, History):
            answer = tuple(site.rows)
        elif isinstance(effect, PriorityFactors):
            answer = tuple(Factors(job_id=number, partition="debug", priority=5) for number in range(1, COUNT + 1))


@pytest.mark.parametrize(
    "line",
    [
        "squeue", "squeue --json", "squeue -o %all", "sinfo -N -l", "sinfo -N -o %all",
        "sinfo --json -N", "sacct", "sacct -P", "sacct --json", "sacct -l", "sprio", "scontrol show job",
        "scontrol show job --json", "scontrol show node", "scontrol show node --json",
    ],
)  # fmt: skip
def test_a_long_listing_comes_in_pieces(line: str) -> None:
    found = pieces(line)
    assert sum(map(len, found)) > 10_000
    assert max(map(len, found)) < sum(map(len, found)) / 4
