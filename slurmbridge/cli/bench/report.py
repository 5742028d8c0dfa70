"""Runs the measurements and prints them; exit status 1 when a target is missed."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator, Sequence

import msgspec

from slurmbridge.cli import throwaway
from slurmbridge.cli.bench import beside, measures
from slurmbridge.cli.bench.figures import Figure

ON_TWO_NODES = {
    "latency": measures.latency,
    "commands": measures.commands,
    "shells": measures.shells,
    "connections": measures.open_connections,
    "queue": measures.full_queue,
    "array": measures.array,
}
ON_ONE_NODE = {"jobs": measures.short_jobs, "beside": beside.beside_slurm}
NEED_BLOCKED = ("shells", "connections", "queue")  # work on nodes that `commands` has filled


def figures(quick: bool, only: Sequence[str], real_slurm: str | None) -> Iterator[Figure]:
    bin_folder = sysconfig.get_path("scripts")
    chosen = [name for name in ON_TWO_NODES if not only or name in only]
    if chosen:
        with throwaway.opened(bin_folder, nodes="n[1-2]", cpus=32, memory=256_000) as daemon:
            bench = measures.Bench(daemon, quick)
            if "commands" not in chosen and any(name in NEED_BLOCKED for name in chosen):
                bench.block()
            for name in chosen:
                yield from ON_TWO_NODES[name](bench)
    for name, measure in ON_ONE_NODE.items():
        if not only or name in only:
            with throwaway.opened(bin_folder, nodes="b1", cpus=512, memory=512_000) as daemon:
                yield from measure(measures.Bench(daemon, quick), real_slurm)


def main(*, quick: bool, as_json: bool, only: Sequence[str], real_slurm: str | None) -> int:
    names = (*ON_TWO_NODES, *ON_ONE_NODE)
    if any(name not in names for name in only):
        sys.stderr.write(f"slurmbridge: error: measurements are {', '.join(names)}\n")
        return 2
    if not os.access(os.path.join(sysconfig.get_path("scripts"), "sbatch"), os.X_OK):
        sys.stderr.write("slurmbridge: error: the commands are not installed beside this interpreter\n")
        return 2
    found = []
    for figure in figures(quick, only, real_slurm):
        found.append(figure)
        if not as_json:
            sys.stdout.write(figure.line() + "\n")
            sys.stdout.flush()
    if as_json:
        rows = {
            figure.name: {**msgspec.to_builtins(figure), "ratio": figure.ratio, "met": figure.met} for figure in found
        }
        sys.stdout.write(msgspec.json.encode(rows).decode() + "\n")
    return 1 if any(figure.met is False for figure in found) else 0
