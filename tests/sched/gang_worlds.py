"""Small worlds of gangs made at random, some of which run already."""

from __future__ import annotations

import msgspec
from hypothesis import strategies as st

from slurmbridge.sched.gang_actions import run_pass
from slurmbridge.sched.pod_session import PodSession
from slurmbridge.sched.pods import Status
from slurmbridge.sched.policy import DEFAULT, KAI, Policy
from slurmbridge.sim.case_file import Case, JobRow, WishRow
from slurmbridge.sim.cases import build, first_states
from tests.sched.small_pods import ALL, case, job, node, queue

WHOLE = ["1", "1", "1", "2", "3", "cpu"]
SIZES = [*WHOLE, "0.5", "0.3", "40M", "0.5x2"]
WISHES = [WishRow(topology="tree", required_level="rack"), WishRow(topology="tree", preferred_level="rack")]
policies = st.sampled_from([KAI, DEFAULT])


@st.composite
def worlds(draw: st.DrawFn, *, plain: bool = False) -> Case:
    """A few nodes, queues in two departments, and gangs; the first of them placed by a pass of their own.

    `plain`: no parts of devices, no wishes about topology.
    """
    sizes = st.sampled_from(WHOLE if plain else SIZES)
    nodes = [
        node(f"n{number}", draw(st.integers(1, 4)), cpus=6, rack=f"r{number // 2}")
        for number in range(draw(st.integers(1, 4)))
    ]
    queues = [queue("d0", gpus=draw(st.integers(0, 6))), queue("d1", gpus=draw(st.integers(0, 6)))]
    for number in range(3):
        queues.append(
            queue(
                f"q{number}", f"d{number % 2}", gpus=draw(st.integers(0, 4)), limit=draw(st.sampled_from([-1, 2, 4, 8])),
                weight=draw(st.integers(0, 2)), priority=draw(st.sampled_from([100, 100, 101])),
            )
        )  # fmt: skip

    def gang(name: str) -> JobRow:
        tasks = draw(st.lists(sizes, min_size=1, max_size=3))
        where, fixed = f"q{draw(st.integers(0, 2))}", draw(st.integers(0, 3)) == 0
        priority, kind = draw(st.sampled_from([50, 50, 60, 100])), draw(st.integers(0, 4))
        if kind == 0 and len(tasks) > 1:
            named = [f"{task}:{'xy'[place % 2]}" for place, task in enumerate(tasks)]
            return job(name, where, *named, fixed=fixed, priority=priority, sets={"x": 1, "y": 1})
        wish = draw(st.sampled_from(WISHES)) if kind == 1 and not plain else None
        least = draw(st.integers(1, len(tasks)))
        waited = draw(st.sampled_from([0.0, 0.0, 2000.0]))
        return job(name, where, *tasks, fixed=fixed, priority=priority, minimum=least, wish=wish, waited=waited)

    early = [gang(f"e{number}") for number in range(draw(st.integers(0, 5)))]
    late = [gang(f"l{number}") for number in range(draw(st.integers(1, 5)))]
    busy = case(nodes, queues, early, "allocate", levels=("rack",))
    session = one_pass(busy, KAI)
    placed = []
    for row, gang_ in zip(early, session.gangs, strict=True):
        tasks = [
            msgspec.structs.replace(
                task, state="Running", node=pod.node.name, gpu_groups=list(pod.labels)
            ) if pod.status == Status.STARTED and pod.node else task
            for task, pod in zip(row.tasks, gang_.tasks, strict=True)
        ]  # fmt: skip
        placed.append(msgspec.structs.replace(row, tasks=tasks))
    return case(nodes, queues, [*placed, *late], *ALL, levels=("rack",))


def one_pass(world: Case, policy: Policy) -> PodSession:
    session = build(world, first_states(world), policy)
    run_pass(session, world.session.actions)
    return session
