"""Who is enrolled as an agent, by whom, and who has the keys?"""

from __future__ import annotations

import base64
import datetime
import os
import ssl
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from slurmbridge.agent import credentials
from slurmbridge.cli.login_nodes import agent_credentials
from slurmbridge.daemon import certificate, enrolment
from slurmbridge.daemon.enrolment import Enrolled
from slurmbridge.errors import ConfigError


def enrolled(state: Path, name: str, **more: float | bool) -> enrolment.Credentials:
    now = datetime.datetime.now(datetime.UTC)
    return enrolment.enrol(str(state), name, days=3, trusts_root=bool(more.get("trusts_root")), now=now)


def test_keys_are_their_owners_alone_and_the_daemon_keeps_none(tmp_path: Path) -> None:
    enrolment.give(enrolled(tmp_path, "a"), str(tmp_path / "out"))
    for name in (enrolment.KEY_FILE, enrolment.PIN_FILE):
        assert (tmp_path / "out" / name).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o700
    assert b"PRIVATE" not in b"".join(path.read_bytes() for path in (tmp_path / enrolment.FOLDER).iterdir())
    assert credentials.load(str(tmp_path / "out")).pin == certificate.ensure(str(tmp_path))[1]


def test_an_agent_whose_key_others_can_read_does_not_start(tmp_path: Path) -> None:
    enrolment.give(enrolled(tmp_path, "a"), str(tmp_path / "out"))
    (tmp_path / "out" / enrolment.KEY_FILE).chmod(0o644)
    with pytest.raises(ConfigError, match="others can read"):
        credentials.load(str(tmp_path / "out"))


@pytest.mark.parametrize("name", ["", "../a", "a/b", ".hidden", "a b", "x" * 64])
def test_a_name_that_is_no_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="no name"):
        enrolled(tmp_path, name)


def test_an_agent_is_enrolled_once_and_gone_when_revoked(tmp_path: Path) -> None:
    enrolled(tmp_path, "a")
    enrolled(tmp_path, "b", trusts_root=True)
    with pytest.raises(ConfigError, match="already"):
        enrolled(tmp_path, "a")
    agents, faults = enrolment.read(str(tmp_path))
    assert [(each.name, each.trusts_root) for each in agents] == [("a", False), ("b", True)] and not faults
    enrolment.revoke(str(tmp_path), "a")
    assert [each.name for each in enrolment.read(str(tmp_path))[0]] == ["b"]
    with pytest.raises(ConfigError, match="no agent a"):
        enrolment.revoke(str(tmp_path), "a")


def test_what_cannot_be_read_is_not_believed_and_stops_no_other(tmp_path: Path) -> None:
    enrolled(tmp_path, "a")
    enrolled(tmp_path, "b")
    found = Enrolled(str(tmp_path))
    der = {each.name: ssl.PEM_cert_to_DER_cert(each.certificate) for each in enrolment.read(str(tmp_path))[0]}
    path = tmp_path / enrolment.FOLDER / "a.json"
    path.write_bytes(path.read_bytes().replace(b'"trusts_root":false', b'"trusts_root":maybe'))
    assert found.renew()
    assert found.find(der["a"], 0.0) is None and found.find(der["b"], 0.0) is not None
    os.chmod(tmp_path / enrolment.FOLDER, 0o777)
    assert found.renew()
    assert found.find(der["b"], 0.0) is None, "anybody may have put it there"


@pytest.mark.parametrize("listed", [("a", "--out", "x"), ("--list",), ("--revoke", "a")])
def test_who_is_not_the_daemons_user_enrols_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: tuple[str, ...]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(tmp_path).st_uid + 1)
    answer = CliRunner().invoke(agent_credentials, [*listed, "--state", str(tmp_path)])
    assert isinstance(answer.exception, ConfigError) and "the daemon's user" in str(answer.exception)
    assert not (tmp_path / enrolment.FOLDER).exists()


def test_credentials_as_a_secret_are_what_the_files_would_be(tmp_path: Path) -> None:
    words = ["a", "--manifest", "sb-agent", "--state", str(tmp_path)]
    answer = CliRunner().invoke(agent_credentials, words)
    assert answer.exit_code == 0, answer.output
    found = yaml.safe_load(answer.output)
    assert (found["kind"], found["metadata"]["name"]) == ("Secret", "sb-agent")
    (tmp_path / "out").mkdir()
    for name, content in found["data"].items():
        path = tmp_path / "out" / name
        path.write_bytes(base64.b64decode(content))
        path.chmod(0o400)
    assert credentials.load(str(tmp_path / "out")).pin == certificate.ensure(str(tmp_path))[1]
    again = CliRunner().invoke(agent_credentials, words)
    assert isinstance(again.exception, ConfigError) and "already" in str(again.exception)
