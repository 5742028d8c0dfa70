"""Kills and stops whatever there is to be killed and stopped, while jobs are submitted, requeued and cancelled.

    soak_chaos.py --bin BIN [--seconds 60] [--seed N] [--keep]

Beside the daemon, as `soak_kills.py` does: the planner, the fork server, supervisors (SIGKILL), and all of them stopped
for a moment (SIGSTOP, SIGCONT). The load has arrays with `%limit`, gangs of two nodes, chains of dependencies and jobs
that may not be requeued. Rules at the end:

- the queue runs empty; nothing holds a node, no process and no spool folder is left;
- every acknowledged job has a final state: the one that it chose itself, or CANCELLED when it was cancelled, or
  NODE_FAIL when its supervisor was killed and it may not be requeued;
- no run (job and restart) started twice, and every start has its record; what is COMPLETED came to its end;
- no id is given out twice; no usage is counted twice.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import soak_kills

from slurmbridge.cli import throwaway

EXTRA = (
    (), (), (), ("--array=0-2",), ("--array=0-4%2",), ("-N2", "-n2"), ("--no-requeue",), ("-t", "5"), ("--hold",),
)  # fmt: skip


class Chaos(soak_kills.Soak):
    def __init__(self, daemon: throwaway.Throwaway, seed: int) -> None:
        super().__init__(daemon, seed)
        self.cancelled: set[int] = set()
        self.deeds: dict[str, int] = {}
        self.last: dict[int, int] = {}

    # ---- the load

    def submit(self, name: str, chance: random.Random) -> None:
        extra = list(chance.choice(EXTRA))
        tasks = {"--array=0-2": 3, "--array=0-4%2": 5}.get(extra[0] if extra else "", 1)
        code = 3 if chance.random() < 0.1 else 0
        parent = self.last.get(threading.get_ident())
        if parent and chance.random() < 0.3:
            kind = chance.choice(("afterok", "afterany", "after"))
            extra += [f"--dependency={kind}:{parent}", "--kill-on-invalid-dep=yes"]
        argv = ["--parsable", "-J", name, *extra, str(self.script), f"{chance.random():.2f}", str(code)]
        job = self.sbatch(argv)
        if job is None:
            return
        with self.lock:
            if job in self.accepted:
                self.repeated.append(f"id {job} was given to {self.accepted[job][0]} and to {name}")
            self.accepted[job] = (name, tasks, code)
            self.last[threading.get_ident()] = job

    def sbatch(self, argv: list[str]) -> int | None:
        env = {**self.daemon.env, "MARKS": str(self.marks)}
        answer = subprocess.run(
            [f"{self.daemon.bin}/sbatch", *argv], env=env, cwd=self.daemon.work, capture_output=True, text=True,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if answer.returncode != 0:
            self.refused += 1
            return None
        return int(answer.stdout.strip())

    def outstanding(self) -> int:
        """By the queue: marks of cancelled and requeued runs do not add up."""
        answer = self.daemon.run(["squeue", "-h", "-r", "-o", "%i"])
        return len(answer.stdout.split()) if answer.returncode == 0 else 0

    # ---- the chaos

    def processes(self, what: str) -> list[int]:
        """planner, fork server (children of the daemon), supervisors (by their records)."""
        if what == "supervisor":
            found = []
            for record in pathlib.Path(self.daemon.place.state, "spool").glob("*/record"):
                with contextlib.suppress(OSError, ValueError, KeyError):
                    found.append(int(json.loads(record.read_bytes())["pid"]))
            return found
        pid = self.daemon.pid
        if pid is None:
            return []
        if what == "daemon":
            return [pid]
        found = []
        for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            with contextlib.suppress(OSError):
                if what.encode() in pathlib.Path(f"/proc/{child}/cmdline").read_bytes():
                    found.append(int(child))
        return found

    def hit(self, what: str, chance: random.Random, *numbers: int) -> None:
        with contextlib.suppress(OSError):
            pids = self.processes(what)
            if pids:
                pid = chance.choice(pids)
                for number in numbers:
                    os.kill(pid, number)
                    if number == signal.SIGSTOP:
                        time.sleep(chance.random() * 0.5)

    def some_job(self, chance: random.Random) -> int:
        with self.lock:
            return chance.choice(list(self.accepted)[-40:]) if self.accepted else 1

    def cancel(self, chance: random.Random) -> None:
        job = self.some_job(chance)
        self.cancelled.add(job)
        self.daemon.run(["scancel", str(job)])

    def control(self, chance: random.Random) -> None:
        verb = chance.choice(("requeue", "requeue", "hold", "release", "release", "suspend", "resume"))
        self.daemon.run(["scontrol", verb, str(self.some_job(chance))])

    def kill_daemon(self, chance: random.Random) -> None:
        self.daemon.kill()
        self.start()

    def disturb(self, seconds: float) -> None:
        chance, end = random.Random(f"{self.seed}/chaos"), time.monotonic() + seconds
        stop = (signal.SIGSTOP, signal.SIGCONT)
        table: list[tuple[str, int, Callable[[random.Random], None]]] = [
            ("daemon killed", 3, self.kill_daemon),
            ("planner killed", 2, lambda c: self.hit("sched.worker", c, signal.SIGKILL)),
            ("fork server killed", 3, lambda c: self.hit("forkserver", c, signal.SIGKILL)),
            ("fork server stopped and killed", 1, lambda c: self.hit("forkserver", c, signal.SIGSTOP, signal.SIGKILL)),
            ("supervisor killed", 6, lambda c: self.hit("supervisor", c, signal.SIGKILL)),
            ("daemon stopped", 1, lambda c: self.hit("daemon", c, *stop)),
            ("planner stopped", 1, lambda c: self.hit("sched.worker", c, *stop)),
            ("fork server stopped", 1, lambda c: self.hit("forkserver", c, *stop)),
            ("supervisor stopped", 3, lambda c: self.hit("supervisor", c, *stop)),
            ("cancelled", 4, self.cancel),
            ("controlled", 8, self.control),
        ]
        while time.monotonic() < end:
            time.sleep(chance.random() * 0.2)
            ((name, _, deed),) = chance.choices(table, [weight for _, weight, _ in table])
            self.deeds[name] = self.deeds.get(name, 0) + 1
            deed(chance)

    def settle(self, seconds: float = soak_kills.SETTLE_S) -> bool:
        """Let everything go on: what is held or suspended would wait for ever.

        More than once, since a run whose launch was cut is put back held when that is known, as with Slurm.
        """
        end = time.monotonic() + seconds
        self.let_go()
        while not super().settle(min(10.0, seconds)):
            if time.monotonic() > end:
                return False
            self.let_go()
        return True

    def let_go(self) -> None:
        if self.daemon.pid is None:
            self.daemon.up()
        for pid in self.processes("supervisor"):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGCONT)
        with self.lock:
            jobs = [str(job) for job in self.accepted]
        for verb in ("resume", "release"):
            for at in range(0, len(jobs), 500):
                self.daemon.run(["scontrol", verb, ",".join(jobs[at : at + 500])])

    # ---- the rules

    def check_runs(self) -> list[str]:
        fields = "JobIDRaw,JobID,JobName,State,ExitCode,Restarts"
        found: list[str] = []
        lines: list[str] = []
        jobs = [str(job) for job in self.accepted]  # by id: jobs that were never eligible are not shown otherwise
        for at in range(0, len(jobs), 500):
            answer = self.daemon.run(
                ["sacct", "-X", "-n", "-P", "-D", "-a", "-o", fields, "-j", ",".join(jobs[at : at + 500])]
            )
            found += [f"sacct: {answer.stderr.strip()}"] if answer.returncode else []
            lines += answer.stdout.splitlines()
        runs: dict[str, dict[int, list[str]]] = {}
        by_job: dict[int, dict[str, int]] = {}
        for line in lines:
            row = line.split("|")
            if int(row[5]) in runs.setdefault(row[0], {}):
                found.append(f"run {row[0]}.{row[5]} is recorded twice")
            runs[row[0]][int(row[5])] = row
            by_job.setdefault(int(row[1].split("_")[0]), {})[row[0]] = tasks_of(row[1])
        for job, (name, tasks, code) in self.accepted.items():
            raws = by_job.get(job, {})
            if job not in self.cancelled and sum(raws.values()) != tasks:
                found.append(f"job {job} ({name}) has {sum(raws.values())} tasks of {tasks}")
            for raw in raws:
                found += self.check_job(job, name, code, runs[raw])
        marks = {entry.name for entry in os.scandir(self.marks)} - {"twice"}
        for mark in marks:
            raw, restart, *_ = mark.split(".")
            if int(restart) not in runs.get(raw, {}):
                found.append(f"run {raw}.{restart} started but is not recorded")
        return found

    def check_job(self, job: int, name: str, code: int, runs: dict[int, list[str]]) -> list[str]:
        found = []
        last = max(runs)
        if sorted(runs) != list(range(last + 1)):
            found.append(f"job {job} has runs {sorted(runs)}")
        for number, (raw, _, shown, state, exit_code, _) in runs.items():
            word = state.split()[0]
            if shown != name:
                found.append(f"job {raw} is called {shown}, not {name}")
            ended = (self.marks / f"{raw}.{number}.end").exists()
            if word == "COMPLETED" and not (ended and exit_code == "0:0" and code == 0):
                found.append(f"run {raw}.{number} is {state} {exit_code} but ended={ended}, exit {code}")
            if number < last:
                continue
            wanted = {"FAILED" if code else "COMPLETED", "NODE_FAIL", "CANCELLED"}
            if word not in wanted:
                found.append(f"job {raw} ({name}) is {state} {exit_code}")
        return found

    def check_rest(self) -> list[str]:
        """After everything has ended: no node in use, no folder and no process left."""
        answer = self.daemon.run(["sinfo", "-h", "-N", "-o", "%N %t %C"])
        found = [f"node: {line}" for line in answer.stdout.splitlines() if " idle 0/" not in line]
        spool = pathlib.Path(self.daemon.place.state, "spool")
        found += [f"left in the spool: {entry.name}" for entry in os.scandir(spool) if not entry.name.startswith(".")]
        patience = time.monotonic() + 10  # folders are emptied by a thread of the daemon
        while (left := _leftovers(spool)) and time.monotonic() < patience:
            time.sleep(0.2)
        found += [f"left in the spool: {name}" for name in left]
        mark = f"MARKS={self.marks}".encode()
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (process / "environ").read_bytes():
                    found.append(f"left running: {process.name} {(process / 'cmdline').read_bytes()!r}")
        with open("/proc/mounts", encoding="utf-8") as mounts:
            found += [f"left mounted: {line.strip()}" for line in mounts if self.daemon.folder in line]
        return found


def _leftovers(spool: pathlib.Path) -> list[str]:
    """Names of what is being made or removed."""
    return [entry.name for entry in os.scandir(spool) if entry.name.startswith((".claim", ".gone", ".pointer"))]


def tasks_of(shown: str) -> int:
    """How many tasks a row stands for: 7_[0-2,5%1] is four that never started, all else one."""
    _, bracket, inner = shown.partition("_[")
    if not bracket:
        return 1
    count = 0
    for part in inner.rstrip("]").partition("%")[0].split(","):
        first, _, last = part.partition("-")
        count += int(last or first) - int(first) + 1
    return count


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of the commands")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--keep", action="store_true", help="leave the folder when something is wrong")
    options = parser.parse_args(argv)
    print(f"seed {options.seed}", flush=True)
    with throwaway.opened(options.bin, extra="MinJobAge=3600\nKillWait=2\n") as daemon:
        chaos = Chaos(daemon, options.seed)
        threads = [
            threading.Thread(target=chaos.submit_forever, args=(number,)) for number in range(soak_kills.SUBMITTERS)
        ]
        for thread in threads:
            thread.start()
        try:
            chaos.disturb(options.seconds)
        finally:
            chaos.stop.set()
            for thread in threads:
                thread.join()
        begun = time.monotonic()
        found = [] if chaos.settle() else [f"the queue is not empty after {soak_kills.SETTLE_S:.0f} s"]
        settled = time.monotonic() - begun
        found += chaos.violations()
        time.sleep(1)
        found += chaos.check_rest()
        daemon.down()
        found += chaos.check_usage()
        print(", ".join(f"{count} x {name}" for name, count in sorted(chaos.deeds.items())))
        print(f"{len(chaos.accepted)} submissions accepted, {chaos.refused} refused; settled in {settled:.1f} s")
        if found:
            print("\n".join(found[:200]))
            log = pathlib.Path(daemon.place.state, "daemon.log")
            print("\n".join(log.read_text().splitlines()[-40:]))
            if options.keep:
                os.rename(daemon.folder, daemon.folder + ".kept")
                print(f"kept: {daemon.folder}.kept")
        print(f"{len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
