"""The Helm chart: what it makes fits together, gives the daemon its rights and no others, and refuses wrong values."""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from k8s.gotemplate import Wrong
from k8s.render import CHART, main, objects, values_of
from slurmbridge.cli.main import main as main_command
from slurmbridge.cli.main import up
from slurmbridge.daemon.configuration import read_fleet
from slurmbridge.manifest.rights import RIGHTS, Where, rules

PLAIN: dict[str, Any] = {}
FULL: dict[str, Any] = yaml.safe_load((CHART / "ci/full-values.yaml").read_text())
QUIET: dict[str, Any] = yaml.safe_load((CHART / "ci/quiet-values.yaml").read_text())
AGENT: dict[str, Any] = yaml.safe_load((CHART / "ci/agent-values.yaml").read_text())
POSTGRESQL: dict[str, Any] = yaml.safe_load((CHART / "ci/postgresql-values.yaml").read_text())
CASES = pytest.mark.parametrize(
    "values", [PLAIN, FULL, QUIET, AGENT, POSTGRESQL], ids=["plain", "full", "quiet", "agent", "postgresql"]
)
CLUSTER_WIDE = {"ClusterRole", "ClusterRoleBinding"}


@functools.cache
def rendered(values: str) -> list[dict[str, Any]]:
    return objects(json.loads(values))


def of_kind(values: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    return [each for each in rendered(json.dumps(values)) if each["kind"] == kind]


def one(values: Mapping[str, Any], kind: str) -> dict[str, Any]:
    (found,) = of_kind(values, kind)
    return found


def pod(values: Mapping[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = one(values, "StatefulSet")["spec"]["template"]["spec"]
    return spec


def container(values: Mapping[str, Any], name: str = "daemon") -> dict[str, Any]:
    (found,) = [each for each in pod(values)["containers"] if each["name"] == name]
    assert isinstance(found, dict)
    return found


@CASES
def test_every_object_has_a_name_a_place_and_the_labels_by_which_it_is_found(values: dict[str, Any]) -> None:
    made = objects(values, release="one", namespace="batch")
    names = [(each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]) for each in made]
    assert len(names) == len(set(names))
    for each in made:
        assert each["apiVersion"] and each["metadata"]["labels"]["app.kubernetes.io/instance"] == "one"
        assert (each["kind"] in CLUSTER_WIDE) == ("namespace" not in each["metadata"])
        assert "one" in each["metadata"]["name"]


@CASES
@pytest.mark.parametrize("where", Where)
def test_the_roles_are_the_table_of_rights(values: dict[str, Any], where: Where) -> None:
    role = one(values, "Role" if where is Where.JOBS else "ClusterRole")
    assert sorted(role["rules"], key=json.dumps) == sorted(rules(where, RIGHTS), key=json.dumps)


@CASES
def test_rights_are_bound_to_the_daemon_alone(values: dict[str, Any]) -> None:
    account = one(values, "ServiceAccount")["metadata"]
    assert pod(values)["serviceAccountName"] == account["name"]
    for role, binding in (("Role", "RoleBinding"), ("ClusterRole", "ClusterRoleBinding")):
        bound = one(values, binding)
        assert bound["roleRef"]["name"] == one(values, role)["metadata"]["name"] and bound["roleRef"]["kind"] == role
        assert bound["subjects"] == [
            {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
        ]
        assert bound["metadata"].get("namespace") == one(values, role)["metadata"].get("namespace")


def test_a_site_may_keep_its_nodes_to_itself() -> None:
    verbs = [verb for rule in one({"jobs": {"cordonNodes": False}}, "ClusterRole")["rules"] for verb in rule["verbs"]]
    assert "patch" not in verbs


def test_rights_over_pods_are_in_the_namespace_of_the_jobs() -> None:
    assert one(FULL, "Role")["metadata"]["namespace"] == one(FULL, "RoleBinding")["metadata"]["namespace"] == "jobs"
    assert one(FULL, "ServiceAccount")["metadata"]["namespace"] == "slurmbridge"


@CASES
def test_there_is_one_daemon_and_it_is_started_with_words_that_it_knows(values: dict[str, Any]) -> None:
    assert one(values, "StatefulSet")["spec"]["replicas"] == 1
    daemon = container(values)
    known = {name for option in up.params for name in option.opts}
    words = [word.partition("=")[0] for word in daemon["command"][2:] + daemon["args"]]
    assert daemon["command"][:2] == ["slurmbridge", "up"] and set(words) <= known and len(words) == len(set(words))


@CASES
def test_the_daemon_keeps_to_the_restricted_level(values: dict[str, Any]) -> None:
    """As "Pod Security Standards" lists it."""
    spec, context = pod(values), container(values)["securityContext"]
    assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert context["runAsNonRoot"] and context["runAsUser"] > 0 and not context["allowPrivilegeEscalation"]
    assert context["capabilities"] == {"drop": ["ALL"]} and context["readOnlyRootFilesystem"]
    own = [volume for volume in spec["volumes"] if volume["name"] not in {each["name"] for each in FULL["login"]["volumes"]}]  # fmt: skip
    kinds = {kind for volume in own for kind in volume if kind != "name"}
    assert kinds <= {"configMap", "emptyDir", "persistentVolumeClaim", "projected", "secret"}


def test_people_get_a_container_only_where_it_is_asked_for_and_cannot_replace_the_socket() -> None:
    assert [each["name"] for each in pod(PLAIN)["containers"]] == ["daemon"]
    login = container(FULL, "login")
    run = next(mount for mount in login["volumeMounts"] if mount["name"] == "run")
    assert run["readOnly"] and not {"state", "config"} & {mount["name"] for mount in login["volumeMounts"]}
    assert login["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["SETGID", "SETUID"]}
    assert login["env"] == container(FULL)["env"]


def test_the_daemon_alone_sees_the_database_s_secret_and_finds_it_where_it_looks() -> None:
    assert "secret" not in {kind for volume in pod(PLAIN)["volumes"] for kind in volume}
    (volume,) = [each for each in pod(POSTGRESQL)["volumes"] if "secret" in each]
    assert volume["secret"] == {"secretName": "records-app", "defaultMode": 0o440}
    assert pod(POSTGRESQL)["securityContext"]["fsGroup"] == container(POSTGRESQL)["securityContext"]["runAsGroup"]
    (mount,) = [each for each in container(POSTGRESQL)["volumeMounts"] if each["name"] == volume["name"]]
    assert mount["readOnly"]
    said = {each["name"]: each["value"] for each in container(POSTGRESQL)["env"]}
    option = next(param for param in up.params if param.name == "database")
    assert said[str(option.envvar)] == f"{mount['mountPath']}/uri"
    login = container(POSTGRESQL, "login")
    assert volume["name"] not in {each["name"] for each in login["volumeMounts"]}
    assert option.envvar not in {each["name"] for each in login["env"]}
    other = {"store": {**POSTGRESQL["store"], "key": "url.txt"}}
    assert f"{mount['mountPath']}/url.txt" in [each["value"] for each in container(other)["env"]]


def test_a_database_without_its_secret_is_refused() -> None:
    with pytest.raises(Wrong, match=r"store\.secret is missing"):
        objects({"store": {"kind": "postgresql"}})


def test_with_an_agent_people_are_in_pods_of_their_own_and_never_see_its_credentials() -> None:
    assert [each["name"] for each in pod(AGENT)["containers"]] == ["daemon"]
    spec = one(AGENT, "Deployment")["spec"]["template"]["spec"]
    assert not spec["automountServiceAccountToken"] and "serviceAccountName" not in spec
    agent, login = spec["containers"]
    mounts = {each["name"]: {mount["name"]: mount for mount in each["volumeMounts"]} for each in (agent, login)}
    assert "credentials" in mounts["agent"] and "credentials" not in mounts["login"]
    assert "readOnly" not in mounts["agent"]["run"] and mounts["login"]["run"]["readOnly"]
    assert agent["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert login["securityContext"] == container(FULL, "login")["securityContext"]
    assert {volume["name"] for volume in spec["volumes"]} == {name for each in mounts.values() for name in each}
    (secret,) = [volume["secret"] for volume in spec["volumes"] if "secret" in volume]
    assert secret == {"secretName": "login-agent", "defaultMode": 0o400}


def test_the_agent_is_started_with_words_that_it_knows_and_finds_the_daemon() -> None:
    agent = one(AGENT, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    words = dict(word.split("=", 1) for word in agent["args"])
    known = {name for option in main_command.commands["agent"].params for name in option.opts}
    assert "slurmbridge agent" in agent["command"][2] and words.keys() <= known
    host, _, port = words["--daemon"].rpartition(":")
    service = one(AGENT, "Service")
    assert host == f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc"
    assert int(port) in [each["port"] for each in service["spec"]["ports"] if each["targetPort"] == "remote"]
    assert f"--remote=0.0.0.0:{port}" in container(AGENT)["args"]


def test_no_login_pod_is_taken_for_the_daemon_s() -> None:
    labels = one(AGENT, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert one(AGENT, "Deployment")["spec"]["selector"]["matchLabels"] == labels
    for selector in (
        one(AGENT, "Service")["spec"]["selector"],
        one(AGENT, "StatefulSet")["spec"]["selector"]["matchLabels"],
    ):
        assert not selector.items() <= labels.items()


def test_nobody_comes_in_from_afar_unless_that_is_asked_for() -> None:
    assert not [word for word in container(FULL)["args"] if word.startswith("--remote")]
    opened = {"remote": {"enabled": True, "port": 7000}}
    assert "--remote=0.0.0.0:7000" in container(opened)["args"] and not of_kind(opened, "Deployment")


@CASES
def test_what_is_mounted_is_a_volume_and_is_in_the_configuration(values: dict[str, Any]) -> None:
    spec = pod(values)
    claims = one(values, "StatefulSet")["spec"].get("volumeClaimTemplates", [])
    volumes = {volume["name"] for volume in spec["volumes"]} | {claim["metadata"]["name"] for claim in claims}
    for each in spec["containers"]:
        assert {mount["name"] for mount in each["volumeMounts"]} <= volumes
        paths = [mount["mountPath"] for mount in each["volumeMounts"]]
        assert len(paths) == len(set(paths))
    maps = {each["metadata"]["name"]: each["data"] for each in of_kind(values, "ConfigMap")}
    named = {volume["configMap"]["name"] for volume in spec["volumes"] if "configMap" in volume}
    assert named == maps.keys()
    for word in container(values)["args"]:
        if "=/etc/slurmbridge/" in word:
            assert word.rpartition("/")[2] in maps["slurmbridge"]


def test_the_configuration_is_what_was_given() -> None:
    data = next(each["data"] for each in of_kind(FULL, "ConfigMap") if "site.yaml" in each["data"])
    assert yaml.safe_load(data["site.yaml"]) == values_of(FULL)["site"]
    assert {name: data[name].strip() for name in FULL["slurmConf"]} == {
        name: text.strip() for name, text in FULL["slurmConf"].items()
    }
    users = next(each["data"] for each in of_kind(FULL, "ConfigMap") if "passwd" in each["data"])
    assert users["passwd"].splitlines()[-2:] == FULL["users"]["passwd"].replace(":x:", ":*:").splitlines()
    assert all(line.count(":") == 6 for line in users["passwd"].splitlines())
    assert all(line.count(":") == 3 for line in users["group"].splitlines())


def test_no_user_is_looked_for_among_the_passwords_of_the_image() -> None:
    """By su, which refuses whom /etc/passwd sends there and who is not there."""
    users = next(each["data"]["passwd"] for each in of_kind(FULL, "ConfigMap") if "passwd" in each["data"])
    assert {line.split(":")[1] for line in users.splitlines()} == {"*"}


def test_without_any_configuration_there_is_one_partition() -> None:
    data = one(PLAIN, "ConfigMap")["data"]
    assert yaml.safe_load(data["site.yaml"]) == {**values_of({})["site"], "partitions": {"batch": {}}}
    with_conf = one({"slurmConf": {"slurm.conf": "ClusterName=c\n"}}, "ConfigMap")["data"]
    assert yaml.safe_load(with_conf["site.yaml"]) == values_of({})["site"]


def test_a_changed_configuration_starts_the_daemon_anew_and_nothing_else_does() -> None:
    def mark(values: Mapping[str, Any]) -> str:
        text: str = one(values, "StatefulSet")["spec"]["template"]["metadata"]["annotations"]["slurmbridge.io/config"]
        return text

    marks = {mark(PLAIN), mark({"site": {"partitions": {"a": {}}}}), mark({"users": {"group": "a:x:1:"}}), mark(FULL)}
    assert len(marks) == 4 and mark(PLAIN) == mark(QUIET)


def test_whoever_names_no_container_comes_to_the_daemon_or_to_the_shell() -> None:
    for kind, meant in (("StatefulSet", "daemon"), ("Deployment", "login")):
        template = one(AGENT, kind)["spec"]["template"]
        assert template["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"] == meant
        assert meant in [each["name"] for each in template["spec"]["containers"]]


@CASES
def test_ports_have_the_same_names_everywhere(values: dict[str, Any]) -> None:
    daemon = container(values)
    ports = {port["name"]: port["containerPort"] for port in daemon["ports"]}
    service = one(values, "Service")["spec"]
    assert {port["targetPort"] for port in service["ports"]} == ports.keys()
    assert service["selector"] == one(values, "StatefulSet")["spec"]["template"]["metadata"]["labels"]
    probed = {
        (probe.get("httpGet") or probe.get("tcpSocket"))["port"]
        for name, probe in daemon.items()
        if name.endswith("Probe")
    }
    assert probed <= ports.keys()
    words = dict(word.split("=", 1) for word in daemon["args"] if "=" in word)
    assert words["--listen"].endswith(f":{ports['supervisors']}") and words["--advertise"] == f"slurmbridge.slurmbridge.svc:{ports['supervisors']}"  # fmt: skip
    assert ("--metrics" in words) == ("metrics" in ports)
    for policy in of_kind(values, "NetworkPolicy"):
        assert {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]} == ports.keys()
    for monitor in of_kind(values, "ServiceMonitor"):
        assert {end["port"] for end in monitor["spec"]["endpoints"]} <= {port["name"] for port in service["ports"]}


WRONG = [
    ({"image": {"repository": ""}}, "values.image.repository"),
    ({"image": {"pullPolicy": "Sometimes"}}, "values.image.pullPolicy"),
    ({"daemon": {"user": 0}}, "values.daemon.user"),
    ({"daemon": {"port": 70000}}, "values.daemon.port"),
    ({"daemon": {"replicas": 2}}, "values.daemon.replicas is not known"),
    ({"storage": {"size": "much"}}, "values.storage.size"),
    ({"store": {"kind": "mysql"}}, "values.store.kind"),
    ({"store": {"secret": "Not_A_Name"}}, "values.store.secret"),
    ({"store": {"key": "../x"}}, "values.store.key"),
    ({"jobs": {"namespace": "Jobs_1"}}, "values.jobs.namespace"),
    ({"slurmConf": {"../x": "y"}}, "the name values.slurmConf.../x"),
    ({"slurmConf": {"slurm.conf": ["y"]}}, "values.slurmConf.slurm.conf"),
    ({"site": {"partition": {}}}, "values.site.partition is not known"),
    ({"login": {"enabled": "yes"}}, "values.login.enabled"),
    ({"login": {"command": []}}, "values.login.command"),
    ({"login": {"agent": {"replicas": -1}}}, "values.login.agent.replicas"),
    ({"remote": {"port": 0}}, "values.remote.port"),
    ({"metrics": {"serviceMonitor": {"interval": "often"}}}, "values.metrics.serviceMonitor.interval"),
    ({"nothing": 1}, "values.nothing is not known"),
]


@pytest.mark.parametrize(("values", "place"), WRONG, ids=[place for _, place in WRONG])
def test_a_wrong_value_is_refused_with_its_place(values: dict[str, Any], place: str) -> None:
    with pytest.raises(Wrong, match=re.escape(place)):
        objects(values)


def leaves(value: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from leaves(each, (*place, key))
    else:
        yield place


def test_every_value_is_in_the_schema_is_used_and_none_is_used_that_is_not_there() -> None:
    defaults, schema = values_of({}), json.loads((CHART / "values.schema.json").read_text())
    for place in leaves(defaults):
        part: Any = schema
        for word in place:
            if not part.keys() & {"properties", "additionalProperties"}:
                break  # the product itself reads what is in there
            part = part["properties"].get(word) if part.get("properties") else part.get("additionalProperties")
            assert part is not None, place
    used = set()
    for path in (CHART / "templates").iterdir():
        used |= {tuple(found.split(".")) for found in re.findall(r"\.Values\.([\w.]+)", path.read_text())}
    known = {place[:depth] for place in leaves(defaults) for depth in range(1, len(place) + 1)}
    assert used <= known | {("site", "partitions")}  # which has no default: Helm would add it to a site's own
    assert all(any(place[: len(each)] == each for each in used) for place in leaves(defaults))


def test_the_chart_is_of_the_product_s_version() -> None:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = (CHART.parents[1] / "pyproject.toml").read_text()
    assert f'version = "{about["version"]}"' in project and about["appVersion"] == about["version"]
    assert values_of({})["site"]["defaults"]["supervisorImage"].endswith(f":{about['version']}")


@pytest.mark.parametrize("values", [PLAIN, {"site": FULL["site"]}], ids=["plain", "gpu"])
def test_the_daemon_reads_the_site_file_of_the_chart(values: dict[str, Any], tmp_path: Any) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(one(values, "ConfigMap")["data"]["site.yaml"])
    fleet = read_fleet(None, str(path))
    assert fleet.partitions and all(dict(fleet.partition_pods)[each.name].supervisor_image for each in fleet.partitions)


def test_it_can_be_rendered_from_the_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    for number, values in enumerate((FULL, {"image": {"tag": "10"}})):
        (tmp_path / f"{number}.yaml").write_text(yaml.safe_dump(values))
    assert main(["-f", f"{tmp_path}/0.yaml", "-f", f"{tmp_path}/1.yaml", "-n", "batch", "--release", "one"]) == 0
    made = [each for each in yaml.safe_load_all(capsys.readouterr().out) if each]
    assert made == objects({**FULL, "image": {**FULL["image"], "tag": "10"}}, release="one", namespace="batch")
    (tmp_path / "0.yaml").write_text("nothing: 1\n")
    assert main(["-f", f"{tmp_path}/0.yaml"]) == 1 and "values.nothing is not known" in capsys.readouterr().err


def test_all_switches_go_with_all_others() -> None:
    switches: tuple[dict[str, Any], ...] = ({}, {"login": {"enabled": True}}, {"metrics": {"enabled": False}}, {"networkPolicy": {"enabled": True}}, {"users": {"passwd": "a:x:1:1::/:/bin/sh"}})  # fmt: skip
    for chosen in itertools.combinations(switches, 2):
        made = objects({key: value for part in chosen for key, value in part.items()})
        assert {each["kind"] for each in made} >= {"StatefulSet", "Service", "Role", "ClusterRole", "ConfigMap"}
