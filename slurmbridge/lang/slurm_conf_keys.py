"""Which plain keys does slurm.conf know, what kind of value has each, and what becomes of it here?

Table after slurm.conf(5) of Slurm 26.05, in the order in which `scontrol show config` prints; keys that it never prints
come last. A key either takes effect (`why` is empty) or is accepted without effect for the stated reason, which
`slurmbridge check-config` prints. Record keys (NodeName, PartitionName, NodeSet, DownNodes, PowerAction) are elsewhere.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec


class Kind(enum.Enum):
    """How a value is checked, and how `scontrol show config` prints it."""

    TEXT = "text"
    PLUGIN = "plugin"  # `kind/none` prints as (null)
    NUMBER = "number"  # 0 to 4294967295, INFINITE and UNLIMITED allowed
    SMALL = "small"  # 0 to 65535
    BOOL = "bool"  # yes/no
    SECONDS = "sec"
    MINUTES = "min"
    MICROSECONDS = "usec"
    RATE = "nodes/min"
    PERCENT = "percent"
    DURATION = "duration"  # time specification in seconds, printed 7-00:00:00
    MINUTES_TIME = "minutes"  # time specification in minutes, printed the same way
    MEMORY = "memory"  # MiB
    LEVEL = "level"  # log level
    UPPER = "upper"  # printed in capitals
    ENUM = "enum"  # one of `words`


class ConfKey(msgspec.Struct, frozen=True, kw_only=True):
    name: str  # Slurm's spelling in `show config`
    kind: Kind = Kind.TEXT
    default: str | None = "(null)"  # as printed; None: printed only when set
    why: str = ""  # empty: takes effect
    words: tuple[str, ...] = ()  # of Kind.ENUM, lower case
    limit: int = 0  # greatest number, 0 = that of the kind


_DB: Final = "accounting is kept by the daemon's own store; there is no slurmdbd to talk to"
_GATHER: Final = "supervisors measure CPU, memory and I/O themselves"
_ENERGY: Final = "energy, file system and interconnect use are not measured"
_AUTH: Final = "callers are known by the socket's credentials or by tokens"
_FILES: Final = "the daemon keeps its own state folder, logs and pid files"
_NET: Final = "the daemon and its supervisors use their own protocol and addresses"
_POWER: Final = "nodes are not switched on or off"
_PLUGIN: Final = "there are no plugins; what this one does is built in or not offered"
_HOOK: Final = "site scripts of this kind are not run"
_ROOT: Final = "nothing is run as root around a job; TaskProlog and TaskEpilog run as its user around every task"
_START: Final = "nothing is run by the daemon when a job starts or ends; --mail-type with a MailProg tells of it"
_SRUN: Final = "srun runs nothing on the host where it is typed; TaskProlog and TaskEpilog run around every task"
_LOG: Final = "the daemon logs events with its own levels"
_BB: Final = "there are no burst buffers"
_FED: Final = "there are no federations"
_NODE: Final = "the size of a node is taken from its NodeName line"
_SHELL: Final = "interactive shells use their built-in options"
_GONE: Final = "Slurm itself no longer uses this key"
_ARCHIVE: Final = "every finished job is kept by the daemon's own store"
_SHOWN: Final = "kept for display only"
_CPUFREQ: Final = "CPU frequencies are not changed"
_TIMES: Final = "the scheduler runs on events; there is no period to set"
_MPI: Final = "ports and launchers of MPI are the step's own business"


def _k(
    name: str, kind: Kind = Kind.TEXT, default: str | None = "(null)", why: str = "", *words: str, limit: int = 0
) -> ConfKey:
    return ConfKey(name=name, kind=kind, default=default, why=why, words=words, limit=limit)


_T, _P, _N, _S, _B = Kind.TEXT, Kind.PLUGIN, Kind.NUMBER, Kind.SMALL, Kind.BOOL
_SEC, _MIN, _DUR, _MEM, _LEV = Kind.SECONDS, Kind.MINUTES, Kind.DURATION, Kind.MEMORY, Kind.LEVEL

KEYS: Final[tuple[ConfKey, ...]] = (
    _k("AccountingStorageBackupHost", _T, "(null)", _DB),
    _k("AccountingStorageEnforce", _T, "none"),
    _k("AccountingStorageHost", _T, "localhost", _DB),
    _k("AccountingStorageExternalHost", _T, "(null)", _DB),
    _k("AccountingStorageParameters", _T, "(null)", _DB),
    _k("AccountingStoragePort", _S, "0", _DB),
    _k("AccountingStorageTRES", _T, "cpu,mem,energy,node,billing,fs/disk,vmem,pages"),
    _k("AccountingStorageType", _P, "(null)", _DB),
    _k("AccountingStoreFlags", _T, "(null)", "scripts, environments and comments are always kept"),
    _k("AcctGatherEnergyType", _P, "(null)", _ENERGY),
    _k("AcctGatherFilesystemType", _P, "(null)", _ENERGY),
    _k("AcctGatherInterconnectType", _P, "(null)", _ENERGY),
    _k("AcctGatherNodeFreq", _SEC, "0 sec", _ENERGY),
    _k("AcctGatherProfileType", _P, "(null)", _ENERGY),
    _k("AllowSpecResourcesUsage", _B, "no"),
    _k("AuthAltTypes", _T, "(null)", _AUTH),
    _k("AuthAltParameters", _T, "(null)", _AUTH),
    _k("AuthInfo", _T, "(null)", _AUTH),
    _k("AuthType", _T, "auth/munge", _AUTH),
    _k("BatchStartTimeout", _SEC, "10 sec", "the script starts when all supervisors of the job are there; how long that may take is the daemon's own limit"),
    _k("BcastExclude", _T, "/lib,/usr/lib,/lib64,/usr/lib64", "sbcast copies the file it is given"),
    _k("BcastParameters", _T, "(null)", "sbcast takes its settings from the command line"),
    _k("BurstBufferType", _P, "(null)", _BB),
    _k("CertgenParameters", _T, "(null)", _AUTH),
    _k("CertgenType", _T, "(null)", _AUTH),
    _k("CertmgrParameters", _T, "(null)", _AUTH),
    _k("CertmgrType", _T, "(null)", _AUTH),
    _k("CliFilterParameters", _T, "(null)", _PLUGIN),
    _k("CliFilterPlugins", _T, "(null)", _PLUGIN),
    _k("ClusterName", _T, "cluster"),
    _k("CommunicationParameters", _T, "(null)", _NET),
    _k("CompleteWait", _SEC, "0 sec", "what a job had on a node is used again as soon as its last process there is gone; nobody waits for more of it"),
    _k("CpuFreqDef", _T, "Unknown", _CPUFREQ),
    _k("CpuFreqGovernors", _T, "OnDemand,Performance,UserSpace", _CPUFREQ),
    _k("CredType", _T, "cred/munge", _AUTH),
    _k("DataParserParameters", _T, "(null)", _PLUGIN),
    _k("DebugFlags", _T, "(null)", _LOG),
    _k("DefMemPerNode", _MEM, "UNLIMITED"),
    _k("DefMemPerCPU", _MEM, None),
    _k("DependencyParameters", _T, "(null)"),
    _k("DisableRootJobs", _B, "no"),
    _k("EioTimeout", _S, "60", "output is flushed before a step ends"),
    _k("EnforcePartLimits", Kind.ENUM, "NO", "", "no", "any", "all", "yes"),
    _k("Epilog", _T, None, _ROOT),
    _k("EpilogMsgTime", Kind.MICROSECONDS, "2000 usec", _ROOT),
    _k("EpilogSlurmctld", _T, None, _START),
    _k("FairShareDampeningFactor", _S, "1", "shares are ordered by Fair Tree, which has no dampening"),
    _k("FederationParameters", _T, "(null)", _FED),
    _k("FirstJobId", _N, "1"),
    _k("GresTypes", _T, "(null)"),
    _k("GpuFreqDef", _T, "(null)", "GPU frequencies are not changed"),
    _k("GroupUpdateForce", _S, "1", "groups are looked up when they are needed"),
    _k("GroupUpdateTime", _SEC, "600 sec", "groups are looked up when they are needed"),
    _k("HashPlugin", _T, "hash/k12", _AUTH),
    _k("HealthCheckInterval", _SEC, "0 sec", _HOOK),
    _k("HealthCheckNodeState", _T, "ANY", _HOOK),
    _k("HealthCheckProgram", _T, "(null)", _HOOK),
    _k("HealthCheckTimeout", _SEC, "0 sec", _HOOK),
    _k("HttpParserType", _P, "(null)", _NET),
    _k("InactiveLimit", _SEC, "0 sec", "interactive allocations end with their client"),
    _k("InteractiveStepOptions", _T, "--interactive --preserve-env --pty $SHELL", _SHELL),
    _k("JobAcctGatherFrequency", _T, "30", _GATHER),
    _k("JobAcctGatherType", _P, "(null)", _GATHER),
    _k("JobAcctGatherParams", _T, "(null)", _GATHER),
    _k("JobCompHost", _T, "localhost", _ARCHIVE),
    _k("JobCompLoc", _T, "(null)", _ARCHIVE),
    _k("JobCompParams", _T, "(null)", _ARCHIVE),
    _k("JobCompPass", _T, "(null)", _ARCHIVE),
    _k("JobCompPort", _N, "0", _ARCHIVE),
    _k("JobCompType", _P, "(null)", _ARCHIVE),
    _k("JobCompUser", _T, "root", _ARCHIVE),
    _k("JobFileAppend", _S, "0"),
    _k("JobRequeue", _S, "1"),
    _k("JobSubmitPlugins", _T, "(null)", _PLUGIN),
    _k("KillOnBadExit", _S, "0"),
    _k("KillWait", _SEC, "30 sec"),
    _k("LaunchParameters", _T, "(null)", _PLUGIN),
    _k("LicenseParameters", _T, "(null)", "licences are those of this file"),
    _k("Licenses", _T, "(null)"),
    _k("LogTimeFormat", _T, "iso8601_ms", _LOG),
    _k("MailDomain", _T, "(null)"),
    _k("MailProg", _T, "/bin/mail"),
    _k("MaxArraySize", _N, "1001", "", limit=4_000_001),
    _k("MaxBatchRequeue", _N, "5"),
    _k("MaxDBDMsgs", _N, "20012", _DB),
    _k("MaxJobCount", _N, "10000"),
    _k("MaxJobId", _N, "67043328"),
    _k("MaxMemPerNode", _MEM, "UNLIMITED"),
    _k("MaxMemPerCPU", _MEM, None),
    _k("MaxNodeCount", _N, "", "nodes are those of this file"),
    _k("MaxStepCount", _N, "40000"),
    _k("MaxTasksPerNode", _S, "512"),
    _k("MCSPlugin", _P, "(null)", "there are no MCS labels"),
    _k("MCSParameters", _T, "(null)", "there are no MCS labels"),
    _k("MessageTimeout", _SEC, "10 sec", "commands wait for the daemon as long as it lives"),
    _k("MetricsAuthUsers", _T, "(null)", _NET),
    _k("MetricsParameters", _T, "(null)", _NET),
    _k("MetricsType", _T, "(null)", _NET),
    _k("MinJobAge", Kind.SECONDS, "300 sec", limit=4_294_967_293),
    _k("MpiDefault", _P, "(null)"),
    _k("MpiParams", _T, "(null)", _MPI),
    _k("NamespaceType", _P, "(null)", "jobs get the name spaces of the runtime"),
    _k("NodeFeaturesPlugins", _T, "(null)", "features of a node are fixed by this file and by scontrol"),
    _k("OverTimeLimit", _MIN, "0 min"),
    _k("PluginDir", _T, "/usr/lib/x86_64-linux-gnu/slurm-wlm", _PLUGIN),
    _k("PlugStackConfig", _T, "(null)", _PLUGIN),
    _k("PreemptMode", _T, "OFF"),
    _k("PreemptParameters", _T, "(null)"),
    _k("PreemptType", _P, "(null)"),
    _k("PreemptExemptTime", _T, "00:00:00"),
    _k("PrEpParameters", _T, "(null)", _HOOK),
    _k("PrEpPlugins", _T, "prep/script", _HOOK),
    _k("PriorityParameters", _T, "(null)", _PLUGIN),
    _k("PrioritySiteFactorParameters", _T, "(null)", _PLUGIN),
    _k("PrioritySiteFactorPlugin", _P, "(null)", _PLUGIN),
    _k("PriorityDecayHalfLife", Kind.MINUTES_TIME, "7-00:00:00"),
    _k("PriorityCalcPeriod", Kind.MINUTES_TIME, "00:05:00", _TIMES),
    _k("PriorityFavorSmall", _B, "no"),
    _k("PriorityFlags", _T, ""),
    _k("PriorityMaxAge", Kind.MINUTES_TIME, "7-00:00:00"),
    _k("PriorityType", _T, "priority/multifactor"),
    _k(
        "PriorityUsageResetPeriod", Kind.ENUM, "NONE", "",
        "none", "now", "daily", "weekly", "monthly", "quarterly", "yearly",
    ),
    _k("PriorityWeightAge", _N, "0"),
    _k("PriorityWeightAssoc", _N, "0"),
    _k("PriorityWeightFairShare", _N, "0"),
    _k("PriorityWeightJobSize", _N, "0"),
    _k("PriorityWeightPartition", _N, "0"),
    _k("PriorityWeightQOS", _N, "0"),
    _k("PriorityWeightTRES", _T, "(null)"),
    _k("PrivateData", _T, "none"),
    _k("ProctrackType", _T, "proctrack/cgroup", "a job's processes are tracked by its supervisor"),
    _k("Prolog", _T, None, _ROOT),
    _k("PrologEpilogTimeout", _S, "65534", _ROOT),
    _k("PrologSlurmctld", _T, None, _START),
    _k("PrologFlags", _T, "(null)", _ROOT),
    _k("PropagatePrioProcess", _S, "0", "tasks run at the normal scheduling priority"),
    _k("PropagateResourceLimits", _T, "ALL"),
    _k("PropagateResourceLimitsExcept", _T, "(null)"),
    _k("RebootProgram", _T, "(null)", "nodes are not rebooted"),
    _k("ReconfigFlags", _T, "(null)", "scontrol reconfigure reads all of the file again; states that nodes were given stay"),
    _k("RequeueExit", _T, "(null)"),
    _k("RequeueExitHold", _T, "(null)"),
    _k("ResumeFailProgram", _T, "(null)", _POWER),
    _k("ResumeProgram", _T, "(null)", _POWER),
    _k("ResumeRate", Kind.RATE, "300 nodes/min", _POWER),
    _k("ResumeTimeout", _SEC, "60 sec", _POWER),
    _k("ResvEpilog", _T, "(null)", _HOOK),
    _k("ResvOverRun", _MIN, "0 min", "jobs end with their reservation"),
    _k("ResvProlog", _T, "(null)", _HOOK),
    _k("ReturnToService", _S, "0", "a node returns when it answers again"),
    _k("SchedulerParameters", _T, "(null)"),
    _k("SchedulerTimeSlice", _SEC, "30 sec", "jobs do not take turns on a CPU"),
    _k("SchedulerType", _T, "sched/backfill", "the scheduler always backfills"),
    _k("ScronParameters", _T, "(null)", "scrontab is not offered yet, and says so"),
    _k("SelectType", _T, "select/cons_tres"),
    _k("SelectTypeParameters", Kind.UPPER, "CR_CORE_MEMORY"),
    _k("SlurmUser", _T, "root(0)"),
    _k("SlurmctldAddr", _T, "(null)"),
    _k("SlurmctldDebug", _LEV, "info", _LOG),
    _k("SlurmctldHttpAuthParameters", _T, "(null)", _AUTH),
    _k("SlurmctldLogFile", _T, "(null)", _FILES),
    _k("SlurmctldPort", _T, "6817", _NET),
    _k("SlurmctldSyslogDebug", _LEV, "(null)", _LOG),
    _k("SlurmctldPrimaryOffProg", _T, "(null)", _HOOK),
    _k("SlurmctldPrimaryOnProg", _T, "(null)", _HOOK),
    _k("SlurmctldTimeout", _SEC, "120 sec", _NET),
    _k("SlurmctldParameters", _T, "(null)", _NET),
    _k("SlurmdDebug", _LEV, "info", _LOG),
    _k("SlurmdHttpAuthParameters", _T, "(null)", _AUTH),
    _k("SlurmdLogFile", _T, "(null)", _FILES),
    _k("SlurmdParameters", _T, "(null)", _NODE),
    _k("SlurmdPidFile", _T, "/var/run/slurmd.pid", _FILES),
    _k("SlurmdPort", _N, "6818", _NET),
    _k("SlurmdSpoolDir", _T, "/var/spool/slurmd", _FILES),
    _k("SlurmdSyslogDebug", _LEV, "(null)", _LOG),
    _k("SlurmdTimeout", _SEC, "300 sec", _NET),
    _k("SlurmdUser", _T, "root(0)", "jobs run as their submitter"),
    _k("SlurmSchedLogFile", _T, "(null)", _LOG),
    _k("SlurmSchedLogLevel", _S, "0", _LOG),
    _k("SlurmctldPidFile", _T, "/var/run/slurmctld.pid", _FILES),
    _k("SrunEpilog", _T, "(null)", _SRUN),
    _k("SrunPortRange", _T, "0-0", _NET),
    _k("SrunProlog", _T, "(null)", _SRUN),
    _k("StateSaveLocation", _T, "/var/spool", _FILES),
    _k("SuspendExcNodes", _T, "(null)", _POWER),
    _k("SuspendExcParts", _T, "(null)", _POWER),
    _k("SuspendExcStates", _T, "(null)", _POWER),
    _k("SuspendProgram", _T, "(null)", _POWER),
    _k("SuspendRate", Kind.RATE, "60 nodes/min", _POWER),
    _k("SuspendTime", _T, "INFINITE", _POWER),
    _k("SuspendTimeout", _SEC, "30 sec", _POWER),
    _k("SwitchParameters", _T, "(null)", _PLUGIN),
    _k("SwitchType", _P, "(null)", _PLUGIN),
    _k("TaskEpilog", _T, "(null)"),
    _k("TaskPlugin", _P, "(null)", "tasks are bound by their supervisor"),
    _k("TaskPluginParam", _T, "(null type)", "tasks are bound by their supervisor"),
    _k("TaskProlog", _T, "(null)"),
    _k("TCPTimeout", _SEC, "2 sec", _NET),
    _k("TLSParameters", _T, "(null)", _AUTH),
    _k("TLSType", _T, "tls/none", _AUTH),
    _k("TmpFS", _T, "/tmp", "jobs get the temporary folder of their node"),
    _k("TopologyParam", _T, "(null)"),
    _k("TopologyPlugin", _T, "topology/flat"),
    _k("TrackWCKey", _B, "no"),
    _k("TreeWidth", _N, "16", _NET),
    _k("UsePam", _B, "no", "jobs start without a PAM session"),
    _k("UnkillableStepProgram", _T, "(null)", _HOOK),
    _k("UnkillableStepTimeout", _SEC, "60 sec", "a job holds its nodes until its last process is gone, however long that takes; no node is drained for it"),
    _k("UrlParserType", _P, "(null)", _NET),
    _k("VSizeFactor", Kind.PERCENT, "0 percent", "virtual memory is not limited"),
    _k("WaitTime", _SEC, "0 sec"),
    _k("X11Parameters", _T, "(null)", "X11 is not forwarded"),
    # never printed
    _k("SlurmctldHost", _T, None),
    _k("DefCPUPerGPU", _N, None),
    _k("DefMemPerGPU", _MEM, None),
    _k("AccountingStoragePass", _T, None, _DB),
    _k("AccountingStorageUser", _T, None, _DB),
    _k("AccountingStoreJobComment", _B, None, _GONE),
    _k("AcctGatherInfinibandType", _T, None, _GONE),
    _k("BackupAddr", _T, None, _GONE),
    _k("BackupController", _T, None, _GONE),
    _k("BurstBufferParameters", _T, None, _BB),
    _k("ControlAddr", _T, None, _GONE),
    _k("ControlMachine", _T, None, _GONE),
    _k("CoreSpecPlugin", _T, None, _GONE),
    _k("CryptoType", _T, None, _GONE),
    _k("EpilogTimeout", _S, None, _ROOT),
    _k("ExtSensorsFreq", _T, None, _GONE),
    _k("ExtSensorsType", _T, None, _GONE),
    _k("FastSchedule", _S, None, _GONE),
    _k("GetEnvTimeout", _T, None, _GONE),
    _k("JobCompPassScript", _T, None, _ARCHIVE),
    _k("JobContainerType", _T, None, _GONE),
    _k("JobCredentialPrivateKey", _T, None, _GONE),
    _k("JobCredentialPublicCertificate", _T, None, _GONE),
    _k("KeepAliveTime", _S, None, _NET),
    _k("LaunchType", _T, None, _GONE),
    _k("PowerParameters", _T, None, _GONE),
    _k("PowerPlugin", _T, None, _GONE),
    _k("PrologTimeout", _S, None, _ROOT),
    _k("RoutePlugin", _T, None, _GONE),
    _k("SallocDefaultCommand", _T, None, _GONE),
    _k("SbcastParameters", _T, None, _GONE),
)  # fmt: skip

BY_NAME: Final = {key.name.lower(): key for key in KEYS}
"""Keys ignore case."""
