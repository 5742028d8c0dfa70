"""What does scontrol say to keywords that mean nothing here, and what are the texts of error numbers?

Follows scontrol(1). Keywords of administrators are denied to others in Slurm's words; the rest says why it is not offered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from slurmbridge.commands import scontrol_jobs as jobs
from slurmbridge.commands.effects import Command, Print
from slurmbridge.commands.scontrol_view import Eyes
from slurmbridge.errors import SlurmErrno, system_text

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
    if not words[0].isdigit() or len(words[0]) > 9:
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
