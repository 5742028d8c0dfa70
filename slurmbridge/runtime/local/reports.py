"""What supervisors say in JSON, as records."""

from __future__ import annotations

from typing import Any

from slurmbridge.model.job import Step, Usage
from slurmbridge.model.states import JobState
from slurmbridge.runtime.protocol import Ended, Report, RunKey, Started, StepChanged
from slurmbridge.wire import supervisor as wire

Value = dict[str, Any]

_USAGE_FIELDS = tuple(Usage.__struct_fields__)


def usage_of(value: Value | None) -> Usage | None:
    """Unknown keys are ignored."""
    if value is None:
        return None
    return Usage(**{name: value[name] for name in _USAGE_FIELDS if name in value})


def step_of(key: RunKey, value: Value) -> Step:
    """One step."""
    return Step(
        job_id=key.job_id,
        restarts=key.restarts,
        step_id=int(value["step_id"]),
        name=str(value.get("name", "")),
        state=JobState[value["state"]],
        start_time=float(value["start"]),
        end_time=value.get("end"),
        nodes=tuple(value.get("nodes", ())),
        num_tasks=int(value.get("tasks", 1)),
        cpus=int(value.get("cpus", 1)),
        tres=tuple((str(name), int(count)) for name, count in value.get("tres", ())),
        exit_code=int(value.get("exit", 0)),
        layout=str(value.get("layout", "")),
        submit_line=str(value.get("submit_line", "")),
        std_out=str(value.get("std_out", "")),
        std_err=str(value.get("std_err", "")),
        std_in=str(value.get("std_in", "")),
        usage=usage_of(value.get("usage")),
    )


def report_of(key: RunKey, value: Value) -> Report | None:
    """A report; None for a kind of a newer supervisor."""
    kind, sequence = value["kind"], int(value["sequence"])
    if kind == "started":
        return Started(key=key, sequence=sequence, time=float(value["time"]), batch_pid=int(value.get("pid", 0)))
    if kind == "step":
        return StepChanged(key=key, sequence=sequence, step=step_of(key, value["step"]))
    if kind == "ended":
        return Ended(
            key=key,
            sequence=sequence,
            time=float(value["time"]),
            status=int(value["status"]),
            why=str(value["why"]),
            usage=usage_of(value.get("usage")) or Usage(),
            steps=tuple(step_of(key, step) for step in value.get("steps", ())),
            message=str(value.get("message", "")),
            lost=tuple(int(rank) for rank in value.get("lost", ())),
        )
    return None


def words_of(key: RunKey, words: str) -> Ended | None:
    """The exit record that a supervisor left in its pod; None: it is none."""
    try:
        report = report_of(key, wire.decode(words.encode())) if words else None
    except (ValueError, KeyError, TypeError):
        return None
    return report if isinstance(report, Ended) else None
