"""Switches, blocks and whole domains, as users meet them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from slurmbridge.lang.slurm_conf import read_cluster
from slurmbridge.model.cluster import ClusterConfig
from tests.daemon.controlled import CONF, Site

TREE = "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[3-4] LinkSpeed=100\nSwitchName=top Switches=a,b\n"
BLOCKS = "BlockName=x Nodes=n[1-2]\nBlockName=y Nodes=n[3-4]\nBlockSizes=2,4\n"
Rule = Callable[["Wired"], Awaitable[None]]


class Wired(Site):
    """A site with a topology.conf beside its slurm.conf."""

    def __init__(self, plugin: str, conf: str, more: str = "") -> None:
        self.topology_conf = conf
        super().__init__(CONF + f"TopologyPlugin=topology/{plugin}\n{more}")

    def read_config(self) -> ClusterConfig:
        files = {"slurm.conf": self.conf, "topology.conf": self.topology_conf}
        return read_cluster(files, "slurm.conf", cpus=8, memory_mib=16000)

    def nodes_of(self, job_id: int) -> list[str]:
        allocation = self.job(job_id).allocation
        return [] if allocation is None else [node.node for node in allocation.nodes]


def with_site(rule: Rule, plugin: str = "tree", conf: str = TREE, more: str = "") -> None:
    async def run() -> None:
        made = Wired(plugin, conf, more)
        await made.start()
        await rule(made)

    asyncio.run(run())


def test_a_job_waits_for_few_switches_as_long_as_it_said_and_then_takes_any() -> None:
    async def rule(site: Wired) -> None:
        await site.submit("-w n1 --exclusive -t 60", body="sleep 3000")
        await site.submit("-w n3 --exclusive -t 60", body="sleep 3000")
        patient = await site.submit("-N2 --exclusive --switches=1@2 -t 60")
        assert site.states(patient) == ["PENDING"]
        await site.advance(110, step=10)
        assert site.states(patient) == ["PENDING"]
        await site.advance(20, step=10)
        assert site.nodes_of(patient) == ["n2", "n4"]

    with_site(rule)


def test_the_expected_start_of_a_job_that_waits_for_switches_is_the_end_of_its_wait() -> None:
    async def rule(site: Wired) -> None:
        await site.submit("-w n1 --exclusive -t 60", body="sleep 3000")
        await site.submit("-w n3 --exclusive -t 60", body="sleep 3000")
        answer = await site.run("sbatch --test-only -N2 --exclusive --switches=1@2 -t 60 --wrap true")
        assert "to start at 2027-01-15T08:02:00 a using 16 processors on nodes n[2,4] in partition debug" in answer.err

    with_site(rule)


def test_a_job_of_two_nodes_stays_below_one_switch() -> None:
    async def rule(site: Wired) -> None:
        await site.submit("-w n1 --exclusive -t 60", body="sleep 3000")
        near = await site.submit("-N2 --exclusive -t 60")
        assert site.nodes_of(near) == ["n3", "n4"]

    with_site(rule)


def test_a_job_that_has_its_switch_for_itself_keeps_others_off_until_it_ends() -> None:
    async def rule(site: Wired) -> None:
        alone = await site.submit("-N1 --exclusive=topo -t 60", body="sleep 100")
        others = [await site.submit("-N2 --exclusive -t 60", body="sleep 3000") for _ in range(2)]
        assert site.nodes_of(alone) == ["n1"]
        assert site.nodes_of(others[0]) == ["n3", "n4"] and site.states(others[1]) == ["PENDING"]
        await site.run(f"scancel {alone}")
        await site.advance(10)
        assert site.nodes_of(others[1]) == ["n1", "n2"]

    with_site(rule)


def test_segments_do_not_cross_blocks() -> None:
    async def rule(site: Wired) -> None:
        await site.submit("-w n1 --exclusive -t 60", body="sleep 3000")
        parts = await site.submit("-N2 --segment=1 --exclusive -t 60")
        assert len(site.nodes_of(parts)) == 2
        whole = await site.submit("-N2 --exclusive -t 60")
        assert site.states(whole) == ["PENDING"]

    with_site(rule, "block", BLOCKS)


def test_the_topology_is_shown_as_slurm_shows_it() -> None:
    async def rule(site: Wired) -> None:
        top = "SwitchName=top Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=a,b\n"
        leaves = [
            "SwitchName=a Level=0 LinkSpeed=1 Nodes=n[1-2]\n",
            "SwitchName=b Level=0 LinkSpeed=100 Nodes=n[3-4]\n",
        ]
        shown = {
            "": "".join(leaves) + top,
            " node=n3": leaves[1] + top,
            " node=n[1-3]": top,
            " unit=a": leaves[0],
            " switch=a node=n1": leaves[0],
            " default": "".join(leaves) + top,
        }
        for words, lines in shown.items():
            assert (await site.run(f"scontrol show topology{words}")).out == lines
        lacking = await site.run("scontrol show topology unit=z")
        assert lacking.err == "scontrol: error: Topology information contains no switch named z\n"
        lacking = await site.run("scontrol show topology node=z")
        assert lacking.err == "scontrol: error: Topology information contains no switch with nodes z\n"
        strange = await site.run("scontrol show topology foo=1")
        assert (strange.code, strange.err) == (0, "Unknown argument foo=1\n")
        strange = await site.run("scontrol show topology a b")
        assert strange.err == "Too many arguments (b), the topology name (a) is already defined\n"
        lacking = await site.run("scontrol show topology other")
        assert lacking.err == "slurm_load_topo error: Requested topology configuration is not available\n"

    with_site(rule)


def test_blocks_are_shown_with_those_that_they_are_joined_to() -> None:
    async def rule(site: Wired) -> None:
        assert (await site.run("scontrol show topology")).out == (
            "BlockName=x BlockIndex=0 Nodes=n[1-2] BlockSize=2\n"
            "BlockName=y BlockIndex=1 Nodes=n[3-4] BlockSize=2\n"
            "AggregatedBlock=x,y BlockIndex=2 Nodes=n[1-4] BlockSize=4\n"
        )

    with_site(rule, "block", BLOCKS)


def test_jobs_are_told_where_their_nodes_are() -> None:
    async def rule(site: Wired) -> None:
        job_id = await site.submit("-N2 -w n[3-4]")
        (launch,) = [run.launch for key, run in site.runtime._runs.items() if key.job_id == job_id]
        env = dict(launch.env)
        assert env["SLURM_TOPOLOGY_ADDR"] == "top.b.n3"
        assert env["SLURM_TOPOLOGY_ADDR_PATTERN"] == "switch.switch.node"
        assert launch.nodes[1].topology == ("top.b.n4", "switch.switch.node")

    with_site(rule)


def test_a_changed_topology_counts_after_reconfigure() -> None:
    async def rule(site: Wired) -> None:
        site.topology_conf = "SwitchName=a Nodes=n[1,3]\nSwitchName=b Nodes=n[2,4]\nSwitchName=top Switches=a,b\n"
        assert (await site.run("scontrol reconfigure", user="root")).code == 0
        near = await site.submit("-N2 --exclusive -t 60")
        assert site.nodes_of(near) == ["n1", "n3"]

    with_site(rule)


def test_why_tells_what_a_job_wants_of_the_place_of_its_nodes() -> None:
    async def rule(site: Wired) -> None:
        for node in ("n1", "n3"):
            await site.submit(f"-w {node} --exclusive -t 60", body="sleep 3000")
        patient = await site.submit("-N2 --exclusive --switches=1@2 -t 60")
        told = (await site.run(f"slurmbridge why {patient}")).out
        assert "2 of 4 usable nodes hold its share now, 2 needed on one leaf switch" in told

    with_site(rule)


def test_a_partition_may_get_another_topology() -> None:
    async def rule(site: Wired) -> None:
        assert (await site.run("scontrol update partitionname=debug topology=default", user="root")).code == 0
        assert "   Topology=default\n" in (await site.run("scontrol show partition debug")).out

    with_site(rule)


def test_victims_are_looked_for_below_one_switch() -> None:
    tiers = (
        "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\n"
        "PartitionName=urgent Nodes=n[1-4] PriorityTier=9 MaxTime=INFINITE\n"
    )

    async def rule(site: Wired) -> None:
        running = [await site.submit(f"-w n{node} --exclusive -t 600", body="sleep 9000") for node in (1, 3)]
        await site.advance(100, step=50)
        running += [await site.submit(f"-w n{node} --exclusive -t 600", body="sleep 9000") for node in (2, 4)]
        urgent = await site.submit("-p urgent -N2 --exclusive --switches=1@60 -t 60")
        await site.advance(10)
        assert site.nodes_of(urgent) in (["n1", "n2"], ["n3", "n4"])
        assert sorted(site.states(*running)) == ["PENDING", "PENDING", "RUNNING", "RUNNING"]

    with_site(rule, more=tiers)


YAML = """---
- topology: wide
  cluster_default: true
  tree:
    switches:
      - switch: top
        children: a,b
      - switch: a
        nodes: n[1-2]
      - switch: b
        nodes: n[3-4]
- topology: cubes
  block:
    block_sizes: [2]
    blocks:
      - block: x
        nodes: n1,n2
- topology: plain
  flat: true
"""
SHOWN = """%YAML 1.1
---
- topology: wide
  cluster_default: true
  block: {}
  flat: {}
  ring: {}
  torus3d: {}
  tree:
    switches:
    - switch: top
      children: a,b
      nodes:
    - switch: a
      children:
      nodes: n[1-2]
    - switch: b
      children:
      nodes: n[3-4]
- topology: cubes
  cluster_default: false
  block:
    block_sizes:
    - 2
    blocks:
    - block: x
      nodes: n1,n2
  flat: {}
  ring: {}
  torus3d: {}
  tree: {}
- topology: plain
  cluster_default: false
  block: {}
  flat: true
  ring: {}
  torus3d: {}
  tree: {}
...
"""


def test_topology_yaml_is_shown_as_it_was_read() -> None:
    class Several(Wired):
        def read_config(self) -> ClusterConfig:
            return read_cluster(
                {"slurm.conf": self.conf, "topology.yaml": YAML}, "slurm.conf", cpus=8, memory_mib=16000
            )

    async def run() -> None:
        made = Several("tree", "")
        await made.start()
        assert (await made.run("scontrol show topoconf")).out == SHOWN
        assert (await made.run("scontrol show topology plain")).out == ""

    asyncio.run(run())
