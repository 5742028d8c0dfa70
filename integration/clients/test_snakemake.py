"""Snakemake with its Slurm plugin: a small graph of rules, a failing one, and one that fails once."""

from __future__ import annotations

import pytest
from login import Login

pytestmark = pytest.mark.slow

SNAKEFILE = """
rule all:
    input: "total.txt"

rule square:
    output: "square/{n}.txt"
    resources: mem_mb=200, runtime=5
    threads: 2
    shell: "echo $(({wildcards.n} * {wildcards.n})) > {output}"

rule total:
    input: expand("square/{n}.txt", n=range(4))
    output: "total.txt"
    resources: mem_mb=200, runtime=5
    shell: "cat {input} | paste -sd+ | bc > {output} || (s=0; for i in $(cat {input}); do s=$((s+i)); done; echo $s > {output})"

rule shaky:
    output: "shaky.txt"
    resources: mem_mb=200, runtime=5
    shell: "test -e tried && echo again > {output} || (touch tried; exit 3)"

rule broken:
    output: "broken.txt"
    resources: mem_mb=200, runtime=5
    shell: "exit 7"
"""


def snakemake(desk: Login, *words: str) -> tuple[int, str]:
    desk.write("Snakefile", SNAKEFILE)
    answer = desk.run(
        "snakemake", "--executor", "slurm", "--jobs", "4", "--default-resources", "slurm_partition=debug",
        "--slurm-init-seconds-before-status-checks", "2", "--latency-wait", "10", *words, timeout=300,
    )  # fmt: skip
    return answer.returncode, answer.stdout + answer.stderr


def test_a_graph_of_rules_computes_its_total(desk: Login) -> None:
    code, text = snakemake(desk)
    assert code == 0, text
    assert (desk.folder / "total.txt").read_text().strip() == "14"


def test_a_rule_that_fails_is_tried_again(desk: Login) -> None:
    code, text = snakemake(desk, "--retries", "1", "shaky.txt")
    assert code == 0, text
    assert (desk.folder / "shaky.txt").read_text().strip() == "again"


def test_a_broken_rule_ends_the_workflow(desk: Login) -> None:
    code, text = snakemake(desk, "broken.txt")
    assert code == 1, text
    assert "FAILED" in text
