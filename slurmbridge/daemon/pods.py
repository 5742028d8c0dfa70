"""`slurmbridge up --kube`: runs are pods of a cluster (`hosting.Hosting`).

What is found out before the event loop: the cluster, our rights there, the configuration, our identity, certificate and
address. Whatever keeps jobs from running is an error then, in words for whoever starts the daemon.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import socket
import time
from collections.abc import Mapping

from msgspec.structs import replace

from slurmbridge.daemon import certificate, configuration, pod_address, pod_identity
from slurmbridge.daemon.controller import Controller
from slurmbridge.daemon.door import Door
from slurmbridge.daemon.output_shelf import Shelf
from slurmbridge.daemon.outputs import Outputs
from slurmbridge.daemon.pod_link import PodLink
from slurmbridge.daemon.pod_options import PodOptions
from slurmbridge.daemon.server import Service
from slurmbridge.errors import ConfigError, RuntimeFault
from slurmbridge.manifest.pod_output import KEPT_MIB
from slurmbridge.manifest.pod_site import PodSite
from slurmbridge.manifest.pod_volumes import way_in
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.fleet import FleetConfig
from slurmbridge.model.run import RunKey
from slurmbridge.runtime import files
from slurmbridge.runtime.kube import place
from slurmbridge.runtime.kube.inventory import Inventory
from slurmbridge.runtime.kube.runtime import KubeRuntime
from slurmbridge.runtime.kube.tokens import Admission, Tokens
from slurmbridge.wire.supervisor import Opening

log = logging.getLogger(__name__)

OUTPUT = "output"
"""In the state folder: what jobs wrote where no file system keeps it."""
LISTED_S = 60.0
ANSWERED_S = 20.0
"""For which a cluster that is busy or just starts is asked again before it counts as none."""


class Pods:
    """BridgeError: jobs could not run like this, and why."""

    def __init__(self, options: PodOptions, state: str, slurm_conf: str | None, site: str | None) -> None:
        self._state, self._slurm_conf, self._site_file = state, slurm_conf, site
        self._outputs: Outputs | None = None
        self._admission: Admission | None = None
        self._server: asyncio.Server | None = None
        fleet = configuration.read_fleet(slurm_conf, site)
        self._context, pin = certificate.ensure(state)
        self._secret = certificate.secret(state)
        self._place = place.find(options.kubeconfig, options.namespace, within=ANSWERED_S)
        try:
            self._socket = self._settle(options, state, fleet, pin)
        except BaseException:
            self._place.api.close()
            raise

    def _settle(self, options: PodOptions, state: str, fleet: FleetConfig, pin: str) -> socket.socket:
        there = self._place
        for lack in place.check(there, within=ANSWERED_S):
            log.warning("event=kube.right_missing right=%r without=%r", str(lack), lack.right.without)
        identity = pod_identity.settle(state, fleet.cluster_name, there.namespace, there.namespace_uid)
        own = place.own_address(there.api.server)
        addresses = pod_address.choose(options.listen, options.advertise, identity.port, own)
        sock = pod_address.bind(addresses)
        port = int(sock.getsockname()[1])
        if options.listen is None and identity.port != port:
            pod_identity.keep(state, replace(identity, port=port))
        if there.inside and options.advertise is None:
            log.warning("event=kube.address why='a pod made anew has another address: name a service with --advertise'")
        self.site = PodSite(
            instance=identity.instance,
            namespace=there.namespace,
            daemon=addresses.told(port),
            pin=pin,
            supervisor="image" if there.has_image_volumes else "copy",
        )
        _check_supervisor(fleet, self.site)
        return sock

    @property
    def is_shared(self) -> bool:
        """Inside of a pod its user is nobody that jobs could be of."""
        return os.geteuid() == 0 or self._place.inside

    @property
    def instance(self) -> str:
        return self.site.instance

    async def prepare(self) -> ClusterConfig:
        files.allow_many()
        self.cluster = Inventory(self._place.api, self.site.instance)
        if not await self.cluster.start(LISTED_S):
            why = self.cluster.watch.fault or "no answer in time"
            raise RuntimeFault(f"the nodes of {self._place.api.server} cannot be listed: {why}")
        config = self.cluster.fill(self.read_config())
        self.runtime = KubeRuntime(
            self._place.api, self.site, dict(config.partition_pods), config.pods, time.time, secret=self._secret,
            nodes=self.cluster.watch, known=self.cluster.device_told,
        )  # fmt: skip
        return config

    def read_config(self) -> FleetConfig:
        fleet = configuration.read_fleet(self._slurm_conf, self._site_file)
        _check_supervisor(fleet, self.site)
        return fleet

    def take_over(self, sock: socket.socket, hello: bytes, uid: int) -> bool:
        """Pods come through their own door."""
        sock.close()
        return False

    async def open(self, controller: Controller, service: Service) -> None:
        admission = self._admission = Admission(Tokens(self._place.api), self.site, self.runtime.pods)
        door = Door(self._context, service, admission.why_not, self._welcome)
        service.through.order = self.runtime.connect
        outputs = self._outputs = Outputs(Shelf(os.path.join(self._state, OUTPUT), KEPT_MIB << 20), controller.writer)
        self.runtime.keeping.keep = outputs.take
        controller.performer.outputs = controller.retaining.outputs = outputs
        self._server = await door.open(self._socket)
        log.info(
            "event=kube.up server=%s namespace=%s instance=%s address=%s",
            self._place.api.server, self.site.namespace, self.site.instance, self.site.daemon,
        )  # fmt: skip

    def _welcome(self, transport: asyncio.Transport, opening: Opening, first: bytes) -> None:
        key = RunKey(opening.job, opening.restarts)
        self.runtime.welcome(functools.partial(PodLink, transport, first), key, opening.rank, opening.run)

    def requests(self) -> Mapping[tuple[str, str, str], int]:
        return self._place.api.counts.all()

    def shut(self) -> None:
        if self._server is not None:
            self._server.close()

    async def close(self) -> None:
        if self._admission is not None:
            self._admission.close()
        if self._outputs is not None:
            self._outputs.close()
        await self.cluster.stop()

    def release(self) -> None:
        self._socket.close()
        self._place.api.close()


def _check_supervisor(fleet: FleetConfig, site: PodSite) -> None:
    """ConfigError: pods of some partition would have no supervisor."""
    templates = dict(fleet.partition_pods)
    for partition in fleet.partitions:
        template = templates.get(partition.name, fleet.pods)
        way = way_in(template, site)
        if way != "hostPath" and not (template.supervisor_image or site.supervisor_image):
            raise ConfigError(
                f"partition {partition.name}: no supervisorImage in the site file says which image brings the supervisor"
            )
