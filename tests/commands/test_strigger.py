"""strigger: there are no triggers, nobody may set one, and wrong requests get Slurm's words."""

from __future__ import annotations

import pytest

from slurmbridge.commands.strigger import main
from tests.commands.sample_site import Ran, SampleSite


@pytest.mark.parametrize("line", ["strigger --get", "strigger --get --user=alice -N", "strigger --get --id=5 -n"])
def test_there_is_nothing_to_list(line: str) -> None:
    done = Ran(main, line, SampleSite())
    assert (done.rc, done.out, done.err) == (0, "", "")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("strigger", "strigger: error: You must use exactly one of the following options: --set, --get or --clear"),
        (
            "strigger --get --clear",
            "strigger: error: You must use exactly one of the following options: --set, --get or --clear",
        ),
        ("strigger --set", "strigger: error: You must specify a trigger"),
        ("strigger --set --fini --program=/bin/true", "strigger: error: You must specify a --jobid value"),
        ("strigger --set --jobid=abc --fini", "strigger: error: Invalid jobid abc"),
        ("strigger --set --node --down --program=/bin/true", "slurm_set_trigger: Access/permission denied"),
        ("strigger --clear", "strigger: error: You must specify a --id, --jobid, or --user to clear"),
        ("strigger --clear --id=5", "slurm_clear_trigger: No such process"),
        ("strigger --clear --user=nosuch", "strigger: error: Invalid user nosuch"),
    ],
)
def test_other_requests_are_refused(line: str, words: str) -> None:
    done = Ran(main, line, SampleSite())
    assert (done.rc, done.out, done.err) == (1, "", words + "\n")
