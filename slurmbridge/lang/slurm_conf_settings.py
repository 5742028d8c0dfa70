"""Is the value of a plain slurm.conf key right, and which field of ClusterConfig does it set?

Follows slurm.conf(5); the wording of refusals is Slurm's. Keys without a row in FIELDS either have no effect (the key
table says why) or are read where they are shown only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from slurmbridge.errors import LangError
from slurmbridge.lang import durations, slurm_conf_preempt
from slurmbridge.lang import slurm_conf_values as values
from slurmbridge.lang.slurm_conf_keys import ConfKey, Kind
from slurmbridge.lang.slurm_conf_lines import Pair
from slurmbridge.model.cluster import LicenseConf
from slurmbridge.model.units import UNLIMITED

LEVELS: Final = ("quiet", "fatal", "error", "info", "verbose", "debug", "debug2", "debug3", "debug4", "debug5")
SELECT_PARAMETERS: Final = (
    "CR_CPU", "CR_CPU_MEMORY", "CR_CORE", "CR_CORE_MEMORY", "CR_SOCKET", "CR_SOCKET_MEMORY", "CR_MEMORY", "CR_LLN",
    "CR_ONE_TASK_PER_CORE", "CR_CORE_DEFAULT_DIST_BLOCK", "CR_PACK_NODES", "CR_NO_DIST_TOPO_BLOCK",
    "CR_OTHER_CONS_RES", "CR_OTHER_CONS_TRES", "LL_SHARED_GRES", "MULTIPLE_SHARING_GRES_PJ", "ENFORCE_BINDING_GRES",
    "ONE_TASK_PER_SHARING_GRES",
)  # fmt: skip
ENFORCE: Final = ("associations", "limits", "nojobs", "nosteps", "qos", "safe", "wckeys", "all", "none")
_ENFORCE_ALL: Final = frozenset({"associations", "limits", "qos", "safe", "wckeys"})
_IMPLIED: Final = {
    "limits": {"associations"},
    "qos": {"associations"},
    "safe": {"associations", "limits"},
    "wckeys": {"associations"},
}
_ENFORCE_ALIASES: Final = {"association": "associations", "limit": "limits", "wckey": "wckeys"}
PRIORITY_FLAGS: Final = (
    "ACCRUE_ALWAYS", "CALCULATE_RUNNING", "DEPTH_OBLIVIOUS", "NO_FAIR_TREE", "INCR_ONLY", "MAX_TRES", "MAX_TRES_GRES",
    "NO_NORMAL_ALL", "NO_NORMAL_ASSOC", "NO_NORMAL_PART", "NO_NORMAL_QOS", "NO_NORMAL_TRES", "SMALL_RELATIVE_TO_TIME",
)  # fmt: skip
_RLIMITS: Final = ("ALL", "NONE", "AS", "CORE", "CPU", "DATA", "FSIZE", "MEMLOCK", "NOFILE", "NPROC", "RSS", "STACK")
_SMALL_KINDS: Final = (Kind.SMALL, Kind.SECONDS, Kind.MINUTES, Kind.RATE, Kind.PERCENT)
_NUMBER_KINDS: Final = (Kind.NUMBER, Kind.MEMORY, Kind.MICROSECONDS)


def check(key: ConfKey, pair: Pair) -> None:
    """Refuse a value that is not of the key's kind."""
    kind = key.kind
    if kind in _SMALL_KINDS:
        values.number(pair, key.limit or values.MAX_SMALL)
    elif kind in _NUMBER_KINDS:
        values.number(pair, key.limit or values.MAX_NUMBER)
    elif kind is Kind.BOOL:
        values.switch(pair)
    elif kind in (Kind.DURATION, Kind.MINUTES_TIME):
        _seconds(pair)
    elif (
        kind is Kind.LEVEL
        and pair.value.lower() not in LEVELS
        and not (pair.value.isdecimal() and int(pair.value) < 10)
    ):
        raise pair.error(f"Invalid {key.name} {pair.value}")
    elif kind is Kind.ENUM and pair.value.lower() not in key.words:
        raise pair.error(f"Bad {key.name}: {pair.value}")


def _seconds(pair: Pair) -> int:
    """`7-0`, `1-00:00:00` and minutes as plain numbers; 0 = never."""
    try:
        minutes = durations.parse_minutes(pair.value) if pair.value.strip("0:-") else 0
    except LangError as error:
        raise pair.error(f'Bad value "{pair.value}" for {pair.key}') from error
    return 0 if minutes == UNLIMITED else minutes * 60


def _part_limits(pair: Pair) -> str:
    word = pair.value.upper()
    return "ALL" if word == "YES" else word


def _enforce(pair: Pair) -> frozenset[str]:
    words = {_ENFORCE_ALIASES.get(word.lower(), word.lower()) for word in values.names(pair)}
    unknown = sorted(words - set(ENFORCE))
    if unknown:
        raise pair.error(f"Invalid parameter for AccountingStorageEnforce: {unknown[0]}")
    if "all" in words:
        return _ENFORCE_ALL
    implied = {extra for word in words for extra in _IMPLIED.get(word, ())}
    return frozenset(words | implied) - {"none"}


def _select(pair: Pair) -> frozenset[str]:
    words = values.names(pair)
    for word in words:
        if word.upper() not in SELECT_PARAMETERS:
            raise pair.error(f"Bad SelectTypeParameter: {word}")
    return frozenset(word.upper() for word in words)


def _rlimits(pair: Pair) -> tuple[str, ...]:
    words = tuple(word.upper().removeprefix("RLIMIT_") for word in values.names(pair))
    for word in words:
        if word not in _RLIMITS:
            raise pair.error(f"Bad rlimit name: {word}")
    return words


def _exit_codes(pair: Pair) -> frozenset[int]:
    """`1-9,18`."""
    found: set[int] = set()
    for word in values.names(pair):
        first, dash, last = word.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or int(last or first) > 255:
            raise pair.error(f"Invalid {pair.key} value: {pair.value}")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def _licenses(pair: Pair) -> tuple[LicenseConf, ...]:
    found = []
    for term in values.names(pair):
        name, _, number = term.replace("=", ":").partition(":")
        if not name or (number and not number.isdecimal()):
            raise pair.error(f"Invalid Licenses value: {pair.value}")
        found.append(LicenseConf(name=name, total=int(number) if number else 1))
    return tuple(found)


def _memory(pair: Pair) -> int | None:
    """MiB; 0 means no limit."""
    return values.number(pair) or None


def _words(pair: Pair) -> frozenset[str]:
    return frozenset(word.lower() for word in values.names(pair)) - {"none"}


def _text(pair: Pair) -> str:
    return pair.value


def _lower(pair: Pair) -> str:
    return pair.value.lower()


def _upper(pair: Pair) -> str:
    return pair.value.upper()


def _priority_flags(pair: Pair) -> frozenset[str]:
    words = values.names(pair)
    unknown = [word for word in words if word.upper() not in PRIORITY_FLAGS]
    if unknown:
        raise pair.error(f"PriorityFlags={unknown[0]} invalid")
    return frozenset(word.upper() for word in words)


def _truth(pair: Pair) -> bool:
    return values.count(pair, values.MAX_SMALL) != 0


def _count(pair: Pair) -> int:
    return values.count(pair)


def _over_time(pair: Pair) -> int:
    limit = values.number(pair, values.MAX_SMALL)
    return UNLIMITED if limit is None else limit


def _mpi(pair: Pair) -> str:
    return pair.value.lower().removeprefix("mpi/")


FIELDS: Final[dict[str, tuple[str, Callable[[Pair], Any]]]] = {
    "clustername": ("cluster_name", _lower),
    "slurmuser": ("slurm_user", _text),
    "licenses": ("licenses", _licenses),
    "firstjobid": ("first_job_id", _count),
    "maxjobid": ("max_job_id", _count),
    "maxjobcount": ("max_job_count", _count),
    "maxstepcount": ("max_step_count", _count),
    "maxtaskspernode": ("max_tasks_per_node", _count),
    "maxarraysize": ("max_array_size", _count),
    "requeueexit": ("requeue_exit", _exit_codes),
    "requeueexithold": ("requeue_exit_hold", _exit_codes),
    "maxbatchrequeue": ("max_batch_requeue", _count),
    "minjobage": ("min_job_age", _count),
    "killwait": ("kill_wait", _count),
    "messagetimeout": ("message_timeout", _count),
    "inactivelimit": ("inactive_limit", _count),
    "waittime": ("wait_time", _count),
    "killonbadexit": ("kill_on_bad_exit", _truth),
    "jobrequeue": ("job_requeue", _truth),
    "jobfileappend": ("job_file_append", _truth),
    "enforcepartlimits": ("enforce_part_limits", _part_limits),
    "accountingstorageenforce": ("enforce", _enforce),
    "defmempercpu": ("def_mem_per_cpu", _memory),
    "defmempernode": ("def_mem_per_node", _memory),
    "defmempergpu": ("def_mem_per_gpu", _memory),
    "defcpupergpu": ("def_cpu_per_gpu", values.number),
    "maxmempercpu": ("max_mem_per_cpu", _memory),
    "maxmempernode": ("max_mem_per_node", _memory),
    "selecttypeparameters": ("select_type_parameters", _select),
    "selecttype": ("select_type", _lower),
    "overtimelimit": ("over_time_limit", _over_time),
    "completewait": ("complete_wait", _count),
    "returntoservice": ("return_to_service", _count),
    "prioritytype": ("priority_type", _lower),
    "priorityweightage": ("priority_weight_age", _count),
    "priorityweightassoc": ("priority_weight_assoc", _count),
    "priorityweightfairshare": ("priority_weight_fairshare", _count),
    "priorityweightjobsize": ("priority_weight_job_size", _count),
    "priorityweightpartition": ("priority_weight_partition", _count),
    "priorityweightqos": ("priority_weight_qos", _count),
    "priorityweighttres": ("priority_weight_tres", _text),
    "prioritymaxage": ("priority_max_age", _seconds),
    "prioritydecayhalflife": ("priority_decay_half_life", _seconds),
    "priorityusageresetperiod": ("priority_usage_reset_period", _upper),
    "priorityflags": ("priority_flags", _priority_flags),
    "priorityfavorsmall": ("priority_favor_small", values.switch),
    "preempttype": ("preempt_type", slurm_conf_preempt.read_type),
    "preemptmode": ("preempt_mode", slurm_conf_preempt.read_mode),
    "preemptexempttime": ("preempt_exempt_time", slurm_conf_preempt.read_exempt_time),
    "preemptparameters": ("preempt_parameters", slurm_conf_preempt.read_parameters),
    "schedulertype": ("scheduler_type", _lower),
    "schedulerparameters": ("scheduler_parameters", _text),
    "dependencyparameters": ("dependency_parameters", _text),
    "accountingstoragetres": ("accounting_tres", values.names),
    "accountingstoreflags": ("store_flags", _words),
    "propagateresourcelimits": ("propagate_limits", _rlimits),
    "propagateresourcelimitsexcept": ("propagate_limits_except", _rlimits),
    "mailprog": ("mail_prog", _text),
    "maildomain": ("mail_domain", _text),
    "privatedata": ("private_data", _words),
    "allowspecresourcesusage": ("allow_spec_resources", values.switch),
    "trackwckey": ("track_wckey", values.switch),
    "topologyplugin": ("topology", _lower),
    "topologyparam": ("topology_param", _text),
    "mpidefault": ("mpi_default", _mpi),
    "taskprolog": ("task_prolog", _text),
    "taskepilog": ("task_epilog", _text),
    "prolog": ("prolog", _text),
    "epilog": ("epilog", _text),
    "slurmdspooldir": ("spool_dir", _text),
}
"""Lower-case key -> (field of ClusterConfig, reader)."""
