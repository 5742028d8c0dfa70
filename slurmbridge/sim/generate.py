"""A workload as sites have them, made from a seed: the same arguments give the same trace, to the byte.

Arrivals follow the day and the week and come in bursts (a user submits several alike); sizes, run times (log-normal) and
limits (round numbers, mostly far above the run time) are drawn by kind of job; users and their accounts by Zipf's law.
Three mixes: `fractions` (parts of GPUs and notebooks), `gangs` (training over many nodes), `cpu` (a classic batch log).
Sources: Lublin and Feitelson 2003 (daily cycle, run times), Tsafrir 2005 (limits), the public GPU traces (mix of sizes).
"""

from __future__ import annotations

import bisect
import itertools
import math
import random
from collections.abc import Callable, Sequence

import msgspec

from slurmbridge.sim.workload import Machine, TraceJob, ordered

HOUR, DAY = 3600.0, 86400.0
BY_HOUR = (4, 3, 2, 2, 2, 3, 4, 6, 9, 12, 13, 13, 11, 12, 13, 13, 12, 11, 9, 8, 7, 6, 5, 5)
"""How busy each hour of a working day is."""
WEEKEND = 0.45
LIMITS_H = (0.25, 0.5, 1, 2, 4, 8, 12, 24, 48, 72, 96, 168)
"""What users write behind --time."""


class Kind(msgspec.Struct, frozen=True):
    """A kind of job. `median_s`, `sigma`: of its log-normal run time. `batch`: how many come at once at most."""

    part: float
    nodes: tuple[int, ...]
    gpus: tuple[int, ...]
    milli: tuple[int, ...]
    cpus: tuple[int, ...]
    gib: tuple[int, ...]
    median_s: float
    sigma: float
    batch: int = 1
    preemptible: float = 0.5
    mem_gib: tuple[int, ...] = ()  # of a device, in place of a portion


WHOLE = (1000,)
MIXES: dict[str, tuple[Kind, ...]] = {
    "fractions": (
        Kind(0.30, (1,), (1,), (100, 200, 250, 500, 500), (2, 4), (8, 16), 2700.0, 1.6, 4, 0.7),
        Kind(0.10, (1,), (1,), WHOLE, (4,), (16, 32), 5400.0, 1.2, 1, 0.2, (10, 20, 40)),
        Kind(0.05, (1,), (2, 4, 8), (250, 500), (8, 16), (32, 64), 3600.0, 1.3, 1, 0.6),
        Kind(0.30, (1,), (1, 1, 1, 2), WHOLE, (8, 12), (32, 64), 3600.0, 1.9, 6, 0.6),
        Kind(0.10, (1,), (4, 8, 8), WHOLE, (32, 64), (128, 256), 9000.0, 1.7, 1, 0.5),
        Kind(0.03, (2, 2, 4), (8,), WHOLE, (64,), (256,), 12000.0, 1.4, 1, 0.3),
        Kind(0.12, (1,), (0,), WHOLE, (1, 2, 4, 8), (4, 8, 16), 900.0, 1.8, 8, 0.8),
    ),
    "gangs": (
        Kind(0.35, (1,), (1, 1, 2), WHOLE, (8, 12), (32, 64), 3600.0, 1.8, 6, 0.6),
        Kind(0.25, (1,), (4, 8, 8), WHOLE, (32, 64), (128, 256), 9000.0, 1.6, 2, 0.5),
        Kind(0.20, (2, 2, 4), (8,), WHOLE, (64,), (256,), 9000.0, 1.5, 1, 0.4),
        Kind(0.08, (4, 8, 8, 12), (8,), WHOLE, (64,), (256,), 12000.0, 1.3, 1, 0.2),
        Kind(0.02, (16,), (8,), WHOLE, (64,), (256,), 9000.0, 1.0, 1, 0.0),
        Kind(0.10, (1,), (0,), WHOLE, (1, 2, 4, 8), (4, 8, 16), 900.0, 1.8, 8, 0.8),
    ),
    "cpu": (
        Kind(0.45, (1,), (0,), WHOLE, (1, 1, 2, 4), (2, 4, 8), 1200.0, 2.0, 12, 0.3),
        Kind(0.30, (1,), (0,), WHOLE, (8, 16, 32), (16, 32), 5400.0, 1.7, 3, 0.3),
        Kind(0.20, (2, 4, 4, 8), (0,), WHOLE, (32,), (64,), 7200.0, 1.6, 1, 0.2),
        Kind(0.05, (16, 16, 32), (0,), WHOLE, (32,), (64,), 9000.0, 1.4, 1, 0.1),
    ),
}  # fmt: skip


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be generated. `load`: part of the cluster that the jobs need, over the time of their submission."""

    seed: int = 1
    jobs: int = 1000
    mix: str = "fractions"
    nodes: int = 32
    gpus: int = 8  # of each node; the mix `cpu` has none
    load: float = 0.9
    users: int = 60
    accounts: int = 12


def cluster(wish: Wish) -> tuple[Machine, ...]:
    """The cluster that the trace is meant for."""
    if wish.mix == "cpu":
        return (Machine(node="n", count=wish.nodes, cpus=32, mem_mib=131_072),)
    return (
        Machine(
            node="g", count=wish.nodes, cpus=96, mem_mib=786_432, gpus=wish.gpus, gpu_type="a100", gpu_mem_mib=81_920
        ),
    )


def generate(wish: Wish) -> tuple[TraceJob, ...]:
    """The jobs, by submission. Pure: a generator of its own from the seed."""
    rng = random.Random(wish.seed)
    machine = cluster(wish)[0]
    kinds = MIXES[wish.mix]
    owners = _owners(rng, wish)
    bodies: list[list[TraceJob]] = []  # what one user submits at once
    made = 0
    while made < wish.jobs:
        kind = rng.choices(kinds, [each.part / (0.5 + each.batch / 2) for each in kinds])[0]
        user, account = owners(rng)
        size = min(1 + int(rng.expovariate(2.0 / kind.batch)) if kind.batch > 1 else 1, kind.batch, wish.jobs - made)
        bodies.append(_alike(rng, kind, machine, user, account, size))
        made += size
    times = _arrivals(rng, len(bodies), _span(bodies, machine, wish.load))
    jobs = [
        msgspec.structs.replace(job, submit_s=float(int(when)) + place)
        for when, body in zip(times, bodies, strict=True)
        for place, job in enumerate(body)
    ]
    return tuple(msgspec.structs.replace(job, id=str(number)) for number, job in enumerate(ordered(jobs), start=1))


def _owners(rng: random.Random, wish: Wish) -> Callable[[random.Random], tuple[str, str]]:
    """Draws a user with the account that he is of."""
    accounts = [f"team{number}" for number in range(1, wish.accounts + 1)]
    homes = rng.choices(accounts, [1.0 / rank for rank in range(1, wish.accounts + 1)], k=wish.users)
    weights = list(itertools.accumulate(1.0 / rank for rank in range(1, wish.users + 1)))

    def draw(source: random.Random) -> tuple[str, str]:
        place = bisect.bisect_left(weights, source.random() * weights[-1])
        return f"user{place + 1}", homes[place]

    return draw


def _alike(rng: random.Random, kind: Kind, machine: Machine, user: str, account: str, size: int) -> list[TraceJob]:
    nodes, gpus = min(rng.choice(kind.nodes), machine.count), min(rng.choice(kind.gpus), machine.gpus)
    milli = rng.choice(kind.milli) if gpus else 1000
    of_device = rng.choice(kind.mem_gib) * 1024 if kind.mem_gib and gpus else 0
    cpus = min(rng.choice(kind.cpus), machine.cpus)
    memory = min(rng.choice(kind.gib) * 1024, machine.mem_mib)
    typical = kind.median_s * math.exp(rng.gauss(0.0, kind.sigma * 0.8))
    factor = math.exp(abs(rng.gauss(0.0, 1.0))) * 1.3
    limit = next((hours for hours in LIMITS_H if hours * HOUR >= typical * factor), LIMITS_H[-1]) * HOUR
    preemptible = rng.random() < kind.preemptible
    found = []
    for _ in range(size):
        run = typical * math.exp(rng.gauss(0.0, kind.sigma * 0.4))
        run = limit if rng.random() < 0.03 else min(max(run, 5.0), limit)  # some run into their limit
        found.append(
            TraceJob(
                id="", submit_s=0.0, run_s=float(int(run)), limit_s=limit, user=user, account=account, nodes=nodes,
                cpus=cpus, mem_mib=memory, gpus=gpus, gpu_milli=milli, gpu_mem_mib=of_device, preemptible=preemptible,
            )
        )  # fmt: skip
    return found


def _span(bodies: Sequence[Sequence[TraceJob]], machine: Machine, load: float) -> float:
    """Seconds over which these jobs are the load that is wished for."""
    jobs = [job for body in bodies for job in body]
    if machine.gpus:
        mib = machine.gpu_mem_mib
        work = sum(
            job.run_s * job.nodes * job.gpus * (job.gpu_mem_mib / mib if job.gpu_mem_mib else job.gpu_milli / 1000)
            for job in jobs
        )
        return max(work / (machine.count * machine.gpus * load), HOUR)
    return max(sum(job.run_s * job.all_cpus for job in jobs) / (machine.count * machine.cpus * load), HOUR)


def _arrivals(rng: random.Random, count: int, span: float) -> list[float]:
    """Times in [0, span), dense by day."""
    hours = int(span // HOUR) + 1
    weights = list(
        itertools.accumulate(
            BY_HOUR[hour % 24] * (WEEKEND if hour // 24 % 7 in (5, 6) else 1.0) * min(1.0, (span - hour * HOUR) / HOUR)
            for hour in range(hours)
        )
    )
    found = []
    for _ in range(count):
        hour = bisect.bisect_left(weights, rng.random() * weights[-1])
        found.append(min((hour + rng.random()) * HOUR, span))
    return sorted(found)
