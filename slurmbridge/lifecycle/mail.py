"""Which messages does a change of jobs send (--mail-type), and what do they say?

Follows sbatch(1) --mail-type and slurm.conf(5) MailProg. Subjects are slurmctld's: `Slurm Job_id=12 Name=x Ended, Run
time 00:00:05, COMPLETED, ExitCode 0`; an array without ARRAY_TASKS is told of as a whole, when its first task begins and
when its last one ends. There are no burst buffers, so nothing is staged out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from slurmbridge.lang import durations, hostlist
from slurmbridge.model.job import Job
from slurmbridge.model.mail import Mail
from slurmbridge.model.states import JobFlag, JobState, Reason

BEGIN, END, FAIL, REQUEUE, INVALID = "BEGIN", "END", "FAIL", "REQUEUE", "INVALID_DEPEND"
TIME: Final = {"TIME_LIMIT_50": 50, "TIME_LIMIT_80": 80, "TIME_LIMIT_90": 90, "TIME_LIMIT": 100}
"""Kind -> percent of the time limit."""
WORDS: Final = {
    BEGIN: "Began", END: "Ended", FAIL: "Failed", REQUEUE: "Requeued", INVALID: "Invalid dependency",
    "TIME_LIMIT_50": "Reached 50% of time limit", "TIME_LIMIT_80": "Reached 80% of time limit",
    "TIME_LIMIT_90": "Reached 90% of time limit", "TIME_LIMIT": "Reached time limit",
}  # fmt: skip
_WELL: Final = (JobState.COMPLETED, JobState.CANCELLED)

Move = tuple[Job | None, Job]
"""A record before and after a change; None: there was none."""


class Due(msgspec.Struct, frozen=True):
    """A message: about `job`, of `kind`; `before` is the run that it tells of, `whole` an array in one."""

    job: Job
    kind: str
    before: Job | None
    whole: bool = False


def due(moves: Sequence[Move], family: Callable[[int], Sequence[Job]]) -> list[Due]:
    """The messages that were asked for, in the order of the changes. `family`: records of an array as they are now."""
    begun = {after.job_id for before, after in moves if _begins(before, after)}
    told: set[tuple[int, str]] = set()
    found: list[Due] = []
    for before, after in moves:
        asked = after.spec.mail_type
        if not asked:
            continue
        whole = bool(after.array_job_id) and "ARRAY_TASKS" not in asked
        for kind in _kinds(before, after):
            if not whole or kind in TIME or kind == INVALID:
                if kind in asked:
                    found.append(Due(after, kind, before))
                elif kind == FAIL and END in asked:
                    found.append(Due(after, END, before))
                continue
            said = _of_array(kind, after, family(after.array_job_id), begun)
            if said in asked and (after.array_job_id, said) not in told:
                told.add((after.array_job_id, said))
                found.append(Due(after, said, before, whole=True))
    return found


def _of_array(kind: str, job: Job, members: Sequence[Job], begun: set[int]) -> str:
    """What an array says when one of its tasks does `kind`; nothing: it is not the first or the last."""
    if kind == BEGIN:
        return "" if any(not one.is_pending and one.job_id not in begun for one in members) else BEGIN
    if kind not in (END, FAIL) or not all(_is_over(one) for one in members):
        return ""
    failed = any(one.state not in _WELL for one in members)
    return FAIL if failed and FAIL in job.spec.mail_type else END


def _kinds(before: Job | None, after: Job) -> list[str]:
    kinds = []
    if _begins(before, after):
        kinds.append(BEGIN)
    if before is None:
        return kinds
    if after.restarts > before.restarts:
        kinds.append(REQUEUE)
    if after.reason == Reason.DEPENDENCY_NEVER != before.reason or (
        after.state is JobState.CANCELLED and after.reason == Reason.DEPENDENCY and before.is_pending
    ):
        kinds.append(INVALID)
    kinds += [kind for kind, percent in TIME.items() if before.time_mailed < percent <= after.time_mailed]
    if _is_over(after) and not _is_over(before):
        if after.state is JobState.TIMEOUT and after.time_mailed < 100:
            kinds.append("TIME_LIMIT")
        kinds.append(END if after.state in _WELL else FAIL)
    return kinds


def _begins(before: Job | None, after: Job) -> bool:
    return after.state is JobState.RUNNING and (before is None or before.is_pending)


def _is_over(job: Job) -> bool:
    return job.is_finished and JobFlag.COMPLETING not in job.flags


def reached(job: Job, now: float) -> int:
    """The highest percentage of its limit that was asked for and that a run has reached: its new `time_mailed`."""
    if job.state is not JobState.RUNNING or job.start_time is None or job.time_limit_end is None:
        return job.time_mailed
    length = job.time_limit_end - job.start_time
    used = 100.0 * (now - job.start_time) / length if length > 0 else 0.0
    asked = (percent for kind, percent in TIME.items() if kind in job.spec.mail_type and percent < 100)
    return max((percent for percent in asked if used >= percent), default=job.time_mailed)


# ---- texts ----


def compose(message: Due, now: float, *, domain: str, cluster: str, members: Sequence[Job] = ()) -> Mail:
    """`members`: the array's records, for a message about the whole."""
    job = message.job
    if message.whole:
        head = f"Slurm Array Summary Job_id={job.array_job_id}_* ({job.array_job_id})"
        tail = _term_of_array(members) if message.kind in (END, FAIL) else ""
    else:
        head = f"Slurm Job_id={job.job_id}"
        if job.array_job_id and job.array_task_id is not None:
            head = f"Slurm Array Task Job_id={job.array_job_id}_{job.array_task_id} ({job.job_id})"
        tail = _time(message, now) + (_term(job) if message.kind in (END, FAIL) else "")
    subject = f"{head} Name={job.spec.name} {WORDS[message.kind]}{tail}"
    return Mail(
        job_id=job.job_id,
        uid=job.spec.uid,
        to=address(job, domain),
        subject="".join(char if char.isprintable() else " " for char in subject),
        env=tuple(sorted(_environment(message, now, cluster, members).items())),
    )


def address(job: Job, domain: str) -> str:
    """--mail-user or the owner; MailDomain completes a plain name."""
    to = job.spec.mail_user or job.spec.user
    return f"{to}@{domain}" if domain and "@" not in to else to


def _seconds(message: Due, now: float) -> int | None:
    """How long it was queued, or has run."""
    job = message.job if message.kind != REQUEUE else (message.before or message.job)
    if job.start_time is None:
        return None
    if message.kind == BEGIN:
        return max(0, int(job.start_time - job.submit_time))
    if message.kind in (END, FAIL) and job.end_time is None:
        return None
    end = job.end_time if job.end_time is not None and message.kind not in TIME else now
    if job.suspend_time is not None:
        return max(0, int(end - job.suspend_time + job.pre_suspend_s))
    return max(0, int(end - job.start_time))


def _time(message: Due, now: float) -> str:
    seconds = None if message.kind == INVALID else _seconds(message, now)
    if seconds is None:
        return ""
    return f", {'Queued' if message.kind == BEGIN else 'Run'} time {durations.render_elapsed(seconds)}"


def _term(job: Job) -> str:
    state = job.state.name
    return f", {state}" if job.exit_code & 0x7F else f", {state}, ExitCode {job.exit_code >> 8}"


def _term_of_array(members: Sequence[Job]) -> str:
    """The worst and the best end of all tasks."""
    statuses = [job.exit_code for job in members]
    least, most = min(statuses, default=0), max(statuses, default=0)
    last = max(members, key=lambda job: (job.end_time or 0.0, job.job_id))
    if not least & 0x7F and not most & 0x7F:
        state = "Mixed" if least == 0 and most > 0 else last.state.name
        text = f", {state}, ExitCode [{least >> 8}-{most >> 8}]"
    elif most & 0x7F:
        text = f", Mixed, MaxSignal [{most & 0x7F}]"
    else:
        text = f", Mixed, MaxExitCode [{most >> 8}]"
    return text + (", with requeued tasks" if any(job.restarts for job in members) else "")


def _environment(message: Due, now: float, cluster: str, members: Iterable[Job]) -> dict[str, str]:
    job, spec = message.job, message.job.spec
    nodes = [share.node for share in job.allocation.nodes] if job.allocation is not None else []
    values: dict[str, object] = {
        "SLURM_CLUSTER_NAME": cluster, "SLURM_JOB_ACCOUNT": spec.account, "SLURM_JOB_COMMENT": spec.comment,
        "SLURM_JOB_GID": spec.gid, "SLURM_JOB_GROUP": spec.group, "SLURM_JOB_ID": job.job_id, "SLURM_JOBID": job.job_id,
        "SLURM_JOB_NAME": spec.name, "SLURM_JOB_NODELIST": hostlist.compress(nodes),
        "SLURM_JOB_PARTITION": job.allocation.partition if job.allocation else ",".join(spec.partitions),
        "SLURM_JOB_QOS": spec.qos, "SLURM_JOB_RESTART_COUNT": job.restarts, "SLURM_JOB_STDERR": spec.std_err or "",
        "SLURM_JOB_STDIN": spec.std_in or "", "SLURM_JOB_STDOUT": spec.std_out or "", "SLURM_JOB_UID": spec.uid,
        "SLURM_JOB_USER": spec.user, "SLURM_JOB_WORK_DIR": spec.work_dir, "SLURM_JOB_STATE": job.state.name,
        "SLURM_JOB_MAIL_TYPE": WORDS[message.kind],
    }  # fmt: skip
    if job.array_job_id:
        values["SLURM_ARRAY_JOB_ID"] = job.array_job_id
        if job.array_task_id is not None and not message.whole:
            values["SLURM_ARRAY_TASK_ID"] = job.array_task_id
    for name, moment in (("START", job.start_time), ("END", job.end_time)):
        if moment is not None:
            values[f"SLURM_JOB_{name}_TIME"] = int(moment)
    seconds = None if message.whole or message.kind == INVALID else _seconds(message, now)
    if seconds is not None:
        name = "QUEUED" if message.kind == BEGIN else "RUN"
        values[f"SLURM_JOB_{name}_TIME"] = durations.render_elapsed(seconds)
    if message.kind in (END, FAIL):
        statuses = [one.exit_code for one in members] if message.whole else [job.exit_code]
        values["SLURM_JOB_EXIT_CODE_MAX"] = max(statuses, default=0) >> 8
        values["SLURM_JOB_EXIT_CODE_MIN"] = min(statuses, default=0) >> 8
        values["SLURM_JOB_TERM_SIGNAL_MAX"] = max((status & 0x7F for status in statuses), default=0)
    return {name: str(value) for name, value in values.items() if value not in ("", None)}
