"""The measurements, in the order in which the queue fills up.

Jobs that must stay in the queue wait behind one that holds both nodes, so the scheduler takes part as on a busy cluster.
"""

from __future__ import annotations

import os
import pathlib
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator

from slurmbridge.cli import throwaway
from slurmbridge.cli.bench.figures import Figure, interleaved, seconds

PENDING = 10_000
SHELLS = 4
CONNECTIONS = 8
SCRIPT = """#!/bin/bash
#SBATCH --job-name=bench
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2
#SBATCH --mem=200M
#SBATCH --time=10
#SBATCH --output=%x-%j.out
#SBATCH --comment="a comment of several words"
#SBATCH --nice=5
#SBATCH --no-requeue
#SBATCH --export=ALL
sleep 1
"""


class Bench:
    """One throw-away daemon and how often to repeat."""

    def __init__(self, daemon: throwaway.Throwaway, quick: bool) -> None:
        self.daemon, self.quick = daemon, quick
        self.python = os.path.join(daemon.bin, "python3")
        self.script = pathlib.Path(daemon.work, "job.sh")
        self.script.write_text(SCRIPT)

    def command(self, *words: str) -> float:
        return seconds([os.path.join(self.daemon.bin, words[0]), *words[1:]], self.daemon.env, self.daemon.work)

    def bare(self) -> float:
        return seconds([self.python, "-I", "-S", "-c", "pass"], self.daemon.env, self.daemon.work)

    def block(self) -> None:
        """Fill both nodes for the rest of the run."""
        self.daemon.run(["sbatch", "-N2", "--exclusive", "-o", "/dev/null", "--wrap", "sleep 100000"], check=True)
        self.wait_until(lambda: "R" in self.daemon.run(["squeue", "-h", "-o", "%t"]).stdout.split())

    def queued(self) -> int:
        return len(self.daemon.run(["squeue", "-h", "-o", "%i"]).stdout.split())

    @staticmethod
    def wait_until(done: Callable[[], bool], limit: float = 120.0) -> None:
        end = time.monotonic() + limit
        while not done():
            if time.monotonic() > end:
                raise RuntimeError("waited too long")
            time.sleep(0.02)


def latency(bench: Bench) -> Iterator[Figure]:
    """From typing sbatch to the script's first line, on idle nodes."""
    taken, mark = [], pathlib.Path(bench.daemon.work, "first-line")
    for _ in range(5 if bench.quick else 20):
        mark.unlink(missing_ok=True)
        began = time.time()
        bench.command("sbatch", "-o", "/dev/null", "--wrap", f"date +%s.%N > {mark}.new; mv {mark}.new {mark}")
        bench.wait_until(mark.exists)
        taken.append(float(mark.read_text()) - began)
        bench.wait_until(lambda: not bench.queued())
    yield Figure(name="sbatch to the first line", value=statistics.median(taken), unit="s", limit=0.1)


def array(bench: Bench) -> Iterator[Figure]:
    """10,000 tasks against a single job; both held."""
    rounds = 5 if bench.quick else 15
    whole, single = interleaved(
        lambda: bench.command("sbatch", "-H", f"--array=1-{PENDING}", "job.sh"),
        lambda: bench.command("sbatch", "-H", "job.sh"),
        rounds,
    )
    yield Figure(
        name=f"sbatch, array of {PENDING}", value=whole, unit="s", baseline=single, against="a single job", limit=1.25
    )


def commands(bench: Bench) -> Iterator[Figure]:
    """One command against the bare interpreter."""
    bench.block()
    rounds = 20 if bench.quick else 100
    for name, words in (("squeue", ("squeue",)), ("sbatch", ("sbatch", "job.sh"))):
        run, bare = interleaved(lambda words=words: bench.command(*words), bench.bare, rounds)  # type: ignore[misc]
        yield Figure(name=name, value=run, unit="s", baseline=bare, against="python -I -S -c pass", limit=2.0)


def shells(bench: Bench) -> Iterator[Figure]:
    """Four shells submit at once; against the rate at which they start the bare interpreter."""
    count = 25 if bench.quick else 100

    def rate(line: str) -> float:
        loop = f"i=0; while [ $i -lt {count} ]; do {line} || exit 1; i=$((i+1)); done"
        began = time.perf_counter()
        running = [
            subprocess.Popen(
                ["/bin/sh", "-c", loop], env=bench.daemon.env, cwd=bench.daemon.work, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
            for _ in range(SHELLS)
        ]  # fmt: skip
        codes = [process.wait() for process in running]
        if any(codes):
            raise RuntimeError(f"{line} failed")
        return SHELLS * count / (time.perf_counter() - began)

    bare = rate(f"{bench.python} -I -S -c pass")
    before = bench.queued()
    submitted = rate("sbatch job.sh")
    missing = before + SHELLS * count - bench.queued()
    yield Figure(
        name="4 shells submitting", value=submitted, unit="/s", baseline=bare, against="starts of the interpreter",
        limit=0.6, at_least=True, note=f"{missing} jobs missing" if missing else "",
    )  # fmt: skip


def open_connections(bench: Bench) -> Iterator[Figure]:
    """Durable submissions a second over connections that stay open; fills the queue to 10,000."""
    left = max(PENDING - bench.queued(), 0)
    if bench.quick:
        left = min(left, 2000)
    env = throwaway.environment(bench.daemon)
    for name, different, limit in (("lines repeat", False, 1000.0), ("all lines differ", True, 500.0)):
        share = left // 2 // CONNECTIONS
        failures: list[str] = []

        def submit(number: int, share: int = share, different: bool = different, out: list[str] = failures) -> None:
            with bench.daemon.connect() as connection:
                for turn in range(share):
                    script = SCRIPT if not different else differing(number * share + turn)
                    answer = connection.run(
                        ["sbatch", "job.sh"], env=env, cwd=bench.daemon.work, files={"job.sh": script.encode()}
                    )
                    if answer.code:
                        out.append(answer.err.decode(errors="replace"))

        threads = [threading.Thread(target=submit, args=(number,)) for number in range(CONNECTIONS)]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        taken = time.perf_counter() - began
        if failures:
            raise RuntimeError(f"{len(failures)} submissions failed: {failures[0]}")
        yield Figure(
            name=f"submissions, {name}", value=share * CONNECTIONS / taken, unit="/s", limit=limit, at_least=True
        )


def differing(number: int) -> str:
    """The script with ten directives that no other script has."""
    return f"""#!/bin/bash
#SBATCH --job-name=bench-{number}
#SBATCH --ntasks={1 + number % 8}
#SBATCH --cpus-per-task=2 --comment=c{number}
#SBATCH --mem={200 + number}M
#SBATCH --time={10 + number}
#SBATCH --output=%x-%j-{number}.out
#SBATCH --error=%x-%j-{number}.err
#SBATCH --nice={5 + number}
#SBATCH --mail-user=user{number}
#SBATCH --wckey=w{number}
sleep 1
"""


def full_queue(bench: Bench) -> Iterator[Figure]:
    """squeue and the daemon's memory with 10,000 jobs waiting."""
    waiting = bench.queued()
    note = f"{waiting} jobs"
    taken = statistics.median(bench.command("squeue") for _ in range(5 if bench.quick else 15))
    yield Figure(name="squeue of a full queue", value=taken, unit="s", limit=0.15, note=note)
    pid = bench.daemon.pid
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    resident = int(status.split("VmRSS:")[1].split()[0]) / 1024
    yield Figure(name="memory of the daemon", value=resident, unit="MiB", limit=250.0, note=note)


def short_jobs(bench: Bench, real_slurm: str | None) -> Iterator[Figure]:
    """500 jobs of one second on 512 slots, from the first sbatch to an empty queue."""
    count = 100 if bench.quick else 500
    line = (
        f"seq {count} | xargs -P4 -I@ sbatch -Q %s -o /dev/null --mem=1 --wrap 'sleep 1' >/dev/null; "
        'while [ -n "$(squeue -h -u "$(id -un)")" ]; do sleep 0.1; done'
    )
    ours = seconds(["/bin/bash", "-c", line % ""], bench.daemon.env, bench.daemon.work)
    if real_slurm is None:
        yield Figure(name=f"{count} one-second jobs", value=ours, unit="s", note="no real Slurm to compare with")
        return
    theirs = seconds(["/bin/bash", "-c", f'{real_slurm} bash -c "$0"', line % "-p bench"], dict(os.environ), "/")
    yield Figure(
        name=f"{count} one-second jobs", value=ours, unit="s", baseline=theirs, against="a real Slurm", limit=0.6
    )
