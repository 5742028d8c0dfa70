"""srun outside of an allocation: get one, run one step in it, give it back (srun(1), Slurm 26.05).

The step is run by the client over the job's first supervisor, from the same command line (`cli.srun_client`); what can
be refused without an allocation is refused here. An srun with a job id in its environment or options never comes here.
"""

from __future__ import annotations

from collections.abc import Sequence

from slurmbridge.commands.allocating import Wish, allocate, as_told, components_of, give_back, read_wish
from slurmbridge.commands.effects import Call, Command, HandOver, Print, Recall, Returned, Site
from slurmbridge.commands.submitting import Speaker, Steps, Stop, complain
from slurmbridge.lang import hostlist
from slurmbridge.manifest.environment import says_tasks, task_counts
from slurmbridge.model.job import Job
from slurmbridge.submit.merge import CommandLine, Draft
from slurmbridge.submit.value import Bad, error, fatal

MPI_TYPES = ("none", "pmi2")
NO_COMMAND = "No command given to execute."
BAD_BINDING = "unrecognized --cpu-bind argument"
BINDINGS = """Values of --cpu-bind, joined by commas:
    q, quiet, v, verbose            say nothing, or say to which CPUs each task is bound
    none                            no binding
    threads, cores, sockets, ldoms  masks made for the tasks
    map_cpu:LIST, mask_cpu:LIST     a CPU number, or a mask of CPUs, for each task
    map_ldom:LIST, mask_ldom:LIST   the same for NUMA localities
    rank_ldom                       tasks by rank within a NUMA locality
    help                            this text
"""
PLACED = ("", "block", "cyclic", "plane", "*")
"""Ways to distribute tasks that the supervisors know."""


def main(call: Call, site: Site) -> Command:
    """srun [OPTIONS] PROGRAM [ARGS]."""
    try:
        return (yield from _run(call, site))
    except Stop as stop:
        return stop.exit_code


def _run(call: Call, site: Site) -> Command:
    wish: Wish = yield from read_wish("srun", call, site, "", _check, _refuse)
    job: Job = yield from allocate(wish, call, site)
    if wish.who.verbose:
        yield Print(_verbose(job), 2)
    returned: Returned = yield HandOver(job_id=job.job_id, what="step", facts=_facts(components_of(job, site)))
    if returned.is_over or returned.signal:
        returned = yield Recall()
    yield from give_back(job, returned.status)
    return returned.code


def _check(who: Speaker, drafts: tuple[Draft, ...], line: CommandLine) -> Steps:
    """What srun refuses before it asks for anything."""
    values = drafts[0].values
    if "relative" in drafts[0].typed:
        yield from complain(who, fatal("--relative option invalid for job allocation request"))
    mpi = str(values.get("mpi") or "none").lower()
    if mpi == "list":
        yield Print("MPI plugin types are...\n" + "".join(f"\t{name}\n" for name in MPI_TYPES))
        raise Stop(0)
    if not all(line.programs) and not values.get("test_only"):
        yield from complain(who, fatal(NO_COMMAND))
    if mpi not in MPI_TYPES:
        lines = (
            ("error", f"MPI: Cannot create context for mpi/{mpi}"),
            ("error", "MPI: Unable to load any plugin"),
            ("error", f"Invalid MPI type '{mpi}', --mpi=list for acceptable types"),
        )
        yield from complain(who, Bad(lines, 1))
    layout = str(values.get("distribution") or "")
    if layout.lower().split(":")[0].split(",")[0].partition("=")[0] not in PLACED:
        text = f"--distribution={layout}: only block, cyclic and plane=N place tasks"
        yield from complain(who, error(text, 1))
    if any("pty" in draft.values for draft in drafts):
        if any(name in draft.values for draft in drafts for name in ("stdin", "stdout", "stderr")):
            yield from complain(who, error("--error/--input/--output are incompatible with --pty", 1))
        if len(drafts) > 1:
            yield from complain(who, error("--pty: only one component", 1))
    if mpi != "none" and len(drafts) > 1:
        yield from complain(who, error("--mpi: only none works over several components", 1))
    for draft, program in zip(drafts, line.programs, strict=True):
        if "job-name" not in draft.typed:
            draft.values["name"] = program[0].rpartition("/")[2] if program else "srun"


def _refuse(who: Speaker, bad: Bad, line: CommandLine) -> Steps:
    """A binding is looked at only once there is something to bind."""
    if not any(text.startswith(BAD_BINDING) for _, text in bad.lines):
        yield from complain(who, as_told(bad))
    if not line.operands:
        yield from complain(who, fatal(NO_COMMAND))
    if any(text.endswith('"help"') for _, text in bad.lines):
        yield Print(BINDINGS)
        raise Stop(1)
    yield from complain(who, Bad((*bad.lines, ("fatal", "Failed to parse --cpu-bind= values.")), 1))


def _facts(jobs: Sequence[Job]) -> tuple[tuple[str, object], ...]:
    """How the step fills the allocation, by component."""
    parts = []
    for job in jobs:
        shares = job.allocation.nodes if job.allocation is not None else ()
        spec = job.spec
        tasks = sum(task_counts(spec, shares)) if says_tasks(spec) else len(shares)
        parts.append({"job": job.job_id, "ntasks": tasks, "nodes": len(shares), "name": spec.name})
    return (("components", parts),)


def _verbose(job: Job) -> str:
    shares = job.allocation.nodes if job.allocation is not None else ()
    names = hostlist.compress_sorted([share.node for share in shares])
    counts: list[tuple[int, int]] = []
    for share in shares:
        if counts and counts[-1][0] == share.cpus:
            counts[-1] = (share.cpus, counts[-1][1] + 1)
        else:
            counts.append((share.cpus, 1))
    cpus = ",".join(f"{cpus}(x{repeat})" for cpus, repeat in counts)
    return (
        f"srun: Nodes {names} are ready for job\n"
        f"srun: jobid {job.job_id}: nodes({len(shares)}):`{names}', cpu counts: {cpus}\n"
    )
