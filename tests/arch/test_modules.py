"""Rules of every module: its size, its docstring, what it may import."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "slurmbridge"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts)
LONGEST = 400
TABLES = {  # modules that are mostly one table: a line of code is a row
    "submit/options.py", "submit/stdlib_options.py", "submit/option_rows.py", "fields/jobs.py", "fields/sacct.py",
    "lang/slurm_conf_keys.py", "commands/help_texts.py", "commands/update_job.py",
}  # fmt: skip
PURE = ("model", "lang", "submit", "lifecycle", "sched", "fields", "manifest", "reconcile", "wire", "commands")
IMPURE = {
    "asyncio", "getpass", "multiprocessing", "os", "pathlib", "pwd", "random", "secrets", "select", "selectors", "shutil",
    "socket", "subprocess", "tempfile", "threading", "time", "uuid",
}  # fmt: skip
IMPURE_ALLOWED = {  # (module, import) -> why
    ("lang/grammars.py", "pathlib"): "reads the packaged grammars once",
    ("sched/worker.py", "os"): "the loop of the planner's own process",
    ("sched/worker.py", "time"): "the planner's process measures its cycles",
}
STANDARD_ONLY = (
    "supervisor",
    "spool",
    "wire",
    "cli/thin",
    "cli/allocated.py",
    "cli/guests.py",
    "cli/srun_client.py",
    "cli/srun_output.py",
    "cli/srun_reach.py",
    "cli/srun_request.py",
)
OURS_ALLOWED = (
    "slurmbridge.wire",
    "slurmbridge.supervisor",
    "slurmbridge.lang.hostlist",
    "slurmbridge.lang.filenames",
    "slurmbridge.lang.lasting",
    "slurmbridge.cli.srun_",
    "slurmbridge.cli.allocated",
    "slurmbridge.cli.guests",
    "slurmbridge.cli.thin",
    "slurmbridge.spool",
    "slurmbridge.errors",
    "slurmbridge.submit.stdlib_options",
)
ONLY_IN = {  # third-party package -> where it may be imported
    "alembic": ("store",),
    "click": ("cli",),
    "cryptography": ("daemon",),
    "kubernetes": ("runtime/kube",),
    "lark": ("lang",),
    "psycopg": ("store",),
    "pyslurm": ("migrate",),
    "sqlalchemy": ("store",),
    "starlette": ("daemon",),
    "textual": ("cli",),
    "uvicorn": ("daemon",),
    "yaml": ("daemon", "cli", "migrate", "lang"),
}


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def imports(path: Path) -> set[str]:
    """Full names of everything a module imports, wherever in it; names under TYPE_CHECKING included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def inside(path: Path, folders: tuple[str, ...]) -> bool:
    name = name_of(path)
    return any(name == folder or name.startswith(folder + "/") for folder in folders)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_is_short_enough_to_read_at_once(path: Path) -> None:
    if name_of(path) not in TABLES:
        assert len(path.read_text().splitlines()) <= LONGEST


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_says_what_it_is_for(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert len((ast.get_docstring(tree) or "").split()) >= 3 or path.name == "__init__.py"


@pytest.mark.parametrize("path", [path for path in MODULES if inside(path, PURE)], ids=name_of)
def test_a_pure_module_touches_no_clock_file_socket_or_chance(path: Path) -> None:
    tops = {name.split(".")[0] for name in imports(path)}
    wrong = {top for top in tops & IMPURE if (name_of(path), top) not in IMPURE_ALLOWED}
    assert not wrong


@pytest.mark.parametrize("path", [path for path in MODULES if inside(path, STANDARD_ONLY)], ids=name_of)
def test_client_and_supervisor_need_only_the_standard_library(path: Path) -> None:
    wrong = {
        name
        for name in imports(path)
        if name.split(".")[0] not in sys.stdlib_module_names and not name.startswith(OURS_ALLOWED)
    }
    assert not wrong


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_third_party_package_stays_where_it_belongs(path: Path) -> None:
    tops = {name.split(".")[0] for name in imports(path)}
    wrong = {top for top in tops & ONLY_IN.keys() if not inside(path, ONLY_IN[top])}
    assert not wrong


def test_no_module_is_a_drawer_for_everything() -> None:
    names = {path.stem for path in MODULES}
    assert not names & {"util", "utils", "helpers", "common", "manager", "misc"}


def test_what_int_reads_is_told_by_isdecimal() -> None:
    """`str.isdigit` holds for superscripts, which `int` refuses; of bytes it is exact."""
    of_bytes = {"daemon/held.py", "cli/thin/client.py"}
    users = {path.relative_to(PACKAGE).as_posix() for path in MODULES if ".isdigit()" in path.read_text()}
    assert users == of_bytes


def test_no_cancellation_gets_lost() -> None:
    """`asyncio.wait_for` of Python 3.11 forgets that its task was cancelled when what it waits for has just come; a loop
    around it then never ends (fixed in 3.12). `asyncio.timeout` does not."""
    assert not [path for path in MODULES if "asyncio.wait_for(" in path.read_text()]
