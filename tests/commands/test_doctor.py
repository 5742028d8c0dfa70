"""The doctor's checks: each trouble is found, named, and comes with what to do; where there is none, all is ok."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from slurmbridge.commands import doctor, doctor_kube, doctor_machine
from slurmbridge.model.examination import Claim, Examined, ExaminedNode, Finding, Lacking, Level, Machine
from slurmbridge.model.pods import PodTemplate

FINE = Machine(
    python=(3, 11, 2), sqlite=(3, 40, 1), scripts="/opt/sb/bin", first_sbatch="/opt/sb/bin/sbatch", uid=1000,
    state="/home/alice/state", state_exists=True, state_owner=1000, state_mode=0o700, state_filesystem="ext4", free_mib=5000,
    open_files=1024, daemon_pid=12, daemon_answers=True, address="unix:/s",
)  # fmt: skip
NODE = ExaminedNode(
    name="n1", kubelet=(1, 37), runtime="containerd://2.1.9", devices={"nvidia.com/gpu": (8, 8)},
    labels={"nvidia.com/gpu.memory": "81920", "kubernetes.io/os": "linux"},
)  # fmt: skip
HOME = PodTemplate(
    image="debian:12", supervisor_image="sup:1", volumes=({"name": "home", "persistentVolumeClaim": {"claimName": "home"}},),
    volume_mounts=({"name": "home", "mountPath": "/home"},),
)  # fmt: skip
CLUSTER = Examined(
    server="https://k:6443", namespace="jobs", release=(1, 37), nodes=(NODE, replace(NODE, name="n2")), skew_s=0.3,
    level="restricted", claims=(Claim(name="home", is_there=True, phase="Bound", access_modes=("ReadWriteMany",)),),
    templates={"batch": HOME},
)  # fmt: skip


def bad(findings: Sequence[Finding]) -> list[tuple[Level, str]]:
    return [(finding.level, finding.check) for finding in findings if finding.level is not Level.OK]


def test_a_machine_without_trouble_gives_only_good_news() -> None:
    assert bad(doctor_machine.judge(FINE)) == []


def test_records_on_a_server_are_told_and_need_no_file_system_of_their_own() -> None:
    elsewhere = replace(FINE, state_filesystem="nfs4", database="PostgreSQL x at db port 5432, release 15")
    findings = doctor_machine.judge(elsewhere)
    assert bad(findings) == [] and "records: PostgreSQL x at db port 5432, release 15" in [one.text for one in findings]


@pytest.mark.parametrize(
    ("change", "level", "check", "words"),
    [
        ({"python": (3, 10, 1)}, Level.ERROR, "python", "too old"),
        ({"sqlite": (3, 34, 0)}, Level.ERROR, "sqlite", "too old"),
        ({"has_bash": False}, Level.ERROR, "commands.bash", "/bin/bash"),
        ({"has_commands": False}, Level.ERROR, "commands", "no sbatch"),
        ({"first_sbatch": ""}, Level.ERROR, "commands", "not on PATH"),
        ({"first_sbatch": "/usr/bin/sbatch"}, Level.WARNING, "commands", "another one: /usr/bin/sbatch"),
        ({"planner": "libx.so: cannot open"}, Level.ERROR, "planner", "no job ever would: libx.so: cannot open"),
        ({"state_writable": False}, Level.ERROR, "state", "cannot be written"),
        ({"state_owner": 0}, Level.ERROR, "state", "another user's"),
        ({"state_mode": 0o777}, Level.ERROR, "state", "others may write"),
        ({"state_filesystem": "nfs4"}, Level.ERROR, "state.filesystem", "many machines (nfs4)"),
        ({"state_filesystem": "tmpfs"}, Level.WARNING, "state.filesystem", "in memory"),
        ({"free_mib": 10}, Level.ERROR, "state.disk", "10 MiB"),
        (
            {"database_fault": "PostgreSQL x at db port 5432: refused"},
            Level.ERROR,
            "database",
            "x at db port 5432: refused",
        ),
        (
            {"database": "PostgreSQL x", "database_doubt": "x: fsync off"},
            Level.WARNING,
            "database.durable",
            "fsync off",
        ),
        ({"open_files": 256}, Level.WARNING, "files", "256"),
        ({"namespaces": False}, Level.WARNING, "namespaces", "do not resolve"),
        ({"configuration": "slurm.conf:3: no"}, Level.ERROR, "configuration", "slurm.conf:3"),
        ({"mail_program": "/bin/mail", "mail_program_runs": False}, Level.WARNING, "mail", "/bin/mail"),
        ({"daemon_answers": False}, Level.ERROR, "daemon", "does not answer"),
        ({"certificate_mode": 0o644}, Level.ERROR, "certificate", "others can read"),
        ({"certificate_mode": 0o600, "certificate_fault": "torn"}, Level.ERROR, "certificate", "torn"),
    ],
)
def test_trouble_of_a_machine_is_found(change: dict[str, Any], level: Level, check: str, words: str) -> None:
    findings = doctor_machine.judge(replace(FINE, **change))
    assert bad(findings) == [(level, check)]
    (found,) = [finding for finding in findings if finding.level is not Level.OK]
    assert words in found.text and found.advice


def test_host_names_of_virtual_nodes_do_not_matter_where_jobs_are_pods() -> None:
    assert bad(doctor_machine.judge(replace(FINE, namespaces=False), virtual=False)) == []


def test_a_cluster_without_trouble_gives_only_good_news() -> None:
    assert bad(doctor_kube.judge(CLUSTER)) == []


def of(**template: Any) -> dict[str, Any]:
    return {"templates": {"batch": replace(HOME, **template)}}


OLD = replace(NODE, name="n9", kubelet=(1, 33))
OLD_RUNTIME = replace(NODE, name="n9", runtime="containerd://1.7.20")
TROUBLES: list[tuple[dict[str, Any], list[tuple[Level, str]], str]] = [
    ({"fault": "connection refused"}, [(Level.ERROR, "kube.server")], "refused"),
    ({"release": (1, 30)}, [(Level.ERROR, "kube.server")], "too old"),
    ({"skew_s": -5.0}, [(Level.WARNING, "kube.clock")], "5 s behind"),
    ({"skew_s": 90.0}, [(Level.ERROR, "kube.clock")], "90 s before"),
    ({"lacking": None}, [(Level.WARNING, "kube.rights")], "does not tell"),
    ({"lacking": (Lacking(what="create of pods", without=""),)}, [(Level.ERROR, "kube.rights")], "no job can run"),
    ({"lacking": (Lacking(what="list of pods", without="it is dark"),)}, [(Level.WARNING, "kube.rights")], "without: it is dark"),
    ({"level": None}, [(Level.WARNING, "kube.security")], "not known"),
    ({"level": ""}, [(Level.WARNING, "kube.security")], "no level"),
    ({"level": "baseline"}, [(Level.WARNING, "kube.security")], "enforces baseline"),
    (of(host_network=True), [(Level.ERROR, "kube.security")], "hostNetwork"),
    ({**of(host_network=True), "level": None}, [(Level.WARNING, "kube.security")] * 2, "leaves the restricted level"),
    (of(security_context={"capabilities": {"add": ["SYS_ADMIN"]}}), [(Level.ERROR, "kube.security")], "SYS_ADMIN"),
    (of(supervisor="hostPath", supervisor_image=""), [(Level.ERROR, "kube.security")], "supervisor hostPath"),
    (of(supervisor_image=""), [(Level.ERROR, "kube.supervisor")], "supervisorImage"),
    (of(image=""), [(Level.WARNING, "kube.image")], "--container-image"),
    ({"nodes": (NODE, OLD)}, [(Level.ERROR, "kube.supervisor")], "n9"),
    ({"nodes": (NODE, OLD_RUNTIME)}, [(Level.ERROR, "kube.supervisor")], "n9"),
    ({"nodes": (OLD,), "release": (1, 34), **of(supervisor="image")}, [(Level.ERROR, "kube.supervisor")], "no image volumes"),
    ({"nodes": None}, [(Level.WARNING, "kube.nodes")], "cannot be listed"),
    ({"nodes": ()}, [(Level.ERROR, "kube.nodes")], "no nodes"),
    ({"nodes": (NODE, replace(NODE, name="n2", is_ready=False))}, [(Level.WARNING, "kube.nodes")], "n2"),
    ({"nodes": (replace(NODE, labels={**NODE.labels, "kubernetes.io/os": "windows"}),)}, [(Level.WARNING, "kube.nodes")], "not Linux"),
    ({"nodes": (replace(NODE, devices={"nvidia.com/gpu": (8, 6)}),)}, [(Level.WARNING, "kube.devices")], "2 of 8 nvidia.com/gpu on n1"),
    ({"nodes": (NODE,), "tainted": ("gpu-0 on n1 (x:NoSchedule)",)}, [(Level.WARNING, "kube.devices")], "gpu-0 on n1 (x:NoSchedule)"),
    ({"nodes": (replace(NODE, labels={}),)}, [(Level.WARNING, "kube.devices.memory")], "n1"),
    ({"nodes": (replace(NODE, devices={}, labels={"nvidia.com/gpu.present": "true"}),)}, [(Level.WARNING, "kube.devices")], "offers none"),
    ({"claims": (Claim(name="home", is_there=False),)}, [(Level.ERROR, "kube.storage")], "no claim home"),
    ({"claims": (Claim(name="home", is_there=True, phase="Pending"),)}, [(Level.WARNING, "kube.storage")], "Pending"),
    (
        {"claims": (Claim(name="home", is_there=True, phase="Bound", access_modes=("ReadWriteOnce",)),)},
        [(Level.WARNING, "kube.storage")], "one node only",
    ),
    (of(volumes=(), volume_mounts=()), [(Level.WARNING, "kube.storage")], "no volume that nodes share"),
    (of(volume_mounts=({"name": "home", "mountPath": "/data"},)), [(Level.WARNING, "kube.storage")], "does not mount /home"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected", "words"), TROUBLES, ids=[words for _, _, words in TROUBLES])
def test_trouble_of_a_cluster_is_found(change: dict[str, Any], expected: list[tuple[Level, str]], words: str) -> None:
    findings = doctor_kube.judge(replace(CLUSTER, **change))
    assert bad(findings) == expected
    assert any(words in finding.text + finding.advice for finding in findings if finding.level is not Level.OK)
    assert all(finding.advice for finding in findings if finding.level is Level.ERROR)


def test_devices_that_nodes_offer_are_told() -> None:
    assert any("16 nvidia.com/gpu" in finding.text for finding in doctor_kube.judge(CLUSTER))


def test_a_namespace_is_not_called_good_beside_a_partition_that_it_refuses() -> None:
    findings = doctor_kube.judge(replace(CLUSTER, **of(supervisor="hostPath")))
    assert [finding.level for finding in findings if finding.check == "kube.security"] == [Level.ERROR]


def test_nothing_is_said_of_devices_where_nodes_cannot_be_listed() -> None:
    findings = doctor_kube.judge(replace(CLUSTER, nodes=None))
    assert not any(finding.check.startswith("kube.devices") for finding in findings)


def test_slices_of_devices_are_devices() -> None:
    sliced = replace(
        NODE, devices={"nvidia.com/mig-1g.10gb": (7, 7)}, labels={"nvidia.com/gpu.present": "true"}
    )  # fmt: skip
    assert bad(doctor_kube.judge(replace(CLUSTER, nodes=(sliced,)))) == []


@pytest.mark.parametrize(
    ("levels", "code"), [([], 0), ([Level.OK, Level.WARNING], 0), ([Level.WARNING, Level.ERROR], 1)]
)
def test_only_what_does_not_work_fails(levels: list[Level], code: int) -> None:
    assert doctor.exit_code([Finding(level=level, check="x", text="y") for level in levels]) == code


def test_findings_are_a_line_each_with_what_to_do_below() -> None:
    findings = [doctor.ok("a", "fine"), doctor.error("b", "broken", "mend it"), doctor.warning("c", "so so")]
    lines = ["ok       fine", "ERROR    broken", "         -> mend it", "warning  so so", "1 errors, 1 warnings"]
    assert doctor.text(findings).splitlines() == lines


def test_findings_are_one_object_for_programs() -> None:
    told = json.loads(doctor.document([doctor.error("b", "broken", "mend it")]))
    assert told == {
        "findings": [{"level": "error", "check": "b", "text": "broken", "advice": "mend it"}],
        "counts": {"ok": 0, "warning": 0, "error": 1},
    }
