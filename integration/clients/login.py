"""A user at a login host: what is typed there and what it answers. The clients run as their users run them."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class Login:
    home: Path
    bin_folder: Path  # the Slurm commands
    python: Path  # the clients' interpreter; their programs are beside it
    user: str
    address: str
    enter: tuple[str, ...] = ()  # words that become the user, in the user's name space
    owner: tuple[int, int] | None = None  # whose the files written here must be
    work: Path | None = None

    @property
    def folder(self) -> Path:
        return self.work or self.home

    def at(self, name: str) -> Login:
        folder = self.home / re.sub(r"\W+", "-", name)
        folder.mkdir(exist_ok=True)
        if self.owner:
            os.chown(folder, *self.owner)
        return dataclasses.replace(self, work=folder)

    def write(self, name: str, text: str, mode: int = 0o755) -> Path:
        path = self.folder / name
        path.write_text(text)
        path.chmod(mode)
        if self.owner:
            os.chown(path, *self.owner)
        return path

    def run(
        self, *argv: str, env: dict[str, str] | None = None, stdin: str | None = None, timeout: float = 120.0
    ) -> subprocess.CompletedProcess[str]:
        """A command in the working folder; the clients' programs and the Slurm commands are in its PATH."""
        given = {
            "PATH": f"{self.bin_folder}:{self.python.parent}:/usr/bin:/bin", "HOME": str(self.home), "USER": self.user,
            "LOGNAME": self.user, "LANG": "C.UTF-8", "SLURMBRIDGE_ADDR": self.address, **(env or {}),
        }  # fmt: skip
        inside = ["sh", "-c", 'cd "$1"; shift; exec "$@"', "sh", str(self.folder), *argv]
        source: dict[str, Any] = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
        return subprocess.run(
            [*self.enter, *inside], env=given, capture_output=True, text=True, timeout=timeout, **source
        )

    def good(self, *argv: str, **options: Any) -> str:
        """Standard output of a command that must succeed."""
        answer = self.run(*argv, **options)
        assert answer.returncode == 0, f"{argv}: exit {answer.returncode}\n{answer.stdout}\n{answer.stderr}"
        return answer.stdout

    def workload(self, source: str, **options: Any) -> Any:
        """A program that uses a client; the last line it prints is its result as JSON."""
        path = self.write("workload.py", source)
        lines = self.good(str(self.python), str(path), **options).strip().splitlines()
        return json.loads(lines[-1])

    def submit(self, *words: str, **options: Any) -> str:
        return self.good("sbatch", "--parsable", *words, **options).strip()

    def states(self, *jobs: str) -> dict[str, str]:
        text = self.good("sacct", "-X", "-n", "-P", "-j", ",".join(jobs), "-o", "JobID,State,ExitCode")
        rows = (line.split("|") for line in text.splitlines())
        return {job: f"{state.split()[0]} {code}" for job, state, code in rows}

    def wait(self, *jobs: str, limit: float = 60.0) -> dict[str, str]:
        """Final states by id, once every named job has ended."""
        end = time.monotonic() + limit
        while time.monotonic() < end:
            if not self.run("squeue", "-h", "-j", ",".join(jobs), "-o", "%i").stdout.strip():
                return self.states(*jobs)
            time.sleep(0.2)
        raise AssertionError(self.run("squeue", "-t", "all").stdout)
