"""reportseff: usage of ended jobs must be what they used."""

from __future__ import annotations

import time

import pytest
from login import Login

pytestmark = pytest.mark.slow

BURN = "import time\nend = time.process_time() + 4\nwhile time.process_time() < end: pass\n"
HOLD = "import time\nkept = bytearray(b'x') * (150 << 20)\ntime.sleep(4)\n"


def rows(text: str) -> dict[str, list[str]]:
    return {line.split()[0]: line.split() for line in text.splitlines()[1:] if line.strip()}


def test_cpu_and_memory_efficiency_are_those_of_the_job(desk: Login) -> None:
    desk.write("burn.py", BURN)
    desk.write("hold.py", HOLD)
    burn = desk.submit("-c1", "--mem=300", "-t5", "--wrap", "srun python3 burn.py")
    hold = desk.submit("-c1", "--mem=300", "-t5", "--wrap", "python3 hold.py")
    states = desk.wait(burn, hold)
    assert set(states.values()) == {"COMPLETED 0:0"}
    time.sleep(1)
    table = rows(desk.good("reportseff", "--no-color", "--format=JobID%>,State,CPUEff,MemEff", burn, hold))
    text = desk.good("sacct", "-X", "-n", "-P", "-j", burn, "-o", "ElapsedRaw").strip()
    used = float(table[burn][2].rstrip("%")) / 100 * int(text)  # seconds, however busy the machine is
    assert 3.2 <= used <= 4.8 + 0.5, (table, text)
    assert 45 <= float(table[hold][3].rstrip("%")) <= 80, table


def test_the_users_jobs_of_a_time_are_found(desk: Login) -> None:
    job = desk.submit("--wrap", "true")
    desk.wait(job)
    table = rows(desk.good("reportseff", "--no-color", "--user", desk.user, "--since", "h=1", "--format=JobID%>,State"))
    assert table[job][1] == "COMPLETED"
