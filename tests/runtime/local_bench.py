"""A daemon in small on the local runtime, and what its tests share."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pathlib
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from slurmbridge.daemon.through import INVALID, refuse
from slurmbridge.runtime.local import LocalRuntime
from slurmbridge.runtime.protocol import LaunchNode, Report, RunKey
from slurmbridge.spool import claim
from slurmbridge.wire.client import Decoder, unpack
from tests.patience import PATIENCE_S, comes
from tests.runtime.contract import CONFIG, ended, launch_of

IS_ROOT = os.getuid() == 0
HAS_SPACES = IS_ROOT and subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode == 0
NODES = (LaunchNode(rank=0, node="n1", cpus=2), LaunchNode(rank=1, node="n2", cpus=2))
SRUN = f"""srun() {{ {sys.executable} -I -S -c 'import sys; sys.path.insert(0, "{pathlib.Path(__file__).parents[2]}")
from slurmbridge.cli import srun_client; sys.exit(srun_client.main(["srun"] + sys.argv[1:]))' "$@"; }}
"""


FOREVER = f"sleep 321.{os.getpid()}"
"""A program that ends only when it is made to, and that no other run of these tests has."""


def runs_forever() -> bool:
    """Whether a FOREVER is still there."""
    words = FOREVER.replace(" ", "\0").encode() + b"\0"
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if entry.read_bytes() == words:
                return True
    return False


class LocalBench:
    """A daemon in small: acknowledges everything, and hands supervisors that dial in to the runtime."""

    def __init__(self, state: pathlib.Path, *, spaces: bool = True) -> None:
        self.state, self.out = state, state.parent / "out"
        self.out.mkdir(exist_ok=True)
        self.runtime = LocalRuntime(state, spaces=spaces)
        self.reports: list[Report] = []
        self.acknowledges = True

    async def start(self) -> None:
        self.address = self.state / "socket"
        await self.runtime.start(self.listen, CONFIG, daemon_addr=f"unix:{self.address}")
        self.address.unlink(missing_ok=True)
        self.server = await asyncio.start_unix_server(self._dialled, self.address)

    def listen(self, report: Report) -> None:
        self.reports.append(report)
        if self.acknowledges:
            self.runtime.acknowledge(report.key, report.sequence)

    async def _dialled(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        decoder = Decoder()
        frames: list[tuple[bytes, bytes]] = []
        while not frames:
            frames = decoder.feed(await reader.read(65536))
        if frames[0][0] == b"T":
            job, command = (part.decode() for part in unpack(frames[0][1]))
            assert isinstance(writer.transport, asyncio.Transport)
            refuse(writer.transport, command, job, INVALID)
            return
        import socket

        own = socket.socket(fileno=os.dup(writer.get_extra_info("socket").fileno()))
        writer.transport.abort()
        self.runtime.take_over(own, frames[0][1], os.getuid())

    def launch(self, job_id: int, script: bytes | str | None, **changes: Any) -> RunKey:
        key = RunKey(job_id, 0)
        env = {
            "PATH": os.environ["PATH"], "SLURM_JOB_ID": str(job_id), "SLURMBRIDGE_ADDR": f"unix:{self.state / 'socket'}",
            **dict(changes.pop("env", {})),
        }  # fmt: skip
        data = script.encode() if isinstance(script, str) else script
        values = {
            "uid": os.getuid(), "gid": os.getgid(), "env": tuple(env.items()), "work_dir": str(self.out),
            "std_out": str(self.out / f"{job_id}.txt"), "pattern_values": (("j", str(job_id)),), **changes,
        }  # fmt: skip
        self.runtime.launch(launch_of(key, data, **values))
        return key

    async def pass_time(self, seconds: float, until: Callable[[], bool] | None = None) -> None:
        if until is None:
            await asyncio.sleep(seconds)
        else:
            await comes(until, lambda: self.reports)

    async def has_begun(self, key: RunKey) -> None:
        await comes(lambda: bool(self.output(key)), lambda: self.reports)

    async def makes(self, name: str) -> None:
        """Returns when a script has made that file in its folder."""
        await comes((self.out / name).exists, lambda: self.reports)

    async def finish(self, key: RunKey) -> str:
        await comes(lambda: bool(ended(self, key)), lambda: self.reports)
        return self.output(key)

    def output(self, key: RunKey) -> str:
        path = self.out / f"{key.job_id}.txt"
        return path.read_text() if path.exists() else ""

    async def close(self) -> None:
        self.server.close()
        self.acknowledges = True
        for report in self.reports:
            self.runtime.acknowledge(report.key, report.sequence)
        await asyncio.wait_for(self.runtime.stop(end_jobs=True), PATIENCE_S)


Use = Callable[[LocalBench], Awaitable[None]]


def use(state: pathlib.Path, rule: Use, *, spaces: bool = True) -> None:
    async def run() -> None:
        bench = LocalBench(state, spaces=spaces)
        await bench.start()
        try:
            await rule(bench)
        finally:
            await bench.close()

    asyncio.run(run())


DAEMON = """
import asyncio, os, sys
sys.path.insert(0, {root!r})
from tests.runtime.local_bench import LocalBench
import pathlib

async def main():
    bench = LocalBench(pathlib.Path({state!r}), spaces={spaces!r})
    bench.acknowledges = False
    await bench.start()
    await bench.runtime.adopt([])
    bench.launch(1, {script!r})
    await bench.pass_time(1, lambda: len(bench.reports) >= {reports})
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""


def die_after(state: pathlib.Path, script: str, *, reports: int, spaces: bool = True) -> None:
    """A daemon launches job 1, hears so many reports and is killed."""
    root = str(pathlib.Path(__file__).parents[2])
    code = DAEMON.format(root=root, state=str(state), script=script, reports=reports, spaces=spaces)
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=PATIENCE_S)
    assert done.returncode == -9


def supervisor_of(state: pathlib.Path, folder: str = "1.0.0") -> int:
    record = claim.read_json(str(state / "spool" / folder / claim.RECORD))
    assert record is not None
    return int(record["pid"])
