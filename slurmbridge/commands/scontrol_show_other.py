"""What does scontrol print of licences, reservations, host lists, daemons, names of nodes, jobs that complete?

Follows scontrol(1) of Slurm 26.05. What this product has none of (federations, burst buffers) prints nothing, as Slurm
does where it has none.
"""

from __future__ import annotations

from slurmbridge.commands.effects import Command, FileData, Print, ReadFile
from slurmbridge.commands.scontrol_view import Eyes, lay_out
from slurmbridge.errors import LangError
from slurmbridge.fields import text
from slurmbridge.lang import durations, hostlist
from slurmbridge.model.plan import Reservation
from slurmbridge.model.states import JobFlag

_NULL = "(null)"


def show_licenses(eyes: Eyes, name: str | None) -> Command:
    """All licences by name, or one."""
    config = eyes.site.config
    known = sorted(config.licenses, key=lambda each: each.name)
    chosen = [each for each in known if name is None or each.name == name]
    if name is not None and not chosen:
        yield Print(f'scontrol: error: query "{name}" matched zero licenses.\n', 2)
        return 1
    if not chosen:
        yield Print("No licenses configured in Slurm.\n")
        return 0
    used = eyes.site.licenses_used()
    join = " " if eyes.flags.one_line else "\n    "
    for each in chosen:
        taken = used.get(each.name, 0)
        yield Print(
            f"LicenseName={each.name}{join}Total={each.total} Used={taken} Free={each.total - taken} Reserved=0 Remote=no\n"
        )
    return 0


def show_reservations(eyes: Eyes, name: str | None) -> Command:
    """All reservations, or one."""
    found = [each for each in eyes.site.reservations() if name is None or each.name == name]
    if not found:
        if not eyes.flags.quiet:
            yield Print("No reservations in the system\n" if name is None else f"Reservation {name} not found\n")
        return 0 if name is None else 1
    for each in found:
        yield Print(lay_out(reservation_lines(each, eyes), eyes.flags.one_line))
    return 0


def reservation_lines(made: Reservation, eyes: Eyes) -> list[str]:
    """All lines of one reservation."""
    view = eyes.view
    start, end = int(made.start_time), int(made.end_time)
    cores = 0
    cpus = 0
    for name in made.nodes:
        node = eyes.site.node(name)
        if node is not None:
            cores += node.conf.sockets * node.conf.cores_per_socket
            cpus += node.conf.cpus
    state = "ACTIVE" if start <= view.now < end else "INACTIVE"
    nodes = hostlist.compress_sorted(made.nodes) if made.nodes else _NULL
    lines = [
        f"ReservationName={made.name} StartTime={view.time(start)} EndTime={view.time(end)}"
        f" Duration={durations.render_elapsed(end - start)}",
        f"Nodes={nodes} NodeCnt={len(made.nodes)} CoreCnt={cores} Features={made.features or _NULL}"
        f" PartitionName={made.partition or _NULL} Flags={','.join(made.flags)}",
        f"TRES=cpu={cpus}",
        f"AllowedPartitions={_NULL} QOS={_NULL}",
        f"Users={','.join(made.users) or _NULL} Groups={_NULL} Accounts={','.join(made.accounts) or _NULL}"
        f" Licenses={made.licenses or _NULL} State={state} BurstBuffer={_NULL}",
        f"MaxStartDelay={_NULL}",
    ]
    if made.comment:
        lines.append(f"Comment={made.comment}")
    return lines


def show_hostnames(eyes: Eyes, word: str | None) -> Command:
    """One name a line; without a list that of SLURM_NODELIST (set in every job). Bad lists are reported with exit code 0, as in Slurm."""
    env = eyes.call.env
    names = word if word is not None else env.get("SLURM_NODELIST", "")
    if not names:
        yield Print("scontrol: error: host list is empty\n", 2)
        return 0
    try:
        found = hostlist.expand(names)
    except LangError as error:
        if error.message.startswith("_"):
            yield Print(f"scontrol: error: {error.message}\n", 2)
        yield Print(f"Invalid hostlist: {names}\n", 2)
        return 0
    yield Print("".join(f"{name}\n" for name in found))
    return 0


def show_hostlist(eyes: Eyes, word: str, *, is_sorted: bool) -> Command:
    """The names folded; a path names a file with names."""
    names = word
    if word.startswith("/"):
        data: FileData = yield ReadFile(name=word)
        if data.errno:
            yield Print(f"scontrol: error: Can not open {word}\n", 2)
            return 1
        names = ",".join(data.data.decode("utf-8", "replace").split())
    try:
        found = hostlist.expand(names)
    except LangError as error:
        if error.message.startswith("_"):
            yield Print(f"scontrol: error: {error.message}\n", 2)
        yield Print(f"Invalid hostlist: {names}\n", 2)
        return 1
    fold = hostlist.compress_sorted if is_sorted else hostlist.compress
    yield Print(fold(found) + "\n")
    return 0


def show_aliases(eyes: Eyes, word: str | None) -> Command:
    """Names of the nodes on this host, or of those whose host name is given."""
    host = word if word is not None else eyes.call.host
    found = [node.name for node in eyes.site.nodes() if (node.conf.host or node.name) == host]
    if found:
        yield Print(" ".join(found) + "\n")
    return 0


def show_daemons(eyes: Eyes) -> Command:
    """Which daemons of Slurm a host would run."""
    config, host = eyes.site.config, eyes.call.host
    names = []
    if host in (config.control_host, eyes.site.daemon_host):
        names.append("slurmctld ")
    if any((node.conf.host or node.name) == host for node in eyes.site.nodes()):
        names.append("slurmd")
    yield Print("".join(names) + "\n" if names else "")
    return 0


def ping(eyes: Eyes) -> Command:
    """The controller answers: it is this process."""
    yield Print(f"Slurmctld(primary) at {eyes.site.config.control_host} is UP\n")
    return 0


def completing(eyes: Eyes) -> Command:
    """Jobs whose processes have not all gone, with their nodes."""
    for job in eyes.site.jobs():
        if JobFlag.COMPLETING not in job.flags:
            continue
        nodes = text.node_list(job)
        end = eyes.view.time(job.end_time, "Unknown")
        spent = durations.render_elapsed(max(int(eyes.view.now - (job.end_time or eyes.view.now)), 0))
        partition = job.allocation.partition if job.allocation else ",".join(job.spec.partitions)
        yield Print(
            f"JobId={job.job_id} EndTime={end} CompletingTime={spent} Nodes(COMPLETING)={nodes} Partition={partition}\n"
        )
    return 0
