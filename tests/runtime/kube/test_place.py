"""What is found out about a cluster before the daemon serves, and what is said about what is missing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurmbridge.errors import RuntimeFault
from slurmbridge.manifest.rights import RIGHTS
from slurmbridge.runtime.kube import place
from slurmbridge.runtime.kube.place import Place
from tests.runtime.kube.paper import Paper, paper_cluster


@pytest.fixture
def there(tmp_path: Path) -> Iterator[tuple[Paper, str]]:
    """A cluster on paper with its kubeconfig, whose context names a namespace."""
    with paper_cluster() as (paper, connect):
        paper.put("namespaces", {"metadata": {"name": "jobs"}})
        context = {"cluster": "c", "user": "u", "namespace": "jobs"}
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "contexts": [{"name": "x", "context": context}, {"name": "y", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": connect().server}}], "users": [{"name": "u", "user": {}}],
        }  # fmt: skip
        path = tmp_path / "config"
        path.write_text(json.dumps(config))
        yield paper, str(path)


def test_the_namespace_is_the_one_named_else_the_context_s(there: tuple[Paper, str]) -> None:
    paper, path = there
    paper.put("namespaces", {"metadata": {"name": "other"}})
    assert place.find(path, None).namespace == "jobs"
    assert place.find(path, "other").namespace == "other"
    assert not place.find(path, None).inside


def test_a_namespace_that_is_not_there_is_named(there: tuple[Paper, str]) -> None:
    with pytest.raises(RuntimeFault, match="has no namespace nowhere"):
        place.find(there[1], "nowhere")


def test_a_namespace_that_may_not_be_looked_at_is_believed_in(there: tuple[Paper, str]) -> None:
    paper, path = there
    paper.fail = lambda method, where: (403, "no") if "/namespaces/" in where else None
    assert place.find(path, "jobs").namespace == "jobs"


@pytest.mark.parametrize(("minor", "has"), [("34", False), ("35", True), ("36+", True), ("", False)])
def test_image_volumes_come_with_a_release(there: tuple[Paper, str], minor: str, has: bool) -> None:
    paper, path = there
    paper.release = {"major": "1", "minor": minor}
    assert place.find(path, None).has_image_volumes is has


def test_a_cluster_that_does_not_answer_is_named(tmp_path: Path) -> None:
    with paper_cluster() as (paper, connect):
        server = connect().server
        path = tmp_path / "config"
        path.write_text(
            json.dumps({
                "apiVersion": "v1", "kind": "Config", "current-context": "x",
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": {"server": server}}], "users": [{"name": "u", "user": {}}],
            })
        )  # fmt: skip
        paper.fail = lambda method, where: (503, "starting")
        with pytest.raises(RuntimeFault, match=f"the cluster at {server} is of no use: starting"):
            place.find(str(path), None)


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_fault_that_passes_is_waited_for(there: tuple[Paper, str], code: int) -> None:
    paper, path = there
    answers = iter([(code, "busy")] * 3)
    paper.fail = lambda method, where: next(answers, None)
    assert place.check(place.find(path, None, within=60), within=60) == []


def test_a_fault_that_does_not_pass_is_told_at_once(there: tuple[Paper, str]) -> None:
    paper, path = there
    asked: list[str] = []
    paper.fail = lambda method, where: asked.append(where) or (403, "not you")  # type: ignore[func-returns-value]
    with pytest.raises(RuntimeFault, match="not you"):
        place.find(path, None, within=60)
    assert len(asked) == 1


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(RuntimeFault, match="/nowhere: no such file"):
        place.find("/nowhere", None)


def found(path: str) -> Place:
    return place.find(path, None)


def test_with_all_rights_nothing_is_missing(there: tuple[Paper, str]) -> None:
    assert place.check(found(there[1])) == []


@pytest.mark.parametrize("right", [each for each in RIGHTS if not each.without], ids=lambda each: each.resource)
def test_a_right_without_which_no_job_runs_is_named(there: tuple[Paper, str], right: object) -> None:
    paper, path = there
    missing = next(each for each in RIGHTS if each is right)
    paper.denied = {(missing.verbs[0], missing.resource)}
    with pytest.raises(RuntimeFault, match=f"rights are missing .*: {missing.verbs[0]} of {missing.resource}"):
        place.check(found(path))


def test_a_right_that_jobs_can_do_without_is_told(there: tuple[Paper, str]) -> None:
    paper, path = there
    paper.denied = {("list", "events")}
    (lack,) = place.check(found(path))
    assert lack.right.resource == "events" and lack.verbs == ("list",) and lack.right.without


def test_an_address_that_only_this_machine_reaches_is_none() -> None:
    assert place.own_address("https://127.0.0.1:6443") == ""
    assert place.own_address("https://no-such-host.invalid:6443") == ""
