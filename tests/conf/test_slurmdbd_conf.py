"""slurmdbd.conf beside slurm.conf: retention takes effect, other keys of Slurm have a reason, the rest is an error."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from slurmbridge.commands.check_config import report
from slurmbridge.daemon import configuration
from slurmbridge.errors import ConfigError
from slurmbridge.lang.slurm_conf import read_cluster
from slurmbridge.lang.slurm_conf_dbd import KEYS
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.retention import Retention, Span

CONF = "ClusterName=c\nSlurmctldHost=ctl\nNodeName=n1 CPUs=2\nPartitionName=p Nodes=n1\n"
UTC = datetime.UTC


def read(text: str) -> ClusterConfig:
    files = {"/etc/slurm/slurm.conf": CONF, "/etc/slurm/slurmdbd.conf": text}
    return read_cluster(files, "/etc/slurm/slurm.conf", cpus=2, memory_mib=1000)


def test_without_the_file_everything_is_kept() -> None:
    assert read_cluster({"slurm.conf": CONF}, "slurm.conf", cpus=2, memory_mib=1000).retention == Retention()


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("12", Span(12, "months")),
        ("12month", Span(12, "months")),
        ("1months", Span(1, "months")),
        ("30days", Span(30, "days")),
        ("30d", Span(30, "days")),
        ("48HOURS", Span(48, "hours")),
        ('"2 days"', Span(2, "days")),
    ],
)
def test_a_span_is_a_number_of_months_unless_a_unit_follows(text: str, span: Span) -> None:
    assert read(f"PurgeJobAfter={text}\n").retention.jobs == span


@pytest.mark.parametrize("text", ["0", "x", "5years", "-1", "3daysx"])
def test_other_spans_are_errors_with_their_place(text: str) -> None:
    with pytest.raises(ConfigError, match=f'slurmdbd.conf:2: Bad value "{text}" for PurgeStepAfter'):
        read(f"# ends\nPurgeStepAfter={text}\n")


def test_an_unknown_key_is_an_error_with_its_place() -> None:
    with pytest.raises(ConfigError, match=r"slurmdbd.conf:1: Parsing error at unrecognized key: PurgeJobsAfter"):
        read("PurgeJobsAfter=1month\n")


def test_every_key_of_slurm_is_taken_and_what_has_no_effect_is_listed_with_its_reason() -> None:
    text = "".join(f"{key}={'no' if key.startswith('Archive') else '5'}\n" for key in KEYS)
    config = read(text)
    assert config.retention == Retention(
        **{field: Span(5, "months") for field in Retention.__struct_fields__}
    )  # fmt: skip
    lines = [line for line in report(config).splitlines() if "slurmdbd.conf" in line]
    assert lines and all("has no effect here: " in line for line in lines)


def test_what_should_be_archived_first_is_not_purged() -> None:
    config = read("PurgeJobAfter=1month\nArchiveJobs=yes\nPurgeStepAfter=1month\nArchiveSteps=no\n")
    assert config.retention == Retention(steps=Span(1, "months"))
    assert "archives are not written: what it names is kept" in report(config)


def test_the_password_of_the_database_is_not_remembered() -> None:
    assert "secret" not in repr(read("StoragePass=secret\nStorageUser=slurm\n"))


@pytest.mark.parametrize(
    ("span", "moment"),
    [
        (Span(2, "hours"), (2026, 3, 31, 13, 0)),
        (Span(1, "days"), (2026, 3, 30, 0, 0)),
        (Span(1, "months"), (2026, 2, 1, 0, 0)),
        (Span(3, "months"), (2025, 12, 1, 0, 0)),
        (Span(15, "months"), (2024, 12, 1, 0, 0)),
    ],
)
def test_whole_hours_days_and_months_are_kept(span: Span, moment: tuple[int, int, int, int, int]) -> None:
    now = datetime.datetime(2026, 3, 31, 15, 45, tzinfo=UTC).timestamp()
    assert span.before(now, UTC) == datetime.datetime(*moment, tzinfo=UTC).timestamp()


def test_a_span_longer_than_history_means_the_beginning() -> None:
    assert Span(999_999_999, "months").before(1e9, UTC) < 0
    assert Span(999_999_999, "days").before(1e9, UTC) < 0


def test_the_daemon_reads_the_file_that_lies_beside_slurm_conf(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(CONF)
    (tmp_path / "slurmdbd.conf").write_text("PurgeJobAfter=2days\nInclude more.conf\n")
    (tmp_path / "more.conf").write_text("PurgeTXNAfter=1month\n")
    config = configuration.read(str(tmp_path / "slurm.conf"))
    assert config.retention == Retention(jobs=Span(2, "days"), transactions=Span(1, "months"))
