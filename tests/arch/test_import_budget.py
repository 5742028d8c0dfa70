"""What the client behind every command may import, counted in an interpreter of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CLIENT = ROOT / "slurmbridge/cli/thin/client.py"
ALLOWED = {"_socket", "slurmbridge", "slurmbridge.wire", "slurmbridge.wire.client"}
PROBE = """
import sys
before = set(sys.modules)
scope = {"__name__": "client", "__file__": sys.argv[1]}
exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"), scope)
scope["frames"] = scope["load"]("wire", "client")
scope["hello"]([b"sbatch"], scope["environment"](b"sbatch"), b"0" * 16)
scope["connect"]("sbatch", [b"SLURMBRIDGE_ADDR=unix:/nowhere/socket"])
print("\\n".join(sorted(set(sys.modules) - before)))
"""


def test_the_client_imports_next_to_nothing() -> None:
    command = [sys.executable, "-I", "-S", "-c", PROBE, str(CLIENT)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert set(answer.stdout.split()) <= ALLOWED


def test_the_wire_module_of_the_client_imports_nothing() -> None:
    probe = "import sys; sys.path.insert(0, sys.argv[1]); before = set(sys.modules); import slurmbridge.wire.client; print(*set(sys.modules) - before)"
    answer = subprocess.run(
        [sys.executable, "-I", "-S", "-c", probe, str(ROOT)], capture_output=True, text=True, check=True
    )
    assert set(answer.stdout.split()) <= ALLOWED
