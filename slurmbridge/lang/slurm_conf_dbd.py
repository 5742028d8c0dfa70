"""What does slurmdbd.conf say about the accounting that the daemon keeps itself?

Follows slurmdbd.conf(5) of Slurm 26.05. There is no slurmdbd: of its keys the ends of retention take effect, all others
are accepted without effect for the stated reason; any other key is an error with its file and line. What would have been
written to an archive before it is purged is not purged, since archives are not written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from slurmbridge.lang import slurm_conf_values as values
from slurmbridge.lang.slurm_conf_lines import ConfLine, Pair
from slurmbridge.model.retention import DAYS, HOURS, MONTHS, Retention, Span

NAME: Final = "slurmdbd.conf"

_STORE: Final = "accounting is kept in the daemon's own store, which `slurmbridge up --database` names"
_FILES: Final = "the daemon keeps its own state folder, logs and pid files"
_NET: Final = "there is no slurmdbd to talk to"
_AUTH: Final = "callers are known by the socket's credentials or by tokens"
_ARCHIVE: Final = "archives are not written"
_KEPT: Final = "archives are not written: what it names is kept, whatever its Purge key says"
_CONF: Final = "slurm.conf's own key counts"
_ONE: Final = "purging is done in small transactions whatever the limit"
_RECORD: Final = "it is part of the job's record and goes with it"
_NOW: Final = "use is charged when a job ends; there is no roll-up to set"
_ADMIN: Final = "coordinators and operators are as Slurm's defaults have them"

WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "AllResourcesAbsolute": "there are no shared resources of several clusters", "AllowNoDefAcct": _ADMIN,
    "ArchiveDir": _ARCHIVE, "ArchiveEvents": _KEPT, "ArchiveJobs": _KEPT, "ArchiveJobEnv": _KEPT,
    "ArchiveJobScript": _KEPT, "ArchiveResvs": _ARCHIVE, "ArchiveScript": _ARCHIVE, "ArchiveSteps": _KEPT,
    "ArchiveSuspend": _ARCHIVE, "ArchiveTXN": _KEPT, "ArchiveUsage": _KEPT, "AuthAltParameters": _AUTH,
    "AuthAltTypes": _AUTH, "AuthInfo": _AUTH, "AuthType": _AUTH, "CommitDelay": "every commit is durable at once",
    "CommunicationParameters": _NET, "DbdAddr": _NET, "DbdBackupHost": _NET, "DbdHost": _NET, "DbdPort": _NET,
    "DebugFlags": _FILES, "DebugLevel": _FILES, "DebugLevelSyslog": _FILES,
    "DefaultQOS": "sacctmgr sets the QOS of an association", "DisableArchiveCommands": _ARCHIVE,
    "DisableCoordDBD": _ADMIN, "DisableRollups": _NOW, "HashPlugin": _AUTH, "LogFile": _FILES,
    "LogTimeFormat": _FILES, "MaxPurgeLimit": _ONE,
    "MaxQueryTimeRange": "queries are answered from the daemon's own store, however far back", "MessageTimeout": _NET,
    "Parameters": _STORE, "PidFile": _FILES, "PluginDir": "there are no plugins", "PrivateData": _CONF,
    "PurgeResvAfter": "reservations that are over are not kept", "PurgeSuspendAfter": _RECORD,
    "PurgeSuspendMonths": _RECORD, "SlurmUser": _CONF, "StorageBackupHost": _STORE, "StorageHost": _STORE,
    "StorageLoc": _STORE, "StorageParameters": _STORE, "StoragePass": _STORE, "StoragePassScript": _STORE,
    "StoragePort": _STORE, "StorageType": _STORE, "StorageUser": _STORE, "TCPTimeout": _NET, "TLSParameters": _NET,
    "TLSType": _NET, "TrackSlurmctldDown": "the daemon's own down times are not recorded as events",
    "TrackWCKey": _CONF,
}  # fmt: skip
"""Key -> why it changes nothing."""

_PURGES: Final[Mapping[str, tuple[str, str]]] = {
    "PurgeEventAfter": ("events", "ArchiveEvents"), "PurgeJobAfter": ("jobs", "ArchiveJobs"),
    "PurgeJobEnvAfter": ("environments", "ArchiveJobEnv"), "PurgeJobScriptAfter": ("scripts", "ArchiveJobScript"),
    "PurgeStepAfter": ("steps", "ArchiveSteps"), "PurgeTXNAfter": ("transactions", "ArchiveTXN"),
    "PurgeUsageAfter": ("usage", "ArchiveUsage"),
}  # fmt: skip
"""Key -> (field of Retention, the key that asks for an archive first)."""

_IN_MONTHS: Final[Mapping[str, str]] = {
    "PurgeEventMonths": "PurgeEventAfter", "PurgeJobMonths": "PurgeJobAfter", "JobPurge": "PurgeJobAfter",
    "PurgeStepMonths": "PurgeStepAfter", "StepPurge": "PurgeStepAfter", "PurgeTXNMonths": "PurgeTXNAfter",
    "PurgeUsageMonths": "PurgeUsageAfter",
}  # fmt: skip
"""Older spellings, whose number is of months."""

KEYS: Final[tuple[str, ...]] = (*_PURGES, *_IN_MONTHS, *WITHOUT_EFFECT)
_BY_NAME: Final = {key.lower(): key for key in KEYS}
_SPAN: Final = re.compile(r"([0-9]{1,9})\s*([A-Za-z]*)")


class Accounts(msgspec.Struct, frozen=True, kw_only=True):
    """What the file says. `notes`: (file, line, key) of keys without effect; `shown`: key -> text, secrets left out."""

    retention: Retention = Retention()
    notes: tuple[tuple[str, int, str], ...] = ()
    shown: tuple[tuple[str, str], ...] = ()


def read_accounts(lines: Iterable[ConfLine]) -> Accounts:
    """Raises ConfigError with file and line."""
    spans: dict[str, Span] = {}
    archived: set[str] = set()
    notes: list[tuple[str, int, str]] = []
    shown: dict[str, str] = {}
    for line in lines:
        for pair in line.pairs:
            key = _BY_NAME.get(pair.key.lower())
            if key is None:
                raise pair.error(f"Parsing error at unrecognized key: {pair.key}")
            if key in WITHOUT_EFFECT:
                notes.append((pair.file, pair.line, f"{NAME} {key}"))
                if key.startswith("Archive") and key not in ("ArchiveDir", "ArchiveScript") and values.switch(pair):
                    archived.add(key)
            else:
                spans[_IN_MONTHS.get(key, key)] = read_span(pair, months_only=key in _IN_MONTHS)
            if not key.startswith("StoragePass"):
                shown[key] = pair.value
    kept: dict[str, Any] = {_PURGES[key][0]: span for key, span in spans.items() if _PURGES[key][1] not in archived}
    return Accounts(retention=Retention(**kept), notes=tuple(notes), shown=tuple(shown.items()))


def read_span(pair: Pair, *, months_only: bool = False) -> Span:
    """`12`, `12month`, `30days`, `48hours`: a number of months unless a unit (or its beginning) follows."""
    match = _SPAN.fullmatch(pair.value.strip())
    number = int(match[1]) if match else 0
    word = match[2].lower() if match else ""
    unit = next((unit for unit in (MONTHS, HOURS, DAYS) if unit.startswith(word)), None)
    if not number or unit is None or (months_only and word):
        raise pair.error(f'Bad value "{pair.value}" for {pair.key}')
    return Span(number, unit)
