"""`slurmbridge sim`: traces and scheduling problems through the real scheduler core, with no daemon.

Reads and writes files; what they mean is the business of the package `sim`, which is imported when it is needed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from slurmbridge.errors import BridgeError

if TYPE_CHECKING:
    from slurmbridge.sim.replay import Setting


@click.group()
def sim() -> None:
    """Try the scheduler on traces and problems, with a virtual clock."""


@sim.command()
@click.argument("trace", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--cluster", metavar="FILE", type=click.Path(exists=True, dir_okay=False), help="A CSV of nodes, or a slurm.conf."
)
@click.option(
    "--accounts", metavar="FILE", type=click.Path(exists=True, dir_okay=False), help="sacctmgr lines, or its dump."
)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    type=click.Choice(["ours", "easy", "quota"]),
    default=("ours",),
    show_default=True,
    help="May be given several times.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object (by policy, when there are several).")
def replay(trace: str, cluster: str | None, accounts: str | None, policies: tuple[str, ...], as_json: bool) -> None:
    """Replay a workload trace: SWF, `sacct -P` output, our CSV or a public GPU trace's."""
    import msgspec

    from slurmbridge.sim import measures
    from slurmbridge.sim.replay import replay as run

    try:
        given = _setting(trace, cluster, accounts)
        found = [(name, run(given, name)) for name in dict.fromkeys(policies)]
    except BridgeError as fault:
        raise click.ClickException(str(fault)) from fault
    if given.left_out:
        click.echo(
            f"slurmbridge: note: {len(given.left_out)} jobs ask for more than the cluster has and are left out "
            f"(the first: {given.left_out[0]})",
            err=True,
        )
    if not as_json:
        click.echo(measures.table(found), nl=False)
        return
    rows: object = found[0][1] if len(found) == 1 else dict(found)
    click.echo(msgspec.json.encode(rows).decode())


def _setting(trace_file: str, cluster_file: str | None, accounts_file: str | None) -> Setting:
    from slurmbridge.sim import accounts, machines, site, trace
    from slurmbridge.sim.replay import setting
    from slurmbridge.submit.associations import initial_accounting

    read = trace.read(_text(trace_file), trace_file)
    text = _text(cluster_file) if cluster_file is not None else ""
    if cluster_file is not None and "nodename=" in text.lower().replace(" ", ""):
        from slurmbridge.daemon import configuration

        config = configuration.read(cluster_file)
        nodes = machines.of_config(config)
    else:
        nodes = machines.read(text, cluster_file) if cluster_file is not None else machines.for_trace(read)
        config = site.config_of(nodes, read.jobs)
    if accounts_file is not None:
        books = accounts.read(_text(accounts_file), accounts_file, config)
    else:
        books = initial_accounting(config.cluster_name, enforced=False)
    return setting(read.jobs, nodes, config, books)


def _text(name: str) -> str:
    with open(name, encoding="utf-8", errors="replace") as stream:
        return stream.read()


@sim.command()
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--policy", type=click.Choice(["kai", "ours"]), default="kai", show_default=True, help="Whose choices to make."
)
def decide(file: str, policy: str) -> None:
    """Decide every scheduling case of FILE and print what becomes of each task, as one JSON object."""
    import msgspec

    from slurmbridge.sched.policy import PRESETS
    from slurmbridge.sim import case_file, cases

    with open(file, "rb") as stream:
        data = stream.read()
    try:
        given = case_file.read(data)
        answers = cases.decide_all(given, PRESETS[policy])
    except BridgeError as fault:
        raise click.ClickException(str(fault)) from fault
    unmet = case_file.with_pod_affinity(given)
    if unmet:
        click.echo(
            f"slurmbridge: note: affinity between pods is not looked at; {len(unmet)} cases ask for it "
            f"(the first: {unmet[0]})",
            err=True,
        )
    click.echo(msgspec.json.format(msgspec.json.encode(answers), indent=1))


@sim.command()
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--jobs", type=click.IntRange(1), default=1000, show_default=True)
@click.option("--mix", type=click.Choice(["fractions", "gangs", "cpu"]), default="fractions", show_default=True)
@click.option("--nodes", type=click.IntRange(1), default=32, show_default=True, help="Of the cluster it is meant for.")
@click.option("--gpus", type=click.IntRange(1), default=8, show_default=True, help="Of each node.")
@click.option(
    "--load", type=click.FloatRange(0.01), default=0.9, show_default=True, help="Part of the cluster it needs."
)
@click.option("--users", type=click.IntRange(1), default=60, show_default=True)
@click.option("--accounts", type=click.IntRange(1), default=12, show_default=True)
@click.option("--cluster", metavar="FILE", type=click.Path(dir_okay=False), help="Write the cluster's CSV here.")
def generate(
    seed: int,
    jobs: int,
    mix: str,
    nodes: int,
    gpus: int,
    load: float,
    users: int,
    accounts: int,
    cluster: str | None,
) -> None:
    """Print a workload trace as CSV; the same options give the same trace."""
    from slurmbridge.sim import generate as generator
    from slurmbridge.sim import machines, trace_csv

    wish = generator.Wish(
        seed=seed, jobs=jobs, mix=mix, nodes=nodes, gpus=gpus, load=load, users=users, accounts=accounts
    )
    if cluster is not None:
        with open(cluster, "w", encoding="utf-8") as stream:
            stream.write(machines.write(generator.cluster(wish)))
    sys.stdout.write(trace_csv.write(generator.generate(wish)))
