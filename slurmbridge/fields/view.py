"""What a column may look at besides its row: names of users, the clock, the caller's time format, sizes of nodes.

One `View` lives as long as one command; it caches what repeats from row to row (user names, formatted times).
Knows nothing of commands or of the daemon: whoever builds it passes functions.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping

from slurmbridge.lang import times
from slurmbridge.model.accounts import Accounting
from slurmbridge.model.cluster import ClusterConfig, Node, Partition


def _number(uid: int) -> str:
    return str(uid)


def _never(job_id: int) -> bool:
    return False


class View:
    """Context of one listing. `bitstr`: longest array task text (SLURM_BITSTR_LEN; 0 = no end)."""

    __slots__ = (
        "accounting", "bitstr", "config", "convert", "expand_patterns", "group_name_of", "groups",
        "is_array", "max_cpus", "nodes", "now", "partitions", "style", "texts", "tz", "unit", "user_name_of", "users",
    )  # fmt: skip

    def __init__(
        self,
        *,
        config: ClusterConfig,
        now: float,
        tz: datetime.tzinfo = datetime.UTC,
        style: str = "standard",
        user_name: Callable[[int], str] = _number,
        group_name: Callable[[int], str] = _number,
        nodes: Mapping[str, Node] | None = None,
        partitions: Mapping[str, Partition] | None = None,
        accounting: Accounting | None = None,
        is_array: Callable[[int], bool] = _never,
        convert: bool = True,
        unit: str = "",
        bitstr: int = 64,
        expand_patterns: bool = False,
    ) -> None:
        self.config, self.now, self.tz, self.style = config, now, tz, style
        self.user_name_of, self.group_name_of = user_name, group_name
        self.is_array = is_array
        self.nodes = nodes or {}
        self.partitions = partitions or {}
        self.accounting = accounting or Accounting()
        self.convert, self.unit, self.bitstr, self.expand_patterns = convert, unit, bitstr, expand_patterns
        self.users: dict[int, str] = {}
        self.groups: dict[int, str] = {}
        self.texts: dict[int, str] = {}
        self.max_cpus: dict[str, int] = {}

    def user(self, uid: int) -> str:
        name = self.users.get(uid)
        if name is None:
            name = self.users[uid] = self.user_name_of(uid)
        return name

    def group(self, gid: int) -> str:
        name = self.groups.get(gid)
        if name is None:
            name = self.groups[gid] = self.group_name_of(gid)
        return name

    def time(self, moment: float | None, missing: str = "N/A") -> str:
        """A moment in the caller's format; `missing` when there is none."""
        if not moment:
            return missing
        second = int(moment)
        text = self.texts.get(second)
        if text is None:
            text = self.texts[second] = times.render(second, self.tz, self.style, now=self.now)
        return text

    def cpus_per_node(self, partition: str) -> int:
        """Most CPUs a node of this partition has: how many nodes a waiting job will need at least."""
        most = self.max_cpus.get(partition)
        if most is None:
            found = self.partitions.get(partition)
            names = found.nodes if found else ()
            most = max((self.nodes[name].conf.cpus for name in names if name in self.nodes), default=0)
            self.max_cpus[partition] = most
        return most
