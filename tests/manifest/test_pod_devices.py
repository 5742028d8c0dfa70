"""The pod that holds a device for its sharers, and what it says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from slurmbridge.manifest import pod_names
from slurmbridge.manifest.pod_devices import PARTING_S, PROTECTED_S, holder, holder_name, id_of, slot_of
from slurmbridge.manifest.pod_site import PodSite
from slurmbridge.model.pods import PodTemplate
from slurmbridge.supervisor import device

SITE = PodSite(instance="prod", namespace="jobs", daemon="ctl:6820", pin="ab", supervisor_image="reg/sb:1")
GPU = "nvidia.com/gpu"
PROGRAM = str(Path(device.__file__))


def made(template: PodTemplate = PodTemplate()) -> dict[str, Any]:
    return cast(dict[str, Any], holder(("n1.site", 3), GPU, template, SITE))


def test_a_holder_owns_the_whole_device_and_belongs_to_no_job() -> None:
    pod = made()
    assert all(each["resources"]["limits"][GPU] == "1" for each in pod["spec"]["containers"])
    assert pod_names.JOB not in pod["metadata"]["labels"]
    assert pod["spec"]["nodeName"] == "n1.site"


def test_its_init_container_has_the_device_that_it_keeps() -> None:
    teller, keeper = made()["spec"]["initContainers"][0], made()["spec"]["containers"][0]
    assert teller["resources"] == keeper["resources"]
    assert (teller["command"][-1], keeper["command"][-1]) == ("tell", "hold")


def test_its_name_tells_slots_apart_and_its_notes_tell_which_it_is() -> None:
    names = {holder_name("prod", slot) for slot in (("n-1", 0), ("n.1", 0), ("n-1", 1), ("n-1-0", 1))}
    assert len(names) == 4
    metadata = made()["metadata"]
    assert slot_of(metadata["labels"], metadata["annotations"]) == ("n1.site", 3)
    assert slot_of({}, metadata["annotations"]) is None


def test_who_deletes_a_holder_by_mistake_leaves_its_sharers_time() -> None:
    assert made()["spec"]["terminationGracePeriodSeconds"] == PROTECTED_S > 10 * PARTING_S


def test_a_holder_stays_on_a_node_that_is_silent_as_its_sharers_do() -> None:
    template = PodTemplate(tolerations=({"key": "gpu", "operator": "Exists"},))
    tolerated = [each["key"] for each in made(template)["spec"]["tolerations"]]
    assert tolerated == ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "gpu"]


@pytest.mark.parametrize("field", ["initContainers", "containers"])
def test_where_no_image_has_the_program_it_comes_from_the_node(field: str) -> None:
    found = made(PodTemplate(supervisor="hostPath", image="base"))["spec"]
    assert found["volumes"][0]["hostPath"]["path"] == "/opt/slurmbridge"
    assert [mount["mountPath"] for each in found[field] for mount in each["volumeMounts"]] == ["/opt/slurmbridge"]


@pytest.mark.parametrize(
    ("message", "found"),
    [("GPU-1", "GPU-1"), ("GPU-1\n", "GPU-1"), ("", ""), ("a,b", ""), ("a b", ""), ("a=b", ""), ("x" * 200, "")],
)
def test_a_message_is_a_device_or_nothing(message: str, found: str) -> None:
    assert id_of(message) == found


def tell(tmp_path: Path, **env: str) -> tuple[int, str]:
    path = tmp_path / "message"
    done = subprocess.run([sys.executable, "-I", "-S", PROGRAM, "tell", str(path)], env=env, check=False)
    return done.returncode, path.read_text()


def test_the_device_is_told_as_the_plugin_says_it(tmp_path: Path) -> None:
    assert tell(tmp_path, NVIDIA_VISIBLE_DEVICES="GPU-7") == (0, "GPU-7")


@pytest.mark.parametrize("seen", ["", "void", "all", "none", "GPU-1,GPU-2"])
def test_a_holder_that_cannot_name_one_device_fails_with_what_it_saw(tmp_path: Path, seen: str) -> None:
    code, text = tell(tmp_path, NVIDIA_VISIBLE_DEVICES=seen)
    assert code == 1 and not id_of(text)


def test_without_the_variable_mounts_and_the_drivers_files_tell(tmp_path: Path) -> None:
    (tmp_path / "mounts" / "GPU-8").mkdir(parents=True)
    assert device.told_by_mounts(str(tmp_path / "mounts")) == ["GPU-8"]
    assert device.told_by_mounts(str(tmp_path / "nothing")) == []
    (tmp_path / "0000:1b:00.0").mkdir()
    (tmp_path / "0000:1b:00.0" / "information").write_text("Model: \t H200\nGPU UUID: \t GPU-9\n")
    assert device.told_by_driver(str(tmp_path / "*" / "information")) == ["GPU-9"]


def test_a_holder_does_not_go_when_it_is_asked_to() -> None:
    process = subprocess.Popen([sys.executable, "-I", "-S", PROGRAM, "hold"])
    try:
        while "SigIgn" not in (status := Path(f"/proc/{process.pid}/status").read_text()) or not _ignores_term(status):
            assert process.poll() is None
        os.kill(process.pid, signal.SIGTERM)
        assert process.poll() is None
    finally:
        process.kill()
        assert process.wait() == -signal.SIGKILL


def _ignores_term(status: str) -> bool:
    ignored = next(line for line in status.splitlines() if line.startswith("SigIgn:")).split()[1]
    return bool(int(ignored, 16) >> (signal.SIGTERM - 1) & 1)
