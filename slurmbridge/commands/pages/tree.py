"""Which words may stand behind a command? For scontrol, sacctmgr and their kind: which verb, entity and key.

A tree is a table: the words typed so far, joined by spaces, give what may come next. Where they lead to nothing, the
longest beginning that is known counts: whatever follows `hold` is a job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

from slurmbridge.commands import (
    accounting_words,
    sacctmgr_conditions,
    sacctmgr_fields,
    update_job,
    update_node,
    update_partition,
    update_reservation,
)
from slurmbridge.commands.pages.values import OF_ANY, Values

Next = tuple[str, ...]
"""Words; `@SOURCE` stands for what a source gives, a word that ends in `=` takes a value."""


class Tree(msgspec.Struct, frozen=True, kw_only=True):
    """`branches`: words so far -> what comes next. `keys`: a key in lower case with its `=` -> what its value may be."""

    branches: Mapping[str, Next] = {}
    keys: Mapping[str, Values] = {}


def _keys(words: Iterable[str]) -> Next:
    return tuple(dict.fromkeys(f"{word}=" for word in words))


class Keyed(Protocol):
    """A field of scontrol's update tables."""

    @property
    def key(self) -> str: ...


def _field_keys(fields: Iterable[Keyed]) -> Next:
    return _keys(field.key for field in fields if not getattr(field, "refused", False))


def _scontrol() -> Tree:
    from slurmbridge.commands import scontrol, scontrol_show

    branches: dict[str, Next] = {"": tuple(keyword.name for keyword in scontrol.KEYWORDS)}
    branches["show"] = tuple(entity.name for entity in scontrol_show.ENTITIES)
    for verb in ("hold", "holdu", "uhold", "release", "requeue", "requeuehold", "suspend", "resume", "top", "notify"):
        branches[verb] = ("@alljobs",)
    branches["wait_job"] = branches["listjobs"] = branches["liststeps"] = ("@alljobs",)
    branches["write"] = ("batch_script",)
    branches["write batch_script"] = ("@alljobs",)
    branches["setdebug"] = scontrol.LEVELS
    shown = {"jobs": "alljobs", "jobid": "alljobs", "steps": "alljobs", "nodes": "nodes", "nodename": "nodes"}
    shown |= {"partitions": "partitions", "partitionname": "partitions"}
    shown |= {"reservations": "reservations", "reservationname": "reservations", "licenses": "licenses"}
    for entity in branches["show"]:
        for word in dict.fromkeys((entity, entity.rstrip("s"))):
            branches[f"show {word}"] = (f"@{shown[entity]}",) if entity in shown else ()
    partition, reservation = _field_keys(update_partition.FIELDS), _field_keys(update_reservation.FIELDS)
    branches["update"] = ("JobId=", "NodeName=", "PartitionName=", "ReservationName=")
    branches["update JobId="] = _field_keys(update_job.FIELDS)
    branches["update NodeName="] = _field_keys(update_node.FIELDS)
    branches["update PartitionName="] = partition
    branches["update ReservationName="] = reservation
    branches["create"] = ("PartitionName=", "ReservationName=", "reservation")
    branches["create PartitionName="] = partition
    branches["create reservation"] = branches["create ReservationName="] = reservation
    branches["delete"] = ("PartitionName=", "ReservationName=")
    states = tuple(word for word in update_node.STATES if not word.startswith("POWER") and word != "FUTURE")
    yes_no = Values(words=("YES", "NO"))
    keys = {
        "jobid=": Values(source="alljobs"), "nodename=": Values(source="nodes", several=True),
        "partitionname=": Values(source="partitions"), "reservationname=": Values(source="reservations"),
        "state=": Values(words=(*states, "UP", "INACTIVE")), "partition=": Values(source="partitions"),
        "account=": OF_ANY["account"], "qos=": Values(source="qos"), "nodes=": OF_ANY["nodelist"],
        "users=": OF_ANY["users"], "accounts=": OF_ANY["accounts"], "flags=": Values(words=update_reservation.FLAGS, several=True),
        "features=": Values(source="features"), "licenses=": OF_ANY["licenses"], "reqnodelist=": OF_ANY["nodelist"],
        "excnodelist=": OF_ANY["nodelist"],
        **{f"{field.key.lower()}=": yes_no for field in update_partition.FIELDS if field.typed == "yes_no"},
    }  # fmt: skip
    return Tree(branches=branches, keys=keys)


def _sacctmgr() -> Tree:
    from slurmbridge.commands import sacctmgr, sacctmgr_add, sacctmgr_modify, sacctmgr_show

    def entities(table: Iterable[tuple[str, int, str]]) -> Next:
        return tuple(dict.fromkeys(name.lower() for name, _, _ in table))

    branches: dict[str, Next] = {"": tuple(name for name, _, _ in sacctmgr.VERBS)}
    own = {
        "account": tuple(name for name, _, _ in sacctmgr_add.ACCOUNT_OWN),
        "user": tuple(name for name, _, _ in sacctmgr_add.USER_OWN),
    }
    for verb, table in (
        ("add", sacctmgr_add.ADD_ENTITIES), ("create", sacctmgr_add.ADD_ENTITIES), ("show", sacctmgr_show.ENTITIES),
        ("list", sacctmgr_show.ENTITIES), ("modify", sacctmgr_modify.MODIFY_ENTITIES),
        ("delete", sacctmgr_add.ADD_ENTITIES), ("remove", sacctmgr_add.ADD_ENTITIES),
    ):  # fmt: skip
        singular = {name.lower(): (name.lower().removesuffix("s") if name != "QOS" else "qos") for name, _, _ in table}
        branches[verb] = tuple(dict.fromkeys((*singular.values(),)))
        for name, _, kind in table:
            settings = accounting_words.QOS_WORDS if kind == "qos" else accounting_words.ASSOC_WORDS
            words = tuple(word.name for word in settings) if kind in ("qos", "account", "user", "association") else ()
            conditions = sacctmgr_conditions.CONDITIONS.get(kind, sacctmgr_conditions.CONDITIONS["other"])
            asked = _keys(condition for condition, _, _ in conditions)
            source = _NAMED.get(kind)
            named = (f"@{source}",) if source else ()
            place = f"{verb} {singular[name.lower()]}"
            if verb in ("show", "list"):
                branches[place] = (
                    "where",
                    *asked,
                    *(word.lower() for word, _, _ in sacctmgr_conditions.SWITCHES),
                    *named,
                )
            elif verb in ("delete", "remove"):
                branches[place] = ("where", *asked, *named)
            elif verb == "modify":
                branches[place] = ("set", "where", *asked, *_keys((*own.get(kind, ()), *words)), *named)
            else:
                branches[place] = _keys((*own.get(kind, ()), *(c for c, _, _ in conditions if c != "Format"), *words))
    columns = tuple(dict.fromkeys(field.name for field in sacctmgr_fields.FIELDS))
    keys = {
        "format=": Values(words=columns, several=True), "names=": Values(), "accounts=": OF_ANY["accounts"],
        "acct=": OF_ANY["accounts"], "account=": OF_ANY["accounts"], "users=": OF_ANY["users"], "user=": OF_ANY["users"],
        "clusters=": OF_ANY["clusters"], "partitions=": OF_ANY["partitions"], "parents=": Values(source="accounts"),
        "qoslevel=": Values(source="qos", several=True), "defaultqos=": Values(source="qos"),
        "defaultaccount=": Values(source="accounts"),
        "adminlevel=": Values(words=tuple(word for word, _ in sacctmgr_add.LEVELS)),
        "flags=": Values(words=accounting_words.QOS_FLAGS if _is_words(accounting_words.QOS_FLAGS) else (), several=True),
    }  # fmt: skip
    return Tree(branches=branches, keys=keys)


_NAMED = {"account": "accounts", "user": "users", "qos": "qos", "cluster": "clusters"}
"""Entities whose names a source knows."""


def _is_words(table: tuple[object, ...]) -> bool:
    return all(isinstance(word, str) for word in table)


_OPERANDS: Mapping[str, Next] = {
    "sbatch": ("@files",), "srun": ("@commands",), "salloc": ("@commands",), "scancel": ("@jobs",),
    "seff": ("@alljobs",), "sattach": ("@jobs",), "sbcast": ("@files",), "scrontab": ("@files",),
}  # fmt: skip


def of_command(command: str) -> Tree:
    """The words of a Slurm command; an empty tree where it takes none."""
    if command == "scontrol":
        return _scontrol()
    if command == "sacctmgr":
        return _sacctmgr()
    return Tree(branches={"": _OPERANDS[command]} if command in _OPERANDS else {})
