"""Writes the folder /opt/slurmbridge of pods: python -m k8s.supervisor.tree INTO [--python PYTHON].

The Python is the one that runs this (or PYTHON), with its own C library and loader, so that it runs in any image, whatever
libc that has, or none: the loader is named by its whole path in the program (PT_INTERP), the libraries are found by DT_RPATH,
which goes before LD_LIBRARY_PATH. The folder is the same for image volumes, copies and folders of nodes, and works at
/opt/slurmbridge alone. As the root of an image it is also there where a container of that image looks for it: opt/slurmbridge
leads back to the root. Byte code is made here and never checked: the folder is mounted without write access.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from k8s.supervisor import modules

ROOT = "/opt/slurmbridge"
COMMANDS = (
    "sbatch srun salloc sattach scancel squeue sinfo scontrol sacct sacctmgr sshare sprio sreport sstat sbcast sdiag seff "
    "scrontab strigger"
).split()
STARTER = """\
#!{root}/bin/python3 -IS
import marshal, sys
path = "{client}"
sys.argv[:1] = [path, sys.argv[0].rpartition("/")[2]]
with open(path, "rb") as file:
    code = marshal.loads(file.read()[16:])
exec(code, {{"__name__": "__main__", "__file__": path, "__builtins__": __builtins__}})
"""
"""Of every command: the kernel starts it with the pod's own Python, and no shell is needed."""
RUN_TIME = ("libnss_dns.so.2", "libnss_files.so.2", "libresolv.so.2")
"""Older C libraries load these when a name is looked up."""
NOT_FOUND = re.compile(r"^\s*(\S+) => not found", re.MULTILINE)
FOUND = re.compile(r"^\s*(?:\S+ => )?(/\S+) \(0x", re.MULTILINE)


def write(into: Path, *, python: str = "", package_root: Path | None = None) -> None:
    """INTO must not be there. subprocess.CalledProcessError, modules.NotInPods, OSError."""
    python = os.path.realpath(python or getattr(sys, "_base_executable", sys.executable))
    package_root = package_root or Path(__file__).resolve().parents[2]
    version, stdlib = _of_python(python)
    for folder in ("bin", "commands", f"lib/python{version}/lib-dynload"):
        (into / folder).mkdir(parents=True)
    own, names = modules.ours(package_root)
    binaries = _copy_standard(modules.standard(names, python), stdlib, into / f"lib/python{version}")
    for name in sorted(own):
        source = modules.path_of(package_root, name)
        target = into / "lib" / source.relative_to(package_root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    program = into / "bin/python3"
    shutil.copyfile(python, program)
    program.chmod(0o755)
    _bring_libraries(python, [Path(python), *binaries], into / "lib")
    _own_loader(program, into / "lib")
    _compile(python, into / "lib")
    tag = f"cpython-{version.replace('.', '')}"
    client = f"{ROOT}/lib/slurmbridge/cli/thin/__pycache__/client.{tag}.pyc"
    for name in COMMANDS:
        command = into / "commands" / name
        command.write_text(STARTER.format(root=ROOT, client=client))
        command.chmod(0o755)
    (into / "opt").mkdir()
    os.symlink("..", into / "opt/slurmbridge")


def _of_python(python: str) -> tuple[str, Path]:
    """Version as in names of folders, and where its standard library is."""
    text = "import sysconfig; print(sysconfig.get_python_version(), sysconfig.get_path('stdlib'))"
    version, stdlib = _run([python, "-I", "-S", "-c", text]).split()
    return version, Path(stdlib)


def _copy_standard(found: dict[str, Path], stdlib: Path, into: Path) -> list[Path]:
    """Modules into their places; returns the binary ones as they were."""
    binaries = []
    for path in sorted({*found.values(), stdlib / "os.py"}):
        if path.suffix == ".so":
            shutil.copyfile(path, into / "lib-dynload" / path.name)
            binaries.append(path)
        else:
            target = into / path.relative_to(stdlib)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    return binaries


def _bring_libraries(python: str, binaries: Iterable[Path], into: Path) -> None:
    """What they load, and what that loads."""
    needed: set[Path] = set()
    for binary in binaries:
        text = _run(["ldd", str(binary)])
        missing = NOT_FOUND.search(text)
        if missing:
            raise FileNotFoundError(f"{binary} needs {missing[1]}, which is not there")
        needed |= {Path(path) for path in FOUND.findall(text)}
    loader = Path(_run(["patchelf", "--print-interpreter", python]).strip())
    libc = next((path for path in needed if path.name.startswith("libc.")), None)
    if libc is not None:
        needed |= {path for name in RUN_TIME if (path := libc.parent / name).exists()}
    for library in needed | {loader}:
        shutil.copyfile(library, into / library.name)
        (into / library.name).chmod(0o755)


def _own_loader(program: Path, libraries: Path) -> None:
    loader = Path(_run(["patchelf", "--print-interpreter", str(program)]).strip()).name
    _run(
        [
            "patchelf",
            "--set-interpreter",
            f"{ROOT}/lib/{loader}",
            "--force-rpath",
            "--set-rpath",
            f"{ROOT}/lib",
            str(program),
        ]
    )


def _compile(python: str, library: Path) -> None:
    """With the names that the files have in pods."""
    _run([python, "-I", "-S", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "-s", str(library),
          "-p", f"{ROOT}/lib", str(library)])  # fmt: skip


def _run(words: list[str]) -> str:
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the folder that pods have at /opt/slurmbridge.")
    parser.add_argument("into", type=Path)
    parser.add_argument("--python", default="", help="whose standard library it is (default: the one that runs this)")
    given = parser.parse_args()
    write(given.into, python=given.python)


if __name__ == "__main__":
    main()
