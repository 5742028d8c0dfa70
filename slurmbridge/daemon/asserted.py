"""What is believed of a caller whom the agent of a login node names? A verdict, and what is learned of him.

An agent speaks for users. It does not speak for who rules here (root, SlurmUser, the daemon's own user) nor for the group
of root, unless its enrolment says so: root of a login node is nobody's administrator but its own (docs/decisions/0022).
Whom the daemon's own host knows too has the same name and uid there, and the groups that he has there.
"""

from __future__ import annotations

import os

from slurmbridge.daemon.enrolment import Agent
from slurmbridge.daemon.learned import UserRecord
from slurmbridge.daemon.memory import Memory
from slurmbridge.daemon.peer import Peer
from slurmbridge.wire.agent import Caller


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
        groups = names.groups(native.name, native.gid)
        if caller.gid not in groups:
            return f"{caller.user} of {caller.host} came with group {caller.gid}, in which he is not at the daemon"
        return Peer(uid=caller.uid, gid=caller.gid, groups=groups, host=caller.host, is_remote=True)
    if 0 in (caller.gid, *(gid for gid, _ in caller.groups)) and not agent.trusts_root:
        return f"{caller.user} is in the group of root on {caller.host}, which means nothing here"
    why = names.learned.why_not(caller.uid, caller.user, agent.name)
    if why:
        return f"login nodes do not agree on their users: {why}"
    user = UserRecord(uid=caller.uid, gid=caller.gid, name=caller.user, home=caller.home, shell=caller.shell)
    names.learned.learn(user, {caller.gid: caller.group, **dict(caller.groups)}, agent.name)
    groups = tuple(dict.fromkeys((caller.gid, *(gid for gid, _ in caller.groups))))
    return Peer(uid=caller.uid, gid=caller.gid, groups=groups, host=caller.host, is_remote=True)


def learn_of_jobs(memory: Memory) -> None:
    """Their owners, after a start: names of users whom no agent has named since."""
    for spec in {job.spec.uid: job.spec for job in memory.table}.values():
        if spec.user and not spec.user.isdecimal() and memory.names.native_user(spec.uid) is None:
            user = UserRecord(uid=spec.uid, gid=spec.gid, name=spec.user, home=os.sep, shell="/bin/sh")
            memory.names.learned.learn(user, dict.fromkeys(spec.groups, ""), "")
