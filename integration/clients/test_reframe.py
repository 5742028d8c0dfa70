"""ReFrame: its slurm and squeue back-ends, an array, its node discovery by scontrol."""

from __future__ import annotations

import json

import pytest
from login import Login

pytestmark = pytest.mark.slow

CONFIG = """
site_configuration = {
    "systems": [{
        "name": "site", "hostnames": [".*"], "modules_system": "nomod",
        "partitions": [{"name": "work", "scheduler": "SCHEDULER", "launcher": "srun", "environs": ["builtin"],
                        "access": ["-p debug"], "max_jobs": 4}],
    }],
    "environments": [{"name": "builtin"}],
    "general": [{"resolve_module_conflicts": False, "report_file": "report.json"}],
}
"""
CHECKS = """
import reframe as rfm
import reframe.utility.sanity as sn


class Site(rfm.RunOnlyRegressionTest):
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    time_limit = "5m"


@rfm.simple_test
class Gang(Site):
    executable = "sh -c 'echo rank $SLURM_PROCID of $SLURM_NTASKS on node $SLURM_NODEID with $SLURM_CPUS_PER_TASK'"
    num_tasks = 4
    num_tasks_per_node = 2
    num_cpus_per_task = 2

    @sanity_function
    def ranks(self):
        found = sn.extractall(r"rank (\\d) of 4 on node (\\d) with 2", self.stdout, 0)
        nodes = sn.extractall(r"on node (\\d)", self.stdout, 1)
        return sn.all([sn.assert_eq(sn.count(found), 4), sn.assert_eq(sn.count_uniq(nodes), 2)])


@rfm.simple_test
class Array(Site):
    executable = "echo task"
    executable_opts = ["$SLURM_ARRAY_TASK_ID"]

    @run_after("setup")
    def array(self):
        self.job.options = ["--array=0-2"]

    @sanity_function
    def ran(self):
        return sn.assert_eq(self.job.exitcode, 0)


@rfm.simple_test
class Fails(Site):
    executable = "exit"
    executable_opts = ["4"]

    @run_before("run")
    def plain(self):
        self.job.launcher = rfm.core.backends.getlauncher("local")()

    @sanity_function
    def failed(self):
        return sn.assert_eq(self.job.exitcode, 4)
"""


@pytest.mark.parametrize("scheduler", ["slurm", "squeue"])
def test_checks_pass_and_exit_codes_are_read(desk: Login, scheduler: str) -> None:
    desk.write("settings.py", CONFIG.replace("SCHEDULER", scheduler))
    desk.write("checks.py", CHECKS)
    names = ["Gang", "Array", "Fails"] if scheduler == "slurm" else ["Gang"]
    chosen = [word for name in names for word in ("-n", f"{name}$")]
    answer = desk.run("reframe", "-C", "settings.py", "-c", "checks.py", *chosen, "-r", timeout=240)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    report = json.loads((desk.folder / "report.json").read_text())
    results = {case["name"]: case["result"] for run in report["runs"] for case in run["testcases"]}
    assert results == dict.fromkeys(names, "pass")


def test_as_many_tasks_as_nodes_are_free_is_found_from_scontrol(desk: Login) -> None:
    desk.write("settings.py", CONFIG.replace("SCHEDULER", "slurm"))
    desk.write("checks.py", CHECKS.replace("num_tasks = 4", "num_tasks = 0").replace("assert_eq(sn.count(found), 4)", "assert_ge(sn.count(found), 0)").replace("of 4", "of 8").replace("count_uniq(nodes), 2", "count_uniq(nodes), 4"))  # fmt: skip
    words = ("-C", "settings.py", "-c", "checks.py", "-n", "Gang$", "--flex-alloc-nodes=all", "-r")
    answer = desk.run("reframe", *words, timeout=240)
    assert answer.returncode == 0, answer.stdout + answer.stderr
