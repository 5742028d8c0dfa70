"""Whole replays: every job runs once and whole, whatever the policy, and the same input gives the same figures."""

from __future__ import annotations

import msgspec
import pytest

from slurmbridge.model.plan import Eviction
from slurmbridge.sim import accounts, generate, site
from slurmbridge.sim.clock import simulate
from slurmbridge.sim.ours import Replay
from slurmbridge.sim.quota import Quota
from slurmbridge.sim.replay import POLICIES, Setting, replay, runs_of, setting
from slurmbridge.sim.shares import Share, Tree
from slurmbridge.sim.workload import Machine, TraceError, TraceJob
from slurmbridge.submit.associations import initial_accounting

NODES = (Machine(node="g", count=2, cpus=16, mem_mib=64_000, gpus=4, gpu_type="a100", gpu_mem_mib=80_000),)


def made(jobs: list[TraceJob], machines: tuple[Machine, ...] = NODES) -> Setting:
    config = site.config_of(machines, jobs)
    return setting(jobs, machines, config, initial_accounting(config.cluster_name, enforced=False))


def job(number: int, submit: float, run: float, **fields: object) -> TraceJob:
    return TraceJob(id=f"j{number}", submit_s=submit, run_s=run, limit_s=run, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("mix", sorted(generate.MIXES))
@pytest.mark.parametrize("policy", POLICIES)
def test_every_job_runs_once_and_whole_and_nothing_is_used_twice(policy: str, mix: str) -> None:
    wish = generate.Wish(jobs=80, mix=mix, nodes=4, seed=3)
    given = made(list(generate.generate(wish)), generate.cluster(wish))
    tree = Tree(given.accounting, sorted({each.account for each in given.jobs}))
    runs = runs_of(given, policy, tree)
    assert sorted(run.place for run in runs if not run.lost) == list(range(len(given.jobs)))
    events = []
    for run in runs:
        one = given.jobs[run.place]
        assert run.start >= one.submit_s
        assert run.lost or run.end - run.start == pytest.approx(one.run_s)
        gpus = one.nodes * one.gpus * (one.gpu_mem_mib / 81_920 if one.gpu_mem_mib else one.gpu_milli / 1000)
        events += [(run.start, 1, gpus, one.all_cpus), (run.end, 0, -gpus, -one.all_cpus)]
    gpus_used = cpus_used = 0.0
    for _, _, gpus, cpus in sorted(events):
        gpus_used, cpus_used = gpus_used + gpus, cpus_used + cpus
        assert gpus_used <= sum(each.gpus * each.count for each in given.machines) + 1e-6
        assert cpus_used <= sum(each.cpus * each.count for each in given.machines)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_trace_gives_the_same_figures(policy: str) -> None:
    wish = generate.Wish(jobs=60, nodes=3, seed=5)
    given = made(list(generate.generate(wish)), generate.cluster(wish))
    one, two = (msgspec.structs.replace(replay(given, policy), wall_s=0.0) for _ in range(2))
    assert one == two


def test_jobs_that_could_never_run_are_left_out_for_every_policy() -> None:
    given = made(
        [job(1, 0, 10, gpus=1), job(2, 0, 10, gpus=5), job(3, 0, 10, nodes=3), job(4, 0, 10, gpu_type="b", gpus=1)]
    )
    assert given.left_out == ("j2", "j3", "j4") and [each.id for each in given.jobs] == ["j1"]
    with pytest.raises(TraceError, match="no job"):
        made([job(2, 0, 10, gpus=5)])


def test_fractions_by_portion_and_by_memory_share_a_device_in_the_core() -> None:
    jobs = [job(n, 0, 10, gpus=1, gpu_milli=500) for n in range(1, 13)]
    jobs += [job(n, 0, 10, gpus=1, gpu_mem_mib=20_000) for n in range(13, 21)]
    given = made(jobs)
    runs = Replay(given.jobs, given.config, given.accounting).run()
    assert {run.start for run in runs} == {0.0}


def test_an_evicted_run_is_lost_and_the_job_runs_again_from_its_beginning() -> None:
    given = made([job(1, 0, 100, gpus=4, nodes=2), job(2, 50, 10, gpus=4)])
    core = Replay(given.jobs, given.config, given.accounting)
    shift = core._shift
    seen: list[float] = []

    def watch(plan: object, now: float) -> None:
        """As a plan would that makes room for the second job when it comes."""
        if now - shift == 50 and not seen:
            seen.append(now)
            core._evict(Eviction(job_id=1, mode="REQUEUE", for_job=2), now)

    core._watch = watch
    runs = core.run()
    lost = [run for run in runs if run.lost]
    assert [(run.place, run.start, run.end) for run in lost] == [(0, 0, 50)]
    whole = {run.place: run for run in runs if not run.lost}
    assert whole[0].end - whole[0].start == 100 and core.tally.evictions == 1


def test_a_grace_time_delays_the_end_of_an_evicted_run() -> None:
    given = made([job(1, 0, 100, gpus=4, nodes=2), job(2, 50, 10, gpus=4)])
    core = Replay(given.jobs, given.config, given.accounting)
    done: list[float] = []

    def watch(plan: object, now: float) -> None:
        if now - core._shift == 50 and not done:
            done.append(now)
            core._evict(Eviction(job_id=1, mode="REQUEUE", for_job=2, grace_s=30), now)

    core._watch = watch
    assert [(run.start, run.end) for run in core.run() if run.lost] == [(0, 80)]


def test_the_core_shares_by_account_what_easy_gives_to_who_came_first() -> None:
    """One account floods the queue; the other's few jobs need not wait for all of it."""
    jobs = [job(n, 0, 600, gpus=4, account="many", user="u1") for n in range(1, 21)]
    jobs += [job(n, 1, 600, gpus=4, account="few", user="u2") for n in range(21, 23)]
    jobs.append(job(23, 6000, 1, gpus=1))
    given = made(jobs)
    ours, easy = replay(given, "ours"), replay(given, "easy")
    assert ours.share_error < easy.share_error


def test_quota_serves_the_account_with_the_least_of_its_own_first() -> None:
    jobs = [job(n, 0, 100, gpus=4, account="a") for n in range(1, 6)] + [job(9, 1, 100, gpus=4, account="b")]
    policy = Quota(jobs, NODES, {"a": Share(part=0.5), "b": Share(part=0.5)})
    starts = {run.place: run.start for run in simulate(jobs, policy)}
    assert starts == {0: 0, 1: 0, 2: 100, 5: 100, 3: 200, 4: 200}


def test_quota_passes_over_a_gang_and_keeps_nothing_for_it() -> None:
    jobs = [job(1, 0, 100, gpus=1), job(2, 1, 50, gpus=4, nodes=2), job(3, 2, 500, gpus=4)]
    starts = {run.place: run.start for run in simulate(jobs, Quota(jobs, NODES, {"default": Share(part=1.0)}))}
    assert starts == {0: 0, 2: 2, 1: 502}


def test_priorities_of_a_trace_go_before_arrival_in_an_account() -> None:
    jobs = [
        job(1, 0, 100, gpus=4, nodes=2),
        job(2, 1, 10, gpus=4, nodes=2),
        job(3, 2, 10, gpus=4, nodes=2, priority=50),
    ]
    given = made(jobs)
    assert any(qos.name == accounts.qos_name(50) for qos in given.accounting.qos)
    for policy in ("ours", "quota"):
        tree = Tree(given.accounting, ["default"])
        starts = {run.place: run.start for run in runs_of(given, policy, tree)}
        assert starts[2] < starts[1], policy


def test_a_generated_trace_is_the_same_to_the_byte_and_is_the_load_that_was_asked_for() -> None:
    wish = generate.Wish(jobs=400, seed=7, load=0.8)
    jobs = generate.generate(wish)
    assert jobs == generate.generate(wish) and len(jobs) == 400
    assert jobs != generate.generate(msgspec.structs.replace(wish, seed=8))
    work = sum(
        each.run_s * each.nodes * each.gpus * (each.gpu_mem_mib / 81_920 if each.gpu_mem_mib else each.gpu_milli / 1000)
        for each in jobs
    )
    span = jobs[-1].submit_s - jobs[0].submit_s
    assert 0.7 < work / (span * 32 * 8) < 0.95
    assert all(each.limit_s >= each.run_s > 0 for each in jobs)


def test_replays_of_a_trace_need_no_memory_column() -> None:
    given = made([job(1, 0, 10, cpus=4)], (Machine(node="n", cpus=4),))
    assert replay(given, "ours").mean_wait_s == 0


def test_accounts_come_from_sacctmgr_lines_and_mistakes_name_their_line() -> None:
    config = site.config_of(NODES, [job(1, 0, 1)])
    text = "# tree\nsacctmgr -i add account physics fairshare=5\nadd account chem parent=physics\n\nsacctmgr -i add user alice account=chem\n"
    books = accounts.read(text, "tree.txt", config)
    known = {(assoc.account, assoc.user): assoc for assoc in books.assocs}
    assert known["physics", ""].shares == 5 and known["chem", ""].parent == "physics" and ("chem", "alice") in known
    with pytest.raises(TraceError, match=r"^tree.txt:2: .*[Uu]nknown|^tree.txt:2: "):
        accounts.read("add account a\nadd acount b\n", "tree.txt", config)


def test_a_dump_of_sacctmgr_is_read_too() -> None:
    config = site.config_of(NODES, [job(1, 0, 1)])
    text = (
        f"Cluster - '{config.cluster_name}':Fairshare=1:QOS='normal'\nParent - 'root'\n"
        "Account - 'physics':Description='physics':Organization='physics':Fairshare=7\n"
    )
    books = accounts.read(text, "dump.cfg", config)
    assert any(assoc.account == "physics" and assoc.shares == 7 for assoc in books.assocs)


def test_quotas_of_accounts_decide_who_is_below_them() -> None:
    config = site.config_of(NODES, [job(1, 0, 1)])
    text = "add account a DeservedTRES=gres/gpu=6\nadd account b DeservedTRES=gres/gpu=2\n"
    tree = Tree(accounts.read(text, "t", config), ["a", "b"])
    assert {name: each.quota for name, each in tree.shares().items()} == {"a": 6, "b": 2}
