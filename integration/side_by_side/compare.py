"""What two controllers said of the same scripts, made comparable: job numbers, moments and machine details away."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from datetime import datetime

FIELD = re.compile(r"(?:^| )((?:[A-Z][\w/]*|ReqB:S:C:T|AllocNode:Sid|NtasksPerN:B:S:C)(?::[A-Za-z:]+)?)=")
MOMENTS = ("EligibleTime", "AccrueTime", "StartTime", "EndTime", "Deadline", "LastSchedEval")
LEFT_OUT = frozenset({"SLUID", "SubmitTime", "LastSchedEval", "AllocNode:Sid", "AccrueTime"})
STAMP = re.compile(r"\[?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?\]? ?")
SLACK_S = 10


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer:
    """Of one submission."""

    code: str
    out: str
    err: str
    jobs: tuple[Mapping[str, str], ...]  # what scontrol shows, one per component


def _fields(line: str) -> dict[str, str]:
    places = list(FIELD.finditer(line))
    ends = [place.start() for place in places[1:]] + [len(line)]
    return {place[1]: line[place.end() : end].strip() for place, end in zip(places, ends, strict=True)}


def _moment(value: str, submitted: str) -> str:
    """Distance from the submission in steps, or the date where it is no near one."""
    try:
        distance = (datetime.fromisoformat(value) - datetime.fromisoformat(submitted)).total_seconds()
    except ValueError:
        return value
    return value if distance > 40 * 86400 else f"submission+{round(distance / SLACK_S) * SLACK_S}"


def read(code: str, out: str, err: str, shown: str) -> Answer:
    """From the texts as they were printed."""
    jobs, number = [], ""
    for line in shown.splitlines():
        fields = _fields(line)
        number = number or fields.get("JobId", "")
        for name in MOMENTS:
            if name in fields:
                fields[name] = _moment(fields[name], fields.get("SubmitTime", ""))
        jobs.append({name: value for name, value in fields.items() if name not in LEFT_OUT})
    found = re.search(r"(\d+)", out)
    number = number or (found[1] if found else "")

    def masked(text: str) -> str:
        if number:
            for offset in range(4):
                text = re.sub(rf"(?<!\d)0*{int(number) + offset}(?!\d)", f"<job+{offset}>", text)
        return STAMP.sub("", text)

    return Answer(
        code=code.strip(), out=masked(out), err=masked(err),
        jobs=tuple({name: masked(value) for name, value in fields.items()} for fields in jobs),
    )  # fmt: skip


def differences(real: Answer, ours: Answer) -> list[str]:
    """One line each; empty when the answers are the same."""
    found = [
        f"{name}: real {one!r}, ours {other!r}"
        for name, one, other in (
            ("code", real.code, ours.code),
            ("out", real.out, ours.out),
            ("err", real.err, ours.err),
            ("components", len(real.jobs), len(ours.jobs)),
        )
        if one != other
    ]
    for one, other in zip(real.jobs, ours.jobs, strict=False):
        for name in sorted({*one, *other}):
            if one.get(name) != other.get(name):
                if name == "Dependency" and "singleton(unfulfilled)" in one.get(name, ""):
                    continue  # until slurmctld looks at it, a moment later
                found.append(f"{name}: real {one.get(name)!r}, ours {other.get(name)!r}")
    return found
