"""Pod fields of a site file."""

from __future__ import annotations

import pytest

from slurmbridge.errors import ConfigError
from slurmbridge.lang.site_fields import POD_FIELDS, SHARINGS
from slurmbridge.lang.site_pods import CONTEXT, FIELDS, OF_THE_SUBMITTER, read_templates
from slurmbridge.manifest import pod_security
from slurmbridge.manifest.pod_limits import LIMITERS
from slurmbridge.model.pods import PodTemplate

FILE = """
defaults:
  image: base:1
  imagePullSecrets: [{name: reg}]
  volumes:
    - {name: home, persistentVolumeClaim: {claimName: home}}
  volumeMounts:
    - {name: home, mountPath: /home}
  env: [{name: A, value: "1"}]
partitions:
  gpu:
    image: cuda:12
    nodeSelector: {pool: gpu}
    resources: {rdma/ib: 1}
    tolerations: [{key: nvidia.com/gpu, operator: Exists}]
    securityContext: {capabilities: {add: [IPC_LOCK]}}
    shmMiB: 1024
    hostSoftware: true
    placement: spread
  plain:
"""


def test_a_partition_has_what_the_defaults_have_and_it_does_not() -> None:
    base, partitions = read_templates(FILE, "site.yaml")
    assert partitions["plain"] == base
    gpu = partitions["gpu"]
    assert (gpu.image, gpu.volumes, gpu.resources) == ("cuda:12", base.volumes, (("rdma/ib", "1"),))
    assert (gpu.shm_mib, gpu.host_software, gpu.image_pull_secrets) == (1024, True, ("reg",))
    assert gpu.security_context == {"capabilities": {"add": ["IPC_LOCK"]}}


def test_an_empty_file_has_plain_templates() -> None:
    assert read_templates("", "site.yaml") == (PodTemplate(), {})


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("volumes: {}", "volumes is not a list"),
        ("volumes: [{name: a}]", "one kind"),
        ("volumes: [{name: a, nfs: {}, emptyDir: {}}]", "one kind"),
        ("volumes: [{name: slurmbridge, emptyDir: {}}]", "do not begin"),
        ("volumes: [{name: a, nfs: {}}, {name: a, nfs: {}}]", "there twice"),
        ("volumeMounts: [{name: a, mountPath: /a}]", "'a' that is not there"),
        ("volumeMounts: [{name: a, mountPath: a}]", "nothing can be mounted"),
        ("volumeMounts: [{name: a}]", "no mountPath"),
        ("env: [{name: 1A, value: x}]", "no name of a variable"),
        ("env: [{name: A, value: 1}]", "in quotes"),
        ("resources: {cpu: 1}", "CPUs and memory"),
        ("resources: {rdma/ib: many}", "no amount"),
        ("securityContext: {runAsUser: 0}", "who submitted"),
        ("securityContext: {capability: 0}", "no field 'capability'"),
        ("supervisor: ftp", "not 'ftp'"),
        ("shmMiB: -1", "at least 0"),
        ("hostNetwork: maybe", "true or false"),
        ("tolerations: [a]", "not a mapping"),
        ("env: [{name: A, value: !!python/object:x {}}]", "in quotes"),
        ("env: [{name: A, value: 2020-99-99}]", "no value"),
    ],
)
def test_an_error_names_its_line_and_what_is_wrong(line: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_templates(f"partitions:\n  gpu:\n    {line}\n", "site.yaml")
    assert caught.value.line == 3 and words in str(caught.value)


def test_every_field_of_pods_is_read() -> None:
    assert FIELDS.keys() == {*POD_FIELDS, "gpuSharing"}


def test_ways_to_limit_who_shares_a_gpu_are_those_that_pods_know() -> None:
    assert set(SHARINGS) == LIMITERS.keys()
    _, partitions = read_templates("partitions: {a: {gpuSharing: mps}, b: {}}", "site.yaml")
    assert (partitions["a"].gpu_sharing, partitions["b"].gpu_sharing) == ("mps", "none")
    with pytest.raises(ConfigError, match=r"site.yaml:1: partition a: gpuSharing is none, mps or hami-core, not 'mig'"):
        read_templates("partitions: {a: {gpuSharing: mig}}", "site.yaml")


def test_the_fields_of_a_security_context_are_those_that_pods_honour() -> None:
    assert set(CONTEXT) == pod_security.KNOWN_FIELDS
    assert set(OF_THE_SUBMITTER) == pod_security.OF_THE_SUBMITTER
