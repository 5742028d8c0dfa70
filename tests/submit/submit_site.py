"""The cluster that `recorded.jsonl` was recorded on: configuration, accounts, and a site that answers reads."""

from __future__ import annotations

from collections.abc import Sequence

from slurmbridge.lang import slurm_conf
from slurmbridge.model.accounts import Account, Accounting, Assoc, Limits, Qos, User
from slurmbridge.model.capabilities import VIRTUAL_NODES, Capabilities
from slurmbridge.model.cluster import ClusterConfig, Node, Partition
from slurmbridge.model.plan import Reservation

SLURM_CONF = """\
ClusterName=oracle
SlurmctldHost=ctl
SlurmUser=slurm
JobAcctGatherFrequency=task=5
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
PriorityType=priority/multifactor
PreemptType=preempt/qos
PreemptMode=REQUEUE
AccountingStorageEnforce=associations,limits,qos,safe
AccountingStorageTRES=gres/gpu,gres/gpu:a100,license/matlab
GresTypes=gpu
Licenses=matlab:10,ansys:4
MaxArraySize=20001
NodeName=n[1-4] CPUs=8 Sockets=2 CoresPerSocket=4 RealMemory=16000 TmpDisk=1000 Feature=cpu,avx2,rack1
NodeName=g[1-2] CPUs=16 Sockets=2 CoresPerSocket=8 RealMemory=64000 Gres=gpu:a100:4 Feature=gpu,avx512,rack2
NodeName=b1 CPUs=512 Sockets=2 CoresPerSocket=256 RealMemory=512000 Feature=bench
PartitionName=debug Nodes=n[1-4] Default=YES MaxTime=INFINITE State=UP
PartitionName=gpu Nodes=g[1-2] MaxTime=1-00:00:00 DefaultTime=01:00:00 State=UP
PartitionName=long Nodes=n[3-4] MaxTime=14-00:00:00 DefaultTime=1-00:00:00 AllowQos=normal,long State=UP
PartitionName=small Nodes=n[1-2] MaxNodes=1 MaxTime=00:30:00 State=UP
PartitionName=restricted Nodes=n[1-4] AllowAccounts=admin MaxTime=INFINITE State=UP
PartitionName=maint Nodes=n[1-4] MaxTime=INFINITE State=DOWN
PartitionName=bench Nodes=b1 MaxTime=INFINITE State=UP
"""
GRES_CONF = "NodeName=g[1-2] Name=gpu Type=a100 File=/srv/fakegpu/nvidia[0-3]\n"

UIDS = {"root": 0, "alice": 1001, "bob": 1002, "carol": 1003, "dave": 1004}

ALL_QOS = ("normal", "high", "long", "preempt", "tiny")


def accounting() -> Accounting:
    tiny = Limits(max_tres_per_job=(("cpu", 2),), max_wall=10)
    return Accounting(
        clusters=("oracle",),
        accounts=tuple(Account(name=name) for name in ("root", "admin", "research", "physics", "ml")),
        users=(
            User(name="root", default_account="root", admin_level="Administrator"),
            User(name="alice", default_account="physics"),
            User(name="bob", default_account="ml"),
            User(name="dave", default_account="admin", admin_level="Operator"),
        ),
        assocs=(
            Assoc(assoc_id=1, account="root", qos=ALL_QOS),
            Assoc(assoc_id=2, account="root", user="root"),
            Assoc(assoc_id=3, account="admin", parent="root"),
            Assoc(assoc_id=4, account="research", parent="root"),
            Assoc(assoc_id=5, account="physics", parent="research"),
            Assoc(assoc_id=6, account="ml", parent="research"),
            Assoc(assoc_id=7, account="physics", user="alice", is_default=True),
            Assoc(assoc_id=8, account="ml", user="alice"),
            Assoc(assoc_id=9, account="ml", user="bob", qos=("normal", "tiny")),
            Assoc(assoc_id=10, account="admin", user="dave"),
        ),
        qos=(
            Qos(name="normal"),
            Qos(name="high", priority=1000, limits=Limits(max_jobs=2), max_tres_per_user=(("cpu", 16),)),
            Qos(name="long", limits=Limits(max_wall=14 * 1440)),
            Qos(name="preempt", preempt=("normal",)),
            Qos(name="tiny", flags=("DenyOnLimit",), limits=tiny),
        ),
    )


def read_config(extra: str = "") -> ClusterConfig:
    files = {"/etc/slurm/slurm.conf": SLURM_CONF + extra, "/etc/slurm/gres.conf": GRES_CONF}
    return slurm_conf.read_cluster(files, "/etc/slurm/slurm.conf", cpus=4, memory_mib=8000)


class SubmitSite:
    """What sbatch and resolve read of the controller."""

    def __init__(self, config: ClusterConfig | None = None, capabilities: Capabilities = VIRTUAL_NODES) -> None:
        self.config, self.capabilities = config or read_config(), capabilities
        self.accounting = accounting()
        self._nodes = {conf.name: Node(conf=conf) for conf in self.config.nodes}

    def nodes(self) -> Sequence[Node]:
        return tuple(self._nodes.values())

    def node(self, name: str) -> Node | None:
        return self._nodes.get(name)

    def partitions(self) -> Sequence[Partition]:
        return self.config.partitions

    def reservations(self) -> Sequence[Reservation]:
        return ()

    def user_id(self, name: str) -> int | None:
        return UIDS.get(name)

    def group_id(self, name: str) -> int | None:
        return UIDS.get(name)

    def user_name(self, uid: int) -> str:
        return next((name for name, number in UIDS.items() if number == uid), str(uid))

    def group_name(self, gid: int) -> str:
        return self.user_name(gid)

    def groups_of(self, user: str) -> Sequence[str]:
        return (user,)

    def is_operator(self, uid: int) -> bool:
        return uid in (0, 1004)
