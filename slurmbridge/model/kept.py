"""Output of a job that the daemon keeps, because no file system does. Only data."""

from __future__ import annotations

import msgspec


class KeptFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file that the job wrote to."""

    restarts: int  # of the run
    rank: int  # of the node that wrote it
    stream: int  # counts the files of a rank, in the order in which they were opened
    what: str  # stdout (with stderr, where that goes there too), stderr, step
    path: str  # as the job named it
    size: int  # bytes
    is_over: bool  # nothing more comes
    uid: int = -1  # whose the job was; -1: not known. Ids of jobs come again when a database is restored or made anew

    @property
    def name(self) -> str:
        return f"{self.restarts}.{self.rank}.{self.stream}"


class KeptPart(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a job now, and bytes of one of the files."""

    files: tuple[KeptFile, ...] = ()
    data: bytes = b""
