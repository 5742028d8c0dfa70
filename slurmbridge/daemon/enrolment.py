"""Which agents of login nodes may speak for users? Those whose certificates lie in STATE/agents, one file each.

Each agent has a key of its own with a certificate that signs itself; the daemon keeps the certificate and nothing secret.
An agent is believed when TLS has proved that it holds the key, the certificate has not run out and its hash is here. Who
takes a file away takes the belief away (docs/decisions/0022). What the agent needs is one folder: its key and the hash of
the daemon's certificate.
"""

from __future__ import annotations

import datetime
import errno
import logging
import os
import re
import ssl
from collections.abc import Sequence

import msgspec

from slurmbridge.daemon import certificate
from slurmbridge.errors import ConfigError
from slurmbridge.spool.claim import write_file

log = logging.getLogger(__name__)

FOLDER = "agents"
KEY_FILE, PIN_FILE = "agent.pem", "daemon.pin"
"""In the folder of an agent."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
NOT_THE_FOLDERS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR)
"""Faults of a look at it that say nothing of what is there."""


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """One that is enrolled; a file STATE/agents/NAME.json."""

    name: str
    certificate: str  # PEM
    hash: str  # SHA-256 of it in hex
    made: int  # seconds of the epoch
    until: int  # it has run out from then on
    trusts_root: bool = False  # whether it may speak for root, SlurmUser and the daemon's own user


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is given: contents of its two files."""

    key: bytes
    pin: bytes


def folder_of(state: str) -> str:
    return os.path.join(state, FOLDER)


def enrol(state: str, name: str, *, days: int, trusts_root: bool, now: datetime.datetime) -> Credentials:
    """A new agent; it may come as soon as this returns. ConfigError: it is there already, or the name is none."""
    path = _path(state, name)
    if os.path.lexists(path):
        raise ConfigError(f"agent {name} is enrolled already: revoke it first, or take another name")
    _, pin = certificate.ensure(state)
    until = (now + datetime.timedelta(days=days)).replace(microsecond=0)
    key = certificate.make(now, f"slurmbridge agent {name}", until)
    begin = key.index(b"-----BEGIN CERTIFICATE-----")
    text = key[begin:].decode("ascii")
    agent = Agent(
        name=name, certificate=text, hash=certificate.pin_of(text), made=int(now.timestamp()),
        until=int(until.timestamp()), trusts_root=trusts_root,
    )  # fmt: skip
    try:
        os.makedirs(folder_of(state), mode=0o700, exist_ok=True)
        write_file(path, msgspec.json.encode(agent), sync=True)
    except OSError as fault:
        raise ConfigError(fault.strerror or str(fault), file=path) from fault
    return Credentials(key=key, pin=pin.encode() + b"\n")


def check_place(folder: str) -> None:
    """ConfigError: there is something where `give` would write, or others could put it there."""
    for name in (KEY_FILE, PIN_FILE):
        path = os.path.join(folder, name)
        if os.path.lexists(path):
            raise ConfigError("it is there already; take an empty folder", file=path)
    try:
        status = os.stat(folder)
    except FileNotFoundError:
        return  # it is made
    except OSError as fault:
        raise ConfigError(fault.strerror or str(fault), file=folder) from fault
    if status.st_mode & 0o022 or status.st_uid not in (0, os.geteuid()):
        raise ConfigError(
            "others could put files of theirs in the place of these: take a folder of your own", file=folder
        )


def give(credentials: Credentials, folder: str) -> None:
    """Into a folder, as files that only their owner reads. ConfigError: it cannot be written."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        for name, content in ((KEY_FILE, credentials.key), (PIN_FILE, credentials.pin)):
            write_file(os.path.join(folder, name), content, sync=True)
    except OSError as fault:
        raise ConfigError(fault.strerror or str(fault), file=folder) from fault


def revoke(state: str, name: str) -> None:
    """No word of it is believed from here on. ConfigError: there is no such agent."""
    path = _path(state, name)
    try:
        os.unlink(path)
        folder = os.open(folder_of(state), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except FileNotFoundError:
        raise ConfigError(f"no agent {name} is enrolled") from None
    except OSError as fault:
        raise ConfigError(fault.strerror or str(fault), file=path) from fault


def read(state: str) -> tuple[Sequence[Agent], Sequence[ConfigError]]:
    """All, by name, and what is wrong with files that are none. ConfigError: nothing there is to be believed."""
    folder = folder_of(state)
    found, faults = [], []
    try:
        status = os.stat(folder)
        if status.st_mode & 0o022 or status.st_uid not in (0, os.geteuid()):
            raise ConfigError("others can enrol agents: the folder must be the daemon's alone", file=folder)
        for entry in sorted(os.listdir(folder)):
            if not entry.endswith(".json"):
                continue
            path = os.path.join(folder, entry)
            try:
                with open(path, "rb") as file:
                    found.append(_decoded(file.read(1 << 16)))
            except FileNotFoundError:
                continue  # revoked meanwhile
            except (msgspec.MsgspecError, ValueError, OSError) as fault:
                found_wrong = ConfigError(f"not an agent's enrolment: {fault}", file=path)
                found_wrong.__cause__ = fault
                faults.append(found_wrong)
    except FileNotFoundError:
        return [], []
    except OSError as fault:
        raise ConfigError(fault.strerror or str(fault), file=folder) from fault
    return found, faults


def _decoded(data: bytes) -> Agent:
    agent = msgspec.json.decode(data, type=Agent)
    if certificate.pin_of(agent.certificate) != agent.hash:
        raise ValueError("the hash is another")
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=agent.certificate)
    return agent


def _path(state: str, name: str) -> str:
    if not NAME.fullmatch(name):
        raise ConfigError(f"{name!r} is no name for an agent: letters, digits, dots and dashes are")
    return os.path.join(folder_of(state), f"{name}.json")


def _is_ours(fault: ConfigError) -> bool:
    return isinstance(fault.__cause__, OSError) and fault.__cause__.errno in NOT_THE_FOLDERS


class Enrolled:
    """Those of a state folder as they are now, and the daemon's side of TLS that goes with them.

    What cannot be read is believed no more. Where the process itself lacks what it takes to look, those go on that were
    known, as long as their files are there.
    """

    def __init__(self, state: str) -> None:
        self._state = state
        self._seen: object = None
        self._agents: dict[str, Agent] = {}
        self.context = self._made()
        self.renew()

    def renew(self) -> bool:
        """Look again; whether anything changed."""
        seen = self._look()
        if seen == self._seen:
            return False
        try:
            agents, faults = read(self._state)
        except ConfigError as fault:
            if _is_ours(fault):
                self._stay()
                return False
            agents, faults = [], [fault]
        if any(map(_is_ours, faults)):
            self._stay()
            return False
        self._seen = None  # again, should the rest fail
        self._agents = {agent.hash: agent for agent in agents}
        self.context = self._made()
        self._seen = seen
        for each in faults:
            log.error("event=agent.unreadable reason=%r", str(each))
        return True

    def find(self, der: bytes | None, now: float) -> Agent | None:
        """Whose certificate this is; None: nobody's who may come now."""
        agent = self._agents.get(certificate.hash_of(der)) if der else None
        return agent if agent is not None and self.is_good(agent, now) else None

    def is_good(self, agent: Agent, now: float) -> bool:
        return self._agents.get(agent.hash) == agent and now < agent.until

    def _look(self) -> object:
        try:
            status = os.stat(folder_of(self._state))
            with os.scandir(folder_of(self._state)) as entries:
                found = sorted((entry.name, entry.stat().st_ino, entry.stat().st_mtime_ns) for entry in entries)
            return status.st_mode, status.st_uid, found
        except OSError as fault:
            if fault.errno in NOT_THE_FOLDERS:
                self._stay()
                return self._seen
            return fault.errno

    def _stay(self) -> None:
        """Without opening anything: who was revoked has no file."""
        found = {each: agent for each, agent in self._agents.items() if os.path.lexists(_path(self._state, agent.name))}
        self._agents = found

    def _made(self) -> ssl.SSLContext:
        """Who shows no certificate gets this far, too; one that is shown must be an agent's."""
        context, _ = certificate.ensure(self._state)
        if self._agents:
            context.load_verify_locations(cadata="".join(agent.certificate for agent in self._agents.values()))
        context.verify_mode = ssl.CERT_OPTIONAL
        return context
