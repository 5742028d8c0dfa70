"""What a shell completes: bash by calling its function, zsh by typing into one."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import time
from pathlib import Path

from tests.patience import PATIENCE_S

SHARE = Path(__file__).resolve().parents[2] / "share"
BASH, ZSH = SHARE / "bash-completion/completions", SHARE / "zsh/site-functions"

_ASK = r"""
. "$1/$2"
COMP_LINE=$3 COMP_POINT=${#3}
"_slurmbridge_$2"
((${#COMPREPLY[@]})) && printf '%s\n' "${COMPREPLY[@]}"
exit 0
"""


def bash_offers(line: str, folder: Path) -> list[str]:
    """Sorted; `folder` comes first in PATH."""
    env = {"PATH": f"{folder}:{os.environ['PATH']}", "LC_ALL": "C"}
    argv = ["bash", "--norc", "-c", _ASK, "bash", str(BASH), line.split()[0], line]
    return sorted(
        subprocess.run(argv, env=env, capture_output=True, text=True, check=True, timeout=PATIENCE_S).stdout.split()
    )


_SETUP = (
    f"fpath=({ZSH} $fpath); autoload -Uz compinit; compinit -u -D; unsetopt prompt_cr prompt_sp; "
    "show() {{ print -r -- \"<$BUFFER>\"; BUFFER=; }}; zle -N show; bindkey '^G' show; print re''ady\n"
)


def zsh_completes(line: str, folder: Path) -> str:
    """The line after one press of the tabulator."""
    zsh = shutil.which("zsh")
    assert zsh
    pid, fd = pty.fork()
    if pid == 0:
        env = {"TERM": "dumb", "PATH": f"{folder}:{os.environ['PATH']}", "PS1": "> ", "HOME": str(folder)}
        os.execve(zsh, ["zsh", "-f", "-i"], env)
    try:
        os.write(fd, _SETUP.replace("{{", "{").replace("}}", "}").encode())
        _read_until(fd, b"ready\r\n")
        os.write(fd, line.encode() + b"\t\x07")
        shown = _read_until(fd, b">\r\n")
        return shown[shown.rindex(b"<") + 1 : shown.rindex(b">\r\n")].decode()
    finally:
        os.close(fd)
        os.waitpid(pid, 0)


def _read_until(fd: int, mark: bytes) -> bytes:
    found, end = b"", time.monotonic() + PATIENCE_S
    while time.monotonic() < end and mark not in found:
        if select.select([fd], [], [], 0.1)[0]:
            found += os.read(fd, 65536)
    assert mark in found, found
    return found


def fake_commands(folder: Path) -> None:
    """sinfo, squeue, sacctmgr and scontrol that know two partitions, nodes, jobs, accounts and a licence."""
    script = """#!/bin/sh
case "${0##*/} $*" in
    sinfo*%R) printf 'batch\\nlong\\n' ;;
    sinfo*%N) printf 'n1\\nn2\\nn1\\n' ;;
    sinfo*%f) printf 'avx,ssd\\n' ;;
    squeue*) printf '12\\n13_1\\n' ;;
    sacctmgr*account*) printf 'chem\\nphys\\n' ;;
    scontrol*licenses) printf 'LicenseName=matlab Total=5 Used=0\\n' ;;
esac
"""
    for name in ("sinfo", "squeue", "sacctmgr", "scontrol"):
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
