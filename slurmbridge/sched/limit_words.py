"""How does Slurm call a limit that keeps a job waiting? Words of squeue(1), JOB REASON CODES, by limit and TRES."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

_KINDS = (("gres/", "GRES"), ("license/", "License"), ("billing", "Billing"), ("energy", "Energy"), ("bb/", "BB"))


class Words(msgspec.Struct, frozen=True):
    """`table`: the words that follow no pattern; `{}` of `pattern` is the kind of TRES."""

    table: Mapping[str, str]
    pattern: str

    def of(self, tres: str) -> str:
        if tres in self.table:
            return self.table[tres]
        kind = next((word for start, word in _KINDS if tres.startswith(start)), "Unknown")
        return self.pattern.format(kind)


def _words(cpu: str, mem: str, node: str, pattern: str) -> Words:
    return Words({"cpu": cpu, "mem": mem, "node": node}, pattern)


ASSOC_GROUP = _words("AssocGrpCpuLimit", "AssocGrpMemLimit", "AssocGrpNodeLimit", "AssocGrp{}")
ASSOC_JOB = _words("AssocMaxCpuPerJobLimit", "AssocMaxMemPerJob", "AssocMaxNodePerJobLimit", "AssocMax{}PerJob")
ASSOC_NODE = _words("AssocMaxCpuPerNode", "AssocMaxMemPerNode", "AssocMaxUnknownPerNode", "AssocMax{}PerNode")
ASSOC_MINUTES = _words(
    "AssocMaxCpuMinutesPerJobLimit",
    "AssocMaxMemMinutesPerJob",
    "AssocMaxNodeMinutesPerJob",
    "AssocMax{}MinutesPerJob",
)
ASSOC_USED = _words("AssocGrpCPUMinutesLimit", "AssocGrpMemMinutes", "AssocGrpNodeMinutes", "AssocGrp{}Minutes")
ASSOC_RUNNING = _words(
    "AssocGrpCPURunMinutesLimit", "AssocGrpMemRunMinutes", "AssocGrpNodeRunMinutes", "AssocGrp{}RunMinutes"
)
QOS_GROUP = _words("QOSGrpCpuLimit", "QOSGrpMemLimit", "QOSGrpNodeLimit", "QOSGrp{}")
QOS_JOB = _words("QOSMaxCpuPerJobLimit", "QOSMaxMemoryPerJob", "QOSMaxNodePerJobLimit", "QOSMax{}PerJob")
QOS_NODE = _words("QOSMaxCpuPerNode", "QOSMaxMemoryPerNode", "QOSMaxUnknownPerNode", "QOSMax{}PerNode")
QOS_USER = _words("QOSMaxCpuPerUserLimit", "QOSMaxMemoryPerUser", "QOSMaxNodePerUserLimit", "QOSMax{}PerUser")
QOS_ACCOUNT = _words("MaxCpuPerAccount", "MaxMemoryPerAccount", "MaxNodePerAccount", "Max{}PerAccount")
QOS_LEAST = _words("QOSMinCpuNotSatisfied", "QOSMinMemory", "QOSMinNode", "QOSMin{}")
QOS_MINUTES = _words(
    "QOSMaxCpuMinutesPerJobLimit", "QOSMaxMemoryMinutesPerJob", "QOSMaxNodeMinutesPerJob", "QOSMax{}MinutesPerJob"
)
QOS_USED = _words("QOSGrpCPUMinutesLimit", "QOSGrpMemoryMinutes", "QOSGrpNodeMinutes", "QOSGrp{}Minutes")
QOS_RUNNING = _words("QOSGrpCPURunMinutesLimit", "QOSGrpMemoryRunMinutes", "QOSGrpNodeRunMinutes", "QOSGrp{}RunMinutes")
USER_RUNNING = _words("MaxCpuRunMinsPerUser", "MaxMemoryRunMinsPerUser", "MaxNodeRunMinsPerUser", "Max{}RunMinsPerUser")
ACCOUNT_RUNNING = _words(
    "MaxCpuRunMinsPerAccount", "MaxMemoryRunMinsPerAccount", "MaxNodeRunMinsPerAccount", "Max{}RunMinsPerAccount"
)
