"""One message about a job, from the moment it is due until the mail program took it."""

from __future__ import annotations

import msgspec


class Mail(msgspec.Struct, frozen=True, kw_only=True):
    mail_id: int = 0  # in the queue; given by the daemon
    job_id: int
    uid: int  # of the job's owner
    to: str
    subject: str
    env: tuple[tuple[str, str], ...] = ()  # what MailProg is told besides
