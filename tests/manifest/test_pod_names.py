"""Names, labels and hashes of pods."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmbridge.manifest import pod_names
from slurmbridge.model.run import RunKey

LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
KEYS = st.builds(RunKey, st.integers(1, 1 << 40), st.integers(0, 10_000))


@given(st.text(), KEYS, st.integers(0, 99_999))
def test_a_pods_name_tells_its_run_and_rank(cluster: str, key: RunKey, rank: int) -> None:
    instance = pod_names.instance_of(cluster)
    name = pod_names.pod_name(instance, key, rank)
    read = pod_names.read_pod_name(name)
    assert read == pod_names.PodName(instance, key, rank)
    assert LABEL.fullmatch(name) and len(name) <= pod_names.LONGEST_LABEL


@pytest.mark.parametrize("name", ["sb-a-1-2", "sb-a-01-0-0", "web-0", "sb--1-0-x"])
def test_other_names_are_not_read(name: str) -> None:
    assert pod_names.read_pod_name(name) is None


@given(st.lists(st.text(st.characters(codec="ascii"), max_size=90), min_size=1, max_size=6))
def test_a_host_name_is_a_label_of_dns(nodes: list[str]) -> None:
    for host in pod_names.host_names(nodes):
        assert LABEL.fullmatch(host) and len(host) <= pod_names.LONGEST_LABEL


def test_a_host_name_is_the_first_label_of_its_nodes_name() -> None:
    assert pod_names.host_names(["gpu-1.site.example", "gpu-2.site.example"]) == ("gpu-1", "gpu-2")


def test_nodes_with_the_same_first_label_are_told_apart() -> None:
    assert pod_names.host_names(["n1.rack1", "n1.rack2", "n2.rack1"]) == ("n1-rack1", "n1-rack2", "n2")


def test_a_hash_does_not_depend_on_the_order_of_keys() -> None:
    assert pod_names.spec_hash({"a": 1, "b": {"c": 2, "d": 3}}) == pod_names.spec_hash({"b": {"d": 3, "c": 2}, "a": 1})


def test_an_object_is_known_by_hash_and_epoch() -> None:
    sealed = pod_names.sealed({"metadata": {"name": "x", "annotations": {"k": "v"}}}, "17")
    metadata = sealed["metadata"]
    assert isinstance(metadata, dict)
    annotations = metadata["annotations"]
    assert isinstance(annotations, dict)
    assert (annotations["k"], annotations[pod_names.EPOCH], len(str(annotations[pod_names.HASH]))) == ("v", "17", 16)
