"""Which modules does a pod need? Ours by what they import, whenever they do; the standard library's by importing those.

Ours may import nothing but the standard library and each other (`supervisor`, `wire`, `spool`, the thin client): what else
one of them names would be missing in a pod, and is an error here.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "slurmbridge"
ENTRIES = (
    "slurmbridge.supervisor.pod", "slurmbridge.supervisor.device", "slurmbridge.cli.thin.client", "slurmbridge.cli.thin.absent",
    "slurmbridge.cli.thin.files", "slurmbridge.cli.alone",
)  # fmt: skip
"""The thin client loads its parts by name."""
ONLY_WHERE_ALL_IS = frozenset({"slurmbridge.cli.local"})
"""Tried, and done without."""
BESIDES = (
    "encodings.ascii", "encodings.latin_1", "encodings.utf_8", "encodings.idna", "encodings.aliases", "shutil", "signal",
    "traceback", "linecache", "tokenize", "hmac", "_strptime", "runpy", "importlib.util", "zlib", "selectors",
)  # fmt: skip
"""What the standard library imports when it first needs it, and what small programs in pods are written with."""
SOME = "import sys, json; [__import__(name) for name in json.loads(sys.argv[1])]"
LIST = (
    SOME + "; print(json.dumps([[name, getattr(module, '__file__', None)] for name, module in sys.modules.items()"
    " if name not in ('__main__', 'sys')]))"
)


class NotInPods(Exception):
    """A module imports what pods do not have."""


def ours(root: Path) -> tuple[set[str], set[str]]:
    """(modules of ours, of the standard library) that the entries import. `root`: the folder that holds the package."""
    found: set[str] = set()
    standard: set[str] = set()
    waiting = list(ENTRIES)
    while waiting:
        name = waiting.pop()
        if name in found or name in ONLY_WHERE_ALL_IS:
            continue
        found.add(name)
        for imported in _imports(path_of(root, name), root):
            top = imported.partition(".")[0]
            if top == PACKAGE:
                waiting.append(imported)
            elif top in sys.stdlib_module_names:
                standard.add(imported)
            else:
                raise NotInPods(f"{name} imports {imported}, which pods do not have")
    packages = {".".join(name.split(".")[:depth]) for name in found for depth in range(1, name.count(".") + 1)}
    return found | packages, standard


def path_of(root: Path, name: str) -> Path:
    """The source of a module of ours."""
    path = root / name.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _imports(path: Path, root: Path) -> Iterator[str]:
    tree = ast.parse(path.read_bytes())
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                is_module = node.module.startswith(PACKAGE) and path_of(root, inner).is_file()
                yield inner if is_module else node.module


def standard(names: set[str], python: str) -> dict[str, Path]:
    """Name -> file of every module of the standard library that these bring along, when `python` imports them."""
    wanted = json.dumps(sorted(names | set(BESIDES)))
    done = subprocess.run([python, "-I", "-S", "-c", LIST, wanted], check=True, capture_output=True, text=True)
    return {name: Path(file) for name, file in json.loads(done.stdout) if file}
