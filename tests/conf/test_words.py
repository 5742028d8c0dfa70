"""Words without effect of keys that take effect are told, word by word."""

from __future__ import annotations

import pytest

from slurmbridge.lang.slurm_conf import read_cluster, why_without_effect


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("PriorityFlags=NO_FAIR_TREE,MAX_TRES", ["PriorityFlags NO_FAIR_TREE"]),
        ("PriorityFlags=ACCRUE_ALWAYS,MAX_TRES_GRES", []),
        ("SelectTypeParameters=CR_Core_Memory,CR_Pack_Nodes", ["SelectTypeParameters CR_Pack_Nodes"]),
        ("SelectTypeParameters=CR_CPU_Memory,CR_LLN", []),
        ("SchedulerParameters=bf_interval=60,bf_max_job_test=9,defer", [
            "SchedulerParameters bf_max_job_test", "SchedulerParameters defer",
        ]),
        ("SchedulerParameters=max_array_tasks=10,bf_window=1440", []),
        ("AccountingStorageEnforce=limits,nosteps", ["AccountingStorageEnforce nosteps"]),
    ],
)  # fmt: skip
def test_words_without_effect_are_told(line: str, told: list[str]) -> None:
    config = read_cluster({"slurm.conf": f"ClusterName=c\n{line}\n"}, "slurm.conf", cpus=2, memory_mib=1000)
    assert [what for _file, _line, what in config.without_effect] == told
    assert all(why_without_effect(what) for what in told)
