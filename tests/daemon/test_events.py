"""sacctmgr show event and the states of nodes: what an operator says is kept, shown and ended. On the shipped fakes."""

from __future__ import annotations

from tests.daemon.controlled import Site
from tests.daemon.rules import rule


async def rows(made: Site, words: str = "", fields: str = "nodename,state,reason,user") -> list[str]:
    answer = await made.run(f"sacctmgr -nP show event event=node format={fields} {words}")
    assert answer.code == 0, answer
    return answer.out.splitlines()


@rule
async def test_an_event_ends_when_the_node_is_taken_back(made: Site) -> None:
    await made.run("scontrol update nodename=n1 state=drain reason='bad disk'", user="root")
    assert await rows(made, fields="nodename,state,reason,user,end") == ["n1|DRAIN|bad disk|root(0)|Unknown"]
    await made.run("scontrol update nodename=n1 state=resume", user="root")
    assert not (await rows(made, fields="end"))[0].startswith("Unknown")
    await made.run("scontrol update nodename=n2 state=down reason=power", user="root")
    assert await rows(made) == ["n1|DRAIN|bad disk|root(0)", "n2|DOWN|power|root(0)"]


@rule
async def test_events_are_chosen_by_node_state_reason_and_user(made: Site) -> None:
    await made.run("scontrol update nodename=n1 state=drain reason='bad disk'", user="root")
    await made.run("scontrol update nodename=n[2-3] state=down reason=power", user="root")
    for words, found in (
        ("nodes=n[1-2]", ["n1", "n2"]),
        ("states=drain", ["n1"]),
        ("reason=disk", ["n1"]),
        ("user=alice", []),
        ("end=now-1hour", []),
        ("alltime", ["n1", "n2", "n3"]),
    ):
        assert await rows(made, words, "nodename") == found, words


@rule
async def test_the_cluster_registered_when_the_daemon_came_up(made: Site) -> None:
    first = (await made.run("sacctmgr -nP show event format=cluster,nodename,reason")).out.splitlines()[0]
    assert first == "test||Cluster Registered TRES"
    answer = await made.run("sacctmgr -P show event event=cluster format=event,clusternodes,tres")
    assert answer.out.splitlines()[1] == "Cluster|n[1-4]|billing=32,cpu=32,mem=62.50G,node=4"


@rule
async def test_wrong_words_are_refused(made: Site) -> None:
    answer = await made.run("sacctmgr show event n1,n2")
    assert (answer.code, answer.err.splitlines()[0]) == (
        1,
        " Unknown event type: 'n1'  Valid events are Cluster and Node.",
    )
    for words in ("states=bla", "start=bla", "bla=4"):
        answer = await made.run(f"sacctmgr show event {words}")
        assert answer.code == 1 and answer.err, words
