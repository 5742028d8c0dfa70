"""The chart as a site installs it, by Helm: the daemon in its pod, with the rights of its own account and no others.

People are in one namespace with the daemon, jobs in another, which takes nothing but restricted pods. There is no
provisioner: volumes are there before they are claimed, as those of machines' own disks and of file servers are.
"""

import dataclasses
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster.driver import Cluster
from cluster.images import BUSYBOX
from cluster.places import ClusterError
from cluster.pods import Namespace, manifest, namespace
from cluster.processes import PATIENCE_S, wait_until

from k8s.gotemplate import Wrong
from k8s.render import CHART, objects

from . import daemon_image
from .helm import Helm, Release, program
from .supervisor import SUPERVISOR

pytestmark = [pytest.mark.root, pytest.mark.slow]
ALICE = 2001
WITHIN_S = PATIENCE_S
VALUES = {path.name: yaml.safe_load(path.read_text()) for path in sorted((CHART / "ci").iterdir())}


@pytest.fixture(scope="session")
def tool() -> Path:
    return program()


@pytest.fixture
def helm(tool: Path, tmp_path: Path) -> Helm:
    return Helm(tool, tmp_path)


# ---- without a cluster


@pytest.mark.parametrize("values", [{}, *VALUES.values()], ids=["plain", *VALUES])
def test_helm_has_nothing_to_say_against_the_chart(helm: Helm, values: Mapping[str, Any]) -> None:
    assert "1 chart(s) linted, 0 chart(s) failed" in helm("lint", "--strict", CHART, values=values)


@pytest.mark.parametrize("values", [{}, *VALUES.values()], ids=["plain", *VALUES])
def test_helm_renders_the_objects_that_our_own_renderer_does(helm: Helm, values: Mapping[str, Any]) -> None:
    text = helm("template", "one", CHART, "--namespace=batch", values=values)
    theirs = [each for each in yaml.safe_load_all(text) if each]
    ours = objects(values, release="one", namespace="batch")
    assert sorted(theirs, key=name_of) == sorted(ours, key=name_of)


def name_of(each: Mapping[str, Any]) -> tuple[str, str]:
    return each["kind"], each["metadata"]["name"]


@pytest.mark.parametrize("values", [{"nothing": 1}, {"daemon": {"port": 70000}}, {"slurmConf": {"../x": "y"}}], ids=str)
def test_helm_refuses_by_the_schema_what_our_own_renderer_refuses(helm: Helm, values: Mapping[str, Any]) -> None:
    with pytest.raises(Wrong):
        objects(values)
    with pytest.raises(Exception, match="values don't meet the specifications of the schema"):
        helm("template", CHART, values=values)


# ---- installed


@dataclasses.dataclass
class Site:
    """What a site has before it installs anything, and what it installs."""

    cluster: Cluster
    release: Release
    jobs: Namespace
    home: Path
    values: dict[str, Any]

    def submit(self, *words: str) -> int:
        return int(self.release.run_as("alice", " ".join(("sbatch", "--parsable", "--mem=48", *words))))

    @contextmanager
    def waiting(self, name: str) -> Iterator[int]:
        """A job that says "begun", waits for a file of that name, and says "ended"; it runs at the beginning, and not after."""
        job = self.submit("--time=5", f"--wrap='echo begun; until [ -e {name} ]; do sleep 0.2; done; echo ended'")
        try:
            self.await_output(job, lambda text: "begun" in text)
            yield job
        finally:
            self.release.run("scancel", str(job))

    def let_go(self, name: str) -> None:
        path = self.home / name
        path.touch()
        shutil.chown(path, ALICE, ALICE)

    def state(self, job: int) -> str:
        said = self.release.run("sacct", "-X", "-n", "-P", "-o", "State", "-j", str(job))
        return said.split(" ")[0].strip()

    def await_state(self, job: int, *states: str) -> None:
        if not wait_until(lambda: self.state(job) in states, WITHIN_S, 0.5):
            pytest.fail(f"job {job} is {self.state(job)}: {self.jobs.kubectl('get', 'pods', '--output=wide')}")

    def output(self, job: int) -> str:
        return (self.home / f"slurm-{job}.out").read_text()

    def await_output(self, job: int, holds: Callable[[str], bool]) -> None:
        path = self.home / f"slurm-{job}.out"
        assert wait_until(lambda: path.exists() and holds(path.read_text()), WITHIN_S, 0.2), self.release.run("squeue")

    def daemon_uid(self) -> str:
        uid: str = self.release.get("pod", self.release.pod)["metadata"]["uid"]
        return uid


@pytest.fixture(scope="module")
def site(supervisor: None, tool: Path, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    images = tmp_path_factory.mktemp("images")
    for image in (daemon_image.daemon(images), daemon_image.login(images)):
        cluster.machine_nodes.load(cluster.nodes[0], image)  # the volume is there, and so is whoever mounts it
        image.unlink()
    folder = Path(tempfile.mkdtemp(prefix="slurmbridge-install-"))
    folder.chmod(0o755)
    own_scheduler = not cluster.alive("kube-scheduler")
    with namespace(cluster, "sb-install") as ours, namespace(cluster, "sb-install-jobs") as jobs:
        try:
            cluster.start("kube-scheduler")
            release = Release(Helm(tool, folder, cluster.kubeconfig), cluster, ours.name)
            made = Site(cluster, release, jobs, folder / "home/alice", prepared(cluster, folder, ours, jobs))
            release.install(made.values)
            yield made
            release.uninstall()
        finally:
            cluster.kubectl("delete", "persistentvolume,storageclass", f"--selector=test={ours.name}", "--wait=false")
            if own_scheduler:
                cluster.stop("kube-scheduler")
    shutil.rmtree(folder)


def prepared(cluster: Cluster, folder: Path, ours: Namespace, jobs: Namespace) -> dict[str, Any]:
    """Namespaces with their levels of pod security, home directories on a file server, a disk of the first node. Returns the
    values that go with them."""
    cluster.kubectl("label", "namespace", ours.name, "pod-security.kubernetes.io/enforce=baseline")
    cluster.kubectl("label", "namespace", jobs.name, "pod-security.kubernetes.io/enforce=restricted")
    for name in ("disk", "home", "home/alice"):
        (folder / name).mkdir()
    home = folder / "home/alice"
    home.chmod(0o700)
    shutil.chown(home, ALICE, ALICE)
    labels = {"test": ours.name}
    disk = {
        "local": {"path": str(folder / "disk")},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [cluster.nodes[0]]}]}
        ]}},
    }  # fmt: skip
    cluster.apply([
        {
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": ours.name, "labels": labels},
            "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer",
        },
        volume(f"{ours.name}-disk", labels, "ReadWriteOnce", storageClassName=ours.name, **disk),
        *(
            each for space in (ours, jobs) for each in
            (
                volume(
                    f"{space.name}-home", labels, "ReadWriteMany", hostPath={"path": str(folder / "home")}, storageClassName="",
                    claimRef={"namespace": space.name, "name": "home"},
                ),
                {
                    "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "home", "namespace": space.name},
                    "spec": {
                        "accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "",
                        "volumeName": f"{space.name}-home",
                    },
                },
            )
        ),
    ])  # fmt: skip
    mounts = {
        "volumes": [{"name": "home", "persistentVolumeClaim": {"claimName": "home"}}],
        "volumeMounts": [{"name": "home", "mountPath": "/home"}],
    }
    repository, _, tag = daemon_image.DAEMON.partition(":")
    return {
        "image": {"repository": repository, "tag": tag},
        "storage": {"storageClassName": ours.name, "size": "1Gi"},
        "jobs": {"namespace": jobs.name},
        "site": {"defaults": {"image": BUSYBOX, "supervisorImage": SUPERVISOR, **mounts}, "partitions": {"batch": {}}},
        "users": {"passwd": f"alice:x:{ALICE}:{ALICE}:Alice:/home/alice:/bin/bash", "group": f"alice:x:{ALICE}:"},
        "login": {"enabled": True, "image": daemon_image.LOGIN, **mounts},
    }


def volume(name: str, labels: Mapping[str, str], mode: str, **spec: Any) -> dict[str, Any]:
    whole = {"capacity": {"storage": "1Gi"}, "accessModes": [mode], "persistentVolumeReclaimPolicy": "Retain", **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name, "labels": labels}, "spec": whole}


def test_the_daemon_answers_in_its_pod(site: Site) -> None:
    status = site.release.get("statefulset", site.release.name)["status"]
    assert status["readyReplicas"] == 1
    assert site.release.run("sinfo", "-h", "-o", "%R %D %t").split() == ["batch", "2", "idle"]
    job = int(site.release.run("sbatch", "--parsable", "--chdir=/tmp", "--output=/dev/null", "--wrap=hostname"))
    site.await_state(job, "COMPLETED")
    assert site.release.run("squeue", "-h") == ""


def test_a_restricted_namespace_takes_the_daemon_s_pod(site: Site) -> None:
    made = objects({"storage": {"existingClaim": "home"}}, namespace=site.jobs.name)
    spec = next(each for each in made if each["kind"] == "StatefulSet")["spec"]["template"]["spec"]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "trial"},
        "spec": {**spec, "serviceAccountName": "default"},
    }
    site.jobs.kubectl("create", "--dry-run=server", "--filename=-", text=json.dumps(pod))
    spec["containers"][0]["securityContext"] = {}
    with pytest.raises(ClusterError, match="violates PodSecurity"):
        site.jobs.kubectl("create", "--dry-run=server", "--filename=-", text=json.dumps(pod))


def test_a_user_submits_from_the_login_container_and_owns_what_comes_of_it(site: Site) -> None:
    job = site.submit("--wrap='id -u; hostname'")
    site.await_state(job, "COMPLETED")
    assert site.output(job).split()[0] == str(ALICE)
    assert (site.home / f"slurm-{job}.out").stat().st_uid == ALICE
    said = site.release.run("sacct", "-X", "-n", "-P", "-o", "User,UID", "-j", str(job)).strip()
    assert said == f"alice|{ALICE}"


def test_a_gang_on_two_nodes_runs_steps_with_srun(site: Site) -> None:
    job = site.submit("--nodes=2", "--ntasks-per-node=1", "--wrap='srun sh -c \"hostname; id -u\"'")
    site.await_state(job, "COMPLETED")
    assert sorted(site.output(job).split()) == sorted([*site.cluster.nodes, str(ALICE), str(ALICE)])


def test_a_user_asks_for_a_step_and_gets_its_output_in_the_login_container(site: Site) -> None:
    assert site.release.run_as("alice", "srun --mem=48 id -u").strip() == str(ALICE)


def test_jobs_outlive_the_daemon_s_pod(site: Site) -> None:
    with site.waiting("go") as job:
        pods, before = site.jobs.kubectl("get", "pods", "--output=name"), site.daemon_uid()
        site.release.kubectl("delete", "pod", site.release.pod, within=120)
        await_daemon(site, before)
        assert site.jobs.kubectl("get", "pods", "--output=name") == pods
        assert site.state(job) == "RUNNING"
        site.let_go("go")
        site.await_state(job, "COMPLETED")
        assert site.output(job).split() == ["begun", "ended"]


def await_daemon(site: Site, before: str) -> None:
    """Until another pod than `before` serves."""

    def serves() -> bool:
        found = site.release.get("pods", f"--selector=app.kubernetes.io/instance={site.release.name}")["items"]
        ready = [
            each["metadata"]["uid"] for each in found
            for condition in each["status"].get("conditions", ()) if condition["type"] == "Ready" and condition["status"] == "True"
        ]  # fmt: skip
        return bool(ready) and before not in ready

    assert wait_until(serves, WITHIN_S, 0.5), site.release.kubectl("describe", "pod", site.release.pod)


def test_an_upgrade_with_another_site_file_starts_the_daemon_anew_and_ends_no_job(site: Site) -> None:
    with site.waiting("further") as job:
        before = site.daemon_uid()
        site.release.upgrade(site.values)
        assert site.daemon_uid() == before
        site.values["site"]["partitions"]["late"] = {}
        site.release.upgrade(site.values)
        await_daemon(site, before)
        assert site.release.run("sinfo", "-h", "-o", "%R").split() == ["batch", "late"]
        site.let_go("further")
        site.await_state(job, "COMPLETED")
        assert site.output(job).split() == ["begun", "ended"]


def test_figures_come_through_the_service_and_tell_of_no_request_that_was_forbidden(site: Site) -> None:
    url = f"http://{site.release.name}.{site.release.namespace}.svc:9817/metrics"
    reader = Namespace(site.cluster, "default")
    reader.create(manifest("figures", f"wget -q -O - {url}", node=site.cluster.nodes[1]))
    try:
        reader.await_phase("figures", "Succeeded")
        text = reader.output("figures")
    finally:
        reader.kubectl("delete", "pod", "figures", "--wait=false")
    assert 'slurmbridge_nodes{state="idle"} 2' in text.splitlines()
    asked = [line for line in text.splitlines() if line.startswith("slurmbridge_api_requests_total{")]
    assert len(asked) > 3 and not [line for line in asked if "forbidden" in line or "unauthorized" in line]


def test_doctor_finds_nothing_wrong_in_the_daemon_s_pod(site: Site) -> None:
    words = ["--state=/var/lib/slurmbridge/state", f"--namespace={site.jobs.name}", "--site=/etc/slurmbridge/site.yaml"]
    found = json.loads(site.release.run("slurmbridge", "doctor", "--kube", "--json", *words))
    assert [each for each in found["findings"] if each["level"] == "error"] == []


def test_people_in_pods_of_their_own_are_brought_to_the_daemon_by_an_agent(site: Site) -> None:
    """As docs/how-to/kubernetes.md has it: enrolled by the daemon, in a secret that the daemon cannot read again."""
    agent = {"secret": "login-agent", "nodeSelector": {"kubernetes.io/hostname": site.cluster.nodes[0]}}
    values = {**site.values, "login": {**site.values["login"], "agent": agent}}
    words = ("agent-credentials", "login", "--manifest=login-agent", "--state=/var/lib/slurmbridge/state")
    secret = site.release.run("slurmbridge", *words)
    site.cluster.kubectl(f"--namespace={site.release.namespace}", "apply", "--filename=-", text=secret)
    before = site.daemon_uid()
    site.release.upgrade(values)
    await_daemon(site, before)
    names = site.release.get("pod", site.release.pod)["spec"]["containers"]
    assert [each["name"] for each in names] == ["daemon"]

    def type_in(text: str) -> str:
        place = (
            "exec",
            f"deployment/{site.release.name}-login",
            "--container=login",
            "--",
            "su",
            "-",
            "alice",
            "-c",
            text,
        )
        return site.release.kubectl(*place, within=120)

    assert type_in("id -u; sinfo -h -o %D").split()[0] == str(ALICE)
    job = int(type_in("sbatch --parsable --mem=48 --wrap='id -u'"))
    site.await_state(job, "COMPLETED")
    assert site.output(job).strip() == str(ALICE)
    assert type_in("srun --mem=48 hostname").strip() in site.cluster.nodes
    with pytest.raises(ClusterError, match="rules nothing here"):  # root there rules nothing
        root = ("exec", f"deployment/{site.release.name}-login", "--container=login", "--", "scontrol", "shutdown")
        site.release.kubectl(*root)
    site.release.upgrade(site.values)


def test_a_release_that_is_gone_leaves_its_records_and_comes_back_with_them(site: Site) -> None:
    before = site.release.run("sacct", "-X", "-n", "-P", "-o", "JobID,State,Elapsed,User")
    site.release.uninstall()
    selector = f"--selector=app.kubernetes.io/instance={site.release.name}"
    kinds = "all,configmaps,secrets,serviceaccounts,roles,rolebindings,networkpolicies,persistentvolumeclaims"

    def left() -> list[str]:
        cluster_wide = site.cluster.kubectl("get", "clusterroles,clusterrolebindings", selector, "--output=name")
        ours = site.release.kubectl("get", kinds, selector, "--output=name")
        jobs = site.jobs.kubectl("get", kinds, selector, "--output=name")
        return [*ours.split(), *jobs.split(), *cluster_wide.split()]

    assert wait_until(lambda: len(left()) == 1, WITHIN_S, 0.5), left()
    assert left() == ["persistentvolumeclaim/state-slurmbridge-0"]
    assert site.jobs.kubectl("get", "pods", "--output=name") == ""
    assert "helm.sh" not in site.release.kubectl("get", "secrets", "--output=name")
    site.release.install(site.values)
    assert site.release.run("sacct", "-X", "-n", "-P", "-o", "JobID,State,Elapsed,User") == before
