"""From a fresh fork to a running supervisor: read the launch, claim the run, watch over it.

Everything a supervisor will need is imported here, before the fork, so that a job does not pay for it.
"""

from __future__ import annotations

import gc
import os
import signal
import socket

from slurmbridge.spool import claim, process
from slurmbridge.supervisor import kernel, spawn
from slurmbridge.supervisor.head import Head
from slurmbridge.supervisor.loop import Loop
from slurmbridge.supervisor.member import Member
from slurmbridge.supervisor.space import Space
from slurmbridge.wire import supervisor as wire


def begin(fd: int, *, namespaces: bool) -> None:
    """Be the supervisor of whatever the socket says. Never returns."""
    code = 1
    try:
        os.setsid()
        space = Space(namespaces=namespaces)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.set_inheritable(fd, False)  # a received descriptor is born inheritable: jobs must not get this one
        _close_all_but({fd, *space.descriptors})
        kernel.set_name("sb-supervisor")
        spawn.allow_many_files()
        link = socket.socket(fileno=fd)
        payload = _read_launch(link)
        if payload is not None:
            _supervise(link, payload, space)
        code = 0
    except BaseException:
        # the last words go to the run's folder, or to nowhere when there is none
        import traceback  # with all that it needs, only for those who need it

        _last_words(traceback.format_exc())
    finally:
        os._exit(code)


_folder = ""


def _last_words(text: str) -> None:
    if _folder:
        try:
            claim.write_file(os.path.join(_folder, claim.CRASH), text.encode("utf-8", "replace"))
        except OSError:
            return


def _close_all_but(kept: set[int]) -> None:
    null = os.open("/dev/null", os.O_RDWR)
    for target in (0, 1, 2):
        os.dup2(null, target, inheritable=False)
    top = max(kept | {null}) + 1
    for other in range(3, top):
        if other not in kept:
            try:
                os.close(other)
            except OSError:
                continue
    os.closerange(top, 1024)
    os.chdir("/")
    os.umask(0o022)


def _read_launch(link: socket.socket) -> bytes | None:
    """Payload of the launch frame, and not a byte more; None when the daemon died before it was sent whole."""
    head = _read_exactly(link, 5)
    if head is None or head[4:5] != wire.LAUNCH:
        return None
    size = int.from_bytes(head[:4], "big") - 1
    return _read_exactly(link, size) if 0 <= size < wire.MAX_FRAME else None


def _read_exactly(link: socket.socket, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        data = link.recv(min(size - len(parts), 1 << 20))
        if not data:
            return None
        parts += data
    return bytes(parts)


def _supervise(link: socket.socket, payload: bytes, space: Space) -> None:
    global _folder
    header, script, env, base_env = wire.decode_launch(payload)
    key = (int(header["job"]), int(header["restarts"]), int(header["rank"]))
    record = {
        "version": 1,
        "boot_id": process.boot_id(),
        "pid": os.getpid(),
        "start": process.start_ticks(os.getpid(), space.proc),
        "token": header["token"],
        "uid": header["uid"],
        "node": header["node"],
        "marks": [f"SLURM_JOB_ID={key[0]}", f"SLURMBRIDGE_ADDR=unix:{header['address']}"],
    }
    space.settle(str(header["node"]), str(header.get("hosts", "")))
    if space.is_namespace:
        record["init"] = [space.init_pid, process.start_ticks(space.init_pid, space.proc) or 0]
    folder = claim.claim(header["spool"], key, header["epoch"], record)
    if folder is None:
        return
    _folder = folder
    gc.enable()  # what was there before the fork stays frozen
    loop = Loop()
    if key[2] == 0:
        Head(loop, link, folder, header, script, env, base_env, record, space).run()
    else:
        Member(loop, link, folder, header, base_env, record, space).run()
