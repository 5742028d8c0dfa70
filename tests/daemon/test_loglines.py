"""Nobody writes a line of the log by what he calls his job."""

from __future__ import annotations

import io
import logging
import re

import pytest

from slurmbridge.daemon.loglines import Lines

EVENT = re.compile(r"\[[^]]*\] [A-Z]+ ")


@pytest.mark.parametrize("mark", ["\n", "\r", "\x1b[2J", "\x9b", "\u2028", "\0"])
def test_what_users_wrote_stays_within_its_line(mark: str) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Lines("[%(asctime)s] %(levelname)s %(message)s"))
    log = logging.Logger("test")
    log.addHandler(handler)
    theirs = f"x{mark}[2026-11-30T00:00:00] INFO event=forged"
    log.info("email msg to %s: Began", theirs)
    try:
        raise ValueError(theirs)
    except ValueError:
        log.exception("event=command.failed")
    said = stream.getvalue()
    assert mark == "\n" or mark not in said
    assert "x" + repr(mark)[1:-1] in said, "it can still be read"
    lines = [line for line in said.split("\n") if EVENT.match(line)]
    assert len(lines) == 2
