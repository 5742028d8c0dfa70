"""The thin client as a process, and a folder short enough for a socket's name."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
CLIENT = ROOT / "slurmbridge/cli/thin/client.py"
Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sb") as name:
        yield Path(name)


@pytest.fixture
def run(folder: Path) -> Run:
    """run(command, argument..., env=..., input=..., closed=descriptor) -> the finished process, working in `folder`."""

    def call(*words: str, env: dict[str, str] | None = None, **options: Any) -> subprocess.CompletedProcess[bytes]:
        given = {"PATH": "/usr/bin:/bin", "SLURMBRIDGE_ADDR": f"unix:{folder}/socket", **(env or {})}
        settings: dict[str, Any] = {"cwd": folder, "timeout": PATIENCE_S, "stdin": subprocess.DEVNULL, **options}
        if "closed" in settings:
            descriptor = settings.pop("closed")
            settings["preexec_fn"] = lambda: os.close(descriptor)
        if "input" in settings:
            settings.pop("stdin")
        return subprocess.run(
            [sys.executable, "-I", "-S", str(CLIENT), *words], env=given, capture_output=True, **settings
        )

    return call
