"""What happens while jobs run as pods, which jobs they are, and what must hold of them afterwards.

Every job leaves marks in a file that all pods share: when it began, that it still runs, that it ended, each with its restart
count and the machine's uptime. So it is seen from outside whether two runs of a job were ever there at the same time.
"""

import contextlib
import os
import random
import re
import subprocess
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster.driver import Cluster
from cluster.pods import Namespace

from .bridge import Bridge
from .proxy import Proxy

SETTLE_S, EACH_S = 300.0, 8.0
"""For all jobs, and more for each: a busy machine and an API server that is seldom there take their time."""
FALLS = 3
UP_S = 240.0
"""Within which a daemon comes up, however often its API server is away."""
SCRIPT = (
    'm() { read -r t _ < /proc/uptime; echo "$1 $SLURM_JOB_ID ${SLURM_RESTART_COUNT:-0} $t $2" >> runs; }; '
    "m begun; echo first; sleep 0.7; m tick; sleep 0.7; m tick; "
    "srun sh -c 'read -r t _ < /proc/uptime; "
    'echo "task $SLURM_JOB_ID ${SLURM_RESTART_COUNT:-0} $t $SLURM_PROCID" >> runs; sleep 0.3; echo task $SLURM_PROCID\'; '
    "code=$?; echo last; m ended $code; [ $code = 0 ] && code=CODE; exit $code"
)


@dataclass(frozen=True)
class Kind:
    name: str
    options: tuple[str, ...] = ()
    weight: int = 1
    jobs: int = 1
    tasks: int = 1
    code: int = 0
    requeue: bool = True
    follows: str = ""  # kind of a dependency on an earlier job


KINDS = (
    Kind("plain", weight=4),
    Kind("fails", code=3),
    Kind("once", requeue=False, weight=2),
    Kind("gang", ("--nodes=2", "--ntasks=2"), weight=3, tasks=2),
    Kind("gang once", ("--nodes=2", "--ntasks=2"), tasks=2, requeue=False),
    Kind("array", ("--array=1-4",), jobs=4),
    Kind("half", ("--gres=gpu:0.5",), weight=2),
    Kind("halves", ("--nodes=2", "--ntasks=2", "--gres=gpu:0.5"), tasks=2),
    Kind("whole", ("--gres=gpu:1",)),
    Kind("after", follows="afterany"),
    Kind("after ok", follows="afterok"),
)


@dataclass(frozen=True)
class Run:
    """A row of sacct."""

    job: int
    restarts: int
    state: str
    code: str


class Chaos:
    def __init__(self, site: Bridge, space: Namespace, proxy: Proxy, cluster: Cluster, seed: int) -> None:
        self.site, self.space, self.proxy, self.cluster = site, space, proxy, cluster
        self.chance = random.Random(seed)
        self.accepted: dict[int, Kind] = {}
        self.deeds: Counter[str] = Counter()
        self.slain: set[tuple[int, int]] = set()  # runs of which a supervisor was killed
        self.over = threading.Event()
        self.failure: BaseException | None = None
        self._falling = threading.Lock()
        self._rising: threading.Thread | None = None

    # what happens

    def daemon(self) -> None:
        self.site.kill()
        self.raise_daemon()

    def raise_daemon(self) -> None:
        """One that does not find its cluster says so and ends; its site starts it again."""
        end = time.monotonic() + UP_S
        while True:
            try:
                self.site.up()
                return
            except (AssertionError, subprocess.TimeoutExpired):
                assert time.monotonic() < end
                self.deeds["daemon that did not come up"] += 1

    def fall(self) -> None:
        """The daemon, in the midst of a request: for the thread that has it. Another one comes up meanwhile."""
        with self._falling:
            if self.is_up():
                self.deeds["daemon"] += 1
                self.site.kill()
                self._rising = threading.Thread(target=self._rise)
                self._rising.start()

    def is_up(self) -> bool:
        return self._rising is None or not self._rising.is_alive()

    def may_fall(self) -> bool:
        return self.is_up() and self.deeds["daemon"] < FALLS

    def _rise(self) -> None:
        try:
            self.raise_daemon()
        except BaseException as failure:  # told by the thread that waits
            self.failure = failure

    def risen(self) -> None:
        if self._rising is not None:
            self._rising.join()

    def api_server(self) -> None:
        self.cluster.kill("kube-apiserver")
        self.over.wait(self.chance.uniform(0, 5))
        self.cluster.start("kube-apiserver")
        self.cluster.await_api()

    def kubelet(self) -> None:
        node = self.chance.choice(self.cluster.parts.settings.node_names())
        self.cluster.kill(f"kubelet@{node}")
        self.over.wait(self.chance.uniform(0, 4))
        self.cluster.start(f"kubelet@{node}")

    def supervisor(self) -> None:
        running = _supervisors(self.space)
        if running:
            pid, run = self.chance.choice(running)
            self.slain.add(run)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        else:
            self.deeds["supervisor"] -= 1

    def node(self) -> None:
        """A machine loses its power and is taken out of the cluster while the daemon is away; then it is back."""
        name = self.chance.choice(self.cluster.parts.settings.node_names())
        self.site.kill()
        self.slain |= {run for run, nodes in _runs(self.space).items() if name in nodes}
        self.cluster.kill(f"kubelet@{name}")  # first of all: it shall not tell how the others end
        self.cluster.kill(f"node@{name}")
        self.cluster.kubectl("delete", "node", name)
        self.raise_daemon()
        self.cluster.start(f"node@{name}")
        self.cluster.await_node(name)

    def disturb(self, deeds: Sequence[Callable[[], None]], pause_s: float) -> None:
        """One after the other in a random order, each as often as any other."""
        bag: list[Callable[[], None]] = []
        try:
            while not self.over.wait(self.chance.uniform(0.2, pause_s)):
                bag = bag or self.chance.sample(list(deeds), len(deeds))
                deed = bag.pop()
                self.deeds[deed.__name__] += 1
                print(f"{time.monotonic():.1f} {deed.__name__}", flush=True)
                deed()
        except BaseException as failure:  # told by the thread that waits
            self.failure = failure

    # jobs

    def submit(self, kind: Kind) -> int:
        """Until it is acknowledged: a daemon that comes back knows by its nonce whether a job was accepted."""
        options = [
            *kind.options,
            "--requeue" if kind.requeue else "--no-requeue",
            "--time=10",
            f"--job-name={kind.name}",
        ]
        if kind.follows:
            good = [job for job, one in self.accepted.items() if one.code == 0 and one.requeue]
            parents = good if kind.follows == "afterok" else list(self.accepted)
            options += [f"--dependency={kind.follows}:{self.chance.choice(parents)}"] if parents else []
        end = time.monotonic() + UP_S
        while True:
            try:
                job = self.site.submit(SCRIPT.replace("CODE", str(kind.code)), *options)
            except (AssertionError, ValueError, subprocess.TimeoutExpired):
                assert time.monotonic() < end and self.failure is None, self.failure
                time.sleep(0.2)
            else:
                self.accepted[job] = kind
                return job

    def submit_all(self, count: int, enough: Callable[[], bool] = lambda: True) -> None:
        weights = [kind.weight for kind in KINDS]
        while self.count < count or not enough():
            self.submit(self.chance.choices(KINDS, weights)[0])
            while self.count >= count and not enough() and len(self.waiting()) > 20:
                time.sleep(1)

    @property
    def count(self) -> int:
        return sum(kind.jobs for kind in self.accepted.values())

    def waiting(self) -> list[str]:
        assert self.failure is None, self.failure
        with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
            return self.site.command("squeue", "-h", "-r", "-o", "%i %T %r %N").splitlines()
        return ["?"]

    def settle(self) -> None:
        end = time.monotonic() + SETTLE_S + EACH_S * self.count
        while waiting := self.waiting():
            assert time.monotonic() < end, (
                waiting,
                self.space.kubectl("get", "pods", "--output=wide"),
                self.log()[-4000:],
            )
            time.sleep(0.5)

    def log(self) -> str:
        return (self.site.state / "daemon.log").read_text()

    def story(self, found: Sequence[str]) -> list[str]:
        """What the daemon's log has about the jobs that are named."""
        jobs = "|".join({job for text in found for job in re.findall(r"\bjob (\d+)", text)})
        return re.findall(rf"^.*\bjob=(?:{jobs})\b.*$", self.log(), re.MULTILINE) if jobs else []

    # rules

    def violations(self) -> list[str]:
        return [*self._of_records(), *self._of_marks(), *self._of_log()]

    def _rows(self) -> dict[int, list[Run]]:
        """By job, the first run first."""
        fields = "JobIDRaw,Restarts,State,ExitCode"
        said = self.site.command("sacct", "-X", "-n", "-P", "-D", "-o", fields, "-j", ",".join(map(str, self.accepted)))
        rows: dict[int, list[Run]] = defaultdict(list)
        for line in said.splitlines():
            job, restarts, state, code = line.split("|")
            rows[int(job)].append(Run(int(job), int(restarts), state.split(" ")[0], code))
        return {job: sorted(runs, key=lambda run: run.restarts) for job, runs in rows.items()}

    def _kind(self, job: int) -> Kind:
        """A task of an array has an id of its own."""
        return self.accepted.get(job) or next(kind for kind in KINDS if kind.name == "array")

    def _marks(self) -> list[list[str]]:
        path = self.site.share / "runs"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def _of_records(self) -> list[str]:
        found, rows, marks = [], self._rows(), self._marks()
        begun = {(int(mark[1]), int(mark[2])) for mark in marks if mark[0] == "begun"}
        if len(rows) != self.count:
            found.append(f"{len(rows)} jobs of {self.count} are known")
        steps = self._steps()
        for job, runs in rows.items():
            kind, last = self._kind(job), runs[-1]
            if [run.restarts for run in runs] != list(range(last.restarts + 1)):
                found.append(f"job {job} has runs {[run.restarts for run in runs]}")
            for run in runs[:-1]:
                key = (job, run.restarts)
                if key in begun and key not in self.slain:
                    found.append(
                        f"job {job} was begun again after run {run.restarts} ({run.state}), which nobody ended"
                    )
            if last.restarts and not kind.requeue and any((job, number) in begun for number in range(last.restarts)):
                found.append(f"job {job} may not be begun again, and was")
            if not kind.requeue and last.state == "NODE_FAIL" and (job, last.restarts) in self.slain:
                continue
            wanted = ("FAILED", f"{kind.code}:0") if kind.code else ("COMPLETED", "0:0")
            if (last.state, last.code) != wanted:
                found.append(f"job {job} ({kind.name}) is {last.state} {last.code}")
            told = sorted(step for step in steps if step.startswith((f"{job}.", f"{job}_")))
            if told != [f"{job}.0 COMPLETED 0:0", f"{job}.batch {wanted[0]} {wanted[1]}"]:
                found.append(f"job {job} has steps {told}")
            found += self._of_output(job, kind)
        return found

    def _steps(self) -> list[str]:
        """Of the last run of each job."""
        said = self.site.command(
            "sacct", "-n", "-P", "-o", "JobIDRaw,State,ExitCode", "-j", ",".join(map(str, self.accepted))
        )
        return [line.replace("|", " ") for line in said.splitlines() if "." in line.split("|")[0]]

    def _of_output(self, job: int, kind: Kind) -> list[str]:
        """Of a run that came to its end."""
        lines = self.site.output(job).splitlines()
        tasks = [f"task {number}" for number in range(kind.tasks)]
        is_right = [lines[:1], sorted(lines[1:-1]), lines[-1:]] == [["first"], tasks, ["last"]]
        return [] if is_right else [f"job {job} wrote {lines}"]

    def _of_marks(self) -> list[str]:
        found = []
        by_job: dict[int, dict[int, list[tuple[float, str, str]]]] = defaultdict(lambda: defaultdict(list))
        for word, of, run, uptime, *rest in self._marks():
            by_job[int(of)][int(run)].append((float(uptime), word, " ".join(rest)))
        for job, runs in by_job.items():
            before = 0.0
            for restart in sorted(runs):
                marks = runs[restart]
                counted = Counter((word, more) for _, word, more in marks if word != "tick")
                ticks = sum(word == "tick" for _, word, _ in marks)
                if ticks > 2 or any(count > 1 for count in counted.values()):
                    found.append(f"job {job} ran twice as run {restart}: {sorted(marks)}")
                if min(marks)[0] < before:
                    found.append(f"job {job} began run {restart} while another of its runs went on: {dict(runs)}")
                before = max(before, max(marks)[0])
                ended = [at for at, word, _ in marks if word == "ended"]
                if ended and any(at > ended[0] for at, _, _ in marks):
                    found.append(f"job {job} went on after its end: {sorted(marks)}")
        return found

    def _of_log(self) -> list[str]:
        return re.findall(r"^.*(?:Traceback|never retrieved|ERROR).*(?:\n(?!\[).*)*", self.log(), re.MULTILINE)[:5]

    def left(self) -> list[str]:
        """Of runs and jobs, on the cluster and on the nodes of the daemon."""
        here = self.space.kubectl("get", "pods,services", "--output=name").split()
        busy = self.site.command("sinfo", "-h", "-N", "-o", "%N %t %C").splitlines()
        return here + [line for line in busy if " idle 0/" not in line]


def _pods(space: Namespace) -> list[tuple[str, tuple[int, int], str]]:
    """Of runs: uid, job and restart, node."""
    words = (
        ".metadata.uid",
        *(f".metadata.labels.slurmbridge\\.io/{name}" for name in ("job", "restart")),
        ".spec.nodeName",
    )
    shown = "".join(f"{{{word}}} " for word in words)
    output = f"--output=jsonpath={{range .items[*]}}{shown}{{'\\n'}}{{end}}"
    lines = space.kubectl("get", "pods", "--selector=slurmbridge.io/job", output).splitlines()
    return [(uid, (int(job), int(restart)), node) for uid, job, restart, node in map(str.split, lines)]


def _runs(space: Namespace) -> dict[tuple[int, int], set[str]]:
    """The nodes of each run that has pods."""
    found: dict[tuple[int, int], set[str]] = defaultdict(set)
    for _, run, node in _pods(space):
        found[run].add(node)
    return found


def _supervisors(space: Namespace) -> list[tuple[int, tuple[int, int]]]:
    """First processes of the containers of runs' pods, seen from this machine, with job and restart."""
    runs = {name: run for uid, run, _ in _pods(space) for name in (uid, uid.replace("-", "_"))}
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            group = (process / "cgroup").read_text()
            of = re.search(r"pod([0-9a-f_-]{36})", group)
            if of is None or of[1] not in runs:
                continue
            numbers = re.search(r"^NSpid:(.*)$", (process / "status").read_text(), re.MULTILINE)
            name = (process / "comm").read_text().strip()
            if numbers and numbers[1].split()[-1] == "1" and name not in ("pause", "runc", "runc:[2:INIT]"):
                found.append((int(process.name), runs[of[1]]))
    return found
