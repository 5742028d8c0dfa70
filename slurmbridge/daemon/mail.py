"""Sends what jobs asked to be told (--mail-type): composed with the change, queued with it in one commit, run by MailProg.

A message is durable with the change that it tells of and is dropped when the mail program has taken it: kill -9 loses
none, and sends at most the one again that was under way. The program is called as slurmctld calls it, `MailProg -s
SUBJECT ADDRESS`, without input, as SlurmUser (or the job's owner where that is root), for a bounded time, and nothing
ever waits for it. Where no MailProg is named, slurmctld's line in the log is all.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections import deque
from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from slurmbridge.daemon.journal import Journal
from slurmbridge.daemon.memory import Memory
from slurmbridge.lifecycle import mail
from slurmbridge.model.job import Job
from slurmbridge.model.mail import Mail
from slurmbridge.store.protocol import DropMail, Op, PutMail

log = logging.getLogger(__name__)

AT_ONCE = 4
"""Mail programs that run at the same time."""
TIME_S = 30.0
"""After that a mail program is ended."""
REAP_S = 1.0
"""For a killed one to be gone."""
OUTPUT = 4096
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """None: as the daemon itself."""

    user: int | None = None
    group: int | None = None
    groups: tuple[int, ...] | None = None
    home: str


class Mailer:
    def __init__(self, memory: Memory, journal: Journal, left: Sequence[Mail] = ()) -> None:
        """left: what an earlier daemon did not see taken."""
        self._memory, self._journal = memory, journal
        self._queue: deque[Mail] = deque(sorted(left, key=lambda one: one.mail_id))
        self._next = max((one.mail_id for one in left), default=0) + 1
        self._running: set[asyncio.Task[None]] = set()

    # ---- with a change ----

    def compose(self, moves: Sequence[mail.Move], now: float) -> tuple[Mail, ...]:
        """The messages of these changes."""
        config, table = self._memory.config, self._memory.table
        found = []
        for message in mail.due(moves, table.of_array):
            members = table.of_array(message.job.array_job_id) if message.whole else ()
            written = mail.compose(
                message, now, domain=config.mail_domain, cluster=config.cluster_name, members=members
            )
            found.append(replace(written, mail_id=self._next))
            self._next += 1
        return tuple(found)

    def ops(self, mails: Sequence[Mail]) -> tuple[Op, ...]:
        """What is committed with the changes."""
        return (PutMail(mails=tuple(mails)),) if mails and self._memory.config.mail_prog else ()

    def send(self, mails: Iterable[Mail]) -> None:
        """They are durable."""
        for each in mails:
            log.info("email msg to %s: %s", each.to, each.subject)
            if self._memory.config.mail_prog:
                self._queue.append(each)
        self.look()

    def look(self) -> None:
        """Start what may be started."""
        while self._queue and len(self._running) < AT_ONCE:
            task = asyncio.get_running_loop().create_task(self._take(self._queue.popleft()))
            self._running.add(task)
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("event=mail.failed", exc_info=task.exception())
        if not task.cancelled():
            self.look()

    def stop(self) -> None:
        """Leave what is under way to the next daemon."""
        self._queue.clear()
        for task in list(self._running):
            task.cancel()

    # ---- time limits ----

    def nearing(self, now: float) -> list[Job]:
        """Runs that reached a part of their limit that their owner wants to know of."""
        return [
            replace(job, time_mailed=percent)
            for job in self._memory.table
            if job.spec.mail_type and (percent := mail.reached(job, now)) > job.time_mailed
        ]

    # ---- one message ----

    async def _take(self, one: Mail) -> None:
        program = self._memory.config.mail_prog
        if program:
            try:
                await self._run(program, one)
            except OSError as fault:
                log.error("event=mail.not_sent job=%d MailProg=%s reason=%s", one.job_id, program, fault.strerror)
        await self._journal.write([DropMail(mail_ids=(one.mail_id,))])

    async def _run(self, program: str, one: Mail) -> None:
        if one.to.startswith("-"):
            log.error("event=mail.not_sent job=%d reason=address %r reads as an option", one.job_id, one.to)
            return
        owner = self._owner(one)
        process = await asyncio.create_subprocess_exec(
            program, "-s", one.subject, one.to,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            env={"PATH": PATH, "HOME": owner.home, **dict(one.env)}, cwd="/", start_new_session=True,
            user=owner.user, group=owner.group, extra_groups=owner.groups,
        )  # fmt: skip
        assert process.stdout is not None
        try:
            async with asyncio.timeout(TIME_S):
                said = await process.stdout.read(OUTPUT)
                while await process.stdout.read(OUTPUT):
                    pass
                code = await process.wait()
        except (TimeoutError, asyncio.CancelledError) as cut:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(REAP_S):
                    await process.communicate()  # the dead process is reaped and its pipe closed
            if isinstance(cut, asyncio.CancelledError):
                raise
            log.error("event=mail.not_sent job=%d reason=MailProg took more than %d s", one.job_id, TIME_S)
            return
        if code:
            text = said.decode("utf-8", "replace").strip()
            if text:
                log.error("MailProg returned error, it's output was '%s'", text)
            else:
                log.error("No output from MailProg, exit code=%d", code)

    def _owner(self, one: Mail) -> Owner:
        """Who runs the program: SlurmUser, the job's owner where that is root, oneself where there is no choice."""
        names = self._memory.names
        if os.geteuid() != 0:
            return Owner(home=os.path.expanduser("~"))
        uid = names.user_id(self._memory.config.slurm_user)
        record = names.user(uid if uid else one.uid)
        if record is None:
            return Owner(user=one.uid, group=one.uid, groups=(), home="/")
        groups = tuple(names.groups(record.name, record.gid))
        return Owner(user=record.uid, group=record.gid, groups=groups, home=record.home)
