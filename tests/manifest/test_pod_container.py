"""--container-* options as pods have them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from slurmbridge.errors import LangError
from slurmbridge.lang.containers import Bind, read_image, read_mounts
from slurmbridge.manifest.pod_container import Settled, settle, why_not
from slurmbridge.model.capabilities import VIRTUAL_NODES, Capabilities
from slurmbridge.model.pods import ContainerWish, PodTemplate
from slurmbridge.model.request import JobRequest

TEMPLATE = PodTemplate(
    image="site/base:1",
    volumes=({"name": "home", "nfs": {"server": "s", "path": "/export"}}, {"name": "data", "hostPath": {"path": "/d"}}),
    volume_mounts=(
        {"name": "home", "mountPath": "/home", "subPath": "people"},
        {"name": "data", "mountPath": "/data/", "readOnly": True},
    ),
)


def settled(**wish: str | bool) -> Settled | str:
    return settle(ContainerWish(**wish), TEMPLATE, "/home/alice")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("typed", "image"),
    [
        ("ubuntu", "ubuntu"), ("docker://ubuntu:22.04", "ubuntu:22.04"), ("nvcr.io#nvidia/cuda:12", "nvcr.io/nvidia/cuda:12"),
        ("registry:5000/team/x", "registry:5000/team/x"), ("x@sha256:" + "0" * 64, "x@sha256:" + "0" * 64),
        ("reg.io#a/b@sha256:" + "0" * 64, "reg.io/a/b@sha256:" + "0" * 64),
    ],
)  # fmt: skip
def test_an_image_of_pyxis_is_one_of_kubernetes(typed: str, image: str) -> None:
    assert read_image(typed) == image


@pytest.mark.parametrize(
    "typed",
    ["/images/a.sqsh", "./a.sqsh", "a.squashfs", "me@reg.io#x", "me@x", "dockerd://x", "Ubuntu", "a b", "", "a#"],
)
def test_what_no_kubelet_can_pull_is_refused(typed: str) -> None:
    with pytest.raises(LangError):
        read_image(typed)


def test_mounts_have_a_source_a_target_and_flags() -> None:
    assert read_mounts("/a,/b:/c,/d:/e:ro+rbind,/f:/g:rw") == (
        Bind(source="/a", target="/a"), Bind(source="/b", target="/c"),
        Bind(source="/d", target="/e", read_only=True), Bind(source="/f", target="/g"),
    )  # fmt: skip


@pytest.mark.parametrize("text", ["a:/b", "/a:b", "/a/../b", "/a:/b:shared", "/a:/", "/a:/x/../.."])
def test_mounts_that_pods_cannot_have_are_refused(text: str) -> None:
    with pytest.raises(LangError):
        read_mounts(text)


def test_a_folder_below_a_volume_of_the_partition_is_mounted_from_it() -> None:
    found = settled(mounts="/home/alice/data:/in:ro,/data/sets:/sets")
    assert isinstance(found, Settled)
    assert found.mounts == (
        {"name": "home", "mountPath": "/in", "subPath": "people/alice/data", "readOnly": True},
        {"name": "data", "mountPath": "/sets", "subPath": "sets", "readOnly": True},
    )


def test_a_folder_that_is_there_at_its_place_needs_no_mount() -> None:
    found = settled(mounts="/home/alice")
    assert isinstance(found, Settled) and found.mounts == ()


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"mounts": "/etc:/host"}, "no volume of the partition holds /etc"),
        ({"mounts": "/homes/x:/y"}, "no volume of the partition holds /homes/x"),
        ({"mounts": "/home/a:/data"}, "/data is taken"),
        ({"mounts": "/home/a:/x,/home/b:/x"}, "/x is taken"),
        ({"image": "me@x"}, "imagePullSecrets"),
        ({"work_dir": "there"}, "not an absolute path"),
        ({"env": "A,B=1"}, "'B=1' is no name of a variable"),
    ],
)
def test_what_cannot_be_done_is_refused_by_option_and_reason(wish: dict[str, str], words: str) -> None:
    found = settled(**wish)
    assert isinstance(found, str) and found.startswith("--container-") and words in found


def test_the_home_is_mounted_where_a_volume_holds_it() -> None:
    assert isinstance(settled(mount_home=True), Settled)
    assert isinstance(settle(ContainerWish(mount_home=True), TEMPLATE, "/users/alice"), str)


def test_a_job_may_go_without_its_home_where_no_volume_holds_it() -> None:
    assert isinstance(settle(ContainerWish(mount_home=False), TEMPLATE, "/users/alice"), Settled)
    assert "hold /home/alice" in str(settled(mount_home=False))


def test_a_root_without_write_access_is_the_jobs_choice_one_with_it_the_partitions() -> None:
    closed = replace(TEMPLATE, security_context={"readOnlyRootFilesystem": True})
    assert settle(ContainerWish(writable=False), TEMPLATE, "/") == Settled(image="site/base:1", read_only=True)
    assert "root without write access" in str(settle(ContainerWish(writable=True), closed, "/"))


def test_a_job_is_refused_when_one_of_its_partitions_cannot_do_what_it_asks() -> None:
    able = Capabilities(containers=True, templates={"bare": PodTemplate(image="x")}, base=TEMPLATE)
    request = JobRequest(container_mounts="/data/a:/b")
    assert why_not(request, ("any",), "/", able) is None
    assert why_not(request, ("any", "bare"), "/", able) == (
        "--container-mounts=/data/a:/b: no volume of the partition holds /data/a (partition bare)"
    )


def test_where_jobs_have_no_containers_only_a_job_that_asks_for_none_is_taken() -> None:
    assert why_not(JobRequest(), ("any",), "/", VIRTUAL_NODES) is None
    assert why_not(JobRequest(container_image="x"), ("any",), "/", VIRTUAL_NODES) is not None


def test_a_partition_without_image_needs_one_from_the_job() -> None:
    assert isinstance(settle(ContainerWish(), PodTemplate(), "/"), str)
    assert settle(ContainerWish(image="x"), PodTemplate(), "/") == Settled(image="x")
