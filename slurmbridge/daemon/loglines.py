"""The log: one line for each event, whatever users wrote into what it tells of.

Names of jobs, addresses of mail and words of programs are theirs. A line break in one would be a line of the log that
nobody wrote, and an escape a command to the terminal of who reads it.
"""

from __future__ import annotations

import logging
import re
import sys

UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class Lines(logging.Formatter):
    """Control characters as Python writes them. Lines of a traceback are set in, so that none looks like an event."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return plain(super().formatMessage(record))

    def formatException(self, ei: object) -> str:
        return "\n".join(f"    {plain(line)}" for line in super().formatException(ei).split("\n"))  # type: ignore[arg-type]


def plain(text: str) -> str:
    return UNPRINTABLE.sub(lambda found: repr(found[0])[1:-1], text)


def begin() -> None:
    """To stderr from here on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines("[%(asctime)s] %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
