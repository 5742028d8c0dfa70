"""What may stand behind an option? Words that the tables know, or a source that is asked when the user completes.

A source is a name; how a shell asks it is in `SOURCES`: the commands themselves answer, as the controller knows them.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import msgspec

from slurmbridge.fields import jobs, node_states, nodes, states, steps
from slurmbridge.fields import sacct as sacct_fields
from slurmbridge.fields.layout import Registry
from slurmbridge.fields.nodes import NodeGroup
from slurmbridge.fields.steps import StepRow
from slurmbridge.lang import mail, rlimits, signals
from slurmbridge.model.job import Job

SOURCES: Mapping[str, str] = {
    "partitions": "sinfo --noheader --format=%R",
    "nodes": "sinfo --noheader --Node --format=%N",
    "features": "sinfo --noheader --format=%f | tr , '\\n'",
    "jobs": "squeue --noheader --me --format=%i",
    "alljobs": "squeue --noheader --format=%i",
    "names": "squeue --noheader --me --format=%j",
    "accounts": "sacctmgr --noheader --parsable2 show account format=account",
    "qos": "sacctmgr --noheader --parsable2 show qos format=name",
    "wckeys": "sacctmgr --noheader --parsable2 show wckey format=wckey",
    "clusters": "sacctmgr --noheader --parsable2 show cluster format=cluster",
    "licenses": "scontrol --oneliner show licenses | sed -n 's/^LicenseName=\\([^ ]*\\).*/\\1/p'",
    "reservations": "scontrol --oneliner show reservation | sed -n 's/^ReservationName=\\([^ ]*\\).*/\\1/p'",
}
"""Source -> a pipeline that prints its words, one a line."""

BUILT_IN = frozenset({"files", "folders", "users", "groups", "commands"})
"""Sources that the shells have themselves."""


class Values(msgspec.Struct, frozen=True, kw_only=True):
    """`several`: a comma list. No words and no source: nothing is offered."""

    words: tuple[str, ...] = ()
    source: str = ""
    several: bool = False


def _words(text: str, *, several: bool = False) -> Values:
    return Values(words=tuple(text.split()), several=several)


def _some(source: str) -> Values:
    return Values(source=source, several=True)


_PARTITIONS, _NODES, _USERS = _some("partitions"), _some("nodes"), _some("users")
_FILE, _FOLDER, _COMMAND = Values(source="files"), Values(source="folders"), Values(source="commands")
_SIGNALS = Values(words=signals.NAMES)
_STATES = Values(words=states.HELP_STATES, several=True)

OF_ANY: Mapping[str, Values] = {
    "account": Values(source="accounts"), "accounts": _some("accounts"), "partition": _PARTITIONS,
    "partitions": _PARTITIONS, "qos": _some("qos"), "reservation": Values(source="reservations"), "nodelist": _NODES,
    "exclude": _NODES, "nodefile": _FILE, "constraint": Values(source="features"), "constraints": _some("features"),
    "prefer": Values(source="features"), "batch": Values(source="features"), "licenses": _some("licenses"),
    "wckey": Values(source="wckeys"), "wckeys": _some("wckeys"), "clusters": _some("clusters"),
    "cluster": _some("clusters"), "user": _USERS, "users": _USERS, "uid": Values(source="users"),
    "group": _some("groups"), "gid": Values(source="groups"), "jobs": _some("alljobs"), "jobid": Values(source="jobs"),
    "name": _some("names"), "mail-user": Values(source="users"), "signal": _SIGNALS, "state": _STATES,
    "states": _STATES, "json": _words("list"), "yaml": _words("list"),
}  # fmt: skip
"""By an option's key, whatever the command."""

OF_SUBMISSION: Mapping[str, Values] = {
    "output": _FILE, "error": _FILE, "input": _FILE, "chdir": _FOLDER, "export-file": _FILE, "bbf": _FILE,
    "container": _FOLDER, "epilog": _FILE, "prolog": _FILE, "task-epilog": _FILE, "task-prolog": _FILE,
    "mail-type": Values(words=("NONE", "ALL", *mail.WORDS), several=True),
    "open-mode": _words("append truncate"), "exclusive": _words("user mcs topo"), "export": _words("ALL NONE NIL", several=True),
    "distribution": _words("block cyclic arbitrary plane= block:block block:cyclic cyclic:block cyclic:cyclic"),
    "hint": _words("compute_bound memory_bound multithread nomultithread"),
    "dependency": _words("after: afterany: afterok: afternotok: aftercorr: singleton"),
    "gpu-bind": _words("closest none single: per_task: map_gpu: mask_gpu:"),
    "mem-bind": _words("none rank local map_mem: mask_mem: verbose quiet", several=True),
    "cpu-bind": _words("none cores sockets threads rank map_cpu: mask_cpu: verbose quiet", several=True),
    "gres": _words("gpu: shard:", several=True), "gres-flags": _words("enforce-binding disable-binding one-task-per-sharing multiple-tasks-per-sharing"),
    "kill-on-invalid-dep": _words("yes no"), "oom-kill-step": _words("0 1"), "kill-on-bad-exit": _words("0 1"),
    "wait-all-nodes": _words("0 1"), "preemptible": _words("yes no"), "kill-command": _SIGNALS,
    "profile": _words("all none energy lustre network task", several=True),
    "propagate": Values(words=("ALL", "NONE", *rlimits.NAMES), several=True),
    "cpu-freq": _words("low medium high highm1 conservative ondemand performance powersave schedutil userspace"),
    "qos": Values(source="qos"),
    "begin": _words("now now+ today tomorrow midnight noon teatime"), "deadline": _words("now+ today tomorrow midnight noon"),
    "mpi": _words("none pmi1 pmi2 list"),
}  # fmt: skip
"""Of sbatch, srun and salloc."""

_SACCT_STATES = Values(words=tuple(word.upper() for word in states.HELP_STATES), several=True)
_SINFO_STATES = Values(words=tuple(word for word, _ in node_states.WORDS), several=True)


def _names(registry: Registry[Job] | Registry[NodeGroup] | Registry[StepRow]) -> Values:
    return Values(words=tuple(each.name for each in registry.fields if not each.hidden), several=True)


OF_COMMAND: Mapping[tuple[str, str], Values] = {
    ("squeue", "Format"): _names(jobs.REGISTRY),
    ("squeue", "reservation"): _some("reservations"),
    ("squeue", "steps"): _some("alljobs"),
    ("sinfo", "Format"): _names(nodes.REGISTRY),
    ("sinfo", "states"): _SINFO_STATES,
    ("sinfo", "nodes"): _NODES,
    ("sacct", "format"): Values(words=tuple(column.name for column in sacct_fields.COLUMNS), several=True),
    ("sacct", "state"): _SACCT_STATES,
    ("sacct", "units"): _words("K M G T P"),
    ("sacct", "whole-hetjob"): _words("yes no"),
    ("sacct", "file"): _FILE,
    ("scancel", "name"): Values(source="names"),
    ("scancel", "partition"): Values(source="partitions"),
    ("scancel", "qos"): Values(source="qos"),
    ("scancel", "state"): _words("PENDING RUNNING SUSPENDED", several=True),
    ("scancel", "user"): Values(source="users"),
    ("sstat", "jobs"): _some("jobs"),
}
"""Where a command means something of its own."""


def of_option(command: str, *keys: str) -> Values:
    """What an option of a command completes to; `keys`: what the command calls it, its long name."""
    own = OF_SUBMISSION if command in ("sbatch", "srun", "salloc") else {}
    for key in keys:
        found = OF_COMMAND.get((command, key)) or own.get(key) or OF_ANY.get(key)
        if found is not None:
            return found
    columns_of = [name for _, rows in columns(command) for name, _, _ in rows if name]
    if "format" in keys and columns_of and command not in ("squeue", "sinfo"):
        return Values(words=tuple(columns_of), several=True)
    return Values()


Columns = tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...]


def columns(command: str) -> Columns:
    """The output columns of a command: (title, rows of (name, letter, heading)). Empty where they are not chosen."""
    registries: Mapping[str, tuple[tuple[str, Registry[Job] | Registry[NodeGroup] | Registry[StepRow]], ...]]
    registries = {
        "squeue": (("of jobs", jobs.REGISTRY), ("of steps (-s)", steps.REGISTRY)),
        "sinfo": (("of nodes", nodes.REGISTRY),),
    }
    if command in registries:
        return tuple(
            (title, tuple((each.name, each.letter, each.heading) for each in registry.fields if not each.hidden))
            for title, registry in registries[command]
        )
    if command == "sacct":
        return (("of --format", tuple((column.name, "", "") for column in sacct_fields.COLUMNS)),)
    if command in ("sbatch", "srun", "salloc"):
        return ()
    table: object = getattr(importlib.import_module(f"slurmbridge.commands.{command}"), "COLUMNS", None)
    if not isinstance(table, tuple):
        return ()
    names = (each if isinstance(each, str) else getattr(each, "name", "") for each in table)
    return (("of --format", tuple((name, "", "") for name in names if name)),)
