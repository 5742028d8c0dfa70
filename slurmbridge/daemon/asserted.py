"""What is believed of a caller whom the agent of a login node names? A verdict, and what is learned of him.

An agent speaks for users. It does not speak for who rules here (root, SlurmUser, the daemon's own user) nor for the group
of root, unless its enrolment says so: root of a login node is nobody's administrator but its own (docs/decisions/0022).
Whom the daemon's own host knows too has the same name and uid there, and the groups that he has there. Who is not known there
is in none of its own groups: `disk` or `docker` of that host is as good as root, and jobs run there on virtual nodes.
"""

from __future__ import annotations

import logging
import os

import msgspec

from slurmbridge.daemon.enrolment import Agent
from slurmbridge.daemon.learned import UserRecord, Word
from slurmbridge.daemon.memory import Memory
from slurmbridge.daemon.peer import Peer
from slurmbridge.spool.claim import write_file
from slurmbridge.wire.agent import Caller

log = logging.getLogger(__name__)

FILE = "learned.json"
FIRST_USER = 1000
"""uids below are of the system itself (UID_MIN of login.defs)."""
NO_LOGIN = ("nologin", "false")
"""Shells of whom nobody logs in as."""
OPEN_GROUPS = ("users",)
"""Of those that distributions come with, what gives no rights: everybody's first group on some."""


def judge(caller: Caller, agent: Agent, memory: Memory) -> Peer | str:
    """Who he is here, or why he may not come."""
    names = memory.names
    rules = caller.uid in (0, memory.owner_uid) or caller.user == "root" or memory.is_master(caller.uid)
    if (rules or caller.user == memory.config.slurm_user) and not agent.trusts_root:
        return f"{caller.user} (uid {caller.uid}) of {caller.host} rules nothing here: log in as a user, or at the daemon's own host"
    native, uid = names.native_user(caller.uid), names.native_id(caller.user)
    if (native is not None and native.name != caller.user) or uid not in (None, caller.uid):
        here = f"uid {caller.uid} is {native.name}" if native is not None else f"{caller.user} has uid {uid}"
        return f"{caller.user} (uid {caller.uid}) of {caller.host} is somebody else at the daemon, where {here}"
    if native is not None:
        if caller.uid < FIRST_USER and os.path.basename(native.shell) in NO_LOGIN and not agent.trusts_root:
            return f"{caller.user} (uid {caller.uid}) is of the system at the daemon, where nobody logs in as that"
        groups = names.groups(native.name, native.gid)
        if caller.gid not in groups:
            return f"{caller.user} of {caller.host} came with group {caller.gid}, in which he is not at the daemon"
        return Peer(uid=caller.uid, gid=caller.gid, groups=groups, host=caller.host, is_remote=True)
    if 0 in (caller.gid, *(gid for gid, _ in caller.groups)) and not agent.trusts_root:
        return f"{caller.user} is in the group of root on {caller.host}, which means nothing here"
    if caller.user.isdecimal():
        return (
            f"{caller.user} (uid {caller.uid}) of {caller.host} has a number for a name, which here is somebody's uid"
        )
    own = names.own_groups() if not agent.trusts_root else {}
    closed = {gid: name for gid, name in own.items() if name not in OPEN_GROUPS}
    if caller.gid in closed:
        here = f"{caller.gid} ({closed[caller.gid]}), a group of the daemon's own host"
        return f"{caller.user} of {caller.host} came with group {here}, which does not know him"
    given = tuple((gid, name) for gid, name in caller.groups if gid not in closed)
    why = names.learned.why_not(caller.uid, caller.user, agent.name)
    if why:
        return f"login nodes do not agree on their users: {why}"
    user = UserRecord(uid=caller.uid, gid=caller.gid, name=caller.user, home=caller.home, shell=caller.shell)
    names.learned.learn(user, {caller.gid: caller.group, **dict(given)}, agent.name)
    groups = tuple(dict.fromkeys((caller.gid, *(gid for gid, _ in given))))
    return Peer(uid=caller.uid, gid=caller.gid, groups=groups, host=caller.host, is_remote=True)


def learn_again(memory: Memory, state: str) -> None:
    """After a start: whom agents had named (FILE), and owners of jobs. Any agent may say otherwise."""
    names = memory.names
    for spec in {job.spec.uid: job.spec for job in memory.table}.values():
        if spec.user and not spec.user.isdecimal() and names.native_user(spec.uid) is None:
            user = UserRecord(uid=spec.uid, gid=spec.gid, name=spec.user, home=os.sep, shell="/bin/sh")
            names.learned.learn(user, dict.fromkeys(spec.groups, ""), "")
    try:
        with open(os.path.join(state, FILE), "rb") as file:
            words = msgspec.json.decode(file.read(), type=list[Word])
    except FileNotFoundError:
        return
    except (OSError, msgspec.MsgspecError) as fault:
        log.error("event=learned.unreadable file=%s reason=%r", FILE, str(fault))  # agents say it all again
        return
    for word in words:
        if names.native_user(word.user.uid) is None:
            names.learned.learn(word.user, word.groups, "")
    names.learned.is_new = False


def keep(memory: Memory, state: str) -> None:
    """What was learned, where something is new: homes of users whose jobs still wait are told by nobody else."""
    learned = memory.names.learned
    if not learned.is_new:
        return
    learned.is_new = False  # what cannot be written is tried again with the next, not for ever
    try:
        write_file(os.path.join(state, FILE), msgspec.json.encode(learned.all()))
    except (OSError, ValueError) as fault:  # a home may have a name that is no text
        log.error("event=learned.not_kept reason=%r", str(fault))
