"""One daemon and one environment with the clients for all files here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from login import Login

from slurmbridge.cli.throwaway import Throwaway, opened
from tests.multiuser.machine import Machine

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OPEN_PREFIX = Path("/opt/slurmbridge-test")
OPEN_CLIENTS = Path("/opt/slurmbridge-clients")
EXTRA = "ReturnToService=2\n"
CONF = """ClusterName=clients
SlurmctldHost=localhost
AccountingStorageType=accounting_storage/slurmdbd
JobAcctGatherFrequency=task=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
MinJobAge=300
KillWait=2
NodeName=n[1-4] CPUs=8 Sockets=2 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=16000 Feature=cpu
PartitionName=debug Nodes=n[1-4] Default=YES MaxTime=INFINITE State=UP
PartitionName=small Nodes=n[1-2] MaxNodes=1 MaxTime=00:30:00 State=UP
"""


def _python_of(folder: Path) -> Path:
    """The clients' environment, made when it is not there; skipped where no registry answers."""
    python = folder / "bin/python3"
    if not python.exists():
        base = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
        made = subprocess.run([base, "-m", "venv", str(folder)], capture_output=True, text=True)
        if made.returncode != 0:
            pytest.skip(f"no environment for the clients: {made.stderr or made.stdout}")
        install = [str(python), "-m", "pip", "install", "--quiet", "--requirement", str(HERE / "requirements.txt")]
        answer = subprocess.run(install, capture_output=True, text=True)
        if answer.returncode != 0:
            shutil.rmtree(folder)
            pytest.skip(f"the clients can't be installed: {answer.stderr.strip().splitlines()[-1:]}")
    return python


@pytest.fixture(scope="session")
def client_python() -> Path:
    given = os.environ.get("SLURMBRIDGE_CLIENTS")
    folder = Path(given) if given else OPEN_CLIENTS if os.geteuid() == 0 else ROOT / ".venv-clients"
    return _python_of(folder)


@pytest.fixture(scope="session")
def login(client_python: Path) -> Iterator[Login]:
    """Where a user types: an ordinary user of a root daemon when root, oneself otherwise."""
    if os.geteuid() != 0:
        own = Path(os.environ.get("SLURMBRIDGE_TEST_BIN") or Path(sys.prefix, "bin"))
        if not (own / "sbatch").exists():
            pytest.skip(f"slurmbridge is not installed in {own.parent}: run `make test`")
        with opened(str(own), nodes="n[1-4]", cpus=8, memory=16000, extra=EXTRA, start=False) as daemon:
            yield from _own(daemon, client_python)
        return
    given = os.environ.get("SLURMBRIDGE_TEST_PREFIX")  # one that is installed already
    prefix = Path(given) if given else OPEN_PREFIX
    if not given:
        subprocess.run(["bash", str(ROOT / "integration/prefix.sh"), str(prefix)], check=True)
    machine = Machine(prefix)
    machine.conf.write_text(CONF)
    try:
        machine.up()
        yield Login(
            home=machine.home("ann"), bin_folder=prefix / "bin", python=client_python, user="ann",
            address=f"unix:{machine.state}/socket", owner=(61001, 61001),
            enter=(
                "nsenter", "--target", str(machine.holder.pid), "--mount",
                "setpriv", "--reuid=61001", "--regid=61001", "--clear-groups",
            ),
        )  # fmt: skip
    finally:
        machine.close()


def _own(daemon: Throwaway, python: Path) -> Iterator[Login]:
    Path(daemon.conf).write_text(CONF)
    daemon.up()
    yield Login(
        home=Path(daemon.work), bin_folder=Path(daemon.bin), python=python, user=os.environ.get("USER", ""),
        address=daemon.place.address,
    )  # fmt: skip


@pytest.fixture
def desk(login: Login, request: pytest.FixtureRequest) -> Login:
    """The login with an empty working folder of this test's own."""
    return login.at(request.node.name)
