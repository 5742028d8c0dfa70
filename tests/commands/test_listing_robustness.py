"""No command line makes a listing command raise: it answers, or says what is wrong."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmbridge.commands import sacct, sinfo, squeue, sstat
from slurmbridge.commands.effects import JobRow
from tests.commands.sample_site import Ran, SampleSite, job, running

WORDS = st.sampled_from(
    "-j -s -t -o -O -S -u -p -w -n -l -h -r -N -R -A -E -X -P -b -i -k -K -I -x --start --json --yaml --units 1 1_2 1.0 "
    "abc all %i%P jobid:5 now-1hour ² ٣ 1-2 idle debug -i,u".split()
) | st.text(max_size=12)


@pytest.mark.parametrize("command", [squeue, sinfo, sacct, sstat], ids=["squeue", "sinfo", "sacct", "sstat"])
def test_no_command_line_raises(command: object) -> None:
    name = command.__name__.rpartition(".")[2]  # type: ignore[attr-defined]
    jobs = [running(1, ["n1"]), job(2, array_job_id=2, tasks=((0, 9, 1),))]
    site = SampleSite(jobs, rows=[JobRow(job=each) for each in jobs])

    @settings(max_examples=150, deadline=None)
    @given(st.lists(WORDS, max_size=6))
    def check(words: list[str]) -> None:
        if any(word.startswith(("-i", "--i")) for word in words):
            words = [word for word in words if not word.startswith(("-i", "--i"))]
        assert Ran(command.main, [name, *words], site).rc in (0, 1)  # type: ignore[attr-defined]

    check()
