"""The Dockerfiles of k8s/: what they copy is there, and what they make is what the chart starts. The images of tests on a real
cluster are made by what is read here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from k8s.dockerfile import NotRead, Stage, last_stage
from k8s.render import CHART, values_of
from k8s.supervisor.tree import COMMANDS

K8S = CHART.parent
DOCKERFILES = sorted(K8S.glob("*/Dockerfile"))
DAEMON, LOGIN = last_stage(K8S / "daemon/Dockerfile"), last_stage(K8S / "login/Dockerfile")


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.parent.name)
def test_what_an_image_copies_is_there(path: Path) -> None:
    lines = path.read_text().replace("\\\n", " ").splitlines()
    copied = [
        word for line in lines if line.startswith("COPY ") and "--from" not in line for word in line.split()[1:-1]
    ]
    assert [word for word in copied if not (K8S.parent / word).exists()] == []
    assert f"docker build --file {path.relative_to(K8S.parent)}" in path.read_text()


def test_the_daemon_s_image_has_the_user_of_the_chart() -> None:
    user = values_of({})["daemon"]["user"]
    assert DAEMON.user == f"{user}:{user}"
    assert [f"--uid {user} --gid {user} " in command for command in DAEMON.commands].count(True) == 1


def test_the_daemon_s_image_has_tested_versions_and_what_pods_need() -> None:
    assert "--constraint requirements.lock '.[kubernetes,postgresql]'" in (K8S / "daemon/Dockerfile").read_text()


def test_who_becomes_a_user_in_the_daemon_s_image_finds_every_command() -> None:
    """`su -` takes the PATH of /etc/login.defs."""
    (text,) = [command for command in DAEMON.commands if command.startswith("for ")]
    linked = re.fullmatch(
        r"for name in ([\w ]+); do ln -s /opt/venv/bin/\$name /usr/local/bin/\$name \|\| exit 1; done", text
    )
    assert linked is not None and linked[1].split() == ["slurmbridge", *COMMANDS]
    assert DAEMON.copied == ("/opt/venv",) and DAEMON.environment[0].startswith("PATH=/opt/venv/bin:/usr/local/bin:")


def test_the_login_image_is_the_daemon_s_and_starts_as_who_becomes_others() -> None:
    version = values_of({})["site"]["defaults"]["supervisorImage"].rpartition(":")[2]
    assert LOGIN.base == f"slurmbridge:{version}" and LOGIN.user == "0:0" and not LOGIN.commands
    assert list(LOGIN.command) == values_of({})["login"]["command"]


TEXT = """\
# a comment
ARG BASE=one:1
FROM debian AS build
RUN make all
FROM ${BASE}
RUN apt-get update && apt-get install --yes --no-install-recommends a b && rm -rf /var/lib/apt/lists/* \\
    && c --d && e
COPY --from=build /x /x
ENV A=1 B="2 3"
USER 7:8
ENTRYPOINT []
CMD ["f", "g h"]
"""


def test_the_last_stage_is_read_as_docker_s_reference_says(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(TEXT)
    assert last_stage(tmp_path / "Dockerfile") == Stage(
        base="one:1", packages=("a", "b"), commands=("c --d", "e"), copied=("/x",), environment=("A=1", "B=2 3"), user="7:8",
        command=("f", "g h"),
    )  # fmt: skip


@pytest.mark.parametrize("line", ["VOLUME /x", "COPY --from=build /x /y"], ids=str)
def test_an_instruction_that_is_not_known_is_refused(line: str, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM debian\n{line}\n")
    with pytest.raises(NotRead):
        last_stage(tmp_path / "Dockerfile")
