"""Whom may an agent speak for, what is believed of them, and what of it outlives the daemon?"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from slurmbridge.daemon import asserted
from slurmbridge.daemon.asserted import judge, learn_again
from slurmbridge.daemon.learned import HOLDS_S
from slurmbridge.daemon.peer import Peer
from slurmbridge.wire.agent import Caller
from tests.agent.callers import Known, agent, memory, somebody
from tests.daemon.controlled import site


@pytest.mark.parametrize(
    ("caller", "word"),
    [
        pytest.param(somebody(0, "root"), "rules nothing here", id="root"),
        pytest.param(somebody(0, "toor"), "rules nothing here", id="root-by-another-name"),
        pytest.param(somebody(1500, "root"), "rules nothing here", id="the-name-of-root"),
        pytest.param(somebody(6817, "slurm"), "rules nothing here", id="who-started-the-daemon"),
        pytest.param(somebody(1500, "eve", gid=0), "group of root", id="the-group-of-root"),
        pytest.param(somebody(1500, "eve", groups=((0, "root"),)), "group of root", id="root-among-his-groups"),
        pytest.param(somebody(1003, "eve"), "uid 1003 is carol", id="a-uid-that-is-anothers"),
        pytest.param(somebody(1500, "carol"), "carol has uid 1003", id="a-name-that-is-anothers"),
        pytest.param(somebody(1003, "carol", gid=99), "group 99", id="a-group-that-is-not-hers"),
    ],
)
def test_an_agent_does_not_speak_for(caller: Caller, word: str) -> None:
    found = judge(caller, agent(), memory())
    assert isinstance(found, str) and word in found


def test_slurmuser_is_not_an_agents_to_speak_for() -> None:
    there = memory()
    there.config = type(there.config)(**{name: getattr(there.config, name) for name in there.config.__struct_fields__} | {"slurm_user": "warden"})  # fmt: skip
    assert isinstance(judge(somebody(64030, "warden"), agent(), there), str)
    assert isinstance(judge(somebody(64030, "warden"), agent(trusts_root=True), there), Peer)


def test_an_agent_that_the_site_trusts_so_far_speaks_for_root() -> None:
    found = judge(somebody(0, "root"), agent(trusts_root=True), memory())
    assert isinstance(found, Peer) and found.uid == 0 and found.is_remote


def test_whom_the_daemons_host_knows_has_the_groups_he_has_there() -> None:
    found = judge(somebody(1003, "carol", groups=((0, "root"), (27, "sudo"))), agent(), memory())
    assert isinstance(found, Peer) and found.groups == (1003, 7)


def test_whom_only_the_agent_knows_is_as_it_says_and_known_by_name_from_then_on() -> None:
    there = memory()
    found = judge(somebody(1500, "eve", groups=((2000, "lab"),)), agent(), there)
    assert isinstance(found, Peer) and found.groups == (1500, 2000)
    assert (there.user_name(1500), there.user_id("eve")) == ("eve", 1500)
    assert there.groups_of("eve") == ("eve", "lab")
    assert there.group_name(2000) == "lab"


def test_two_agents_that_do_not_agree_are_not_both_believed() -> None:
    there = memory()
    now = [0.0]
    there.names = Known(lambda: now[0])
    assert isinstance(judge(somebody(1500, "eve"), agent(), there), Peer)
    for other in (somebody(1500, "mallory"), somebody(1501, "eve")):
        found = judge(other, agent("login2"), there)
        assert isinstance(found, str) and "do not agree" in found
    assert there.user_name(1500) == "eve"
    assert isinstance(judge(somebody(1500, "eva"), agent(), there), Peer), "it renames its own"
    now[0] = HOLDS_S + 1
    assert isinstance(judge(somebody(1500, "mallory"), agent("login2"), there), Peer)
    assert there.user_id("eva") is None


def test_whom_agents_named_is_known_after_a_restart_with_his_home(tmp_path: Path) -> None:
    there, again = memory(), memory()
    judge(somebody(1500, "eve", groups=((2000, "lab"),)), agent(), there)
    asserted.keep(there, str(tmp_path))
    assert not there.names.learned.is_new
    judge(somebody(1500, "eve", groups=((2000, "lab"),)), agent(), there)
    assert not there.names.learned.is_new, "nothing that would have to be written again"
    learn_again(again, str(tmp_path))
    found = again.names.user(1500)
    assert found is not None and (found.name, found.home) == ("eve", "/home/eve")
    assert again.groups_of("eve") == ("eve", "lab")
    assert isinstance(judge(somebody(1500, "mallory"), agent("login2"), again), Peer), "no agent has said otherwise yet"
    odd = somebody(1501, "odd")._replace(home="/home/\udcff")
    judge(odd, agent(), again)
    asserted.keep(again, str(tmp_path))  # and says so in the log
    (tmp_path / "learned.json").write_text("{")
    learn_again(memory(), str(tmp_path))  # and says so in the log


def test_owners_of_jobs_are_known_by_name_after_a_restart(tmp_path: Path) -> None:
    async def whole() -> None:
        made = await site()
        await made.submit("-n1")
        there = made.controller.memory
        there.names = Known()
        assert there.user_id("alice") is None
        learn_again(there, str(tmp_path))
        assert (there.user_id("alice"), there.user_name(1001)) == (1001, "alice")

    asyncio.run(whole())
