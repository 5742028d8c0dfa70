"""A command without a daemon does what its surroundings allow: all of it, or Slurm's words where a pod has no more."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import slurmbridge

PACKAGE = Path(str(slurmbridge.__file__)).parent
CODE = "from slurmbridge.cli.alone import main; raise SystemExit(main())"


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    inside = folder / "slurmbridge/cli"
    inside.mkdir(parents=True, exist_ok=True)
    for name in ("__init__.py", "cli/__init__.py", "cli/alone.py", "cli/unreachable.py"):
        shutil.copyfile(PACKAGE / name, folder / "slurmbridge" / name)
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); {CODE}"
    words = [sys.executable, "-I", "-S", "-c", code, "again", "client", "squeue"]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_a_pod_has_slurms_words_alone(tmp_path: Path) -> None:
    done = run(tmp_path)
    text = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", text)


def test_an_installation_that_lacks_a_package_says_which(tmp_path: Path) -> None:
    (tmp_path / "slurmbridge/cli").mkdir(parents=True)
    (tmp_path / "slurmbridge/cli/local.py").write_text("import no_such_package\n")
    done = run(tmp_path)
    assert done.returncode == 1 and "No module named 'no_such_package'" in done.stderr
