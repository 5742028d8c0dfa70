"""scontrol reconfigure and what operators change at run time: on the shipped fakes."""

from __future__ import annotations

import pytest

from slurmbridge.runtime.local.hosts import addresses, extended
from tests.daemon.controlled import CONF, Site
from tests.daemon.rules import rule


async def reconfigure(made: Site, old: str, new: str) -> None:
    assert old in made.conf
    made.conf = made.conf.replace(old, new)
    answer = await made.run("scontrol reconfigure", user="root")
    assert (answer.code, answer.out, answer.err) == (0, "", "")
    await made.settle()


@rule
async def test_running_jobs_are_not_touched(made: Site) -> None:
    running = await made.submit("-w n4 -n8", "sleep 50")
    before = made.job(running)
    await reconfigure(made, "CPUs=8 Sockets=2", "CPUs=8 Weight=3 Sockets=2")
    assert made.job(running) is before
    await made.advance(60)
    assert made.states(running) == ["COMPLETED"]


@rule
async def test_new_nodes_and_partitions_take_jobs_at_once(made: Site) -> None:
    waiting = await made.submit("-N5 -n5")
    assert made.states(waiting) == ["PENDING"]
    await reconfigure(made, "n[1-4]", "n[1-6]")
    await made.advance(1)
    assert made.states(waiting) == ["RUNNING"]
    await reconfigure(made, "PartitionName=debug", "PartitionName=late Nodes=n6 MaxTime=5\nPartitionName=debug")
    late = await made.submit("-p late -t 5")
    assert made.states(late) == ["RUNNING"]
    assert "n6" in (await made.run("sinfo -h -p late -o %N")).out


@rule
async def test_a_job_outlives_its_nodes_place_in_the_file(made: Site) -> None:
    running = await made.submit("-w n4 -n8", "sleep 50")
    await reconfigure(made, "n[1-4]", "n[1-3]")
    assert made.states(running) == ["RUNNING"]
    assert (await made.run("scontrol show node n4")).out == "Node n4 not found\n"
    assert (await made.run("squeue -h -o %N")).out == "n4\n"
    await reconfigure(made, "n[1-3]", "n[1-4]")
    other = await made.submit("-w n4 -n1")
    assert made.states(other) == ["PENDING"]  # the node is still full
    await made.advance(60)
    assert made.states(running) == ["COMPLETED"]


@rule
async def test_jobs_that_wait_for_a_partition_that_went_say_so(made: Site) -> None:
    await reconfigure(made, "PartitionName=debug", "PartitionName=short Nodes=n1\nPartitionName=debug")
    held = await made.submit("-H -p short")
    await reconfigure(made, "PartitionName=short Nodes=n1\n", "")
    await made.run(f"scontrol release {held}", user="root")
    await made.settle()
    assert made.states(held) == ["PENDING"]
    assert (await made.run(f"squeue -h -j {held} -o %T")).out == "PENDING\n"
    assert (await made.run(f"scontrol update jobid={held} partition=debug", user="root")).code == 0
    await made.settle()
    assert made.states(held) == ["RUNNING"]


@rule
async def test_limits_of_the_file_hold_for_what_comes_after(made: Site) -> None:
    await reconfigure(made, "MaxTime=INFINITE", "MaxTime=10 DefaultTime=3")
    long = await made.submit("-t 20")
    assert (made.states(long), made.job(long).reason) == (["PENDING"], "PartitionTimeLimit")
    short = await made.submit("")
    assert made.job(short).spec.time_limit in (None, 3)
    assert "TimeLimit=00:03:00" in (await made.run(f"scontrol show job {short}")).out


@pytest.mark.parametrize("bad", ["Bogus=1\n", "NodeName=n1 CPUs=x\n", "PartitionName=p Nodes=nowhere\n"])
def test_a_bad_file_is_refused_whole(bad: str) -> None:
    @rule
    async def refused(made: Site) -> None:
        before = made.controller.memory.config
        made.conf = CONF.replace("MinJobAge=300", "MinJobAge=9") + bad
        answer = await made.run("scontrol reconfigure", user="root")
        assert (answer.code, answer.out) == (1, "")
        assert answer.err.startswith("slurm_reconfigure error:slurm.conf:")
        assert made.controller.memory.config is before
        assert made.states(await made.submit("")) == ["RUNNING"]

    refused()


@rule
async def test_another_clusters_file_is_refused(made: Site) -> None:
    made.conf = CONF.replace("ClusterName=test", "ClusterName=other")
    answer = await made.run("scontrol reconfigure", user="root")
    assert answer.code == 1 and "another cluster" in answer.err


@rule
async def test_only_administrators_reconfigure(made: Site) -> None:
    await made.run("sacctmgr -i add account a", user="root")
    await made.run("sacctmgr -i add user bob account=a adminlevel=operator", user="root")
    for user in ("alice", "bob"):
        answer = await made.run("scontrol reconfigure", user=user)
        assert (answer.code, answer.err) == (1, "slurm_reconfigure error:Invalid user id\n")


@rule
async def test_a_draining_node_is_drained_when_its_last_job_ends(made: Site) -> None:
    await made.submit("-w n1 -n1", "sleep 20")
    await made.run("scontrol update nodename=n1 state=drain reason='bad disk'", user="root")
    assert (await made.run("sinfo -h -n n1 -o '%t %T %E %u'")).out == "drng draining bad disk root\n"
    assert "State=MIXED+DRAIN" in (await made.run("scontrol show node n1")).out
    waits = await made.submit("-w n1")
    assert made.states(waits) == ["PENDING"]
    await made.advance(25)
    assert (await made.run("sinfo -h -n n1 -o '%t %T'")).out == "drain drained\n"
    assert (await made.run("scontrol update nodename=n1 state=resume", user="root")).code == 0
    await made.settle()
    assert made.states(waits) == ["RUNNING"]


@rule
async def test_a_failing_node_keeps_its_jobs_and_takes_no_new_ones(made: Site) -> None:
    job = await made.submit("-w n1", "sleep 20")
    await made.run("scontrol update nodename=n1 state=fail reason=soon", user="root")
    assert (await made.run("sinfo -h -n n1 -o %t")).out == "failg\n"
    assert made.states(job, await made.submit("-w n1")) == ["RUNNING", "PENDING"]
    await made.advance(25)
    assert (await made.run("sinfo -h -n n1 -o %t")).out == "fail\n"


@rule
async def test_a_node_that_goes_down_gives_its_job_back(made: Site) -> None:
    job = await made.submit("-w n1 --requeue", "sleep 50")
    lost = await made.submit("-w n1 --no-requeue", "sleep 50")
    await made.run("scontrol update nodename=n1 state=down reason=power", user="root")
    await made.advance(40)
    assert made.states(job, lost) == ["PENDING", "NODE_FAIL"]


@rule
async def test_a_future_node_is_not_there_until_it_is_resumed(made: Site) -> None:
    await made.run("scontrol update nodename=n4 state=future", user="root")
    assert "n4" not in (await made.run("scontrol show node")).out
    assert "NodeName=n4" in (await made.run("scontrol -F show node n4")).out
    gang = await made.submit("-N4 -n4")
    assert made.states(gang) == ["PENDING"]
    await made.run("scontrol update nodename=n4 state=resume", user="root")
    await made.settle()
    assert made.states(gang) == ["RUNNING"]


@rule
async def test_states_of_nodes_survive_a_restart(made: Site) -> None:
    await made.run("scontrol update nodename=n1 state=drain reason='bad disk'", user="root")
    await made.restart()
    assert (await made.run("sinfo -h -n n1 -o '%t %E'")).out == "drain bad disk\n"


@rule
async def test_a_partition_made_at_run_time_is_changed_and_survives_until_the_file_changes(made: Site) -> None:
    assert (await made.run("scontrol create partition=tmp nodes=n[1-2] maxtime=10", user="root")).code == 0
    assert (await made.run("scontrol update partition=tmp state=drain maxnodes=1", user="root")).code == 0
    shown = (await made.run("scontrol show partition tmp")).out
    assert "State=DRAIN" in shown and "MaxNodes=1" in shown and "Nodes=n[1-2]" in shown
    await made.restart()
    assert "State=DRAIN" in (await made.run("scontrol show partition tmp")).out
    assert (await made.run("scontrol update partition=tmp state=up", user="root")).code == 0
    assert made.states(await made.submit("-p tmp")) == ["RUNNING"]
    made.conf = made.conf.replace("MaxTime=INFINITE", "MaxTime=60")
    made.config = made.read_config()
    await made.restart()
    assert (await made.run("scontrol show partition tmp")).out == "Partition tmp not found\n"
    assert "MaxTime=01:00:00" in (await made.run("scontrol show partition debug")).out


@rule
async def test_wait_job_returns_when_the_nodes_are_ready(made: Site) -> None:
    job = await made.submit("")
    answer = await made.run(f"scontrol wait_job {job}")
    assert (answer.code, answer.err) == (0, f"scontrol: Nodes are ready for job {job}\n")
    await made.advance(20)
    answer = await made.run(f"scontrol wait_job {job}")
    assert (answer.code, answer.err) == (1, f"scontrol: Job {job} no longer running\n")


def test_nodes_that_stay_keep_their_addresses() -> None:
    first = addresses(("n1", "n2", "n3"), {})
    later = extended(first, ("n9", "n3", "n1", "n4"))
    assert {name: later[name] for name in ("n1", "n3")} == {name: first[name] for name in ("n1", "n3")}
    assert len(set(later.values()) | {first["n2"]}) == 5


@rule
async def test_what_operators_change_of_a_node_outlives_other_changes(made: Site) -> None:
    assert (await made.run("scontrol update nodename=n2 features=fast", user="root")).code == 0
    await made.run("sacctmgr -i add account any", user="root")  # the planner is told everything again
    await made.settle()
    job = await made.submit("-C fast")
    assert (await made.run(f"squeue -h -j {job} -o '%T %N'")).out == "RUNNING n2\n"


@rule
async def test_the_site_file_is_read_again(made: Site) -> None:
    add = "sacctmgr -i add account ml QueuePriority=2 pool=gpu"
    assert "there is no node pool 'gpu'" in (await made.run(add, user="root")).err
    made.site_file = "pools:\n  gpu:\n    nodes: n[1-2]\n"
    assert (await made.run("scontrol reconfigure", user="root")).code == 0
    assert [pool.name for pool in made.controller.memory.config.all_pools] == ["gpu", "default"]
    assert (await made.run(add, user="root")).code == 0
    made.site_file = "pools:\n  gpu:\n    nodes: n[1-9]\n"
    wrong = await made.run("scontrol reconfigure", user="root")
    assert wrong.code == 1
    assert made.controller.memory.config.all_pools[0].nodes == ("n1", "n2")


@rule
async def test_what_runs_is_counted_in_the_pools_of_its_nodes(made: Site) -> None:
    made.site_file = "pools:\n  left:\n    nodes: n[1-2]\n"
    await made.run("scontrol reconfigure", user="root")
    await made.run("sacctmgr -i add account ml DeservedTRES=cpu=4 pool=left", user="root")
    await made.run("sacctmgr -i add user alice account=ml", user="root")
    await made.submit("-A ml -w n[2-3] -N2 -n10 --ntasks-per-node=5")
    shown = await made.run("sshare -nP -A ml -u alice -o account,user,pool,deservedtres,alloctres", user="root")
    assert shown.out == (
        "ml||left|cpu=4|cpu=5,mem=500M\nml||default||cpu=5,mem=500M\n"
        " ml|alice|left||cpu=5,mem=500M\n ml|alice|default||cpu=5,mem=500M\n"
    )
