"""scontrol write config: a file that reads as the configuration in use."""

from __future__ import annotations

from slurmbridge.commands.effects import FileData, WriteFile
from slurmbridge.lang import slurm_conf
from slurmbridge.model.cluster import Node
from tests.commands.sample_site import SampleSite
from tests.commands.test_scontrol import Run

CONF = """
ClusterName=c
SlurmctldHost=ctl(10.0.0.1)
SlurmUser=slurm
MinJobAge=77
PriorityWeightAge=1000
Licenses=matlab:4
NodeName=n[1-4] CPUs=8 SocketsPerBoard=2 CoresPerSocket=4 RealMemory=16000 Weight=3 Feature=cpu,big NodeAddr=10.0.0.[1-4]
NodeName=g1 CPUs=4 RealMemory=8000 Gres=gpu:a100:2 State=DOWN Reason="not yet"
PartitionName=debug Nodes=n[1-4] Default=YES MaxTime=1-0 DefaultTime=10 OverSubscribe=FORCE:2 AllowAccounts=a,b
PartitionName=gpu Nodes=g1 State=DOWN PriorityTier=5 DefMemPerCPU=100 MaxNodes=1
DownNodes=n3 State=DOWN Reason="a fan"
GresTypes=gpu
"""


def test_what_was_written_reads_as_what_is_in_use() -> None:
    config = slurm_conf.read_cluster({"slurm.conf": CONF}, "slurm.conf", cpus=1, memory_mib=1)
    site = SampleSite()
    site.config = config
    site.node_list = [Node(conf=conf) for conf in config.nodes]
    site.partitions = lambda: config.partitions  # type: ignore[method-assign]
    run = Run("scontrol write config out", site, FileData())
    (asked,) = [each for each in run.asked if isinstance(each, WriteFile)]
    assert asked.name.startswith("out.20")
    assert run.out == f"Slurm config saved to {asked.name}\n"
    again = slurm_conf.read_cluster({"slurm.conf": asked.data.decode()}, "slurm.conf", cpus=1, memory_mib=1)
    for name in ("cluster_name", "control_host", "control_addr", "slurm_user", "nodes", "licenses", "min_job_age",
                 "priority_weight_age", "down_nodes"):  # fmt: skip
        assert getattr(again, name) == getattr(config, name), name
    assert [_bare(each) for each in again.partitions] == [_bare(each) for each in config.partitions]


def _bare(partition: object) -> dict[str, object]:
    return {name: getattr(partition, name) for name in partition.__struct_fields__ if name != "nodes_text"}  # type: ignore[attr-defined]


def test_a_name_is_needed() -> None:
    run = Run("scontrol write config", SampleSite())
    assert run.err.startswith("Could not create file ")
    assert run.err.endswith(": Permission denied\n")
