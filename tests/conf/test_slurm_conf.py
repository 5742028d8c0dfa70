"""slurm.conf and gres.conf: what takes effect, what is only accepted, what is refused and where."""

from __future__ import annotations

import time

import pytest

from slurmbridge.errors import ConfigError
from slurmbridge.lang import hostlist
from slurmbridge.lang.slurm_conf import default_cluster, included_files, read_cluster, why_without_effect
from slurmbridge.lang.slurm_conf_keys import KEYS
from slurmbridge.lang.slurm_conf_settings import FIELDS
from slurmbridge.model.cluster import ClusterConfig

SITE = """
ClusterName=Site
SlurmctldHost=ctl(10.0.0.1)
GresTypes=gpu,shard
MaxArraySize=20001   # comment
KillWait=5
PriorityMaxAge=7-0
AuthType=auth/munge
NodeName=DEFAULT CPUs=8 Sockets=2 CoresPerSocket=4 RealMemory=16000 \\
    Feature=cpu,avx2
NodeName=n[1-4] NodeAddr=10.0.0.[11-14]
NodeName=g[1-2] CPUs=16 CoresPerSocket=8 Gres=gpu:a100:4 Weight=50 Feature=gpu
NodeSet=cards Feature=gpu
PartitionName=DEFAULT MaxTime=1-0 State=UP
PartitionName=debug Nodes=n[1-4] Default=YES MaxTime=INFINITE
PartitionName=gpu Nodes=cards DefaultTime=60
PartitionName=all Nodes=ALL
Licenses=matlab:10,ansys
"""
GRES = "AutoDetect=off\nNodeName=g[1-2] Name=gpu Type=a100 File=/dev/nvidia[0-3]\n"


def read(text: str, **more: str) -> ClusterConfig:
    return read_cluster({"/etc/slurm.conf": text, **more}, "/etc/slurm.conf", cpus=2, memory_mib=1000)


def site() -> ClusterConfig:
    return read_cluster({"/etc/slurm.conf": SITE, "/etc/gres.conf": GRES}, "/etc/slurm.conf", cpus=2, memory_mib=1000)


def test_defaults_hold_until_a_line_says_otherwise() -> None:
    config = site()
    assert [node.name for node in config.nodes] == ["n1", "n2", "n3", "n4", "g1", "g2"]
    assert config.nodes[1].address == "10.0.0.12"
    assert (config.nodes[0].cpus, config.nodes[0].features, config.nodes[4].features) == (8, ("cpu", "avx2"), ("gpu",))
    debug, gpu, everything = config.partitions
    assert (debug.max_time, gpu.max_time, gpu.default_time, debug.default) == (None, 1440, 60, True)
    assert gpu.nodes == ("g1", "g2") and len(everything.nodes) == 6


def test_plain_keys_set_their_fields_and_keep_their_text() -> None:
    config = site()
    assert (config.cluster_name, config.max_array_size, config.kill_wait) == ("site", 20001, 5)
    assert config.priority_max_age == 7 * 86400
    assert (config.control_host, config.control_addr) == ("ctl", "10.0.0.1")
    assert [(each.name, each.total) for each in config.licenses] == [("matlab", 10), ("ansys", 1)]
    assert ("KillWait", "5") in config.values
    assert [key for _, _, key in config.without_effect] == ["AuthType"]


def test_devices_come_from_gres_conf_in_file_order() -> None:
    node = site().nodes[4]
    assert [(each.index, each.type, each.file) for each in node.devices] == [
        (index, "a100", f"/dev/nvidia{index}") for index in range(4)
    ]


def test_a_node_with_fewer_devices_than_promised_is_drained() -> None:
    config = read(SITE, **{"/etc/gres.conf": "Name=gpu Type=a100 File=/dev/nvidia[0-2]\n"})
    assert config.nodes[4].state == "DRAIN"
    assert config.nodes[4].reason == "gres/gpu count reported lower than configured (3 < 4)"


def test_devices_without_gres_conf_exist_by_index() -> None:
    assert [each.index for each in read(SITE).nodes[5].devices] == [0, 1, 2, 3]


def test_includes_are_read_in_their_place_and_name_their_own_lines() -> None:
    text = "ClusterName=Big\nInclude parts/%c.conf\n"
    assert included_files(text) == ["parts/%c.conf"]
    config = read(text, **{"/etc/parts/big.conf": "NodeName=n1\n"})
    assert config.nodes[0].name == "n1"
    with pytest.raises(ConfigError) as failed:
        read(text, **{"/etc/parts/big.conf": "\nFoo=1\n"})
    assert str(failed.value) == "/etc/parts/big.conf:2: Parsing error at unrecognized key: Foo"


def test_an_include_that_includes_itself_ends_in_an_error() -> None:
    with pytest.raises(ConfigError, match="more than"):
        read("Include slurm.conf\n")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("FooBar=1", "Parsing error at unrecognized key: FooBar"),
        ("NodeName=n1 CPUs=abc", 'CPUs value "abc" is not a valid number'),
        ("NodeName=n1 Frob=1", "Parsing error at unrecognized key: Frob"),
        ("NodeName=n1 CPUs=99999999", "CPUs value (99999999) is greater than 65535"),
        ("NodeName=n[1-2] NodeAddr=a[1-3]", "NodeAddr count must equal that of NodeName records"),
        ("NodeName=n1 Gres=tape:1", "Invalid GRES configured on node n1"),
        ("NodeName=n1 State=FOO", "Invalid state FOO for node"),
        ("NodeName=n[1-", "Invalid hostlist: n[1-"),
        ("KillWait=-1", "KillWait value (-1) is less than zero"),
        ("KillWait=99999", "KillWait value (99999) is greater than 65535"),
        ("MaxJobCount=x", "MaxJobCount value (x) is not a valid number"),
        ("MaxJobCount 5", 'Parse error: "MaxJobCount 5"'),
        ("MaxJobCount=5 foo=6", 'Parse error: " foo=6"'),
        ("UsePAM=maybe", '"maybe" is not a valid option for "UsePAM"'),
        ("EnforcePartLimits=zzz", "Bad EnforcePartLimits: zzz"),
        ("SelectTypeParameters=zzz", "Bad SelectTypeParameter: zzz"),
        ("PreemptMode=zzz", "PreemptMode=zzz invalid"),
        ("PartitionName=p PreemptMode=zzz", "PreemptMode=zzz invalid"),
        ("PartitionName=p GraceTime=-1", "GraceTime value (-1) is less than zero"),
        ("PriorityMaxAge=zzz", 'Bad value "zzz" for PriorityMaxAge'),
        ("AccountingStorageEnforce=zzz", "Invalid parameter for AccountingStorageEnforce: zzz"),
        ("PropagateResourceLimits=zzz", "Bad rlimit name: ZZZ"),
        ("PropagateResourceLimitsExcept=zzz", "Bad rlimit name: ZZZ"),
        ("PartitionName=p MaxTime=foo", 'Bad value "foo" for MaxTime'),
        ("PartitionName=p State=foo", 'Bad value "foo" for State'),
        ("PartitionName=p Nodes=n9", "Invalid node name specified: n9"),
        ("PartitionName=p OverSubscribe=x", 'Bad value "x" for OverSubscribe (use NO, YES, FORCE)'),
        ("Include nowhere.conf", '"Include" failed: cannot read /etc/nowhere.conf'),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_with_its_line(line: str, message: str) -> None:
    with pytest.raises(ConfigError) as failed:
        read("ClusterName=c\n" + line + "\n")
    assert str(failed.value).startswith(f"/etc/slurm.conf:2: {message}")


@pytest.mark.parametrize("name", ["NodeName=n1", "PartitionName=p"])
def test_a_second_record_of_one_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="Duplicated"):
        read(f"{name}\n{name}\n")


def test_every_key_takes_effect_or_says_why_not() -> None:
    special = {"slurmctldhost", "slurmctldaddr", "grestypes", "disablerootjobs"}
    for key in KEYS:
        takes_effect = key.name.lower() in FIELDS or key.name.lower() in special
        assert takes_effect or key.why, key.name


def test_keys_ignore_case_and_the_last_value_wins() -> None:
    config = read("killwait=4\nKILLWAIT=9\n")
    assert config.kill_wait == 9
    assert config.values == (("KillWait", "9"),)


def test_without_a_file_there_are_two_nodes_and_a_default_partition() -> None:
    config = default_cluster(cpus=4, memory_mib=8000, host="box")
    assert [node.cpus for node in config.nodes] == [4, 4]
    assert config.default_partition is not None and len(config.default_partition.nodes) == 2


def test_four_thousand_nodes_in_sixty_partitions_cost_a_few_times_what_their_lists_do() -> None:
    lines = ["GresTypes=gpu", "NodeName=n[0001-4000] CPUs=64 Gres=gpu:a100:4"]
    lines += [f"PartitionName=p{number} Nodes=n[0001-4000]" for number in range(60)]
    start = time.process_time()
    for _ in range(60):
        hostlist.expand("n[0001-4000]")
    lists = time.process_time() - start
    config = read("\n".join(lines), **{"/etc/gres.conf": "Name=gpu Type=a100 File=/dev/nvidia[0-3]\n"})
    assert time.process_time() - start - lists < 12 * lists
    assert len(config.nodes) == 4000


def test_files_and_keys_of_partitions_without_effect_are_listed_with_their_reasons() -> None:
    files = {
        "/etc/slurm.conf": "ClusterName=c\nNodeName=n1\nPartitionName=p Nodes=n1 PreemptMode=REQUEUE MaxCPUsPerSocket=2\n",
        "/etc/topology.conf": "# switches\n\nSwitchName=s Nodes=n1\n",
        "/etc/cgroup.conf": "CgroupPlugin=disabled\n",
        "/etc/topology.yaml": "# nothing\n",
    }
    config = read_cluster(files, "/etc/slurm.conf", cpus=1, memory_mib=1)
    assert config.without_effect == (
        ("/etc/slurm.conf", 3, "PartitionName PreemptMode"),
        ("/etc/slurm.conf", 3, "PartitionName MaxCPUsPerSocket"),
        ("/etc/topology.conf", 3, "topology.conf"),
        ("/etc/cgroup.conf", 1, "cgroup.conf"),
    )
    assert all(why_without_effect(key) for _, _, key in config.without_effect)
    assert config.partitions[0].preempt_mode == "REQUEUE"
