"""Durable submissions a second: a daemon on PostgreSQL beside one on SQLite, in turns, on the same disk.

    store_speed.py --bin BIN [--rounds 5] [--count 2000] [--json]

The server is a private one with its defaults, reached over a socket: what a network adds is the site's own. Prints both rates
(medians) and their ratio, for many connections at once and for one at a time.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import time
from collections.abc import Callable

from slurmbridge.cli import throwaway
from slurmbridge.cli.bench.beside import fill_by_connection
from slurmbridge.cli.bench.measures import Bench
from tests.store.postgresql import running


def one_by_one(bench: Bench, count: int) -> None:
    """Each submission waits for the answer to the one before."""
    env = throwaway.environment(bench.daemon)
    with bench.daemon.connect() as connection:
        for _ in range(count):
            answer = connection.run(
                ["sbatch", "-H", "-o", "/dev/null", "--wrap", "true"], env=env, cwd=bench.daemon.work
            )
            if answer.code:
                raise RuntimeError(answer.err.decode(errors="replace"))


def rate(submit: Callable[[Bench, int], None], bench: Bench, count: int) -> float:
    began = time.perf_counter()
    submit(bench, count)
    return count / (time.perf_counter() - began)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of the commands")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=2000, help="submissions of a round; a tenth of it one at a time")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    found: dict[str, dict[str, float]] = {}
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(running())
        sides = {
            name: Bench(stack.enter_context(throwaway.opened(options.bin, database=database)), True)
            for name, database in (("sqlite", ""), ("postgresql", server.records()))
        }
        for kind, submit, count in (
            ("connections", fill_by_connection, options.count),
            ("one at a time", one_by_one, options.count // 10),
        ):
            turns = [
                {name: rate(submit, bench, count) for name, bench in sides.items()} for _ in range(options.rounds + 1)
            ]
            medians = {name: statistics.median(turn[name] for turn in turns[1:]) for name in sides}
            found[kind] = {**medians, "ratio": statistics.median(t["postgresql"] / t["sqlite"] for t in turns[1:])}
            if not options.json:
                print(
                    f"{kind}: sqlite {medians['sqlite']:.0f}/s, postgresql {medians['postgresql']:.0f}/s, ratio {found[kind]['ratio']:.2f}"
                )
    if options.json:
        print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
