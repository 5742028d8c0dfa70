"""The chart on a real cluster: its objects are accepted, and its rights are those that the daemon needs and no others."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from cluster.driver import Cluster
from cluster.pods import Namespace

from k8s.render import objects
from slurmbridge.runtime.kube import place
from slurmbridge.runtime.kube.faults import ApiFault, Kind

pytestmark = [pytest.mark.root, pytest.mark.slow]
VALUES = {"networkPolicy": {"enabled": True}, "login": {"enabled": True}, "users": {"passwd": "a:x:9:9::/:/bin/sh"}}
AGENT = {"login": {"enabled": True, "agent": {"secret": "agent"}}}


@pytest.fixture
def installed(cluster: Cluster, space: Namespace, tmp_path: Path) -> Iterator[Path]:
    """All of the chart but its daemon; a kubeconfig with the daemon's token."""
    made = objects(VALUES, namespace=space.name)
    rights = [each for each in made if each["kind"] != "StatefulSet"]
    made += [each for each in objects(AGENT, namespace=space.name) if each["kind"] == "Deployment"]
    for name, part in (("all", made), ("rights", rights)):
        (tmp_path / name).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": part}))
    try:
        cluster.kubectl("apply", "--dry-run=server", "--validate=strict", f"--filename={tmp_path}/all")
        cluster.kubectl("apply", f"--filename={tmp_path}/rights")
        token = space.kubectl("create", "token", "slurmbridge").strip()
        config = yaml.safe_load(cluster.kubeconfig.read_text())
        config["users"] = [{"name": each["name"], "user": {"token": token}} for each in config["users"]]
        (tmp_path / "config").write_text(yaml.safe_dump(config))
        yield tmp_path / "config"
    finally:
        cluster.kubectl("delete", f"--filename={tmp_path}/rights", "--ignore-not-found")


def test_the_daemon_s_account_has_all_rights_that_it_needs_and_not_those_over_secrets(
    installed: Path, space: Namespace
) -> None:
    there = place.find(str(installed), space.name)
    try:
        assert place.check(there) == []
        for path in (
            f"/api/v1/namespaces/{space.name}/secrets",
            "/api/v1/namespaces",
            "/api/v1/namespaces/default/services",
        ):
            with pytest.raises(ApiFault) as caught:
                there.api.get(path)
            assert caught.value.kind is Kind.FORBIDDEN
    finally:
        there.api.close()
