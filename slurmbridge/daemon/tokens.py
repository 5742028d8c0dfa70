"""Users' own tokens: who shows one from anywhere is one uid, nothing else (`slurmbridge token`).

A token is an id and 256 random bits; the daemon keeps the id, a hash, whose it is and until when, in STATE/tokens.json.
Tokens are made for who is known by a socket or an agent; one token makes no others. Who rules here has none.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import secrets
from collections.abc import Callable, Sequence

import msgspec

from slurmbridge.commands.effects import Alter, AlterOutcome, Call
from slurmbridge.daemon.memory import Memory
from slurmbridge.errors import ConfigError, SlurmErrno
from slurmbridge.spool.claim import write_file
from slurmbridge.wire.agent import TOKEN_FORM

FILE = "tokens.json"
MOST_OF_ONE = 16
LONGEST_DAYS = 365
DAY_S = 86_400


class Token(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    hash: str  # SHA-256 of the secret in hex
    uid: int
    made: int  # seconds of the epoch
    until: int


class Tokens:
    """Those of a state folder. `pin`: of the daemon's certificate. ConfigError: the file cannot be read."""

    def __init__(self, state: str, pin: str, memory: Memory, clock: Callable[[], float]) -> None:
        self._path, self._pin, self._memory, self._clock = os.path.join(state, FILE), pin, memory, clock
        self._writing = asyncio.Lock()
        self._known = {token.id: token for token in self._read()}

    def _read(self) -> Sequence[Token]:
        try:
            with open(self._path, "rb") as file:
                return msgspec.json.decode(file.read(), type=list[Token])
        except FileNotFoundError:
            return []
        except (OSError, msgspec.MsgspecError) as fault:
            raise ConfigError(f"the users' tokens cannot be read: {fault}", file=self._path) from fault

    def find(self, name: str, secret: str) -> Token | None:
        """None: there is no such token, or no more."""
        token = self._known.get(name)
        found = hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
        fits = hmac.compare_digest(found, token.hash if token is not None else "0" * 64)
        return token if token is not None and fits and self.is_good(token) else None

    def is_good(self, token: Token) -> bool:
        return self._known.get(token.id) == token and self._clock() < token.until and self._may(token.uid)

    def _may(self, uid: int) -> bool:
        return not self._memory.is_master(uid) and self._memory.names.user(uid) is not None

    async def alter(self, call: Call, alter: Alter) -> AlterOutcome:
        """create (`days`), list, delete (an id): the caller's own; whoever administers deletes and lists all."""
        rules = self._memory.is_admin(call.uid) and not call.by_token
        if alter.verb == "list":
            mine = [token for token in self._known.values() if (rules or token.uid == call.uid) and self.is_good(token)]
            return AlterOutcome(detail="".join(map(self._line, sorted(mine, key=lambda token: token.made))))
        if alter.verb == "delete":
            token = self._known.get(alter.target)
            if token is None or (token.uid != call.uid and not rules):
                return AlterOutcome(errno=SlurmErrno.INVALID_PARAMETER, detail=f"you have no token {alter.target}")
            del self._known[token.id]
            return await self._keep("")
        return await self._create(call, int(dict(alter.fields)["days"]))

    def _line(self, token: Token) -> str:
        return f"{token.id} {self._memory.user_name(token.uid)} {token.until}\n"

    async def _create(self, call: Call, days: int) -> AlterOutcome:
        if call.by_token or not self._may(call.uid):
            why = "a token makes no tokens" if call.by_token else "who rules here, or has no name, has no token"
            return AlterOutcome(errno=SlurmErrno.ACCESS_DENIED, detail=why)
        now = int(self._clock())
        self._known = {name: token for name, token in self._known.items() if token.until > now}
        if sum(token.uid == call.uid for token in self._known.values()) >= MOST_OF_ONE:
            return AlterOutcome(
                errno=SlurmErrno.ACCESS_DENIED, detail=f"you have {MOST_OF_ONE} tokens: revoke one first"
            )
        name, secret = secrets.token_hex(8), secrets.token_hex(32)
        until = now + min(max(days, 1), LONGEST_DAYS) * DAY_S
        self._known[name] = Token(
            id=name, hash=hashlib.sha256(secret.encode()).hexdigest(), uid=call.uid, made=now, until=until
        )
        return await self._keep(f"{TOKEN_FORM}.{self._pin}.{name}.{secret}")

    async def _keep(self, detail: str) -> AlterOutcome:
        """Answered when it is on the disk."""
        async with self._writing:
            data = msgspec.json.encode(list(self._known.values()))
            write = asyncio.get_running_loop().run_in_executor(None, lambda: write_file(self._path, data, sync=True))
            try:
                await write
            except OSError as fault:
                return AlterOutcome(errno=SlurmErrno.IO_ERROR, detail=fault.strerror or str(fault))
        return AlterOutcome(detail=detail)
