"""Documents are written in pieces and by template; what comes out is what the plain serialisers write of the whole."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmbridge.fields.job_json import JOB
from slurmbridge.fields.shapes import COUNT, NUMBER, OPTIONAL, STATUS, TEXT, WORDS, Shape
from slurmbridge.fields.structured import Value, element, framed, to_json, to_yaml
from slurmbridge.fields.view import View
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.job import Job
from slurmbridge.model.request import Exclusive, JobRequest
from slurmbridge.model.states import JobFlag, JobState
from slurmbridge.model.units import UNLIMITED
from tests.commands import sample_site

VIEW = View(config=ClusterConfig(cluster_name="test/1%"), now=sample_site.NOW)
JOBS = {
    "held": sample_site.job(1),
    "running": sample_site.running(2, ["n1", "n2"], exclusive=Exclusive.NODE),
    "killed": sample_site.ended(3, JobState.FAILED, 9, comment='100% "quoted" / and \\ é', flags={JobFlag.COMPLETING}),
    "array": sample_site.job(4, array_job_id=4, tasks=((1, 9, 2),), array_limit=2),
    "no limit": sample_site.job(5, time_limit=UNLIMITED, request=JobRequest(profile="all"), mail_type=("END", "FAIL")),
    "image": sample_site.job(
        7, request=JobRequest(container_image="a#b", container_mounts="/a:/b", container_writable=True)
    ),
    "no text": sample_site.job(6, name="a\udcff", submit_line="x" * 300),
}
RECORDS = st.lists(
    st.dictionaries(st.sampled_from("abc"), st.text("ab/ é", max_size=3) | st.integers(0, 9)), max_size=40
)


@pytest.mark.parametrize("kind", ["json", "yaml"])
@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS.keys())
def test_a_job_by_template_is_the_job_as_a_value(job: Job, kind: str) -> None:
    assert JOB.text(job, VIEW, kind) == element(kind, JOB.value(job, VIEW))


@given(RECORDS)
def test_a_document_in_pieces_is_the_document_as_a_whole(records: list[dict[str, Value]]) -> None:
    rest: dict[str, Value] = {"last": {"number": 1}, "jobs2": []}
    for kind, write in (("json", to_json), ("yaml", to_yaml)):
        elements = (element(kind, record) for record in records)
        assert "".join(framed(kind, "jobs", elements, rest)) == write({"jobs": records, **rest})


def test_elements_are_made_when_they_are_asked_for() -> None:
    made: list[int] = []

    def elements() -> Iterator[str]:
        for index in range(1000):
            made.append(index)
            yield element("json", index)

    pieces = framed("json", "jobs", elements(), {})
    next(pieces)
    assert len(made) < 100


def test_a_field_costs_one_call_for_each_record_and_a_constant_none() -> None:
    calls: list[int] = []

    def get(row: int, view: View) -> int:
        calls.append(row)
        return row

    shape: Shape[int] = Shape((("number", COUNT, get), ("always", TEXT, "50%"), ("none", WORDS, ())))
    assert [shape.text(row, VIEW, "json") for row in range(50)][7] == (
        '{\n      "number": 7,\n      "always": "50%",\n      "none": []\n    }'
    )
    assert len(calls) == 50


@given(st.none() | st.integers(0, 2 * UNLIMITED), st.integers(0, 0xFFFF))
def test_numbers_and_exit_codes_are_written_as_their_values(count: int | None, status: int) -> None:
    shape: Shape[None] = Shape(
        (
            ("set", NUMBER, lambda row, view: count),
            ("maybe", OPTIONAL, lambda row, view: count),
            ("code", STATUS, lambda row, view: status),
        )
    )
    assert shape.text(None, VIEW, "json") == element("json", shape.value(None, VIEW))
