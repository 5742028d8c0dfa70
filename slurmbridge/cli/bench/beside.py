"""The same queue on both sides, then the same command on both: how long each takes as a ratio to a real Slurm's time.

Single jobs (an array would be one line and one request), held: so neither scheduler works while commands are timed. The
rows of sacct are those of jobs that ran: one for the job, one for its batch step. Every line is timed by the same shell
loop, inside of whatever the other command needs to reach its cluster; the two sides take turns.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from slurmbridge.cli import throwaway
from slurmbridge.cli.bench.figures import Figure
from slurmbridge.cli.bench.measures import CONNECTIONS, PENDING, Bench

FEW = 1000
RAN = 2500
LONGEST_S = 900.0
JOB = ("--job-name=beside", "--ntasks=1", "--cpus-per-task=2", "--mem=200M", "--time=10", "--comment=a comment")
LOOP = 'for i in $(seq {rounds}); do a=$EPOCHREALTIME; {line} >/dev/null || exit 1; echo "$a $EPOCHREALTIME"; done'
FILL = "seq {count} | xargs -P8 -I@ sbatch -Q {options} -o /dev/null --wrap true >/dev/null"
NO_PARTNER = "no real Slurm to compare with"


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """Where lines of a shell are run: here or in the other cluster. `options`: of its sbatch."""

    start: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    options: str = ""

    def shell(self, line: str) -> str:
        """What it prints; RuntimeError when it fails."""
        answer = subprocess.run(
            [*self.start, line], env=dict(self.env), cwd=self.cwd, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=LONGEST_S,
        )  # fmt: skip
        if answer.returncode:
            raise RuntimeError(f"{line}: exit {answer.returncode}: {answer.stderr.strip()}")
        return answer.stdout

    def times(self, line: str, rounds: int = 1) -> list[float]:
        """Seconds of each of so many calls."""
        pairs = [row.split() for row in self.shell(LOOP.format(rounds=rounds, line=line)).splitlines()]
        return [float(end) - float(begin) for begin, end in pairs]

    def count(self, line: str) -> int:
        return int(self.shell(f"{line} | wc -l"))

    def fill(self, count: int, *more: str) -> None:
        if count > 0:
            self.shell(
                FILL.format(count=count, options=" ".join((self.options, *JOB[:2], *map(_quoted, JOB[2:]), *more)))
            )


def _quoted(word: str) -> str:
    return f"'{word}'"


def beside_slurm(bench: Bench, real_slurm: str | None) -> Iterator[Figure]:
    """squeue, its document, scancel and sacct."""
    pending, few, ran = (FEW, FEW // 5, RAN // 10) if bench.quick else (PENDING, FEW, RAN)
    rounds = 3 if bench.quick else 7
    ours = Side(start=("/bin/bash", "-c"), env=bench.daemon.env, cwd=bench.daemon.work)
    theirs = None
    if real_slurm is not None:
        prefix = ("/bin/bash", "-c", f'{real_slurm} bash -c "$0"')
        theirs = Side(start=prefix, env=dict(os.environ), cwd="/", options="-p bench")
        if theirs.count('squeue -h -u "$(id -un)"'):
            raise RuntimeError("the user of the real Slurm has jobs: they would be counted and cancelled")
    sides = [side for side in (ours, theirs) if side is not None]
    fill_by_connection(bench, few)
    if theirs is not None:
        theirs.fill(few, "-H")
    yield _figure(f"squeue --json, {few} jobs", _in_turns(sides, "squeue --json", rounds), 0.3)
    fill_by_connection(bench, pending - few)
    if theirs is not None:
        theirs.fill(pending - few, "-H")
    yield _figure(f"squeue, {pending} pending", _in_turns(sides, "squeue", rounds), 1.5)
    limit = None if bench.quick else 0.1  # of so few jobs most of the time is that of starting a command
    yield _figure(f"scancel -u, {pending} pending", _in_turns(sides, 'scancel -u "$(id -un)"', 1), limit)
    listed = []
    for side in sides:
        start = side.shell("date +%FT%T").strip()
        side.fill(ran, "--job-name=ran", "--mem=1", "--cpus-per-task=1")
        bench.wait_until(lambda side=side: not side.count('squeue -h -u "$(id -un)"'), LONGEST_S)  # type: ignore[misc]
        listed.append(f'sacct -S {start} -u "$(id -un)" --name=ran')
        time.sleep(2)  # until the other's accounting daemon has its last rows
    rows = [side.count(f"{line} -n") for side, line in zip(sides, listed, strict=True)]
    note = " and ".join(f"{count} rows" for count in rows)
    pairs = [tuple(side.times(line)[0] for side, line in zip(sides, listed, strict=True)) for _ in range(rounds + 1)]
    yield _figure(f"sacct, {2 * ran} rows", _medians(pairs[1:]), 1.5, note)


def fill_by_connection(bench: Bench, count: int) -> None:
    """So many held jobs, each a submission of its own."""
    env = throwaway.environment(bench.daemon)
    argv = ("sbatch", "-H", *JOB, "-o", "/dev/null", "--wrap", "true")
    failures: list[str] = []

    def submit(share: int) -> None:
        with bench.daemon.connect() as connection:
            for _ in range(share):
                answer = connection.run(argv, env=env, cwd=bench.daemon.work)
                if answer.code:
                    failures.append(answer.err.decode(errors="replace"))

    shares = [count // CONNECTIONS + (number < count % CONNECTIONS) for number in range(CONNECTIONS)]
    threads = [threading.Thread(target=submit, args=(share,)) for share in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise RuntimeError(f"{len(failures)} submissions failed: {failures[0]}")


def _in_turns(sides: Sequence[Side], line: str, rounds: int) -> tuple[float, ...]:
    """The median of each side; the first turn does not count where there are several."""
    turns = [tuple(side.times(line)[0] for side in sides) for _ in range(rounds + (rounds > 1))]
    return _medians(turns[1:] or turns)


def _medians(turns: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    return tuple(statistics.median(each) for each in zip(*turns, strict=True))


def _figure(name: str, taken: tuple[float, ...], limit: float | None, note: str = "") -> Figure:
    if len(taken) == 1:
        return Figure(name=name, value=taken[0], unit="s", note=note or NO_PARTNER)
    return Figure(
        name=name, value=taken[0], unit="s", baseline=taken[1], against="a real Slurm", limit=limit, note=note
    )
