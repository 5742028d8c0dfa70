"""A gang that meets as torchrun's ranks do: rank 0 listens on the first node's name, the others connect to it."""

from __future__ import annotations

import re

import pytest
from login import Login

pytestmark = pytest.mark.slow

RANK = """
import os, socket, sys, time
rank, size = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    with socket.create_server(place) as server:
        links = [server.accept()[0] for _ in range(size - 1)]
        total = sum(int(link.recv(64)) for link in links)
        for link in links:
            link.sendall(b"%d" % total)
            link.close()
else:
    for _ in range(100):
        try:
            link = socket.create_connection(place, timeout=10)
            break
        except OSError:
            time.sleep(0.1)
    link.sendall(b"%d" % (rank * rank))
    total = int(link.recv(64))
names = ("SLURM_LOCALID", "SLURM_NODEID", "SLURM_NNODES", "SLURM_NTASKS_PER_NODE")
print("total", total, *(os.environ[name] for name in names), flush=True)
if len(sys.argv) > 1 and rank == 3:
    sys.exit(6)
if len(sys.argv) > 1:
    time.sleep(120)
"""
JOB = """#!/bin/bash
#SBATCH --nodes=3
#SBATCH --ntasks-per-node=2
#SBATCH --time=00:05:00 --output=ranks.out
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
getent hosts "$MASTER_ADDR" >/dev/null || MASTER_ADDR=127.0.0.1
export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
srun --kill-on-bad-exit=1 --label python3 rank.py "$@"
"""


def test_ranks_meet_at_the_first_nodes_name(desk: Login) -> None:
    desk.write("rank.py", RANK)
    desk.write("job.sh", JOB)
    answer = desk.run("sbatch", "--wait", "job.sh")
    text = (desk.folder / "ranks.out").read_text()
    assert answer.returncode == 0, text
    ranks = sorted(line for line in text.splitlines() if re.match(r"\d: ", line))
    assert ranks == [f"{rank}: total 55 {rank % 2} {rank // 2} 3 2" for rank in range(6)]


def test_one_bad_rank_ends_the_others(desk: Login) -> None:
    desk.write("rank.py", RANK)
    desk.write("job.sh", JOB)
    answer = desk.run("sbatch", "--wait", "job.sh", "fail", timeout=60)
    text = (desk.folder / "ranks.out").read_text()
    assert answer.returncode == 143, text  # the highest: those ended by SIGTERM
    assert "task 3: Exited with exit code 6" in text
