"""Pods of a run: what they are made of, and what they may do."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmbridge.lang.containers import Bind
from slurmbridge.manifest import pod_devices, pod_names
from slurmbridge.manifest.pod import RunObjects, build
from slurmbridge.manifest.pod_container import Settled
from slurmbridge.manifest.pod_env import in_pods
from slurmbridge.manifest.pod_limits import LIMITERS
from slurmbridge.manifest.pod_resources import resource_of
from slurmbridge.manifest.pod_security import departures
from slurmbridge.manifest.pod_site import PodSite
from slurmbridge.model.cluster import Device
from slurmbridge.model.pods import Manifest, PodTemplate
from slurmbridge.model.run import Launch, LaunchNode, RunKey

SITE = PodSite(instance="prod", namespace="jobs", daemon="ctl:6820", pin="ab", supervisor_image="reg/sb:1")
Object = dict[str, Any]


def launch(*nodes: LaunchNode, **changes: Any) -> Launch:
    values: dict[str, Any] = {
        "key": RunKey(12, 1), "uid": 1001, "gid": 100, "groups": (100, 2000, 50), "user": "alice", "home": "/home/alice",
        "shell": "/bin/bash", "nodes": nodes or (LaunchNode(rank=0, node="n1", cpus=4, memory_mib=2048),), "script": b"#!",
        "work_dir": "/home/alice", "umask": 0o022, "std_in": "/dev/null", "std_out": "o", "std_err": "", "append": False,
        "pattern_values": (), "kill_wait_s": 30, "epoch": "5", "partition": "gpu", "job_name": "Tom's job",
    }  # fmt: skip
    return Launch(**{**values, **changes})


GANG = (LaunchNode(rank=0, node="n1.site", cpus=1), LaunchNode(rank=1, node="n2.site", cpus=1))


def built(
    given: Launch, template: PodTemplate = PodTemplate(image="base"), site: PodSite = SITE, **more: Any
) -> RunObjects:
    container = more.pop("container", Settled(image=template.image))
    return build(given, template, site, container, **more)


def pod(*args: Any, **more: Any) -> Object:
    return cast(Object, built(*args, **more).pods[0])


def container(made: Object) -> Object:
    return cast(Object, made["spec"]["containers"][0])


def test_a_job_of_one_node_makes_one_pod_and_nothing_else() -> None:
    made = built(launch())
    assert (len(made.pods), made.service) == (1, None)


def test_a_pod_is_made_for_its_node_and_never_restarted() -> None:
    spec = pod(launch())["spec"]
    assert (spec["nodeName"], spec["restartPolicy"]) == ("n1", "Never")


def test_a_pod_is_named_and_labelled_by_numbers_alone_and_texts_are_annotations() -> None:
    metadata = pod(launch())["metadata"]
    assert metadata["name"] == "sb-prod-12-1-0"
    assert metadata["labels"] == {
        "slurmbridge.io/instance": "prod", "slurmbridge.io/job": "12", "slurmbridge.io/restart": "1",
        "slurmbridge.io/rank": "0", "slurmbridge.io/uid": "1001",
    }  # fmt: skip
    assert metadata["annotations"][pod_names.JOB_NAME] == "Tom's job"


def test_a_pod_that_ended_stays_until_its_end_is_settled() -> None:
    assert pod(launch())["metadata"]["finalizers"] == [pod_names.HOLD]


def test_a_pod_runs_as_its_submitter_at_the_restricted_level() -> None:
    made = pod(launch())
    assert made["spec"]["securityContext"] == {
        "seccompProfile": {"type": "RuntimeDefault"}, "supplementalGroupsPolicy": "Strict", "runAsUser": 1001,
        "runAsGroup": 100, "runAsNonRoot": True, "supplementalGroups": [50, 2000],
    }  # fmt: skip
    assert container(made)["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert made["spec"]["automountServiceAccountToken"] is False
    assert departures(PodTemplate()) == ()


@pytest.mark.parametrize(("read_only", "partition"), [(True, False), (None, True)])
def test_a_root_without_write_access_leaves_programs_a_tmp(read_only: bool | None, partition: bool) -> None:
    template = PodTemplate(image="base", security_context={"readOnlyRootFilesystem": True} if partition else {})
    made = pod(launch(), template, container=Settled(image="base", read_only=read_only))
    assert container(made)["securityContext"]["readOnlyRootFilesystem"] is True
    assert {"name": "slurmbridge-tmp", "mountPath": "/tmp"} in container(made)["volumeMounts"]
    assert {"name": "slurmbridge-tmp", "emptyDir": {}} in made["spec"]["volumes"]


def test_a_partition_with_a_tmp_of_its_own_gets_no_other() -> None:
    scratch: Manifest = {"name": "s", "mountPath": "/tmp/"}
    template = PodTemplate(image="base", volumes=({"name": "s", "emptyDir": {}},), volume_mounts=(scratch,))
    made = pod(launch(), template, container=Settled(image="base", read_only=True))
    assert [mount["mountPath"] for mount in container(made)["volumeMounts"]].count("/tmp") == 0


def test_a_partition_never_says_as_whom_pods_run() -> None:
    template = PodTemplate(image="base", security_context={"runAsUser": 0, "fsGroup": 7})
    context = pod(launch(), template)["spec"]["securityContext"]
    assert (context["runAsUser"], context["fsGroup"]) == (1001, 7)


@pytest.mark.parametrize(
    ("template", "setting"),
    [
        (PodTemplate(host_network=True), "hostNetwork"),
        (PodTemplate(volumes=({"name": "h", "hostPath": {"path": "/h"}},)), "volumes h"),
        (PodTemplate(volumes=({"name": "h", "nfs": {"server": "s", "path": "/h"}},)), "volumes h"),
        (PodTemplate(security_context={"privileged": True}), "securityContext privileged"),
        (PodTemplate(security_context={"allowPrivilegeEscalation": True}), "securityContext allowPrivilegeEscalation"),
        (PodTemplate(security_context={"capabilities": {"add": ["IPC_LOCK"]}}), "securityContext capabilities"),
        (PodTemplate(security_context={"capabilities": {"drop": []}}), "securityContext capabilities"),
        (PodTemplate(security_context={"seccompProfile": {"type": "Unconfined"}}), "securityContext seccompProfile"),
        (PodTemplate(security_context={"procMount": "Unmasked"}), "securityContext procMount"),
        (PodTemplate(security_context={"appArmorProfile": {"type": "Unconfined"}}), "securityContext appArmorProfile"),
        (
            PodTemplate(security_context={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
            "securityContext sysctls",
        ),
        (PodTemplate(security_context={"seLinuxOptions": {"role": "r"}}), "securityContext seLinuxOptions"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_setting_that_leaves_the_restricted_level_is_listed(template: PodTemplate, setting: str) -> None:
    assert [each.setting for each in departures(template)] == [setting]


def test_requests_are_limits_and_both_are_the_allocation() -> None:
    node = LaunchNode(rank=0, node="n1", cpus=4, memory_mib=2048, devices=((2, 1000, 0), (5, 1000, 0)))
    found = container(pod(launch(node), PodTemplate(image="base", resources=(("rdma/ib", "1"),))))["resources"]
    assert found["requests"] == found["limits"] == {
        "cpu": "4", "memory": "2048Mi", "nvidia.com/gpu": "2", "rdma/ib": "1",
    }  # fmt: skip


def test_slices_are_asked_by_their_own_resource() -> None:
    node = LaunchNode(rank=0, node="n1", cpus=1, devices=((0, 1000, 0), (1, 1000, 0), (4, 1000, 0)),
                      device_resources=("nvidia.com/mig-1g.10gb", "nvidia.com/mig-1g.10gb", ""))  # fmt: skip
    found = container(pod(launch(node)))["resources"]
    assert found["limits"] == {"cpu": "1", "nvidia.com/mig-1g.10gb": "2", "nvidia.com/gpu": "1"}


@pytest.mark.parametrize(
    ("device", "resource"),
    [
        (Device(type="a100"), ""),
        (Device(type="1g.10gb"), "nvidia.com/mig-1g.10gb"),
        (Device(type="a100_3g.20gb"), "nvidia.com/mig-3g.20gb"),
        (Device(type="1g.10gb+me"), "nvidia.com/mig-1g.10gb.me"),
        (Device(type="1g.10gb", resource="nvidia.com/gpu"), "nvidia.com/gpu"),
    ],
    ids=lambda value: value.type if isinstance(value, Device) else "",
)
def test_the_resource_of_a_device_is_what_the_cluster_said_or_its_profile(device: Device, resource: str) -> None:
    assert resource_of(device) == resource


SHARED = LaunchNode(rank=0, node="n1", cpus=1, devices=((0, 500, 8192), (3, 250, 4096)))
GIVEN = [("GPU-a", "GPU-b")]


def test_a_shared_device_is_named_and_not_asked_for() -> None:
    made = container(pod(launch(SHARED), devices=GIVEN))
    assert "nvidia.com/gpu" not in made["resources"]["limits"]
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "GPU-a,GPU-b"} in made["env"]


def test_a_pod_tells_which_slots_it_shares_as_which_devices() -> None:
    notes = pod(launch(SHARED), devices=GIVEN)["metadata"]["annotations"]
    assert pod_devices.read(notes[pod_devices.SHARES]) == ((("n1", 0), "GPU-a"), (("n1", 3), "GPU-b"))
    assert pod_devices.SHARES not in pod(launch())["metadata"]["annotations"]


slots = st.tuples(st.from_regex(r"[a-z0-9][a-z0-9.-]{0,30}", fullmatch=True), st.integers(0, 500))
ids = st.from_regex(r"[A-Za-z0-9:/_-]{1,40}", fullmatch=True)


@given(st.lists(st.tuples(slots, ids), max_size=9))
def test_what_is_told_of_shares_is_read_again(shares: list[tuple[tuple[str, int], str]]) -> None:
    text = pod_devices.told([slot for slot, _ in shares], [device for _, device in shares])
    assert pod_devices.read(text) == tuple(shares)


@given(st.text(max_size=60))
def test_any_text_of_shares_is_read_without_a_fault(text: str) -> None:
    pod_devices.read(text)


def test_without_a_limiter_nothing_says_how_much_memory_is_whose() -> None:
    made = container(pod(launch(SHARED), devices=GIVEN))
    assert {each["name"] for each in made["env"]} == {"NVIDIA_VISIBLE_DEVICES"}


def env_of(made: Object) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container(made)["env"]}


def test_mps_limits_each_process_by_the_devices_as_it_sees_them() -> None:
    made = pod(launch(SHARED), PodTemplate(image="base", gpu_sharing="mps"), devices=GIVEN)
    found = env_of(made)
    assert found["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == "0=8192M,1=4096M"
    assert found["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "25"
    places = {mount["name"]: mount["mountPath"] for mount in container(made)["volumeMounts"]}
    assert places["slurmbridge-mps"] == found["CUDA_MPS_PIPE_DIRECTORY"]
    shm = next(each for each in made["spec"]["volumes"] if each["name"] == "slurmbridge-shm")
    assert shm["hostPath"]["path"] == "/run/nvidia/mps/shm"  # its daemon and its clients meet there


def test_hami_core_is_loaded_by_the_job_and_not_by_its_supervisor() -> None:
    template = PodTemplate(image="base", gpu_sharing="hami-core")
    found = env_of(pod(launch(SHARED), template, devices=GIVEN))
    assert (found["CUDA_DEVICE_MEMORY_LIMIT_0"], found["CUDA_DEVICE_MEMORY_LIMIT_1"]) == ("8192m", "4096m")
    assert "LD_PRELOAD" not in found
    inside = in_pods(launch(SHARED), ["n1"], host_software=True, named=frozenset(), gpu_sharing="hami-core")
    for env in (inside.env, inside.base_env):
        assert ("LD_PRELOAD", "/usr/local/vgpu/libvgpu.so") in env


@pytest.mark.parametrize("name", ["mps", "hami-core"])
def test_a_job_brings_along_nothing_that_would_lift_its_limit(name: str) -> None:
    typed = tuple((key, "typed") for key in (
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "CUDA_MPS_PIPE_DIRECTORY", "CUDA_DEVICE_MEMORY_LIMIT_0", "CUDA_DISABLE_CONTROL",
        "LD_PRELOAD", "MINE",
    ))  # fmt: skip
    limiter = LIMITERS[name]
    asked = launch(SHARED, env=typed)
    inside = dict(in_pods(asked, ["n1"], host_software=True, named=frozenset(), gpu_sharing=name).env)
    assert not [key for key, value in inside.items() if limiter.kept.fullmatch(key) and value == "typed"]
    assert inside["MINE"] == "typed"


@pytest.mark.parametrize("name", LIMITERS)
def test_a_job_that_shares_nothing_is_not_limited(name: str) -> None:
    whole = LaunchNode(rank=0, node="n1", cpus=1, devices=((0, 1000, 0),))
    template = PodTemplate(image="base", gpu_sharing=name)
    assert pod(launch(whole), template) == pod(launch(whole))


@pytest.mark.parametrize("name", ["mps", "hami-core"])
def test_a_limiter_that_mounts_folders_of_a_node_leaves_the_restricted_level(name: str) -> None:
    assert {each.setting for each in departures(PodTemplate(gpu_sharing=name))} == {f"gpuSharing {name}"}


def test_a_job_without_devices_sees_none_whatever_image_and_partition_say() -> None:
    template = PodTemplate(image="base", env=({"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},))
    assert container(pod(launch(), template))["env"] == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]


def test_shared_memory_is_as_large_as_the_jobs_memory() -> None:
    volumes = {each["name"]: each for each in pod(launch())["spec"]["volumes"]}
    assert volumes["slurmbridge-shm"]["emptyDir"] == {"medium": "Memory", "sizeLimit": "2048Mi"}


def test_the_ranks_of_a_gang_have_names_that_a_headless_service_tells_early() -> None:
    made = built(launch(*GANG))
    service = cast(Object, made.service)
    spec = cast(Object, made.pods[1])["spec"]
    assert (spec["hostname"], spec["subdomain"]) == ("n2", service["metadata"]["name"])
    assert spec["dnsConfig"] == {"searches": ["sb-prod-12-1.jobs.svc.cluster.local"]}
    assert (service["spec"]["clusterIP"], service["spec"]["publishNotReadyAddresses"]) == ("None", True)
    assert service["spec"]["selector"].items() <= cast(Object, made.pods[1])["metadata"]["labels"].items()


@pytest.mark.parametrize("way", ["image", "copy", "hostPath"])
def test_the_supervisor_comes_into_any_image(way: str) -> None:
    made = pod(launch(), site=msgspec.structs.replace(SITE, supervisor=way))
    spec = made["spec"]
    (volume,) = [each for each in spec["volumes"] if each["name"] == "slurmbridge"]
    assert {"name": "slurmbridge", "mountPath": "/opt/slurmbridge", "readOnly": True} in container(made)["volumeMounts"]
    assert ("initContainers" in spec) == (way == "copy")
    assert volume.keys() - {"name"} == {{"image": "image", "copy": "emptyDir", "hostPath": "hostPath"}[way]}


def test_nothing_of_the_script_or_its_environment_is_in_a_pod() -> None:
    made = pod(launch(script=b"secret words", env=(("TOKEN", "secret words"),)))
    assert b"secret words" not in msgspec.json.encode(made)


def test_a_token_names_the_pod_and_is_for_the_daemon_alone() -> None:
    (volume,) = [each for each in pod(launch())["spec"]["volumes"] if each["name"] == "slurmbridge-token"]
    (source,) = volume["projected"]["sources"]
    assert source["serviceAccountToken"]["audience"] == "slurmbridge"


def test_a_users_mount_is_compared_with_what_the_user_can_reach() -> None:
    chosen = Settled(image="x", binds=(Bind(source="/home/a", target="/in"),))
    args = container(pod(launch(), container=chosen))["args"]
    assert args[args.index("--same") :] == ["--same", "/home/a", "/in"]


def test_the_same_launch_gives_the_same_objects_and_another_gives_other_hashes() -> None:
    def hash_of(made: Object) -> str:
        return str(made["metadata"]["annotations"][pod_names.HASH])

    assert built(launch()) == built(launch())
    assert hash_of(pod(launch())) != hash_of(pod(launch(), PodTemplate(image="other")))


def test_variables_of_the_host_stay_outside_unless_its_software_is_mounted_or_the_job_names_them() -> None:
    env = (
        ("A", "1"), ("PATH", "/opt/x"), ("LD_LIBRARY_PATH", "/l"), ("HOSTNAME", "n1.site"), ("KUBERNETES_PORT", "1"),
        ("NVIDIA_VISIBLE_DEVICES", "all"), ("SLURM_JOB_ID", "12"),
    )  # fmt: skip

    def names(host_software: bool, named: frozenset[str] = frozenset()) -> dict[str, str]:
        return dict(in_pods(launch(env=env), ["n1"], host_software=host_software, named=named).env)

    assert names(False) == {"A": "1", "HOSTNAME": "n1", "SLURM_JOB_ID": "12"}
    assert names(True).keys() - names(False).keys() == {"PATH", "LD_LIBRARY_PATH"}
    assert names(False, frozenset({"PATH", "NVIDIA_VISIBLE_DEVICES"})).keys() - names(False).keys() == {"PATH"}


def test_devices_in_a_container_are_counted_from_0() -> None:
    node = LaunchNode(rank=0, node="n1", cpus=1, devices=((3, 500, 0), (6, 500, 0)), device_files=("/dev/a", "/dev/b"))
    found = in_pods(
        launch(node, env=(("CUDA_VISIBLE_DEVICES", "3,6"), ("SLURM_JOB_GPUS", "3,6"))), ["n1"], host_software=False,
        named=frozenset(),
    )  # fmt: skip
    assert found.nodes[0].devices == ((0, 500, 0), (1, 500, 0))
    assert dict(found.env) == {"CUDA_VISIBLE_DEVICES": "0,1", "SLURM_JOB_GPUS": "3,6", "HOSTNAME": "n1"}
