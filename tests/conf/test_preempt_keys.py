"""Keys of preemption: what slurmctld 26.05 refuses is refused, what it prints is printed."""

from __future__ import annotations

import pytest

from slurmbridge.errors import ConfigError
from slurmbridge.lang.slurm_conf import read_cluster, why_without_effect
from slurmbridge.model.cluster import ClusterConfig

TAIL = "\nNodeName=n1 CPUs=2\nPartitionName=p Nodes=n1 GraceTime=30 PreemptMode=cancel\n"


def read(*lines: str) -> ClusterConfig:
    text = "ClusterName=c\n" + "\n".join(lines) + TAIL
    return read_cluster({"slurm.conf": text}, "slurm.conf", cpus=2, memory_mib=100)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("PreemptType=preempt/none", "PreemptMode=REQUEUE"), "PreemptType and PreemptMode values incompatible"),
        (("PreemptMode=CANCEL",), "PreemptType and PreemptMode values incompatible"),
        (("PreemptType=preempt/qos",), "PreemptType and PreemptMode values incompatible"),
        (("PreemptType=preempt/qos", "PreemptMode=OFF"), "PreemptType and PreemptMode values incompatible"),
        (("PreemptType=preempt/qos", "PreemptMode=GANG"), "PreemptType and PreemptMode values incompatible"),
        (
            ("PreemptType=preempt/partition_prio", "PreemptMode=WITHIN"),
            "PreemptType and PreemptMode values incompatible",
        ),
        (("PreemptType=preempt/qos", "PreemptMode=SUSPEND"), "PreemptMode=SUSPEND requires GANG too"),
        (("PreemptMode=ON",), "PreemptMode=SUSPEND requires GANG too"),
        (("PreemptType=preempt/qos", "PreemptMode=CANCEL,REQUEUE"), "PreemptMode=CANCEL,REQUEUE invalid"),
        (("PreemptType=preempt/qos", "PreemptMode=requeue,requeue"), "PreemptMode=requeue,requeue invalid"),
        (("PreemptType=preempt/qos", "PreemptMode=suspend,gang,within"), "PreemptMode=suspend,gang,within invalid"),
        (("PreemptMode=foo",), "PreemptMode=foo invalid"),
        (("PreemptType=qos", "PreemptMode=REQUEUE"), "cannot create preempt context for qos"),
        (("PreemptType=preempt/foo", "PreemptMode=REQUEUE"), "cannot create preempt context for preempt/foo"),
        (("PreemptExemptTime=xx",), "PreemptExemptTime=xx invalid"),
        (("PreemptParameters=min_exempt_priority=x",), "min_exempt_priority value (x) is not a valid number"),
    ],
)
def test_what_does_not_go_together_is_refused(lines: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(*lines)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("suspend,gang", "GANG,SUSPEND"),
        ("PRIORITY,cancel", "PRIORITY,CANCEL"),
        ("cancel,priority,within", "WITHIN,PRIORITY,CANCEL"),
        ("on,gang", "GANG,SUSPEND"),
    ],
)
def test_modes_are_kept_as_show_config_prints_them(written: str, shown: str) -> None:
    assert read("PreemptType=preempt/qos", f"PreemptMode={written}").preempt_mode == shown


def test_gang_alone_and_cluster_are_no_preemption() -> None:
    assert read("PreemptMode=off,gang").preempt_mode == "GANG"
    assert read("PreemptMode=cluster").preempt_mode == "OFF"


@pytest.mark.parametrize(("written", "seconds"), [("10", 600), ("-1", 0), ("1-2:3:4", 93784), ("0", 0)])
def test_the_exempt_time_is_minutes_or_a_longer_form_and_minus_one_is_none(written: str, seconds: int) -> None:
    assert read(f"PreemptExemptTime={written}").preempt_exempt_time == seconds


def test_what_has_no_effect_is_listed_with_its_reason() -> None:
    config = read(
        "PreemptType=preempt/qos",
        "PreemptMode=SUSPEND,GANG",
        "PreemptParameters=youngest_first,strict_order,reorder_count=5,nonsense",
    )
    keys = [key for _, _, key in config.without_effect]
    assert keys == [
        "PreemptMode GANG", "PreemptParameters strict_order", "PreemptParameters reorder_count",
        "PreemptParameters nonsense", "PartitionName GraceTime", "PartitionName PreemptMode",
    ]  # fmt: skip
    assert all(why_without_effect(key) for key in keys)


def test_partitions_say_how_their_jobs_are_preempted_where_tiers_decide() -> None:
    config = read("PreemptType=preempt/partition_prio", "PreemptMode=REQUEUE")
    assert config.without_effect == ()
    assert (config.partitions[0].preempt_mode, config.partitions[0].grace_time) == ("CANCEL", 30)
