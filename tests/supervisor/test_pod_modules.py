"""What a pod has of ours needs nothing but the standard library, whenever it imports it."""

from __future__ import annotations

from pathlib import Path

import pytest

import slurmbridge
from k8s.supervisor import modules
from slurmbridge.manifest import pod_env, pod_site
from slurmbridge.supervisor import pod_env as inside
from slurmbridge.supervisor import pod_place

ROOT = Path(str(slurmbridge.__file__)).parents[1]


def test_all_that_the_entries_import_is_ours_or_the_standard_librarys() -> None:
    own, standard = modules.ours(ROOT)
    assert {
        "slurmbridge.supervisor.pod_head",
        "slurmbridge.cli.srun_client",
        "slurmbridge.cli.allocated",
        "slurmbridge",
    } <= own
    assert {"ssl", "socket", "hmac"} <= standard
    assert not {
        name for name in own if name.startswith(("slurmbridge.daemon", "slurmbridge.model", "slurmbridge.commands"))
    }


def test_a_module_that_a_pod_does_not_have_is_an_error(tmp_path: Path) -> None:
    for name in modules.ENTRIES:
        path = modules.path_of(tmp_path, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("import os\n")
    assert modules.ours(tmp_path)[1] == {"os"}
    modules.path_of(tmp_path, modules.ENTRIES[0]).write_text("def f():\n    import msgspec\n")
    with pytest.raises(modules.NotInPods, match="msgspec"):
        modules.ours(tmp_path)


def test_pods_are_made_for_the_places_that_the_supervisor_knows() -> None:
    """It cannot import what makes them, nor they it."""
    assert f"{pod_site.ROOT}/commands" == inside.COMMANDS
    assert (inside.OF_THE_CONTAINER, inside.OF_THE_SYSTEM) == (pod_env.OF_THE_CONTAINER, pod_env.OF_THE_SYSTEM)
    assert pod_place.BASE.startswith("/dev/shm/")
    assert f"{pod_site.ROOT}/lib/slurmbridge/supervisor/pod.py" == pod_site.PROGRAM
