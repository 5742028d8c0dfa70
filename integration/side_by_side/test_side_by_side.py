"""Generated scripts get the same answer, and make the same job, as from a real Slurm beside it.

REAL_SLURM names the folder with real_slurm.sh, whose Slurm runs; without it there is nothing to compare with. The
differences are written to DIFFERENCES (default: differences.txt in the temporary folder of the run).
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from compare import differences
from scripts import generate
from sides import OurSide, RealSide

pytestmark = [pytest.mark.root, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]
SEED = int(os.environ.get("SEED", "20261129"))
COUNT = int(os.environ.get("COUNT", "400"))
EQUAL_SHARE = 0.98


@pytest.fixture(scope="module")
def real() -> RealSide:
    folder = os.environ.get("REAL_SLURM")
    if not folder:
        pytest.skip("REAL_SLURM does not name a folder with real_slurm.sh")
    if os.geteuid() != 0:
        pytest.skip("must be root to enter the real Slurm's name spaces")
    running = subprocess.run([f"{folder}/real_slurm.sh", "status"], capture_output=True, text=True)
    if running.returncode != 0:
        pytest.skip(f"the real Slurm does not run: {running.stderr.strip()}")
    return RealSide(Path(folder))


@pytest.fixture(scope="module")
def ours(real: RealSide) -> Iterator[OurSide]:
    given = os.environ.get("SLURMBRIDGE_TEST_PREFIX")
    prefix = Path(given or "/opt/slurmbridge-test")
    if not given:
        subprocess.run(["bash", str(ROOT / "integration/prefix.sh"), str(prefix)], check=True)
    side = OurSide(prefix, real.file("/etc/slurm/slurm.conf"), real.file("/etc/slurm/gres.conf"))
    try:
        yield side
    finally:
        side.close()


def test_generated_scripts_make_the_same_jobs(real: RealSide, ours: OurSide, tmp_path: Path) -> None:
    cases = generate(SEED, COUNT)
    theirs, mine = real.submit(cases), ours.submit(cases)
    report, unequal = [], 0
    for case in cases:
        found = differences(theirs[case.name], mine[case.name])
        if found:
            unequal += 1
            report += [
                f"== {case.name}: {case.line}",
                *("   | " + line for line in case.script.splitlines()),
                *found,
                "",
            ]
    accepted = sum(answer.code == "0" for answer in theirs.values())
    head = f"{COUNT - unequal} of {COUNT} equal (seed {SEED}); the real Slurm accepted {accepted}"
    text = "\n".join([head, "", *report])
    target = Path(os.environ.get("DIFFERENCES") or tmp_path / "differences.txt")
    target.write_text(text)
    print(head)
    assert unequal <= COUNT * (1 - EQUAL_SHARE), f"{head}; see {target}"
