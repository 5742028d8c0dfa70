"""What does `scontrol write config` write? The configuration in use as a slurm.conf that reads as the same.

Follows scontrol(1). Plain keys stand as the site wrote them; nodes and partitions as scontrol has changed them since.
A name is needed: the caller's client writes no file that was not named, so without one Slurm's words for a folder
without rights are said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from slurmbridge.commands.effects import Command, FileData, Print, WriteFile
from slurmbridge.commands.listing import time_zone
from slurmbridge.commands.scontrol_jobs import complain
from slurmbridge.commands.scontrol_view import Eyes
from slurmbridge.commands.update_partition import FIELDS
from slurmbridge.errors import system_text
from slurmbridge.lang import durations, hostlist, times
from slurmbridge.model.cluster import ClusterConfig, NodeConf, Partition

DEFAULT = "/etc/slurm/slurm.conf"
DENIED = 13
_OF_NODES = (
    ("NodeAddr", "address"), ("NodeHostname", "host"), ("Port", "port"), ("CPUs", "cpus"), ("Boards", "boards"),
    ("SocketsPerBoard", "sockets"), ("CoresPerSocket", "cores_per_socket"), ("ThreadsPerCore", "threads_per_core"),
    ("RealMemory", "real_memory"), ("TmpDisk", "tmp_disk"), ("Weight", "weight"), ("Feature", "features"), ("Gres", "gres"),
    ("CoreSpecCount", "core_spec_count"), ("MemSpecLimit", "mem_spec_limit"), ("State", "state"), ("Reason", "reason"),
)  # fmt: skip
_ELSEWHERE = frozenset({"ClusterName", "SlurmctldHost", "ControlMachine", "ControlAddr", "SlurmUser", "Licenses"})


def write_config(eyes: Eyes, words: Sequence[str]) -> Command:
    """`write config [FILE]`: into FILE.DATE. A failure does not change the exit code, as in Slurm."""
    moment = times.render(int(eyes.call.now), time_zone(eyes.call, eyes.site), "standard")
    name = f"{words[0] if words else eyes.site.config.conf_file or DEFAULT}.{moment}"
    errno = DENIED
    if words:
        written: FileData = yield WriteFile(name=name, data=config_text(eyes, moment).encode())
        errno = written.errno
    if errno:
        yield from complain(eyes, f"Could not create file {name}: {system_text(errno)}")
    elif not eyes.flags.quiet:
        yield Print(f"Slurm config saved to {name}\n")
    return 0


def config_text(eyes: Eyes, moment: str) -> str:
    """The whole file."""
    config = eyes.site.config
    title = f"#  Configuration file for Slurm - {moment}  #"
    lines = ["#" * len(title), title, "#" * len(title), f"ClusterName={config.cluster_name}"]
    host = f"{config.control_host}({config.control_addr})" if config.control_addr else config.control_host
    lines += [f"SlurmctldHost={host}", f"SlurmUser={config.slurm_user}"]
    lines += [f"{key}={value}" for key, value in config.values if key not in _ELSEWHERE and "[" not in key]
    if config.licenses:
        lines.append("Licenses=" + ",".join(f"{each.name}:{each.total}" for each in config.licenses))
    lines += ["#", *_nodes([node.conf for node in eyes.site.nodes()]), "#"]
    lines += [_partition(each) for each in eyes.site.partitions()]
    lines += list(_down(config))
    return "\n".join(lines) + "\n"


def _nodes(confs: Sequence[NodeConf]) -> Iterator[str]:
    """A line for nodes next to each other that are alike."""
    rows: list[tuple[list[NodeConf], dict[str, str]]] = []
    for conf in sorted(confs, key=lambda each: each.index):
        values = _values(conf)
        if rows and rows[-1][1] == values:
            rows[-1][0].append(conf)
        else:
            rows.append(([conf], values))
    for group, values in rows:
        words = [f"NodeName={hostlist.compress([conf.name for conf in group])}"]
        for key, field in (("NodeAddr", "address"), ("NodeHostname", "host")):
            own = [str(getattr(conf, field)) for conf in group]
            if any(text not in ("", conf.name) for text, conf in zip(own, group, strict=True)):
                words.append(f"{key}={hostlist.compress(own) if len(set(own)) > 1 else own[0]}")
        yield " ".join([*words, *(f"{key}={value}" for key, value in values.items())])


def _values(conf: NodeConf) -> dict[str, str]:
    plain = NodeConf(name=conf.name)
    found: dict[str, str] = {}
    for key, field in _OF_NODES:
        value = getattr(conf, field)
        if field in ("address", "host") or (value == getattr(plain, field) and field not in ("cpus", "real_memory")):
            continue
        if field == "sockets":
            value = max(1, conf.sockets // max(1, conf.boards))
        text = ",".join(value) if isinstance(value, tuple) else str(value)
        found[key] = f'"{text}"' if " " in text else text
    return found


def _partition(part: Partition) -> str:
    plain = Partition(name=part.name)
    words = [f"PartitionName={part.name}", f"Nodes={hostlist.compress(part.nodes) if part.nodes else ''}"]
    seen = {""}
    for field in FIELDS:
        if field.field in seen:
            continue
        seen.add(field.field)
        value = getattr(part, field.field)
        if value != getattr(plain, field.field):
            words.append(f"{field.key}={_text(field.typed, value)}")
    if part.topology:
        words.append(f"Topology={part.topology}")
    return " ".join(words)


def _text(typed: str, value: Any) -> str:
    if typed == "minutes":
        return durations.render_minutes(value)
    if isinstance(value, bool):
        return "YES" if value else "NO"
    if isinstance(value, tuple):
        return ",".join(value)
    return "UNLIMITED" if value is None else str(getattr(value, "value", value))


def _down(config: ClusterConfig) -> Iterator[str]:
    for names, state, reason in config.down_nodes:
        yield f'DownNodes={hostlist.compress(names)} State={state} Reason="{reason}"'
