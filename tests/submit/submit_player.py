"""Plays sbatch against a SubmitSite: performs its effects in memory, resolves what it submits."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from typing import cast

import msgspec

from slurmbridge.commands import sbatch
from slurmbridge.commands.effects import (
    Call,
    Component,
    FileData,
    Print,
    ReadFile,
    ReadStdin,
    Site,
    Submit,
    Submitted,
    WaitFor,
)
from slurmbridge.model.verdict import Refused
from slurmbridge.submit.resolve import Caller, Resolved, resolve
from tests.submit.submit_site import UIDS, SubmitSite

CWD = "/w"
JOB_ID = 7
NOW = 1_796_001_600.0
KNOWN = {"/etc/hostname": b"ctl\n", "/dev/null": b""}


class Played(msgspec.Struct, kw_only=True):
    """Exit code, what was printed, and what was submitted; `jobs` only where it was accepted."""

    code: int
    stdout: str
    stderr: str
    components: tuple[Component, ...] = ()
    jobs: tuple[Resolved, ...] = ()


def play(
    argv: Sequence[str],
    site: SubmitSite,
    *,
    env: Mapping[str, str] | None = None,
    files: Mapping[str, str] | None = None,
    stdin: str = "",
    user: str = "alice",
    ended: tuple[object, ...] = (),
) -> Played:
    call = Call(
        argv=tuple(argv),
        env={"PATH": "/bin", "HOME": f"/home/{user}", **(env or {})},
        cwd=CWD,
        uid=UIDS[user],
        gid=UIDS[user],
        user=user,
        group=user,
        host="ctl",
        now=NOW,
    )
    played = Played(code=-1, stdout="", stderr="")
    command = sbatch.main(call, cast(Site, site))
    answer: object = None
    while True:
        try:
            effect = command.send(answer)
        except StopIteration as end:
            played.code = end.value
            return played
        answer = None
        if isinstance(effect, Print):
            if effect.fd == 1:
                played.stdout += effect.text
            else:
                played.stderr += effect.text
        elif isinstance(effect, ReadFile):
            answer = _file(effect, files or {})
        elif isinstance(effect, ReadStdin):
            answer = FileData(data=stdin.encode("utf-8", "surrogateescape"))
        elif isinstance(effect, Submit):
            answer = _submit(effect, call, site, played)
        elif isinstance(effect, WaitFor):
            answer = ended
        else:
            raise AssertionError(effect)


def _file(effect: ReadFile, files: Mapping[str, str]) -> FileData:
    name = effect.name.removeprefix("./")
    if name in files:
        data = files[name].encode("utf-8", "surrogateescape")
        return FileData(data=data[: effect.limit], path=f"{CWD}/{name}", errno=errno.EFBIG * (len(data) > effect.limit))
    if name in (".", "/tmp"):
        return FileData(path=name, errno=errno.EISDIR)
    if name == "hostname":
        return FileData(data=b"\x7fELF", path="/usr/bin/hostname")
    if name in KNOWN:
        return FileData(data=KNOWN[name], path=name)
    return FileData(errno=errno.ENOENT)


def _submit(effect: Submit, call: Call, site: SubmitSite, played: Played) -> Submitted | Refused:
    played.components = effect.components
    caller = Caller(
        uid=call.uid,
        gid=call.gid,
        user=call.user,
        group=call.group,
        host=call.host,
        cwd=call.cwd,
        argv=call.argv,
        is_operator=site.is_operator(call.uid),
    )
    jobs = []
    for component in effect.components:
        verdict = resolve(
            component.request,
            caller,
            site.config,
            site.accounting,
            site.partitions(),
            site,
            now=call.now,
            script_path=component.script_path,
            job_exists=lambda job_id, task: job_id < 1_000_000,
        )
        if isinstance(verdict, Refused):
            return verdict
        jobs.append(verdict)
    played.jobs = tuple(jobs)
    return Submitted(job_id=JOB_ID)
