"""`slurmbridge doctor`: gathers what the checks of `commands.doctor_machine` and `doctor_kube` judge, and prints it."""

from __future__ import annotations

import os
import re
import resource
import shutil
import sqlite3
import stat
import subprocess
import sys
import sysconfig
import time

from msgspec.structs import replace

from slurmbridge.cli import instance
from slurmbridge.cli.connection import Connection
from slurmbridge.commands import doctor, doctor_kube, doctor_machine
from slurmbridge.errors import BridgeError, ConfigError, ProtocolError
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.examination import Examined, Finding, Machine
from slurmbridge.model.fleet import FleetConfig
from slurmbridge.store import place as places

ANSWER_S = 10.0
PLANNER_S = 60.0
ESCAPED = re.compile(r"\\([0-7]{3})")
"""How the kernel's table of mounts writes blanks and backslashes, and only those."""


def main(
    place: instance.Instance, *, slurm_conf: str | None, site: str | None, kube: bool, kubeconfig: str | None,
    namespace: str | None, as_json: bool, database: str | None = None,
) -> int:  # fmt: skip
    """1 when something does not work."""
    config, fault = _configuration(slurm_conf, site, kube)
    machine = replace(_machine(place, slurm_conf or site, config, fault), **_database(place, database))
    findings = doctor_machine.judge(machine, virtual=not kube)
    if kube:
        fleet = config if isinstance(config, FleetConfig) else FleetConfig(cluster_name="")
        findings += doctor_kube.judge(_cluster(kubeconfig, namespace, fleet))
    _print(findings, as_json)
    return doctor.exit_code(findings)


def _print(findings: list[Finding], as_json: bool) -> None:
    sys.stdout.write(doctor.document(findings) if as_json else doctor.text(findings))


def _configuration(slurm_conf: str | None, site: str | None, kube: bool) -> tuple[ClusterConfig | None, str]:
    """As the daemon would read it, or why it would not start."""
    from slurmbridge.daemon import configuration

    read = configuration.read_fleet if kube else configuration.read
    try:
        return read(slurm_conf, site), ""
    except ConfigError as fault:
        return None, str(fault)


def _cluster(kubeconfig: str | None, namespace: str | None, fleet: FleetConfig) -> Examined:
    try:
        from slurmbridge.runtime.kube.examine import examine
    except ImportError as fault:
        text = f"{fault.name} is not installed: pods need the extra packages (pip install 'slurmbridge[kubernetes]')"
        return Examined(server="", namespace=namespace or "", fault=text)
    named = dict(fleet.partition_pods)
    templates = {each.name: named.get(each.name, fleet.pods) for each in fleet.partitions}
    return examine(kubeconfig, namespace, templates, time.time, gpu_resource=fleet.rules.gpu_resource)


def _machine(place: instance.Instance, conf_file: str | None, config: ClusterConfig | None, fault: str) -> Machine:
    scripts = sysconfig.get_path("scripts")
    folder = place.state
    while not os.path.isdir(folder) and folder != "/":
        folder = os.path.dirname(folder)
    found = os.stat(folder)
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    mail = config.mail_prog if config is not None else ""
    pid = instance.running_pid(place)
    mode, certificate_fault = _certificate(place.state)
    return Machine(
        python=sys.version_info[:3],
        sqlite=sqlite3.sqlite_version_info,
        has_bash=os.access("/bin/bash", os.X_OK),
        scripts=scripts,
        has_commands=os.path.exists(os.path.join(scripts, "sbatch")),
        first_sbatch=shutil.which("sbatch") or "",
        planner=planner(sys.executable),
        uid=os.geteuid(),
        state=place.state,
        state_exists=folder == place.state,
        state_owner=found.st_uid,
        state_mode=stat.S_IMODE(found.st_mode),
        state_writable=os.access(folder, os.W_OK | os.X_OK),
        state_filesystem=filesystem(folder),
        free_mib=shutil.disk_usage(folder).free >> 20,
        open_files=None if soft == resource.RLIM_INFINITY else soft,
        namespaces=_namespaces(),
        configuration=fault,
        conf_file=conf_file or "",
        mail_program=mail,
        mail_program_runs=not mail or shutil.which(mail) is not None,
        daemon_pid=pid,
        daemon_answers=pid is not None and _answers(place),
        address=place.address,
        certificate_mode=mode,
        certificate_fault=certificate_fault,
    )


def _database(place: instance.Instance, word: str | None) -> dict[str, str]:
    """Fields of `Machine` about a server that has the records."""
    try:
        found = places.find(place.state, word)
        if found.is_sqlite:
            return {}
        kind, doubt = places.portable().examine(found.url())
    except BridgeError as fault:
        return {"database_fault": str(fault)}
    return {"database": kind, "database_doubt": doubt}


def planner(python: str) -> str:
    """Why its process does not start, in the last words that it says; empty: it does."""
    words = [python, "-I", "-c", "import slurmbridge.sched.worker"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=PLANNER_S, check=False)
    except subprocess.TimeoutExpired:
        return f"not in {PLANNER_S:.0f} seconds"
    except OSError as fault:
        return f"{python}: {fault.strerror or fault}"
    said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return "" if done.returncode == 0 else (said or [f"exit status {done.returncode}"])[-1]


def filesystem(path: str, mounts: str = "/proc/self/mountinfo") -> str:
    """Type of the file system that holds a folder, as the kernel's table of mounts names it; empty: not known."""
    real, best, kind = os.path.realpath(path), "", ""
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as table:
            for line in table:
                words, _, rest = line.partition(" - ")
                point = ESCAPED.sub(lambda found: chr(int(found[1], 8)), words.split(" ")[4])
                inside = real == point or real.startswith(point.rstrip("/") + "/")
                if inside and len(point) >= len(best):
                    best, kind = point, rest.split(" ")[0]
    except OSError:
        return ""
    return kind


def _namespaces() -> bool:
    """As the supervisors of virtual nodes make them: root's do."""
    return os.geteuid() == 0


def _answers(place: instance.Instance) -> bool:
    try:
        with Connection(place.socket, timeout=ANSWER_S) as connection:
            return connection.run(["scontrol", "-V"]) is not None
    except (OSError, ProtocolError):
        return False


def _certificate(state: str) -> tuple[int | None, str]:
    """(mode of the file, what is wrong with it); (None, ...): there is none, or we may not know."""
    from slurmbridge.daemon import certificate

    path = os.path.join(state, certificate.FILE)
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
    except OSError:
        return None, ""
    try:
        certificate.ensure(state)
    except BridgeError as fault:
        return mode, str(fault)
    return mode, ""
