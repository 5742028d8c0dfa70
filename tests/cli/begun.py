"""A command of a user that goes on beside the test, and what it has written so far."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from slurmbridge.cli.throwaway import Throwaway
from tests.patience import PATIENCE_S, until


class Begun(subprocess.Popen[bytes]):
    """Started in the daemon's work folder, with nothing to read. `out`, `err`: what is there by now."""

    def __init__(self, daemon: Throwaway, *argv: str) -> None:
        folder = Path(tempfile.mkdtemp(dir=daemon.folder))
        self._out, self._err = folder / "out", folder / "err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            super().__init__(
                [os.path.join(daemon.bin, argv[0]), *argv[1:]],
                stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=daemon.work, env=daemon.env,
            )  # fmt: skip

    @property
    def out(self) -> str:
        return self._out.read_text()

    @property
    def err(self) -> str:
        return self._err.read_text()

    def says(self, words: str) -> None:
        """Returns when that was said on standard error: whoever said it has come so far."""
        until(lambda: words in self.err, lambda: (words, self.err))

    def ends(self) -> int:
        """The exit code."""
        return self.wait(PATIENCE_S)
