"""`sacctmgr show config` and `show stats`: the accounting settings, laid out as Slurm's client and database daemon do.

There is no separate database daemon: what slurmdbd.conf sets is shown as it says, else Slurm's default or what holds
here.
"""

from __future__ import annotations

import datetime

from slurmbridge import SLURM_VERSION
from slurmbridge.commands.effects import Call, Site
from slurmbridge.commands.listing import time_zone
from slurmbridge.lang import times
from slurmbridge.model.retention import Retention, Span

PLUGIN_DIR = "/usr/lib/x86_64-linux-gnu/slurm-wlm"


def config_text(call: Call, site: Site) -> str:
    config = site.config
    values = {key.lower(): value for key, value in config.values}

    def value(key: str, default: str = "(null)") -> str:
        return values.get(key.lower()) or default

    slurm_user = config.slurm_user
    uid = site.user_id(slurm_user)
    owner = f"{slurm_user}({0 if uid is None else uid})"
    host = value("AccountingStorageHost", config.control_host)
    private = ",".join(sorted(config.private_data)) or "none"
    address = config.control_addr or host
    client = (
        ("AccountingStorageBackupHost ", value("AccountingStorageBackupHost")),
        ("AccountingStorageHost ", host),
        ("AccountingStorageParameters", value("AccountingStorageParameters")),
        ("AccountingStoragePass ", value("AccountingStoragePass")),
        ("AccountingStoragePort ", value("AccountingStoragePort", "6819")),
        ("AccountingStorageType ", value("AccountingStorageType", "accounting_storage/slurmdbd")),
        ("AuthType", value("AuthType", "auth/munge")),
        ("MessageTimeout", f"{config.message_timeout} sec"),
        ("PluginDir", value("PluginDir", PLUGIN_DIR)),
        ("PrivateData", private),
        ("SlurmUserId", owner),
        ("SLURM_CONF", config.conf_file or "(null)"),
        ("SLURM_VERSION", SLURM_VERSION),
        ("TCPTimeout", f"{value('TCPTimeout', '2')} sec"),
        ("TrackWCKey", "Yes" if config.track_wckey else "No"),
    )
    no, null, never = "no", "(null)", "NONE"
    database = (
        ("AllowNoDefAcct", no), ("ArchiveDir", "/tmp"), ("ArchiveEvents", no), ("ArchiveJobs", no),
        ("ArchiveJobScript", no), ("ArchiveJobEnv", no), ("ArchiveResvs", no), ("ArchiveScript", null),
        ("ArchiveSteps", no), ("ArchiveSuspend", no), ("ArchiveTXN", no), ("ArchiveUsage", no),
        ("AuthAltTypes", value("AuthAltTypes")), ("AuthAltParameters", value("AuthAltParameters")),
        ("AuthInfo", value("AuthInfo")), ("AuthType", value("AuthType", "auth/munge")), ("CommitDelay", "0"),
        ("CommunicationParameters", null), ("DbdAddr", address), ("DbdBackupHost", null), ("DbdHost", host),
        ("DbdPort", value("AccountingStoragePort", "6819")), ("DebugFlags", null), ("DebugLevel", "info"),
        ("DebugLevelSyslog", null), ("DefaultQOS", null), ("DisableCoordDBD", no), ("DisableArchiveCommands", no),
        ("DisableRollups", no), ("HashPlugin", "hash/k12"), ("LogFile", "/var/log/slurm/slurmdbd.log"),
        ("MaxPurgeLimit", "50000"), ("MaxQueryTimeRange", "UNLIMITED"),
        ("MessageTimeout", f"{config.message_timeout} secs"), ("Parameters", null),
        ("PidFile", "/run/slurm/slurmdbd.pid"), ("PluginDir", value("PluginDir", PLUGIN_DIR)), ("PrivateData", private),
        *((f"Purge{what}After", never) for what in ("Event", "Job", "Resv", "Step", "Suspend", "TXN", "Usage")),
        ("PurgeJobScriptAfter", never), ("PurgeJobEnvAfter", never),
        ("SLURMDBD_CONF", config.conf_file.rpartition("/")[0] + "/slurmdbd.conf" if config.conf_file else null),
        ("SLURMDBD_VERSION", SLURM_VERSION), ("SlurmUser", owner), ("StorageBackupHost", null), ("StorageHost", host),
        ("StorageLoc", ""), ("StorageParameters", null), ("StoragePassScript", ""),
        ("StoragePort", value("AccountingStoragePort", "6819")),
        ("StorageType", value("AccountingStorageType", "accounting_storage/slurmdbd")), ("StorageUser", ""),
        ("TCPTimeout", f"{value('TCPTimeout', '2')} secs"), ("TLSParameters", null), ("TLSType", "tls/none"),
        ("TrackWCKey", "yes" if config.track_wckey else "no"), ("TrackSlurmctldDown", no),
    )  # fmt: skip
    written = {key.lower(): text for key, text in config.dbd_values}
    spans = {f"purge{key}after": span for key, span in _spans(config.retention)}
    database = tuple(
        (key, str(spans[key.lower()]) if key.lower() in spans else written.get(key.lower(), text))
        if key not in _OURS
        else (key, text)
        for key, text in database
    )
    lines = [f"Configuration data as of {times.render(call.now, time_zone(call, site))}"]
    lines += [
        f"{key} = {text}" if key.startswith("AccountingStorage") else f"{key:<22} = {text}" for key, text in client
    ]
    lines += ["", "SlurmDBD configuration:"]
    lines += [f"{key:<22} = {text}" for key, text in database]
    return "\n".join(lines) + "\n"


_OURS = ("SLURMDBD_CONF", "SLURMDBD_VERSION", "SlurmUser", "PrivateData", "TrackWCKey", "MessageTimeout", "TCPTimeout")


def _spans(retention: Retention) -> tuple[tuple[str, Span], ...]:
    """What is purged, by the word in its key."""
    named = (
        ("event", retention.events), ("job", retention.jobs), ("step", retention.steps),
        ("txn", retention.transactions), ("usage", retention.usage), ("jobscript", retention.scripts),
        ("jobenv", retention.environments),
    )  # fmt: skip
    return tuple((word, span) for word, span in named if span is not None)


def stats_text(call: Call, site: Site) -> str:
    """The head of Slurm's report; there are no calls between processes to count."""
    zone = time_zone(call, site)
    rule = "*" * 67

    def moment(epoch: float) -> str:
        text = datetime.datetime.fromtimestamp(int(epoch), zone).strftime("%a %b %d %H:%M:%S %Y")
        return f"{text} ({int(epoch)})"

    return (
        f"{rule}\nsacctmgr show stats output at {moment(call.now)}\n"
        f"Data since                    {moment(site.start_time)}\nAll statistics are in microseconds\n{rule}\n"
    )
