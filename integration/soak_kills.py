"""Kills the daemon with SIGKILL at random moments while jobs are submitted and run, then checks that nothing went wrong.

    soak_kills.py --bin BIN [--kills 1000] [--seed N] [--keep] [--database WHERE]

Rules, each checked at the end against what the jobs themselves wrote (every job creates `ID.RESTART` with O_EXCL when it
starts and `ID.RESTART.end` when it ends) and against what sbatch said:

- no acknowledged job is lost; each ends as it should;
- none runs twice, none stays RUNNING or COMPLETING;
- no id is given out twice;
- no usage is counted twice: the association's use is the sum over its runs.

Exit status 0 when all hold; 1 with the violations on stdout.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import pwd
import random
import subprocess
import sys
import threading
import time

from slurmbridge.cli import throwaway
from slurmbridge.errors import BridgeError

JOB = """#!/bin/bash
#SBATCH --output=/dev/null
set -C
me=$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}
if ! { echo "$SLURM_JOB_NAME" > "$MARKS/$me"; } 2>/dev/null; then
    echo "$me" >> "$MARKS/twice"
fi
i=0; while ((i < 2000)); do ((i += 1)); done
sleep "$1"
echo "$SLURM_JOB_NAME" > "$MARKS/$me.end"
exit "$2"
"""
SUBMITTERS = 2
OUTSTANDING = 60  # jobs in the queue beyond which submitters wait
SETTLE_S = 180.0  # for what is queued when the last kill is over


class Soak:
    """State shared by the submitters and the killer. `accepted`: id -> (name, tasks, exit code)."""

    def __init__(self, daemon: throwaway.Throwaway, seed: int) -> None:
        self.daemon, self.seed = daemon, seed
        self.lock = threading.Lock()
        self.accepted: dict[int, tuple[str, int, int]] = {}
        self.repeated: list[str] = []
        self.refused = 0
        self.stop = threading.Event()
        self.marks = pathlib.Path(daemon.folder, "marks")
        self.marks.mkdir()
        self.script = pathlib.Path(daemon.work, "job.sh")
        self.script.write_text(JOB)
        make_association(daemon)

    # ---- submitting

    def submit_forever(self, number: int) -> None:
        chance = random.Random(f"{self.seed}/{number}")
        count = 0
        while not self.stop.is_set():
            if self.outstanding() > OUTSTANDING:
                time.sleep(0.1)
                continue
            count += 1
            self.submit(f"s{number}-{count}", chance)

    def outstanding(self) -> int:
        """Tasks accepted but not ended, by the marks."""
        with self.lock:
            wanted = sum(tasks for _, tasks, _ in self.accepted.values())
        return wanted - sum(1 for entry in os.scandir(self.marks) if entry.name.endswith(".end"))

    def submit(self, name: str, chance: random.Random) -> None:
        tasks = 3 if chance.random() < 0.2 else 1
        code = 3 if chance.random() < 0.1 else 0
        argv = ["sbatch", "--parsable", "-J", name, *(["--array=0-2"] if tasks > 1 else [])]
        argv += [str(self.script), f"{chance.random() * 1.5:.2f}", str(code)]
        env = {**self.daemon.env, "MARKS": str(self.marks)}
        answer = subprocess.run(
            [f"{self.daemon.bin}/sbatch", *argv[1:]], env=env, cwd=self.daemon.work, capture_output=True, text=True,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        with self.lock:
            if answer.returncode != 0:
                self.refused += 1
                return
            job = int(answer.stdout.strip())
            if job in self.accepted:
                self.repeated.append(f"id {job} was given to {self.accepted[job][0]} and to {name}")
            self.accepted[job] = (name, tasks, code)

    # ---- killing

    def kill(self, kills: int, report: bool) -> int:
        """Kill and start again; returns the kills that hit a daemon."""
        chance, hits, begun = random.Random(f"{self.seed}/killer"), 0, time.monotonic()
        while hits < kills:
            time.sleep(chance.choice((0.0, 0.02, 0.1, 0.3, 0.8)) * chance.random())
            hits += self.daemon.kill()
            starting = threading.Thread(target=self.start)
            starting.start()
            if chance.random() < 0.15:  # in the middle of a start
                time.sleep(chance.random())
                hits += self.daemon.kill()
            starting.join()
            if report and hits % 25 == 0:
                print(
                    f"{hits} kills in {time.monotonic() - begun:.0f} s, {len(self.accepted)} submissions accepted",
                    flush=True,
                )
        return hits

    def start(self) -> None:
        with contextlib.suppress(BridgeError):  # killed in the middle of its start
            self.daemon.up()

    def settle(self, seconds: float = SETTLE_S) -> bool:
        """Wait until the queue is empty."""
        if self.daemon.pid is None:
            self.daemon.up()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            answer = self.daemon.run(["squeue", "-h", "-o", "%i"])
            if answer.returncode == 0 and not answer.stdout.strip():
                return True
            time.sleep(0.5)
        return False

    # ---- checking

    def violations(self) -> list[str]:
        found = list(self.repeated)
        if self.refused and not self.accepted:
            found.append(f"all {self.refused} submissions were refused")
        twice = self.marks / "twice"
        if twice.exists():
            found += [f"run {line} started twice" for line in twice.read_text().split()]
        found += self.check_runs()
        answer = self.daemon.run(["squeue", "-h", "-o", "%i %T"])
        found += [f"still in the queue: {line}" for line in answer.stdout.splitlines()]
        return found

    def check_runs(self) -> list[str]:
        """Accounting against marks and acknowledgements."""
        fields = "JobIDRaw,JobID,JobName,State,ExitCode"
        answer = self.daemon.run(["sacct", "-X", "-n", "-P", "-D", "-a", "-S", "now-2days", "-o", fields])
        found = [f"sacct: {answer.stderr.strip()}"] if answer.returncode else []
        rows: dict[str, list[list[str]]] = {}
        by_array: dict[int, list[list[str]]] = {}
        for line in answer.stdout.splitlines():
            row = line.split("|")
            rows.setdefault(row[0], []).append(row)
            by_array.setdefault(int(row[1].split("_")[0]), []).append(row)
        found += [f"{raw} has {len(each)} runs" for raw, each in rows.items() if len(each) != 1]
        for job, (name, tasks, code) in self.accepted.items():
            runs = by_array.get(job, [])
            if len(runs) != tasks:
                found.append(f"job {job} ({name}) has {len(runs)} runs of {tasks}")
            for raw, _, shown, state, exit_code in runs:
                if shown != name:
                    found.append(f"job {raw} is called {shown}, not {name}")
                if (state, exit_code) != (("FAILED", "3:0") if code else ("COMPLETED", "0:0")):
                    found.append(f"job {raw} ({name}) is {state} {exit_code}")
                for mark in (f"{raw}.0", f"{raw}.0.end"):
                    path = self.marks / mark
                    if not path.exists() or path.read_text().strip() != name:
                        found.append(f"job {raw} ({name}) left no {mark}")
        again = [entry.name for entry in os.scandir(self.marks) if ".0" not in entry.name and entry.name != "twice"]
        return found + [f"run {name}: restarted without need" for name in again]

    def check_usage(self) -> list[str]:
        """After the daemon has gone: the use of each association against its runs."""
        from slurmbridge.commands.effects import JobFilter
        from slurmbridge.store.place import find, open_store
        from slurmbridge.store.usage import run_seconds

        store = open_store(find(self.daemon.place.state, self.daemon.database or None))
        try:
            rows = [row for row in store.load(0.0).usage if row.assoc_id > 0]  # below: what QOS used
            counted: dict[int, float] = {row.assoc_id: dict(row.raw).get("cpu", 0.0) for row in rows}
            expected: dict[int, float] = {}
            for row in store.history(JobFilter(duplicates=True, with_steps=False)):
                if row.job.allocation is not None and row.job.spec.assoc_id:  # without one nothing is charged
                    seconds = run_seconds(row.job) * dict(row.job.allocation.tres).get("cpu", 0)
                    expected[row.job.spec.assoc_id] = expected.get(row.job.spec.assoc_id, 0.0) + seconds
        finally:
            store.close()
        if not any(expected.values()):
            return ["no run used anything"]
        wrong = [key for key in expected | counted if abs(expected.get(key, 0.0) - counted.get(key, 0.0)) > 0.01]
        return [
            f"association {key}: {counted.get(key, 0.0):.2f} CPU seconds counted, {expected.get(key, 0.0):.2f} used"
            for key in wrong
        ]


def make_association(daemon: throwaway.Throwaway) -> None:
    """Usage is counted by association, and only root has one from the start."""
    user = pwd.getpwuid(os.getuid()).pw_name
    if daemon.run(["sacctmgr", "-nP", "show", "assoc", f"user={user}", "format=user"]).stdout.strip() == user:
        return
    for entity in (["account", "soak"], ["user", user, "account=soak"]):
        answer = daemon.run(["sacctmgr", "-i", "add", *entity])
        if answer.returncode != 0:
            raise BridgeError(f"sacctmgr add {entity[0]}: {answer.stderr.strip()}")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of the commands")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--keep", action="store_true", help="leave the folder when something is wrong")
    parser.add_argument("--database", default="", help="as `slurmbridge up` has it; a new one")
    parser.add_argument("--quiet", action="store_true")
    options = parser.parse_args(argv)
    print(f"seed {options.seed}", flush=True)
    with throwaway.opened(options.bin, database=options.database) as daemon:
        soak = Soak(daemon, options.seed)
        threads = [threading.Thread(target=soak.submit_forever, args=(number,)) for number in range(SUBMITTERS)]
        for thread in threads:
            thread.start()
        try:
            hits = soak.kill(options.kills, not options.quiet)
        finally:
            soak.stop.set()
            for thread in threads:
                thread.join()
        killed = time.monotonic()
        found = [] if soak.settle() else [f"the queue is not empty after {SETTLE_S:.0f} s"]
        settled = time.monotonic() - killed
        found += soak.violations()
        daemon.down()
        found += soak.check_usage()
        tasks = sum(tasks for _, tasks, _ in soak.accepted.values())
        print(f"{hits} kills, {len(soak.accepted)} submissions accepted ({tasks} runs), {soak.refused} refused")
        print(f"the queue was empty {settled:.1f} s after the last kill")
        if found:
            print("\n".join(found[:200]))
            log = pathlib.Path(daemon.place.state, "daemon.log")
            if log.exists():
                print("\n".join(log.read_text().splitlines()[-40:]))
            if options.keep:
                os.rename(daemon.folder, daemon.folder + ".kept")
                print(f"kept: {daemon.folder}.kept")
        print(f"{len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
