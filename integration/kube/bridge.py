"""`slurmbridge up --kube` as a site has it, and its commands as a user types them."""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from cluster.driver import Cluster
from cluster.images import BUSYBOX
from cluster.pods import Namespace
from cluster.processes import PATIENCE_S, wait_until

from .supervisor import SUPERVISOR

BIN = Path(sys.executable).parent
USER = "games"
"""Somebody who is not root and has nothing."""


def await_true(holds: Callable[[], object], said: Callable[[], object]) -> None:
    """Returns when it is so; what is said is told when it never is."""
    assert wait_until(holds, every=0.1), said()


class Bridge:
    """`share`: a folder that pods see at the same path."""

    def __init__(self, cluster: Cluster, space: Namespace, folder: Path, **defaults: Any) -> None:
        self.cluster, self.space, self.folder = cluster, space, folder
        self.state, self.share = folder / "state", folder / "share"
        self.state.mkdir(0o711)
        self.share.mkdir()
        self.share.chmod(0o1777)
        (self.share / "part").mkdir()
        (self.share / "closed").mkdir(0o700)
        volume = {"name": "share", "hostPath": {"path": str(self.share)}}
        self.site = folder / "site.yaml"
        settings = {
            "image": BUSYBOX, "supervisorImage": SUPERVISOR, "volumes": [volume],
            "volumeMounts": [{"name": "share", "mountPath": str(self.share)}],
        }  # fmt: skip
        self.site.write_text(yaml.safe_dump({"defaults": {**settings, **defaults}, "partitions": {"main": {}}}))

    def up(self) -> None:
        words = ["--kubeconfig", str(self.cluster.kubeconfig), "--namespace", self.space.name, "--site", str(self.site)]
        self._daemon("up", "--kube", *words, "--detach")

    def down(self) -> None:
        self._daemon("down", "--jobs")

    def kill(self) -> None:
        """kill -9."""
        said = self._daemon("status")
        pid = int(next(word for word in said.split() if word.startswith("pid=")).removeprefix("pid="))
        os.kill(pid, 9)
        while Path(f"/proc/{pid}/stat").exists() and " Z " not in Path(f"/proc/{pid}/stat").read_text():
            time.sleep(0.02)

    def _daemon(self, verb: str, *words: str) -> str:
        done = subprocess.run(
            [BIN / "slurmbridge", verb, "--state", self.state, *words],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """As the user, in the shared folder."""
        who = pwd.getpwnam(USER)
        return subprocess.run(
            [BIN / words[0], *words[1:]], capture_output=True, text=True, cwd=self.share, timeout=PATIENCE_S,
            user=who.pw_uid, group=who.pw_gid, extra_groups=[],
            env={"PATH": f"{BIN}:/usr/bin:/bin", "HOME": str(self.share), "SLURMBRIDGE_ADDR": f"unix:{self.state}/socket"},
        )  # fmt: skip

    def command(self, *words: str, code: int = 0) -> str:
        """The same, for what it prints."""
        done = self.run(*words)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def submit(self, script: str, *options: str) -> int:
        """The job's id; its output is in ID.out."""
        said = self.command("sbatch", "--parsable", "--mem=48", "--output=%j.out", *options, f"--wrap={script}")
        return int(said)

    def await_state(self, job: int, *states: str) -> str:
        seen = [""]

        def reached() -> bool:
            said = self.command("sacct", "-X", "-n", "-P", "-o", "State", "-j", str(job))
            seen.append(said.split(" ")[0].strip())
            return seen[-1] in states

        await_true(reached, lambda: (seen[-1], self.space.kubectl("get", "pods", "--output=wide")))
        return seen[-1]

    def await_output(self, job: int, word: str) -> None:
        await_true(lambda: word in self.output(job), lambda: self.output(job))

    def output(self, job: int) -> str:
        path = self.share / f"{job}.out"
        return path.read_text() if path.exists() else ""

    def pods(self) -> list[str]:
        return self.space.kubectl("get", "pods", "--output=jsonpath={.items[*].metadata.name}").split()


@contextmanager
def bridge(cluster: Cluster, space: Namespace, **defaults: Any) -> Iterator[Bridge]:
    """A daemon of its own, ended with its jobs."""
    folder = Path(tempfile.mkdtemp(prefix="slurmbridge-kube-"))
    folder.chmod(0o755)
    made = Bridge(cluster, space, folder, **defaults)
    made.up()
    try:
        yield made
        made.down()
    finally:
        if (made.state / "socket").exists():
            subprocess.run([BIN / "slurmbridge", "down", "--state", made.state], capture_output=True)
        shutil.rmtree(folder)
