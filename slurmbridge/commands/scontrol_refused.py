"""What does scontrol say to keywords that mean little or nothing here, and what are the texts of error numbers?

Follows scontrol(1). Keywords of administrators are denied to others in Slurm's words; the rest says why it is not offered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from slurmbridge.commands import scontrol_jobs as jobs
from slurmbridge.commands.effects import Command, Print
from slurmbridge.commands.scontrol_view import Eyes
from slurmbridge.errors import LangError, SlurmErrno, system_text
from slurmbridge.lang import hostlist

_NUMBERS = {
    2000: "INVALID_PARTITION_NAME", 2001: "NO_DEFAULT_PARTITION", 2002: "ACCESS_DENIED", 2003: "GROUP_NOT_ALLOWED",
    2005: "TOO_MANY_REQUESTED_CPUS", 2017: "INVALID_JOB_ID", 2018: "INVALID_NODE_NAME",
}  # fmt: skip
"""The numbers of slurm_errno.h that users meet; texts are in `errors`."""


def errnumstr(eyes: Eyes, words: Sequence[str]) -> Command:
    """The text of the system's errors, and of those of Slurm's that have a number here."""
    if len(words) != 1:
        yield from jobs.complain(eyes, "one arguments required for keyword:errnumstr")
        return 1
    if not words[0].isdecimal() or len(words[0]) > 9:
        yield from jobs.complain(eyes, "numeric arguments required for keyword:errnumstr")
        return 1
    number = int(words[0])
    name = _NUMBERS.get(number)
    yield Print((SlurmErrno[name].text if name else system_text(number)) + "\n")
    return 0


_DENIED = {
    "schedloglevel": "slurm_set_schedlog_level error:Permission denied",
    "setdebugflags": "slurm_set_debug_flags error:Permission denied",
    "cancel_reboot": "slurm_update error: Invalid user id",
    "reboot": "scontrol_reboot_nodes error:Permission denied",
    "power": "scontrol_power_nodes error:Invalid user id",
}
"""What Slurm says to users who are no administrators, before anything else."""


def not_offered(name: str, why: str) -> Callable[[Eyes, Sequence[str]], Command]:
    def run(eyes: Eyes, words: Sequence[str]) -> Command:
        if name in _DENIED and not eyes.site.is_admin(eyes.call.uid):
            yield from jobs.complain(eyes, _DENIED[name])
            return 1
        yield from jobs.complain(eyes, f"scontrol: error: {name} is not offered: {why}")
        return 1

    return run


def listpids(eyes: Eyes, words: Sequence[str]) -> Command:
    """Processes are known to the supervisors of the nodes; a host without any says so in Slurm's words."""
    lines = [f"scontrol: error: Domain socket directory /var/spool/slurmd.{eyes.call.host}: No such file or directory"]
    if words:
        lines.append(f"JobId={words[0]} does not exist on node (null).")
    else:
        lines.append("No job steps exist on this node.")
    yield from jobs.complain(eyes, *lines)
    return 1


def liststeps(eyes: Eyes, words: Sequence[str]) -> Command:
    folder = f"/var/spool/slurmd.{eyes.call.host}"
    yield from jobs.complain(
        eyes,
        f"scontrol: error: Domain socket directory {folder}: No such file or directory",
        "No slurmstepd's found on this node",
    )
    return 1


def pidinfo(eyes: Eyes, words: Sequence[str]) -> Command:
    """Processes of jobs are known to their supervisors, and none of them runs where commands are typed."""
    yield from jobs.complain(
        eyes, "Failed to locate job for requested pid" if words else "missing argument for keyword:pidinfo"
    )
    return 1


def getaddrs(eyes: Eyes, words: Sequence[str]) -> Command:
    """Addresses as configured; nodes that are not known are passed over."""
    if len(words) != 1:
        yield from jobs.complain(eyes, "one argument required for keyword:getaddrs")
        return 1
    try:
        names = hostlist.expand(words[0])
    except LangError:
        names = []
    for node in filter(None, (eyes.site.node(name) for name in names)):
        yield Print(f"{node.conf.name}: {node.conf.address or node.conf.name}:{node.conf.port}\n")
    return 0


def reboot(eyes: Eyes, words: Sequence[str]) -> Command:
    if not words:
        yield Print("Missing node list. Specify ALL|<NodeList>", 2)
        return 1
    return (yield from not_offered("reboot", "nodes are not rebooted")(eyes, words))
