"""Which words of a key that takes effect mean nothing here? Each is listed like a key without effect, with its reason.

Source: slurm.conf(5): AccountingStorageEnforce, PriorityFlags, SchedulerParameters, SelectTypeParameters, TopologyParam, TopologyPlugin.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from slurmbridge.lang import slurm_conf_values as values
from slurmbridge.lang.slurm_conf_lines import Pair

_FAIR: Final = "shares are ordered by Fair Tree"
_OWN: Final = "the scheduler here has no such setting"
_GPUS: Final = "GPUs are shared and bound by the rules of this scheduler"
_RANK: Final = "node lists and task numbers keep the order of slurm.conf"
_ROUTE: Final = "messages do not go from node to node"
_NEAR: Final = "jobs are placed as if all nodes were equally near"
_CORES: Final = "tasks are laid out as their step asks"
WITHOUT_EFFECT: Final[Mapping[str, Mapping[str, str]]] = {
    "AccountingStorageEnforce": {
        "nojobs": "every job is kept by the daemon's own store",
        "nosteps": "every step is kept by the daemon's own store",
    },
    "PriorityFlags": {
        "calculate_running": "priorities of running jobs decide nothing here",
        "depth_oblivious": _FAIR,
        "no_fair_tree": _FAIR,
    },
    "SelectTypeParameters": {
        "cr_one_task_per_core": _CORES,
        "cr_core_default_dist_block": _CORES,
        "cr_pack_nodes": _CORES,
        "cr_no_dist_topo_block": _CORES,
        "cr_other_cons_res": "there is one way to select resources",
        "cr_other_cons_tres": "there is one way to select resources",
        "ll_shared_gres": _GPUS,
        "multiple_sharing_gres_pj": _GPUS,
        "enforce_binding_gres": _GPUS,
        "one_task_per_sharing_gres": _GPUS,
    },
    "TopologyParam": {
        "blockasnoderank": _RANK,
        "dragonfly": "switches form a tree",
        "routepart": _ROUTE,
        "routetree": _ROUTE,
        "switchasnoderank": _RANK,
        "topomaxsizeunroll": "ranges of node counts are tried as they are",
    },
    "TopologyPlugin": {
        "topology/3d_torus": _NEAR,
        "topology/ring": _NEAR,
        "topology/torus3d": _NEAR,
    },
}
SCHEDULER_WORDS: Final = frozenset(
    {"bf_interval", "bf_job_part_count_reserve", "bf_window", "enable_user_top", "max_array_tasks", "max_switch_wait"}
)
"""Those of SchedulerParameters that take effect."""


def notes(plain: Mapping[str, Pair]) -> list[tuple[str, int, str]]:
    """(file, line, "KEY WORD") of each."""
    found = []
    for key in (*WITHOUT_EFFECT, "SchedulerParameters"):
        pair = plain.get(key.lower())
        for word in values.names(pair) if pair is not None else ():
            name = word.partition("=")[0].strip()
            if pair is not None and why(key, name):
                found.append((pair.file, pair.line, f"{key} {name}"))
    return found


def why(key: str, word: str) -> str:
    """The reason; empty: the word takes effect, or the key has no words."""
    if key == "SchedulerParameters":
        return "" if word.lower() in SCHEDULER_WORDS else _OWN
    return WITHOUT_EFFECT.get(key, {}).get(word.lower(), "")
