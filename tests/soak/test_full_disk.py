"""A daemon whose disk fills up: nothing new is taken, what runs ends and is recorded once there is room again."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="must be root to mount a small disk"),
]
CONF = """ClusterName=full
SlurmctldHost=localhost
NodeName=f[1-2] CPUs=8 RealMemory=8000
PartitionName=work Nodes=f[1-2] Default=YES MaxTime=INFINITE State=UP
"""
COURSE = """set -eu
mkdir state out; mount -t tmpfs -o size=6m,mode=711 none state
export SLURMBRIDGE_ADDR=unix:$PWD/state/socket
slurmbridge up --slurm-conf $PWD/slurm.conf --state $PWD/state --detach
here=$PWD; trap 'slurmbridge down --state $here/state --jobs; umount $here/state' EXIT
cd out
sbatch -o %j --wrap 'until [ -e full ]; do sleep 0.1; done; echo alone' >ids
sbatch -o %j -N2 --wrap 'until [ -e full ]; do sleep 0.1; done; srun echo gang' >>ids
while [ $(squeue -h -t R | wc -l) != 2 ]; do sleep 0.1; done
dd if=/dev/zero of=../state/filler bs=4k 2>/dev/null || true
echo refused: $(sbatch -o %j --wrap true 2>&1)
touch full; sleep 2
echo answered: $(squeue -h -o %i | wc -l)
rm ../state/filler
while [ "$(squeue -h)" ]; do sleep 0.1; done
until sbatch -o %j --wrap 'echo again' >>ids 2>/dev/null; do sleep 0.1; done
while [ "$(squeue -h)" ]; do sleep 0.1; done
cat $(awk '{print $4}' ids)
sacct -X -n -P -D -o State,ExitCode,Restarts
"""


def test_a_full_disk_stops_new_work_alone(open_prefix: Path, tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(CONF)
    answer = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "bash", "-c", COURSE],
        env={"PATH": f"{open_prefix}/bin:/usr/bin:/bin", "HOME": "/root"},
        cwd=tmp_path, capture_output=True, text=True, timeout=3 * PATIENCE_S,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stdout + answer.stderr
    refused, answered, *rest = answer.stdout.splitlines()
    assert refused.startswith("refused: sbatch: error: Batch job submission failed: ")
    assert answered.startswith("answered: ")
    assert rest == ["alone", "gang", "gang", "again", *["COMPLETED|0:0|0"] * 3]
