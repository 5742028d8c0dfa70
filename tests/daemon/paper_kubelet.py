"""A daemon of its own process whose cluster is on paper, and a kubelet whose containers are processes of this machine.

The daemon is `slurmbridge up --kube` as people start it, the supervisors are real ones; between them only the API server is
made up. Everybody is the user that runs the test.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from slurmbridge.cli.connection import Answer, Connection
from slurmbridge.manifest.pod_site import PYTHON
from tests.patience import PATIENCE_S, until
from tests.runtime.kube.paper import Paper, paper_cluster
from tests.supervisor.pods import PROGRAM

SITE = """
defaults:
  image: base
  supervisorImage: brings
  volumes: [{{name: work, hostPath: {{path: {work}}}}}]
  volumeMounts: [{{name: work, mountPath: {work}}}]
"""  # `work` is the same folder in all pods, which are processes here


class Kubelet:
    """Runs the pods of the paper; of all nodes."""

    def __init__(self, paper: Paper, folder: Path, path: str) -> None:
        self._paper, self._folder, self._path = paper, folder, path
        self.containers: dict[str, subprocess.Popen[bytes]] = {}  # by uid
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    def _live(self) -> None:
        while not self._is_over.wait(0.02):
            for name, pod in list(self._paper.objects["pods"].items()):
                uid = pod["metadata"]["uid"]
                process = self.containers.get(uid)
                if process is None:
                    self.containers[uid] = self._start(name, pod)
                    self._paper.run(name)
                elif process.poll() is not None:
                    if pod.get("status", {}).get("phase") == "Running" or not pod.get("status"):
                        self._paper.finish(name, abs(process.returncode), words=self._words(uid))
                elif pod["metadata"].get("deletionTimestamp"):
                    process.send_signal(signal.SIGTERM)

    def _start(self, name: str, pod: dict[str, Any]) -> subprocess.Popen[bytes]:
        uid, (container,) = pod["metadata"]["uid"], pod["spec"]["containers"]
        assert container["command"][0] == PYTHON
        folder = self._folder / uid
        folder.mkdir()
        (folder / "token").write_text(self._paper.token(name))
        words = [*container["args"], "--base", str(folder / "base"), "--words", str(folder / "words")]
        words[words.index("--token") + 1] = str(folder / "token")
        with (folder / "log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", str(PROGRAM), *words], env={"PATH": self._path}, stderr=log
            )

    def _words(self, uid: str) -> str:
        path = self._folder / uid / "words"
        return path.read_text() if path.exists() else ""

    def words(self) -> list[str]:
        """What supervisors left in their pods."""
        return [path.read_text() for path in self._folder.glob("*/words")]

    def logs(self) -> str:
        return "\n".join(path.read_text() for path in self._folder.glob("*/log"))

    def close(self) -> None:
        self._is_over.set()
        self._thread.join()
        for process in self.containers.values():
            if process.poll() is None:
                process.kill()
                process.wait()


class Installation:
    """One state folder and its daemon."""

    def __init__(self, paper: Paper, kubelet: Kubelet, folder: Path, kubeconfig: Path, commands: Path) -> None:
        self.paper, self.kubelet, self.folder, self._commands = paper, kubelet, folder, commands
        self.state = folder / "state"
        self.work = folder / "work"
        self.work.mkdir()
        self.site = folder / "site.yaml"
        self.site.write_text(SITE.format(work=self.work))
        self._words = ["--kube", "--kubeconfig", str(kubeconfig), "--site", str(self.site), "--state", str(self.state)]
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self._address = ["--listen", f"127.0.0.1:{port}", "--advertise", f"127.0.0.1:{port}"]
        self._daemon: subprocess.Popen[bytes] | None = None

    def up(self, *more: str, fails: bool = False) -> str:
        """The complaint of one that does not come up."""
        words = ["up", *self._words, *self._address, *more]
        log = self.folder / "daemon.log"
        with log.open("ab") as stream:
            self._daemon = subprocess.Popen(
                [sys.executable, "-m", "slurmbridge.cli.main", *words], stdout=stream, stderr=stream, cwd="/",
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )  # fmt: skip
        if fails:
            assert self._daemon.wait(PATIENCE_S) == 1
            return log.read_text().splitlines()[-1]
        until(lambda: self._answers() or self._daemon.poll() is not None)  # type: ignore[union-attr]
        assert self._daemon.poll() is None, log.read_text()
        return ""

    def _answers(self) -> bool:
        try:
            return self.run("sbatch", "-V").code == 0
        except OSError:
            return False

    @property
    def is_over(self) -> bool:
        """Whether the daemon has ended."""
        return self._daemon is not None and self._daemon.poll() is not None

    def kill(self) -> None:
        assert self._daemon is not None
        self._daemon.kill()
        self._daemon.wait()

    def stop(self) -> None:
        if self._daemon is not None and self._daemon.poll() is None:
            self._daemon.terminate()
            self._daemon.wait(PATIENCE_S)

    def command(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """A command as it is typed on the host of the daemon."""
        env = {"PATH": os.environ["PATH"], "SLURMBRIDGE_ADDR": f"unix:{self.state}/socket"}
        return subprocess.run(
            [self._commands / argv[0], *argv[1:]], capture_output=True, text=True, cwd=self.work, env=env, timeout=PATIENCE_S
        )  # fmt: skip

    def run(self, *argv: str, files: dict[str, bytes] | None = None) -> Answer:
        with Connection(str(self.state / "socket")) as connection:
            return connection.run(argv, cwd=str(self.work), env={"PATH": os.environ["PATH"]}, files=files)

    def submit(self, script: str, *options: str) -> int:
        answer = self.run(
            "sbatch", "--parsable", *options, "job.sh", files={"job.sh": f"#!/bin/sh\n{script}\n".encode()}
        )
        assert answer.code == 0, answer
        return int(answer.text)

    def job(self, job: int, field: str = "state") -> str:
        """Of sacct."""
        return self.run("sacct", "-nXP", "-j", str(job), "-o", field).text.strip()

    def ended(self, job: int) -> str:
        over = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
        return str(until(lambda: (found := self.job(job)).startswith(over) and found, f"job {job}"))

    def has_begun(self, job: int) -> bool:
        """A script that says something first."""
        path = self.work / f"slurm-{job}.out"
        return path.exists() and bool(path.read_text())

    def output(self, job: int) -> str:
        return (self.work / f"slurm-{job}.out").read_text()


@contextmanager
def installation(folder: Path, commands: Path, nodes: Sequence[str] = ("n1", "n2")) -> Iterator[Installation]:
    """`commands`: the folder of the Slurm commands, for jobs and for `command`."""
    with paper_cluster() as (paper, connect):
        paper.made = datetime.now(UTC).isoformat()
        paper.put("namespaces", {"metadata": {"name": "jobs"}})
        for name in nodes:
            size = {"cpu": "4", "memory": "8Gi", "pods": "110"}
            status = {"conditions": [{"type": "Ready", "status": "True"}], "capacity": size, "allocatable": size}
            paper.put("nodes", {"metadata": {"name": name}, "spec": {}, "status": status})
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "x", "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "jobs"}}],
            "clusters": [{"name": "c", "cluster": {"server": connect().server}}],
        }  # fmt: skip
        (folder / "kubeconfig").write_text(json.dumps(config))
        (folder / "containers").mkdir()
        path = f"{commands}:{os.environ['PATH']}"
        kubelet = Kubelet(paper, folder / "containers", path)
        made = Installation(paper, kubelet, folder, folder / "kubeconfig", commands)
        try:
            yield made
        finally:
            made.stop()
            kubelet.close()
