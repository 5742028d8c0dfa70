"""Which of Slurm's messages asks for the work that a request of ours asks for?

sdiag lists requests by the names that operators know from Slurm. One request of ours may stand for several of theirs
(sinfo reads partitions and nodes). Numbers are those of Slurm's protocol. Source: sdiag(1).
"""

from __future__ import annotations

from collections.abc import Mapping

from slurmbridge.commands import effects as fx
from slurmbridge.runtime.protocol import Ended, Report, StepChanged

Kind = tuple[str, int]

NODE_INFO: Kind = ("REQUEST_NODE_INFO", 2007)
PARTITION_INFO: Kind = ("REQUEST_PARTITION_INFO", 2009)
JOB_INFO: Kind = ("REQUEST_JOB_INFO", 2003)
FED_INFO: Kind = ("REQUEST_FED_INFO", 2049)
STEP_REGISTERED: Kind = ("REQUEST_JOB_STEP_CREATE", 5001)
STEP_COMPLETE: Kind = ("REQUEST_STEP_COMPLETE", 5016)
BATCH_COMPLETE: Kind = ("REQUEST_COMPLETE_BATCH_SCRIPT", 5018)
EPILOG_COMPLETE: Kind = ("MESSAGE_EPILOG_COMPLETE", 6012)

_SHOWN: Mapping[str, tuple[Kind, ...]] = {
    "jobs": (("REQUEST_JOB_INFO_SINGLE", 2021),),
    "nodes": (("REQUEST_NODE_INFO_SINGLE", 2040), PARTITION_INFO),
    "partitions": (PARTITION_INFO,),
    "reservations": (("REQUEST_RESERVATION_INFO", 2024),),
    "steps": (("REQUEST_JOB_STEP_INFO", 2005),),
    "licenses": (("REQUEST_LICENSE_INFO", 1021),),
    "assoc_mgr": (("REQUEST_ASSOC_MGR_INFO", 2043),),
    "config": (("REQUEST_BUILD_INFO", 2001),),
    "bbstat": (("REQUEST_BURST_BUFFER_STATUS", 2055),),
}
_READS: Mapping[str, tuple[Kind, ...]] = {
    "squeue": (FED_INFO, JOB_INFO),
    "sinfo": (PARTITION_INFO, NODE_INFO),
    "sprio": (("REQUEST_PRIORITY_FACTORS", 2026),),
    "sshare": (("REQUEST_SHARE_INFO", 2022),),
    "sdiag": (("REQUEST_STATS_INFO", 2035),),
    "sstat": (("REQUEST_JOB_STEP_INFO", 2005),),
}
_WITHOUT = frozenset({"-V", "--version", "--help", "--usage", "--helpformat"})
"""Options that a command answers by itself."""
_CHANGES: Mapping[str, Kind] = {
    "cancel": ("REQUEST_KILL_JOB", 5032),
    "signal": ("REQUEST_KILL_JOB", 5032),
    "requeue": ("REQUEST_JOB_REQUEUE", 5023),
    "requeuehold": ("REQUEST_JOB_REQUEUE", 5023),
    "suspend": ("REQUEST_SUSPEND", 5014),
    "resume": ("REQUEST_SUSPEND", 5014),
    "notify": ("REQUEST_JOB_NOTIFY", 4022),
}
_ALTERATIONS: Mapping[tuple[str, str], Kind] = {
    ("node", "update"): ("REQUEST_UPDATE_NODE", 3002),
    ("partition", "create"): ("REQUEST_CREATE_PARTITION", 3003),
    ("partition", "update"): ("REQUEST_UPDATE_PARTITION", 3005),
    ("partition", "delete"): ("REQUEST_DELETE_PARTITION", 3004),
    ("reservation", "create"): ("REQUEST_CREATE_RESERVATION", 3006),
    ("reservation", "update"): ("REQUEST_UPDATE_RESERVATION", 3009),
    ("reservation", "delete"): ("REQUEST_DELETE_RESERVATION", 3008),
    ("accounting", "replace"): ("ACCOUNTING_UPDATE_MSG", 10001),
    ("accounting", "reset_usage"): ("ACCOUNTING_UPDATE_MSG", 10001),
    ("reconfigure", "update"): ("REQUEST_RECONFIGURE", 1003),
    ("debug", "update"): ("REQUEST_SET_DEBUG_LEVEL", 1010),
    ("shutdown", "update"): ("REQUEST_SHUTDOWN", 1005),
}


def of_command(argv: tuple[str, ...]) -> tuple[Kind, ...]:
    """What a command reads from the controller's memory."""
    name = argv[0].rpartition("/")[2]
    if not _WITHOUT.isdisjoint(argv):
        return ()
    if name != "scontrol":
        return _READS.get(name, ())
    words = [word.lower() for word in argv[1:] if not word.startswith("-")]
    if not words:
        return ()
    if words[0] == "ping":
        return (("REQUEST_PING", 1008),)
    if len(words) > 1 and len(words[0]) > 1 and "show".startswith(words[0]):
        shown = words[1].partition("=")[0]
        return next((kinds for full, kinds in _SHOWN.items() if shown and full.startswith(shown)), ())
    return ()


def of_report(report: Report) -> tuple[Kind, ...]:
    """What a run's supervisor tells, as slurmd and slurmstepd tell it."""
    match report:
        case StepChanged():
            return (STEP_REGISTERED if report.step.end_time is None else STEP_COMPLETE,)
        case Ended():
            return (BATCH_COMPLETE, EPILOG_COMPLETE)
        case _:
            return ()


def of_effect(effect: fx.Effect) -> tuple[Kind, ...]:
    """What one effect asks the controller to do."""
    match effect:
        case fx.Submit():
            if effect.test_only:
                return (("REQUEST_JOB_WILL_RUN", 4012),)
            several = len(effect.components) > 1
            if effect.batch:
                return (("REQUEST_SUBMIT_BATCH_HET_JOB", 4028) if several else ("REQUEST_SUBMIT_BATCH_JOB", 4003),)
            return (("REQUEST_HET_JOB_ALLOCATION", 4025) if several else ("REQUEST_RESOURCE_ALLOCATION", 4001),)
        case fx.ChangeAll():
            return tuple(kind for change in effect.changes for kind in of_effect(change))
        case fx.Change():
            if effect.verb in ("cancel", "signal") and effect.step_id is not None:
                return (("REQUEST_CANCEL_JOB_STEP", 5005),)
            return (_CHANGES.get(effect.verb, ("REQUEST_UPDATE_JOB", 3001)),)
        case fx.Alter():
            kind = _ALTERATIONS.get((effect.kind, effect.verb))
            return () if kind is None else (kind,)
        case fx.Fetch():
            return (("REQUEST_BATCH_SCRIPT", 2051),) if effect.what == "script" else ()
        case _:
            return ()
