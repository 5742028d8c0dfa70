"""Reads slurm.conf and the files it names, and this machine's size, into a ClusterConfig."""

from __future__ import annotations

import os
import socket

from msgspec.structs import replace

from slurmbridge.errors import ConfigError
from slurmbridge.lang import slurm_conf
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.fleet import FleetConfig

COMPANIONS = ("gres.conf", *slurm_conf.TOPOLOGY_FILES, *slurm_conf.WHOLE_FILES)
SECRET = "slurmdbd.conf"
"""A companion with the password of a database, which only SlurmUser may be able to read."""
MAX_FILE = 64 * 1024 * 1024


def machine_size() -> tuple[int, int]:
    """(CPUs this process may use, memory in MiB)."""
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return len(os.sched_getaffinity(0)), pages * size // (1024 * 1024)


def host_name() -> str:
    return socket.gethostname().split(".")[0]


def read(path: str | None, site: str | None = None) -> ClusterConfig:
    """The configuration, ConfigError with file and line when it is wrong. None: this machine as virtual nodes, no
    site file."""
    config = _read_conf(path)
    if site is None:
        return config
    from slurmbridge.lang.site_file import read_site, with_site  # a parser that is slow to load, for few

    return with_site(config, read_site(_site_text(site), site))


def read_fleet(path: str | None, site: str | None) -> FleetConfig:
    """The same where nodes come from a cluster; they are put in by `Inventory.fill`."""
    from slurmbridge.lang.site_cluster import on_cluster
    from slurmbridge.lang.site_file import SiteFile, read_site

    said = read_site(_site_text(site), site) if site is not None else SiteFile(file="")
    if path is None:
        return replace(on_cluster(None, said), control_host=host_name())
    config = _read_conf(path, (0, 0))
    return on_cluster(replace(config, nodes=tuple(node for node in config.nodes if node.cpus)), said)


def _site_text(site: str) -> str:
    try:
        return _text(site)
    except OSError as fault:
        raise ConfigError(fault.strerror or str(fault), file=site) from fault


def _read_conf(path: str | None, size: tuple[int, int] | None = None) -> ClusterConfig:
    """`size`: what a machine has that no NodeName line describes."""
    cpus, memory = size or machine_size()
    if path is None:
        config = slurm_conf.default_cluster(cpus=cpus, memory_mib=memory, host=host_name())
        return replace(config, control_host=host_name())
    files: dict[str, str] = {}
    _collect(path, files)
    for name in COMPANIONS:
        companion = os.path.join(os.path.dirname(path), name)
        if os.path.exists(companion):
            _collect(companion, files)
    secret = os.path.join(os.path.dirname(path), SECRET)
    readable = not os.path.exists(secret) or os.access(secret, os.R_OK)
    if readable and os.path.exists(secret):
        _collect(secret, files)
    config = _with_down_nodes(slurm_conf.read_cluster(files, path, cpus=cpus, memory_mib=memory))
    if not readable:
        config = replace(config, without_effect=(*config.without_effect, (secret, 0, SECRET)))
    return config


def _with_down_nodes(config: ClusterConfig) -> ClusterConfig:
    """DownNodes lines as states of their nodes."""
    if not config.down_nodes:
        return config
    down = {name: (state, reason) for names, state, reason in config.down_nodes for name in names}
    return replace(
        config,
        nodes=tuple(
            replace(node, state=down[node.name][0], reason=down[node.name][1]) if node.name in down else node
            for node in config.nodes
        ),
    )


def _collect(path: str, files: dict[str, str]) -> None:
    """A file and, one after the other, what it includes."""
    queue = [path]
    while queue:
        name = queue.pop()
        if name in files:
            continue
        try:
            files[name] = _text(name)
        except OSError as fault:
            if name != path:
                continue  # the reader says which line names it
            raise ConfigError(fault.strerror or str(fault), file=name) from fault
        queue += [
            included if os.path.isabs(included) else os.path.join(os.path.dirname(path), included)
            for included in slurm_conf.included_files(files[name])
        ]


def _text(name: str) -> str:
    """A whole file. OSError: it cannot be read."""
    with open(name, "rb") as stream:
        data = stream.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise ConfigError("the file is too large", file=name)
    return data.decode("utf-8", "surrogateescape")
