"""What the daemon and a supervisor say to each other, and the ranks of one run among themselves. Sans I/O, stdlib only.

Frames are those of `wire.client` (length, kind, payload). A new supervisor gets its end of a socketpair from the fork
server; after a lost link it dials the daemon's unix socket and its first frame is V, by which the daemon tells it from
a client. Payloads are JSON unless said otherwise; a key that is not known is ignored, so that old supervisors meet a
new daemon.

A pod dials the daemon over TLS, and the first frame of each connection is P, whatever the connection is for: its
supervisor's (answered by L, by A when it had its launch before, or by X), a command's (what follows are the frames of
`wire.client`, both ways, with no answer before them), or one that the daemon has asked for by W (what follows are the
frames of `wire.step`, the pod in the place of rank 0). A pod that is not admitted, or not yet, finds the connection
closed and dials again.

Daemon to supervisor
    L  launch: pack(JSON header, script, environment, base environment), environments as NAME=VALUE joined by NUL
    K  kill: {"why"}                      S  signal: {"signal", "scope", "step"}
    U  suspend  R  resume                 T  time limit: {"limit"} seconds from the start or null
    N  line for the job's stderr (UTF-8)  A  acknowledged up to {"sequence"}
    X  you are not wanted (stale or unknown run): kill everything, leave no record, go
    W  open a connection, for somebody outside who wants a step: {"connection": text that comes back in its P}
    G  of F: {"stream", "size": bytes that are kept, or dropped for good, "over": the end of it is on the disk}
Supervisor to daemon
    V  hello: pack(version, job, restarts, rank, token, last sequence), decimal numbers
    P  hello of a pod: {"version", "job", "restarts", "rank", "token": the pod's projected token, "what": "supervisor",
       "client" or "step", "run": the run's token when it had its launch, else "", "sequence": the last one given,
       "connection": of W, for a step}
    E  report: {"sequence", "kind": "started" | "step" | "ended", ...}
    F  output that no file system keeps, of any rank: pack(stream, offset, lost, what, path, data). One at a time: the
       next is sent when G has come, from its size on, be it more or less; so nothing is lost or there twice after a cut
Rank k to rank 0 (over `peer` in rank 0's spool folder)
    B  here I am: pack(version, rank, token)
    Z  all my processes are gone: {"usage": [...]}
    Y  end the run, as this node cannot go on: {"why", "message"}
Rank 0 to rank k: K, S, U, R, X as above; both ways the step frames of `wire.step`.
Between pods that link is TCP, where both prove first that they know the run's token, which is never sent (`proof`)
    B  rank k: pack(version, rank, nonce, "" or "step": a connection for `wire.step`)
    Q  rank 0: pack(nonce, its proof)     O  rank k: pack(its proof)     A  rank 0: {}, welcome
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from slurmbridge.wire.client import pack, unpack

VERSION = b"1"
MAX_FRAME = 16 * 1024 * 1024
"""A launch carries a script (4 MB) and two environments (2 MB each)."""

LAUNCH, KILL, SIGNAL, SUSPEND, RESUME, LIMIT, NOTIFY, ACK, UNWANTED, CONNECT, KEPT = (
    b"L", b"K", b"S", b"U", b"R", b"T", b"N", b"A", b"X", b"W", b"G",
)  # fmt: skip
HELLO, OPENING, REPORT, OUTPUT = b"V", b"P", b"E", b"F"
SUPERVISOR, CLIENT, STEP = "supervisor", "client", "step"
"""What a pod's connection is for."""
MAX_OPENING = 1 << 16
"""Of a frame from somebody who has proved nothing yet."""
REGISTER, CHALLENGE, PROOF, EMPTY, LEAVING = b"B", b"Q", b"O", b"Z", b"Y"


def encode(value: object) -> bytes:
    """Compact JSON; undecodable bytes of names survive as lone surrogates."""
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def decode(payload: bytes) -> dict[str, Any]:
    """The object again; ValueError when it is none."""
    value = json.loads(payload)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def join_env(env: list[tuple[str, str]] | tuple[tuple[str, str], ...]) -> bytes:
    """NAME=VALUE strings, NUL between them."""
    return "\0".join([f"{name}={value}" for name, value in env]).encode("utf-8", "surrogateescape")


def split_env(data: bytes) -> dict[str, str]:
    """The environment again; an entry without `=` is dropped, the last of two equal names wins."""
    env: dict[str, str] = {}
    for entry in data.decode("utf-8", "surrogateescape").split("\0"):
        name, equals, value = entry.partition("=")
        if equals and name:
            env[name] = value
    return env


def encode_launch(header: dict[str, Any], script: bytes, env: bytes, base_env: bytes) -> bytes:
    """Payload of L."""
    return pack(encode(header), script, env, base_env)


def decode_launch(payload: bytes) -> tuple[dict[str, Any], bytes, dict[str, str], dict[str, str]]:
    """(header, script, environment, base environment); ValueError when malformed."""
    header, script, env, base_env = unpack(payload)
    return decode(header), script, split_env(env), split_env(base_env)


def encode_hello(job: int, restarts: int, rank: int, token: str, sequence: int) -> bytes:
    """Payload of V."""
    return pack(VERSION, b"%d" % job, b"%d" % restarts, b"%d" % rank, token.encode("ascii"), b"%d" % sequence)


def decode_hello(payload: bytes) -> tuple[int, int, int, str, int]:
    """(job, restarts, rank, token, last sequence); ValueError on another version or nonsense."""
    parts = unpack(payload)
    if len(parts) < 6 or parts[0] != VERSION:
        raise ValueError("a supervisor of another version")
    return int(parts[1]), int(parts[2]), int(parts[3]), parts[4].decode("ascii"), int(parts[5])


class Opening(NamedTuple):
    """What a pod says of itself at the beginning of a connection."""

    job: int
    restarts: int
    rank: int
    token: str
    what: str = SUPERVISOR
    run: str = ""
    sequence: int = 0
    connection: str = ""


_NUMBERS = ("job", "restarts", "rank", "sequence")


def encode_opening(opening: Opening) -> bytes:
    """Payload of P."""
    return encode({"version": int(VERSION), **opening._asdict()})


def decode_opening(payload: bytes) -> Opening:
    """ValueError on another version or nonsense."""
    value = decode(payload)
    if value.get("version") != int(VERSION):
        raise ValueError("a supervisor of another version")
    try:
        opening = Opening(**{name: value[name] for name in Opening._fields if name in value})
    except TypeError as error:
        raise ValueError("not an opening") from error
    for name, given in opening._asdict().items():
        if type(given) is not (int if name in _NUMBERS else str) or (isinstance(given, int) and given < 0):
            raise ValueError(f"{name} is wrong")
    if opening.what not in (SUPERVISOR, CLIENT, STEP):
        raise ValueError("what is wrong")
    return opening


class Output(NamedTuple):
    """A piece of a file that a run would write where no file system keeps it."""

    stream: int  # counts the files of a rank, in the order in which they were opened
    offset: int
    lost: int  # -1: there may be more; else this is the end, and so many bytes behind it were dropped
    what: str  # of those below
    path: str  # as the job named it
    data: bytes


OF_STDOUT, OF_STDERR, OF_STEP = "stdout", "stderr", "step"
"""The batch script's own, with stderr where that goes there too; its stderr, where that is another file; a step's."""
MOST_OUTPUT = 1 << 16
"""Bytes of output in a frame."""
_LONGEST_PATH = 1 << 12


def encode_output(output: Output) -> bytes:
    """Payload of F."""
    numbers = (b"%d" % number for number in output[:3])
    return pack(*numbers, output.what.encode("ascii"), output.path.encode("utf-8", "surrogateescape"), output.data)


def decode_output(payload: bytes) -> Output:
    """ValueError when malformed."""
    stream, offset, lost, what, path, data = unpack(payload)
    found = Output(
        int(stream), int(offset), int(lost), what.decode("ascii"), path.decode("utf-8", "surrogateescape"), data
    )
    if found.what not in (OF_STDOUT, OF_STDERR, OF_STEP) or min(found.stream, found.offset, found.lost + 1) < 0:
        raise ValueError("not a piece of output")
    if len(data) > MOST_OUTPUT or len(path) > _LONGEST_PATH:
        raise ValueError("too much output at once")
    return found


def proof(token: str, side: bytes, run: tuple[int, int], rank: int, asked: bytes, own: bytes) -> bytes:
    """That a side ("head", "rank") knows the token: HMAC-SHA256 over all that tells this meeting from any other. `asked`:
    the other side's nonce; `own`: one's own."""
    import hmac  # runs on one node never need it

    said = pack(VERSION, side, b"%d" % run[0], b"%d" % run[1], b"%d" % rank, asked, own)
    return hmac.digest(token.encode(), said, "sha256")
