"""A mount namespace with two users of its own, so that one root daemon can be tried by both and the machine keeps its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.patience import PATIENCE_S, until

USERS = {"ann": (61001, 61001), "ben": (61002, 61002), "cyd": (61003, 61003)}
SHELLS = {"cyd": "/usr/sbin/nologin"}
SHARED_GROUP = 61100
CONF = """ClusterName=two
SlurmctldHost=localhost
AccountingStorageType=accounting_storage/slurmdbd
KillWait=2
NodeName=m[1-2] CPUs=8 RealMemory=8000
PartitionName=work Nodes=m[1-2] Default=YES MaxTime=INFINITE State=UP
"""


class Machine:
    """prefix: an environment that every user may use. Commands run inside the namespace."""

    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix
        self.folder = Path(tempfile.mkdtemp(prefix="two-users-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.state = self.folder / "state"
        self.proc_mounts = Path("/proc/mounts").read_text().count(" /proc proc ")
        self.conf = self.folder / "slurm.conf"
        self.conf.write_text(CONF)
        passwd, group = Path("/etc/passwd").read_text(), Path("/etc/group").read_text()
        for user, (uid, gid) in USERS.items():
            home = self.home(user)
            home.mkdir(mode=0o700)
            os.chown(home, uid, gid)
            passwd += f"{user}:x:{uid}:{gid}::{home}:{SHELLS.get(user, '/bin/bash')}\n"
            group += f"{user}:x:{gid}:\n"
        group += f"shared:x:{SHARED_GROUP}:ann\n"
        (self.folder / "passwd").write_text(passwd)
        (self.folder / "group").write_text(group)
        setup = f"mount --bind {self.folder}/passwd /etc/passwd && mount --bind {self.folder}/group /etc/group && echo ready && exec sleep infinity"
        self.holder = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", setup], stdout=subprocess.PIPE, text=True
        )
        assert self.holder.stdout is not None
        assert self.holder.stdout.readline() == "ready\n"

    def home(self, user: str) -> Path:
        return self.folder / f"home-{user}"

    def run(
        self, user: str, *argv: str, env: dict[str, str] | None = None, stdin: bytes | None = None
    ) -> subprocess.CompletedProcess[str]:
        """A command as `user` (or root), found in the prefix, working in the user's home."""
        with self.start(user, *argv, env=env, stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE) as begun:
            try:
                out, err = begun.communicate(stdin, timeout=PATIENCE_S)
            except BaseException:
                begun.kill()
                raise
        return subprocess.CompletedProcess(argv, begun.returncode, out.decode(), err.decode())

    def start(
        self, user: str, *argv: str, env: dict[str, str] | None = None, stdin: int = subprocess.DEVNULL
    ) -> subprocess.Popen[bytes]:
        """The same, not waited for."""
        enter = ["nsenter", "--target", str(self.holder.pid), "--mount"]
        home = Path("/") if user == "root" else self.home(user)
        if user != "root":
            uid, gid = USERS[user]
            groups = ["--groups", str(SHARED_GROUP)] if user == "ann" else ["--clear-groups"]
            enter += ["setpriv", f"--reuid={uid}", f"--regid={gid}", *groups]
        given = {
            "PATH": f"{self.prefix}/bin:/usr/bin:/bin", "HOME": str(home), "USER": user, "LOGNAME": user,
            "SLURMBRIDGE_ADDR": f"unix:{self.state}/socket", **(env or {}),
        }  # fmt: skip
        inside = ["sh", "-c", 'cd "$1"; shift; exec "$@"', "sh", str(home), *argv]
        return subprocess.Popen(
            [*enter, *inside], env=given, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )  # fmt: skip

    def up(self, *more: str) -> None:
        words = ("slurmbridge", "up", "--slurm-conf", str(self.conf), "--state", str(self.state), "--detach", *more)
        answer = self.run("root", *words)
        assert answer.returncode == 0, answer.stderr

    def submit(self, user: str, *words: str, env: dict[str, str] | None = None) -> str:
        answer = self.run(user, "sbatch", "--parsable", *words, env=env)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout.strip()

    def wait_state(self, job: str, *states: str) -> str:
        """The first of these states that the job is in."""
        seen = [""]

        def reached() -> bool:
            seen.append(self.run("root", "squeue", "-h", "-t", "all", "-j", job, "-o", "%T").stdout.strip())
            return seen[-1] in states

        until(reached, lambda: f"job {job} is {seen[-1]}, not {states}")
        return seen[-1]

    def processes(self) -> Sequence[str]:
        """Command lines of the users' processes; a zombie runs no more, whoever should have reaped it."""
        uids, found = {str(uid) for uid, _ in USERS.values()}, []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                status = dict(line.split(":", 1) for line in (entry / "status").read_text().splitlines() if ":" in line)
                if status["Uid"].split()[0] in uids and status["State"].split()[0] not in "ZX":
                    found.append((entry / "cmdline").read_text())
        return found

    def spool(self) -> Sequence[str]:
        """Folders of runs that there are."""
        return [name for name in os.listdir(self.state / "spool") if not name.startswith(".")]

    def close(self) -> None:
        self.run("root", "slurmbridge", "down", "--state", str(self.state), "--jobs")
        self.holder.kill()
        self.holder.wait()
        assert self.holder.stdout is not None
        self.holder.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def lines(answer: subprocess.CompletedProcess[str]) -> Sequence[str]:
    return answer.stdout.splitlines()
