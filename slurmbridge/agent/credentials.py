"""What does the agent prove itself with, and by what does it know the daemon? Two files of a folder that only it can read."""

from __future__ import annotations

import os
import re
import ssl
import stat

import msgspec

from slurmbridge.daemon.enrolment import KEY_FILE, PIN_FILE
from slurmbridge.errors import ConfigError
from slurmbridge.supervisor import pinned


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    context: ssl.SSLContext  # shows our certificate, trusts nobody's signature: the daemon's own is compared
    pin: str  # SHA-256 of the daemon's certificate in hex


def load(folder: str) -> Credentials:
    """ConfigError: they are not there, are none, or others can read the key."""
    path = os.path.join(folder, KEY_FILE)
    context = pinned.context()
    try:
        status = os.stat(path)
        closed = 0o037 if status.st_gid == os.getegid() else 0o077  # a volume of Kubernetes may be our group's
        if stat.S_IMODE(status.st_mode) & closed or status.st_uid not in (0, os.geteuid()):
            raise ConfigError("others can read the agent's key: make it its user's alone, with mode 0600", file=path)
        context.load_cert_chain(path)
        path = os.path.join(folder, PIN_FILE)
        with open(path, encoding="ascii", errors="replace") as file:
            status, pin = os.fstat(file.fileno()), file.read(256).strip()
        if status.st_mode & 0o022 or status.st_uid not in (0, os.geteuid()):
            raise ConfigError("others can say which daemon this agent trusts: make it its user's alone", file=path)
    except ssl.SSLError as fault:
        raise ConfigError(f"not an agent's key and certificate: {fault.reason or fault}", file=path) from fault
    except OSError as fault:
        text = f"{fault.strerror or fault}; `slurmbridge agent-credentials` at the daemon's host makes it"
        raise ConfigError(text, file=path) from fault
    if not re.fullmatch("[0-9a-f]{64}", pin):
        raise ConfigError("not the hash of a certificate", file=path)
    return Credentials(context=context, pin=pin)
