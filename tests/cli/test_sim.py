"""`slurmbridge sim`: the names and figures that scripts outside read."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from slurmbridge.cli.main import main

KEYS = {
    "jobs", "makespan_s", "gpu_utilisation", "cpu_utilisation", "mean_wait_s", "p95_wait_s", "mean_bounded_slowdown",
    "share_error", "preempted_gpu_hours", "largest_gang_wait_s", "wall_s",
}  # fmt: skip
TRACE = (
    "id,submit_s,run_s,limit_s,user,account,partition,nodes,cpus_per_node,mem_mib_per_node,gpus_per_node,gpu_milli,"
    "gpu_mem_mib,gpu_type,preemptible,priority\n"
    "1,0,100,200,alice,physics,,1,4,1024,1,500,,,yes,\n"
    "2,5,50,60,bob,chem,,2,8,,4,1000,,a100,no,10\n"
    "3,9,50,,bob,chem,,1,1,,,,,,,\n"
)
CLUSTER = "node,count,cpus,mem_mib,gpus,gpu_type,gpu_mem_mib\ng,2,16,65536,4,a100,81920\n"


def run(*argv: str) -> tuple[int, str, str]:
    answer = CliRunner().invoke(main, ["sim", *argv])
    return answer.exit_code, answer.stdout, answer.stderr


def test_a_replay_prints_one_object_with_the_figures(tmp_path: Path) -> None:
    trace, cluster = tmp_path / "trace.csv", tmp_path / "cluster.csv"
    trace.write_text(TRACE)
    cluster.write_text(CLUSTER)
    for policy in ("ours", "easy", "quota"):
        code, out, err = run("replay", str(trace), "--cluster", str(cluster), "--policy", policy, "--json")
        assert code == 0, err
        found = json.loads(out)
        assert set(found) == KEYS and found["jobs"] == 3


def test_a_replay_needs_no_cluster_and_policies_stand_side_by_side(tmp_path: Path) -> None:
    trace = tmp_path / "log.swf"
    trace.write_text(
        "; MaxProcs: 8\n" + "".join(f"{n} {n} -1 100 4 -1 -1 4 200 -1 1 1 1 -1 -1 -1 -1 -1\n" for n in range(6))
    )
    code, out, err = run("replay", str(trace), "--policy", "ours", "--policy", "easy")
    assert code == 0, err
    assert out.splitlines()[0].split() == ["ours", "easy"] and "CPU utilisation" in out
    code, out, _ = run("replay", str(trace), "--policy", "ours", "--policy", "easy", "--json")
    assert set(json.loads(out)) == {"ours", "easy"}


def test_a_slurm_conf_is_a_cluster_and_sacctmgr_lines_are_accounts(tmp_path: Path) -> None:
    trace, conf, tree = tmp_path / "trace.csv", tmp_path / "slurm.conf", tmp_path / "tree.txt"
    trace.write_text(TRACE)
    (tmp_path / "gres.conf").write_text("NodeName=g[0-1] Name=gpu Type=a100 File=/dev/nvidia[0-3]\n")
    conf.write_text(
        "ClusterName=c\nSlurmctldHost=ctl\nGresTypes=gpu\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n"
        "NodeName=g[0-1] CPUs=16 Sockets=2 CoresPerSocket=8 RealMemory=65536 Gres=gpu:a100:4\n"
        "PartitionName=gpu Nodes=ALL Default=YES\n"
    )
    tree.write_text("sacctmgr -i add account physics fairshare=3\nsacctmgr -i add account chem\n")
    code, out, err = run("replay", str(trace), "--cluster", str(conf), "--accounts", str(tree), "--json")
    assert code == 0, err
    assert json.loads(out)["jobs"] == 3


def test_a_wrong_line_is_told_with_its_place(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text(TRACE.replace("5,50,60", "5,fifty,60"))
    code, _, err = run("replay", str(trace))
    assert code == 1 and f"{trace}:3: run_s" in err


def test_a_generated_trace_replays_on_its_cluster(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.csv"
    argv = ("generate", "--seed", "4", "--jobs", "40", "--nodes", "4", "--mix", "gangs", "--cluster", str(cluster))
    code, out, _ = run(*argv)
    assert code == 0 and run(*argv)[1] == out
    trace = tmp_path / "trace.csv"
    trace.write_text(out)
    code, shown, err = run("replay", str(trace), "--cluster", str(cluster), "--policy", "easy", "--json")
    assert code == 0, err
    assert json.loads(shown)["jobs"] == 40
