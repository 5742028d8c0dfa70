"""The `slurmbridge` command: start and stop the daemon, and ask about it.

Slurm's own commands do not come through here (see `cli.thin`). Names and defaults are the contract's.
"""

from __future__ import annotations

import datetime
import os
import signal
import sys
from collections.abc import Sequence

import click

from slurmbridge import SLURM_VERSION
from slurmbridge.cli import instance
from slurmbridge.cli.connection import Answer, Connection
from slurmbridge.cli.login_nodes import agent, agent_credentials
from slurmbridge.cli.sim import sim
from slurmbridge.errors import BridgeError, ProtocolError

STATE = click.option("--state", metavar="DIR", help="State folder (default: your own, root's is /var/lib/slurmbridge).")
DATABASE = click.option(
    "--database", metavar="WHERE", envvar="SLURMBRIDGE_DATABASE",
    help="Of the records: sqlite, postgresql://USER@HOST/NAME, or a file with such a URL (default: as before, else sqlite).",
)  # fmt: skip
STOP_SECONDS = 60.0


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version=SLURM_VERSION, message="slurmbridge, following Slurm %(version)s")
def main() -> None:
    """Slurm's commands on virtual nodes of this machine, or on Kubernetes."""


@main.command()
@click.option("--slurm-conf", metavar="FILE", envvar="SLURM_CONF", help="A site's slurm.conf (default: $SLURM_CONF).")
@STATE
@DATABASE
@click.option("--socket", metavar="FILE", help="With --kube: where commands reach it.")
@click.option("--metrics", metavar="HOST:PORT", help="Answer Prometheus here (default: nowhere).")
@click.option("--remote", metavar="HOST:PORT", help="Let agents of login nodes come in here (default: nowhere).")
@click.option("--detach", is_flag=True, help="Return once commands are answered.")
@click.option("--kube", is_flag=True, help="Run jobs as pods of a Kubernetes cluster.")
@click.option(
    "--kubeconfig", metavar="FILE", help="With --kube: of this cluster (default: the one around us, else $KUBECONFIG)."
)
@click.option("--namespace", metavar="NS", help="With --kube: where pods are made (default: the context's).")
@click.option("--site", metavar="FILE", help="A site file: pools, and what pods of partitions are like (YAML).")
@click.option("--listen", metavar="HOST:PORT", help="With --kube: where pods dial in (default: a port that is kept).")
@click.option(
    "--advertise",
    metavar="HOST:PORT",
    help="With --kube: how pods reach that (default: our address on the way to the cluster).",
)
def up(
    slurm_conf: str | None,
    state: str | None,
    database: str | None,
    socket: str | None,
    metrics: str | None,
    remote: str | None,
    detach: bool,
    kube: bool,
    kubeconfig: str | None,
    namespace: str | None,
    site: str | None,
    listen: str | None,
    advertise: str | None,
) -> None:
    """Start the daemon."""
    if socket and not kube:  # runs on virtual nodes are found beside it
        raise click.ClickException("--socket goes with --kube alone")
    of_pods = {"--kubeconfig": kubeconfig, "--namespace": namespace, "--listen": listen, "--advertise": advertise}
    for name, value in of_pods.items():
        if value and not kube:
            raise click.ClickException(f"{name} goes with --kube alone")
    from slurmbridge.cli import launch
    from slurmbridge.daemon.pod_options import PodOptions

    wish = launch.Wish(
        slurm_conf=absolute(slurm_conf), site=absolute(site), socket=absolute(socket), metrics=metrics,
        remote=remote, database=where(database),
        pods=PodOptions(
            kubeconfig=absolute(kubeconfig), namespace=namespace, listen=listen, advertise=advertise
        ) if kube else None,
    )  # fmt: skip
    sys.exit(launch.up(wish, state=state, detach=detach))


def absolute(name: str | None) -> str | None:
    """The daemon works in another folder."""
    return os.path.abspath(name) if name else None


def where(database: str | None) -> str | None:
    """The same, where a file is named."""
    return database if not database or database == "sqlite" or "://" in database else os.path.abspath(database)


@main.command()
@STATE
@click.option("--jobs", is_flag=True, help="Also end what it runs.")
def down(state: str | None, jobs: bool) -> None:
    """Stop the daemon; running jobs go on and are found again at the next start."""
    place = instance.locate(state)
    pid = instance.running_pid(place)
    if pid is None:
        raise click.ClickException(f"no daemon runs with the state folder {place.state}")
    started = instance.start_time(pid)
    answer = ask(place, ["slurmbridge", "shutdown", *(["jobs"] if jobs else [])])
    if answer is None or answer.code != 0:
        if jobs:
            reason = answer.err.decode(errors="replace").strip() if answer else "it does not answer"
            raise click.ClickException(f"the daemon did not take the request: {reason}")
        try:
            os.kill(pid, signal.SIGTERM)
        except PermissionError:
            raise click.ClickException(f"the daemon (pid={pid}) is not yours") from None
    if not instance.wait_gone(pid, started, STOP_SECONDS):
        raise click.ClickException(f"the daemon (pid={pid}) is still running after {STOP_SECONDS:.0f} s")


@main.command()
@STATE
def status(state: str | None) -> None:
    """Exit 0 and print pid and address when the daemon is up."""
    place = instance.locate(state)
    pid = instance.running_pid(place)
    if pid is None:
        click.echo(f"down state={place.state}", err=True)
        sys.exit(1)
    answer = ask(place, ["scontrol", "-V"])
    click.echo(f"pid={pid} address={place.address} state={place.state}" + ("" if answer else " (does not answer)"))
    sys.exit(0 if answer else 1)


@main.command()
@click.argument("job")
@STATE
def why(job: str, state: str | None) -> None:
    """Tell which rule keeps a job waiting."""
    sys.exit(relay(state, ["slurmbridge", "why", job]))


@main.command()
@click.argument("job", metavar="JOB[_TASK]")
@click.option("--follow", is_flag=True, help="Go on until the job is over.")
@click.option("--stderr", is_flag=True, help="Its standard error, where that is apart.")
@click.option("--file", "path", metavar="PATH", help="One of its steps' files, where no file system keeps them.")
@STATE
def logs(job: str, follow: bool, stderr: bool, path: str | None, state: str | None) -> None:
    """Show a job's output: its file, or what is kept where no file system is shared."""
    from slurmbridge.cli import logs as showing

    words = [*(["--stderr"] if stderr else []), *(["--file", path] if path else []), job]
    sys.exit(showing.main(addressed(state).socket, words, follows=follow))


@main.command()
@click.option("--days", type=click.IntRange(1, 365), default=30, show_default=True, help="For which it is good.")
@click.option("--list", "listed", is_flag=True, help="Show those that you have.")
@click.option("--revoke", metavar="ID", help="End one.")
@STATE
def token(days: int, listed: bool, revoke: str | None, state: str | None) -> None:
    """Print a token of your own, for commands where SLURMBRIDGE_ADDR is https://HOST:PORT."""
    if listed and revoke:
        raise click.UsageError("--list or --revoke")
    words = ["list"] if listed else ["revoke", revoke] if revoke else ["create", str(days)]
    sys.exit(relay(state, ["slurmbridge", "token", *words]))


@main.command()
@click.argument("scripts", nargs=-1, required=True, metavar="SCRIPT...")
def lint(scripts: tuple[str, ...]) -> None:
    """Show what becomes of each directive: honoured, recorded with its reason, or refused."""
    from slurmbridge.cli import check

    sys.exit(check.lint(scripts))


@main.command("check-config")
@click.argument("file", required=False, envvar="SLURM_CONF")
@click.option("--site", metavar="FILE", help="A site file, read together with it.")
@click.option("--kube", is_flag=True, help="As `up --kube` reads them; no cluster is asked.")
def check_config(file: str | None, site: str | None, kube: bool) -> None:
    """Read a slurm.conf, or a site file, and list the keys that have no meaning here."""
    from slurmbridge.cli import check

    sys.exit(check.config(file, site, kube))


@main.command()
@click.option("--slurm-conf", metavar="FILE", envvar="SLURM_CONF", help="As `up` has it.")
@click.option("--site", metavar="FILE", help="As `up` has it.")
@STATE
@DATABASE
@click.option("--kube", is_flag=True, help="Also look at the cluster on which jobs shall be pods.")
@click.option("--kubeconfig", metavar="FILE", help="With --kube: of this cluster.")
@click.option("--namespace", metavar="NS", help="With --kube: where pods are made.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def doctor(
    slurm_conf: str | None,
    site: str | None,
    state: str | None,
    database: str | None,
    kube: bool,
    kubeconfig: str | None,
    namespace: str | None,
    as_json: bool,
) -> None:
    """Look for what would keep the daemon or jobs from working, and say what to do."""
    if (kubeconfig or namespace) and not kube:
        raise click.ClickException("--kubeconfig and --namespace go with --kube alone")
    from slurmbridge.cli import doctor as examination

    code = examination.main(
        instance.locate(state), slurm_conf=absolute(slurm_conf), site=absolute(site), kube=kube,
        kubeconfig=absolute(kubeconfig), namespace=namespace, as_json=as_json, database=where(database),
    )  # fmt: skip
    sys.exit(code)


@main.command()
@click.argument("target", metavar="FILE|DIR")
@STATE
@DATABASE
def backup(target: str, state: str | None, database: str | None) -> None:
    """Copy the daemon's records to a new file, while it runs."""
    from slurmbridge.cli import keeping

    click.echo(keeping.backup(instance.locate(state), where(database), target, datetime.datetime.now()), nl=False)


@main.command()
@click.argument("copy", metavar="FILE")
@STATE
@DATABASE
def restore(copy: str, state: str | None, database: str | None) -> None:
    """Put a backup in the place of the records; no daemon may run."""
    from slurmbridge.cli import keeping

    click.echo(keeping.restore(instance.locate(state), where(database), copy, datetime.datetime.now()), nl=False)


main.add_command(sim)
main.add_command(agent)
main.add_command(agent_credentials)


@main.group()
def bench() -> None:
    """Measure this installation."""


@bench.command()
@click.option("--quick", is_flag=True, help="Fewer repetitions.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--only", multiple=True, metavar="NAME", help="Only these measurements.")
@click.option("--real-slurm", metavar="COMMAND", help="Prefix that runs a command on a real Slurm, for comparison.")
def daemon(quick: bool, as_json: bool, only: tuple[str, ...], real_slurm: str | None) -> None:
    """The daemon and the commands, as ratios to baselines of the same run."""
    from slurmbridge.cli.bench import report

    sys.exit(report.main(quick=quick, as_json=as_json, only=only, real_slurm=real_slurm))


@bench.command()
@click.option("--nodes", type=click.IntRange(2), default=1000, show_default=True)
@click.option("--gpus-per-node", type=click.IntRange(1), default=8, show_default=True)
@click.option("--queues", type=click.IntRange(1), default=200, show_default=True, help="Accounts with quotas.")
@click.option("--pending", type=click.IntRange(1), default=10_000, show_default=True, help="Jobs that wait.")
@click.option("--running", type=click.IntRange(0), default=4000, show_default=True, help="Jobs that run.")
@click.option(
    "--scenario",
    type=click.Choice(["fill", "fair", "reclaim", "consolidate", "backfill", "topology"]),
    default="fill",
    show_default=True,
)
@click.option("--cycles", type=click.IntRange(1), default=5, show_default=True, help="Of each kind.")
@click.option("--sweep", is_flag=True, help="From a tenth of these sizes to ten times as much.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def sched(
    nodes: int,
    gpus_per_node: int,
    queues: int,
    pending: int,
    running: int,
    scenario: str,
    cycles: int,
    sweep: bool,
    as_json: bool,
) -> None:
    """One planning cycle, and steady ones, of the scheduler core on a generated cluster."""
    from slurmbridge.cli.bench import sched as measuring
    from slurmbridge.sim.clusters import Size

    size = Size(nodes=nodes, gpus_per_node=gpus_per_node, queues=queues, pending=pending, running=running)
    sys.exit(measuring.main(size, scenario, cycles=cycles, sweep=sweep, as_json=as_json))


def ask(place: instance.Instance, argv: Sequence[str]) -> Answer | None:
    """The daemon's answer; None when it gives none."""
    try:
        with Connection(place.socket, timeout=30.0) as connection:
            return connection.run(argv)
    except (OSError, ProtocolError):
        return None


def addressed(state: str | None) -> instance.Instance:
    """The daemon that is asked."""
    address = os.environ.get("SLURMBRIDGE_ADDR", "")
    place = instance.locate(state)
    if state is None and address.startswith("unix:"):
        place = instance.Instance(state="", socket=address.removeprefix("unix:"))
    elif state is None and address.startswith("https:"):
        place = instance.Instance(state="", socket=address)
    elif state is None and not os.path.exists(place.socket):
        place = instance.Instance(state="", socket=instance.ROOT_SOCKET)
    return place


def relay(state: str | None, argv: Sequence[str]) -> int:
    """Run a command in the daemon and print what it says."""
    place = addressed(state)
    answer = ask(place, argv)
    if answer is None:
        raise click.ClickException(f"no daemon answers at {place.address}")
    click.echo(answer.out, nl=False)
    click.echo(answer.err, nl=False, err=True)
    return answer.code


def run() -> None:
    """Entry for `python -m`: errors of the product without a traceback."""
    try:
        main()
    except BridgeError as fault:
        click.echo(f"slurmbridge: error: {fault}", err=True)
        sys.exit(fault.exit_code)


if __name__ == "__main__":
    run()
