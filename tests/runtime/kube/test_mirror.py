"""The copy of a cluster's objects says what is there, whatever order the news comes in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from slurmbridge.runtime.kube.mirror import Change, Mirror
from slurmbridge.runtime.kube.objects import Meta, Pod


def pod(name: str, version: int, uid: str = "u") -> Pod:
    return Pod(metadata=Meta(namespace="jobs", name=name, uid=uid, resource_version=str(version)))


def listed(*pods: Pod, version: int = 10) -> Mirror[Pod]:
    mirror: Mirror[Pod] = Mirror()
    mirror.begin_list()
    mirror.add_page(pods)
    mirror.end_list(str(version))
    return mirror


def test_a_list_that_breaks_off_changes_nothing() -> None:
    mirror = listed(pod("a", 1))
    mirror.begin_list()
    mirror.add_page([pod("b", 11)])
    mirror.begin_list()
    assert [item.metadata.name for item in mirror] == ["a"]


def test_a_new_list_tells_what_went_came_and_changed() -> None:
    mirror = listed(pod("went", 1), pod("same", 2), pod("changed", 3))
    mirror.begin_list()
    mirror.add_page([pod("same", 2), pod("changed", 11)])
    mirror.add_page([pod("came", 12)])
    assert mirror.end_list("12") == [
        Change(pod("went", 1), None),
        Change(pod("changed", 3), pod("changed", 11)),
        Change(None, pod("came", 12)),
    ]


def test_another_object_of_the_same_name_is_a_removal_and_an_arrival() -> None:
    mirror = listed(pod("a", 1, uid="first"))
    both = [Change(pod("a", 1, uid="first"), None), Change(None, pod("a", 12, uid="second"))]
    assert mirror.put(pod("a", 12, uid="second")) == both
    mirror = listed(pod("a", 1, uid="first"))
    mirror.begin_list()
    mirror.add_page([pod("a", 12, uid="second")])
    assert mirror.end_list("12") == both


def test_an_event_that_repeats_what_is_known_changes_nothing() -> None:
    mirror = listed(pod("a", 1))
    assert mirror.put(pod("a", 1)) == []
    assert mirror.remove(pod("unknown", 12)) == []


def test_a_removal_tells_the_last_state() -> None:
    mirror = listed(pod("a", 1))
    assert mirror.remove(pod("a", 12)) == [Change(pod("a", 12), None)]
    assert mirror.get("jobs", "a") is None


def test_absence_counts_only_once_the_copy_is_past_the_write() -> None:
    mirror = listed(pod("a", 1), version=10)
    assert not mirror.knows_absent("jobs", "new", written="11")
    mirror.bookmark("11")
    assert mirror.knows_absent("jobs", "new", written="11")
    assert not mirror.knows_absent("jobs", "a", written="1")


def test_absence_is_not_concluded_from_versions_that_are_no_numbers() -> None:
    mirror = listed(version=10)
    assert not mirror.knows_absent("jobs", "new", written="abc")
    assert not Mirror[Pod]().knows_absent("jobs", "new", written="1")


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from(["put", "remove", "list"]))))
def test_the_changes_lead_from_nothing_to_what_is_there(steps: list[tuple[str, str]]) -> None:
    mirror: Mirror[Pod] = listed(version=0)
    rebuilt: dict[tuple[str, str], Pod] = {}
    for version, (name, step) in enumerate(steps, 1):
        if step == "list":
            mirror.begin_list()
            mirror.add_page(pod(each, version) for each in "abcde" if each <= name)
            changes = mirror.end_list(str(version))
        else:
            changes = mirror.put(pod(name, version)) if step == "put" else mirror.remove(pod(name, version))
        for change in changes:
            if change.after is None:
                rebuilt.pop(change.key)
            else:
                assert rebuilt.get(change.key) == change.before
                rebuilt[change.key] = change.after
        assert rebuilt == {item.key: item for item in mirror}
