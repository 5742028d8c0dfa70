"""Which environment goes along with a job? `--export` in all its forms, `--export-file`, `--get-user-env` (sbatch(1)).

The answer is what the submit host contributes. The login environment that NONE, a list of names and --get-user-env
start from is made where the job runs; the SLURM_* variables of the allocation come on top there.
"""

from __future__ import annotations

from collections.abc import Mapping

from slurmbridge.errors import LangError
from slurmbridge.lang import export
from slurmbridge.submit.value import Bad, fatal

Environment = tuple[tuple[str, str], ...]
_ALWAYS = ("SLURM_", "SPANK_")


def exported(
    text: str | None, env: Mapping[str, str], submit_dir: str, *, file: bytes | None = None
) -> Environment | Bad:
    """Variables in the order of the caller's environment, settings after them. `text` None: ALL. `file`: its content."""
    if file is not None:
        chosen = {name: value for name, value in env.items() if name.startswith(_ALWAYS)}
        chosen.update(read_file(file))
    else:
        try:
            spec = export.parse(text or "ALL")
        except LangError as problem:
            return fatal(problem.message)
        if spec.all:
            chosen = dict(env)
        else:
            names = set(spec.names)
            chosen = {name: value for name, value in env.items() if name in names or name.startswith(_ALWAYS)}
        chosen.update(spec.settings)
    chosen["SLURM_SUBMIT_DIR"] = submit_dir
    return tuple(chosen.items())


def read_file(content: bytes) -> dict[str, str]:
    """NAME=VALUE strings, each ended by NUL (or, where there is none, by a newline)."""
    separator = b"\0" if b"\0" in content else b"\n"
    found: dict[str, str] = {}
    for item in content.split(separator):
        name, equals, value = item.partition(b"=")
        if equals and name:
            found[name.strip().decode("utf-8", "surrogateescape")] = value.decode("utf-8", "surrogateescape")
    return found
