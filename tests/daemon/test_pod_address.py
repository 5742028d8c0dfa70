"""Where the daemon listens for pods, and which daemon it is, said once and kept."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from slurmbridge.daemon import pod_address, pod_identity
from slurmbridge.daemon.pod_address import Addresses, choose
from slurmbridge.errors import ConfigError
from slurmbridge.manifest.pod_names import LONGEST_INSTANCE

OWN = "10.0.0.7"


@pytest.mark.parametrize(
    ("listen", "advertise", "kept", "own", "found", "told"),
    [
        (None, None, 0, OWN, (OWN, 0), "10.0.0.7:99"),
        (None, None, 4000, OWN, (OWN, 4000), "10.0.0.7:99"),
        ("0.0.0.0:6", None, 4000, OWN, ("", 6), "10.0.0.7:99"),
        ("10.1.1.1:6", None, 0, OWN, ("10.1.1.1", 6), "10.1.1.1:99"),
        (None, "sb.jobs.svc:7", 0, OWN, ("", 7), "sb.jobs.svc:7"),
        (None, "sb.jobs.svc:7", 4000, "", ("", 4000), "sb.jobs.svc:7"),
        ("127.0.0.1:6", "sb.jobs.svc:7", 0, "", ("127.0.0.1", 6), "sb.jobs.svc:7"),
        ("127.0.0.1:6", "127.0.0.1:6", 0, OWN, ("127.0.0.1", 6), "127.0.0.1:6"),
        ("[::]:6", "[fd00::1]:7", 0, "", ("", 6), "[fd00::1]:7"),
        (None, None, 0, "fd00::2", ("fd00::2", 0), "[fd00::2]:99"),
    ],
)  # fmt: skip
def test_options_go_before_the_interface_to_the_cluster(
    listen: str | None, advertise: str | None, kept: int, own: str, found: tuple[str, int], told: str
) -> None:
    chosen = choose(listen, advertise, kept, own)
    assert (chosen.host, chosen.port) == found
    assert chosen.told(99) == told


@pytest.mark.parametrize(
    ("listen", "advertise", "own", "words"),
    [
        (None, None, "", "--advertise HOST:PORT"),
        ("0.0.0.0:6", None, "", "--advertise HOST:PORT"),
        ("127.0.0.1:6", None, OWN, "127.0.0.1 is this host's own"),
        (None, "0.0.0.0:6", OWN, "an address that they can dial"),
        ("6", None, OWN, "--listen 6: HOST:PORT"),
        (None, "host", OWN, "--advertise host: HOST:PORT"),
        (None, "host:0", OWN, "HOST:PORT"),
        (None, "host:99999", OWN, "HOST:PORT"),
    ],
)
def test_an_address_that_no_pod_reaches_is_an_error(
    listen: str | None, advertise: str | None, own: str, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        choose(listen, advertise, 0, own)


def test_an_address_that_somebody_has_is_an_error_that_says_why_it_matters() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        addresses = Addresses(host="127.0.0.1", port=taken.getsockname()[1], advertised="x")
        with pytest.raises(ConfigError, match="running pods look for the daemon there"):
            pod_address.bind(addresses)


def test_everywhere_is_every_kind_of_address() -> None:
    with pod_address.bind(Addresses(host="", port=0, advertised="x")) as sock:
        sock.listen()
        with socket.create_connection(("127.0.0.1", sock.getsockname()[1])):
            pass


def test_an_identity_is_made_once(tmp_path: Path) -> None:
    first = pod_identity.settle(str(tmp_path), "cluster", "jobs", "u1")
    assert first.instance.startswith("cluster-") and len(first.instance) <= LONGEST_INSTANCE
    assert pod_identity.settle(str(tmp_path), "renamed", "jobs", "u1") == first
    assert (tmp_path / pod_identity.FILE).stat().st_mode & 0o777 == 0o600


def test_two_daemons_of_one_name_are_two_instances(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    names = {pod_identity.settle(str(folder), "c", "jobs", "").instance for folder in (tmp_path, tmp_path / "other")}
    assert len(names) == 2


@pytest.mark.parametrize(
    ("namespace", "uid", "words"), [("other", "u1", "in namespace jobs"), ("jobs", "u2", "another cluster")]
)
def test_runs_would_begin_twice_elsewhere(tmp_path: Path, namespace: str, uid: str, words: str) -> None:
    pod_identity.settle(str(tmp_path), "c", "jobs", "u1")
    with pytest.raises(ConfigError, match=words):
        pod_identity.settle(str(tmp_path), "c", namespace, uid)


def test_a_namespace_that_may_be_looked_at_later_is_remembered(tmp_path: Path) -> None:
    pod_identity.settle(str(tmp_path), "c", "jobs", "")
    assert pod_identity.settle(str(tmp_path), "c", "jobs", "u1").namespace_uid == "u1"
    assert pod_identity.settle(str(tmp_path), "c", "jobs", "").namespace_uid == "u1"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"instance": 1}'])
def test_a_broken_identity_is_an_error_and_stays(tmp_path: Path, content: str) -> None:
    (tmp_path / pod_identity.FILE).write_text(content)
    with pytest.raises(ConfigError, match="cannot be read"):
        pod_identity.settle(str(tmp_path), "c", "jobs", "u1")
    assert (tmp_path / pod_identity.FILE).read_text() == content
