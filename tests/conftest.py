"""Where the installed commands are, and how examples are made. Everything else that tests share lives beside them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]
# How long an example takes says more about the machine than about the code. The suite repeats the same examples, so that a
# change alone makes it fail; `make soak` looks for new ones.
RANDOM = "SLURMBRIDGE_RANDOM_EXAMPLES" in os.environ
settings.register_profile("steady", deadline=None, derandomize=not RANDOM, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")
OPEN_PREFIX = Path(os.environ.get("SLURMBRIDGE_TEST_PREFIX", "/opt/slurmbridge-test"))


@pytest.fixture(scope="session")
def commands() -> Path:
    """The folder with sbatch, squeue and so on, installed from this tree (`make test` does that)."""
    folder = Path(os.environ.get("SLURMBRIDGE_TEST_BIN") or Path(sys.prefix, "bin"))
    if not (folder / "sbatch").exists():
        pytest.skip(f"slurmbridge is not installed in {folder.parent}: run `make test`")
    return folder


@pytest.fixture(scope="session")
def open_prefix() -> Path:
    """An environment that every user of the machine may start commands from; root only."""
    if os.geteuid() != 0:
        pytest.skip("must be root to serve several users")
    if subprocess.run(["unshare", "--mount", "--uts", "--pid", "--fork", "true"], capture_output=True).returncode != 0:
        pytest.skip("this root may make no namespaces")
    subprocess.run(["bash", str(ROOT / "integration/prefix.sh"), str(OPEN_PREFIX)], check=True)
    return OPEN_PREFIX
