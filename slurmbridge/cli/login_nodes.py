"""`slurmbridge agent` and `slurmbridge agent-credentials`: login nodes and who may speak for their users."""

from __future__ import annotations

import base64
import datetime
import os
import sys
import time

import click

from slurmbridge.cli import instance
from slurmbridge.errors import ConfigError

DAYS = 365


@click.command()
@click.option("--daemon", required=True, metavar="HOST:PORT", help="Where it lets agents in (`up --remote`).")
@click.option("--credentials", required=True, metavar="DIR", help="What `agent-credentials` made for this agent.")
@click.option(
    "--socket", metavar="PATH", default=instance.ROOT_SOCKET, show_default=True, help="Where commands of users dial in."
)
def agent(daemon: str, credentials: str, socket: str) -> None:
    """Bring the users of a login node to a daemon elsewhere."""
    from slurmbridge.agent import main
    from slurmbridge.daemon.pod_address import split

    host, port = split(daemon, "--daemon")
    sys.exit(main.run(host=host, port=port, folder=os.path.abspath(credentials), path=os.path.abspath(socket)))


@click.command("agent-credentials")
@click.argument("name", required=False)
@click.option("--out", metavar="DIR", help="Write key and pin into this folder.")
@click.option("--manifest", metavar="SECRET", help="Print them as a Secret of that name for kubectl, instead.")
@click.option("--days", type=click.IntRange(1, 3650), default=DAYS, show_default=True, help="For which they are good.")
@click.option("--trust-root", is_flag=True, help="It may speak for root and SlurmUser, too.")
@click.option("--list", "listed", is_flag=True, help="Show who is enrolled.")
@click.option("--revoke", metavar="NAME", help="Believe this agent no more.")
@click.option("--state", metavar="DIR", help="State folder of the daemon.")
def agent_credentials(
    name: str | None,
    out: str | None,
    manifest: str | None,
    days: int,
    trust_root: bool,
    listed: bool,
    revoke: str | None,
    state: str | None,
) -> None:
    """Enrol the agent of a login node: a key for it, by which the daemon knows it. At the daemon's host, as its user."""
    from slurmbridge.daemon import enrolment

    folder = instance.locate(state).state
    if (name is not None) + listed + (revoke is not None) != 1:
        raise click.UsageError("name one agent, or give --list or --revoke NAME")
    if not os.path.isdir(folder):
        raise ConfigError("there is no daemon's state folder: name it with --state", file=folder)
    owner = os.stat(folder).st_uid
    if owner != os.geteuid():  # the daemon could not read what another user writes there
        raise ConfigError(f"it is uid {owner}'s: type this as the daemon's user", file=folder)
    if listed:
        show(folder)
    elif revoke is not None:
        enrolment.revoke(folder, revoke)
        click.echo(f"{revoke} is revoked; a running daemon cuts it within seconds")
    else:
        assert name is not None
        if (out is None) == (manifest is None):
            raise click.UsageError("--out DIR or --manifest SECRET says where the credentials go")
        if out is not None:
            enrolment.check_place(out)
        made = enrolment.enrol(
            folder, name, days=days, trusts_root=trust_root, now=datetime.datetime.now(datetime.UTC)
        )  # fmt: skip
        if out is not None:
            try:
                enrolment.give(made, out)
            except ConfigError:  # nobody has the key
                enrolment.revoke(folder, name)
                raise
            click.echo(f"{name} is enrolled for {days} days: bring {out} to its host, readable by its user alone")
        else:
            click.echo(secret(str(manifest), made.key, made.pin), nl=False)


def show(state: str) -> None:
    from slurmbridge.daemon import enrolment

    agents, faults = enrolment.read(state)
    click.echo(f"{'NAME':<24} {'UNTIL':<10} {'ROOT':<4} CERTIFICATE")
    for each in agents:
        until = datetime.datetime.fromtimestamp(each.until, datetime.UTC).date().isoformat()
        gone = " (run out)" if each.until <= time.time() else ""
        click.echo(f"{each.name:<24} {until} {'yes' if each.trusts_root else 'no':<4} {each.hash[:16]}{gone}")
    for fault in faults:
        click.echo(f"slurmbridge: error: {fault}", err=True)


def secret(name: str, key: bytes, pin: bytes) -> str:
    """A Secret as YAML, for `kubectl apply --filename -`."""
    from slurmbridge.daemon.enrolment import KEY_FILE, PIN_FILE

    lines = ["apiVersion: v1", "kind: Secret", f"metadata: {{name: {name}}}", "type: Opaque", "data:"]
    lines += [f"  {file}: {base64.b64encode(data).decode()}" for file, data in ((KEY_FILE, key), (PIN_FILE, pin))]
    return "\n".join(lines) + "\n"
