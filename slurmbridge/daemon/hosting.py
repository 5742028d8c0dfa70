"""Where does the daemon's work happen? What `main` needs of it: the virtual nodes of this machine here, pods in `pods`.

It is made before the event loop, in the order that its kind wants; then `prepare`, `open`, `shut`, `close` on the loop.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Protocol

from slurmbridge.daemon import configuration
from slurmbridge.daemon.controller import Controller
from slurmbridge.daemon.fleet import Source
from slurmbridge.daemon.server import Service
from slurmbridge.daemon.step_dial import StepDial
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.runtime.local import LocalRuntime
from slurmbridge.runtime.protocol import Runtime


class Hosting(Protocol):
    """One kind of place for runs."""

    @property
    def runtime(self) -> Runtime:
        """Known from `prepare` on."""

    @property
    def cluster(self) -> Source | None:
        """Where nodes come from, from `prepare` on; None: they are those of the configuration."""

    @property
    def instance(self) -> str:
        """By which what is ours is known there."""

    @property
    def is_shared(self) -> bool:
        """Whether it serves every user of the host, not only the one who started it."""

    async def prepare(self) -> ClusterConfig:
        """First of all on the loop: the configuration, with its nodes."""

    def read_config(self) -> ClusterConfig:
        """The same once more, as the files are now, without a cluster's nodes. In a thread."""

    def take_over(self, sock: socket.socket, hello: bytes, uid: int) -> bool:
        """A supervisor dialled the daemon's own socket; it is the runtime's, or closed."""

    async def open(self, controller: Controller, service: Service) -> None:
        """The runs that are there were found: from here on their supervisors are welcome."""

    def requests(self) -> Mapping[tuple[str, str, str], int]:
        """How many were made to a cluster's API server, by (verb, resource, outcome)."""

    def shut(self) -> None:
        """Nobody new any more."""

    async def close(self) -> None:
        """After the runtime has stopped."""

    def release(self) -> None:
        """After the loop, or when there never was one."""


class VirtualNodes:
    """Processes of this machine. Its fork server starts before any file is read."""

    cluster = None
    instance = ""

    def __init__(self, state: str, slurm_conf: str | None, site: str | None) -> None:
        self.runtime = LocalRuntime(state)
        self._slurm_conf, self._site = slurm_conf, site

    @property
    def is_shared(self) -> bool:
        return os.geteuid() == 0

    async def prepare(self) -> ClusterConfig:
        return self.read_config()

    def read_config(self) -> ClusterConfig:
        return configuration.read(self._slurm_conf, self._site)

    def take_over(self, sock: socket.socket, hello: bytes, uid: int) -> bool:
        return self.runtime.take_over(sock, hello, uid)

    async def open(self, controller: Controller, service: Service) -> None:
        """They come over the daemon's own socket; who is on another machine reaches theirs through us."""
        service.through.order = StepDial(self.runtime.step_address, service.through).order

    def requests(self) -> Mapping[tuple[str, str, str], int]:
        return {}

    def shut(self) -> None:
        """As `open`."""

    async def close(self) -> None:
        """Its fork server ends with the runtime."""

    def release(self) -> None:
        self.runtime.close()
