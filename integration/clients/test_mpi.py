"""MPICH over PMI and through its own launcher, Open MPI through its own launcher: on two nodes, unchanged wheels."""

from __future__ import annotations

import pytest
from login import Login

pytestmark = pytest.mark.slow

HELLO = """
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
def call(name, *words):
    code = getattr(lib, name)(*words)
    assert code == 0, (name, code)
call("MPI_Init", None, None)
rank, size, total = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
MPICH = "mpich" in sys.argv[1] or "libmpi.so.12" in sys.argv[1]
def handle(value, name):
    return ctypes.c_int(value) if MPICH else ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(lib, name)))
world, integer, add = handle(0x44000000, "ompi_mpi_comm_world"), handle(0x4c000405, "ompi_mpi_int"), handle(0x58000003, "ompi_mpi_op_sum")
call("MPI_Comm_rank", world, ctypes.byref(rank))
call("MPI_Comm_size", world, ctypes.byref(size))
call("MPI_Allreduce", ctypes.byref(rank), ctypes.byref(total), 1, integer, add, world)
print("rank", rank.value, "of", size.value, "sum", total.value, flush=True)
call("MPI_Finalize")
"""
EXPECTED = [f"rank {rank} of 4 sum 6" for rank in range(4)]


def library(desk: Login, name: str) -> str:
    found = sorted(desk.python.parent.parent.rglob(name))
    if not found:
        pytest.skip(f"no {name} in the clients' environment")
    return str(found[0])


def job(desk: Login, line: str) -> str:
    desk.write("hello.py", HELLO)
    desk.write("job.sh", f"#!/bin/bash\n#SBATCH -N2 --ntasks-per-node=2 -t5 -o out.txt\n{line}\n")
    answer = desk.run("sbatch", "--wait", "job.sh", timeout=120)
    text = (desk.folder / "out.txt").read_text()
    assert answer.returncode == 0, answer.stderr + text
    return text


def test_mpich_starts_under_srun_by_pmi(desk: Login) -> None:
    path = library(desk, "libmpi.so.12")
    assert sorted(job(desk, f"srun --mpi=pmi2 {desk.python} hello.py {path}").splitlines()) == EXPECTED


def test_mpich_starts_by_its_own_launcher(desk: Login) -> None:
    path = library(desk, "libmpi.so.12")
    starter = desk.python.parent / "mpiexec"
    starter = next(iter(sorted(desk.python.parent.rglob("mpiexec.hydra"))), starter)
    assert sorted(job(desk, f"{starter} {desk.python} hello.py {path}").splitlines()) == EXPECTED


def test_open_mpi_starts_by_its_own_launcher(desk: Login) -> None:
    path = library(desk, "libmpi.so.40")
    starter = library(desk, "prterun")
    place = desk.python.parent.parent  # the wheel was built for another folder
    prefixes = f"OPAL_PREFIX={place} PRTE_PREFIX={place} PMIX_PREFIX={place}"
    text = job(desk, f"{prefixes} {starter} --mca btl self,tcp --mca pml ob1 {desk.python} hello.py {path}")
    assert sorted(line for line in text.splitlines() if line.startswith("rank")) == EXPECTED
