"""sacctmgr dump and load: what a file says, and that a loaded dump makes what was dumped. Texts of Slurm 26.05.5."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmbridge.commands import dump_file
from slurmbridge.model.accounts import Accounting
from slurmbridge.submit import associations
from tests.accounts.site import Answer, MemorySite, recorded_site, run

RECORDED = """\
QOS - 'normal':Description='Normal QOS default'
QOS - 'high':Description='high':MaxJobsPU=2:MaxTRESPerUser=cpu=16:Priority=1000
QOS - 'long':Description='long':MaxWallDurationPerJob=20160:Priority=10
QOS - 'preempt':Description='preempt':Preempt='normal':Priority=2000
QOS - 'tiny':Description='tiny':Flags='DenyOnLimit':MaxTRESPerJob=cpu=2:MaxWallDurationPerJob=10:Priority=5
Cluster - 'oracle':Fairshare=1:QOS='high,long,normal,preempt,tiny'
Parent - 'root'
User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Account - 'admin':Description='admin':Organization='root':Fairshare=1
Account - 'research':Description='research':Organization='lab':Fairshare=1
Parent - 'admin'
User - 'dave':DefaultAccount='admin':AdminLevel='Operator':Fairshare=1
User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Parent - 'research'
Account - 'ml':Description='ml':Organization='lab':Fairshare=4
Account - 'physics':Description='physics':Organization='lab':Fairshare=1
Parent - 'ml'
User - 'alice':DefaultAccount='physics':Fairshare=1
User - 'bob':DefaultAccount='ml':Fairshare=1:QOS='normal,tiny'
Parent - 'physics'
User - 'alice':DefaultAccount='physics':Fairshare=1
"""
FULL = (
    "add qos full set priority=7 description='full one' gracetime=30 grpjobs=1 grpjobsaccrue=2 grpsubmit=3"
    " grptres=cpu=4,mem=5,gres/gpu=2 grptresmins=cpu=6 grptresrunmins=cpu=7 grpwall=8 maxtresmins=cpu=9 maxjobspa=10"
    " maxjobspu=11 maxjobsaccruepu=12 maxjobsaccruepa=13 maxsubmitjobspa=14 maxsubmitjobspu=15 maxtrespa=cpu=16"
    " maxtrespj=cpu=17 maxtrespn=cpu=18 maxtrespu=cpu=19 maxtresrunminspa=cpu=20 maxtresrunminspu=cpu=21"
    " mintres=cpu=1 maxwall=1:02:03 preempt=normal,high preemptmode=requeue preemptexempttime=0:05:00"
    " usagefactor=2.5 usagethreshold=0.25 limitfactor=1.5 minpriothres=4 flags=DenyOnLimit,NoReserve",
    "add account lim parent=research description=its organization=a:b fairshare=parent grpjobs=1 grpjobsaccrue=2"
    " grpsubmit=3 grptres=cpu=4,mem=5000,gres/gpu=2 grptresmins=cpu=6 grptresrunmins=cpu=7 grpwall=8:00"
    " maxtresmins=cpu=9 maxjobs=10 maxjobsaccrue=12 maxsubmit=14 maxtres=cpu=17 maxtrespn=cpu=18 maxwall=1-02:03"
    " priority=9 qos=normal,full defaultqos=full DeservedTRES=gres/gpu=8 OverQuotaWeight=2 QueuePriority=100",
    "add user carol account=lim defaultaccount=lim adminlevel=operator partition=debug,gpu comment=hey qos=full"
    " defaultqos=full maxjobs=2",
    "add coord account=lim,physics names=alice,carol",
)
FULL_LINES = (
    "QOS - 'full':Description='full one':Flags='DenyOnLimit,NoReserve':GraceTime=30:GrpJobsAccrue=2:GrpJobs=1"
    ":GrpSubmitJobs=3:GrpTRES=cpu=4,gres/gpu=2,mem=5M:GrpTRESMins=cpu=6:GrpTRESRunMins=cpu=7:GrpWall=8"
    ":LimitFactor=1.500000:MaxJobsPA=10:MaxJobsPU=11:MaxJobsAccruePA=13:MaxJobsAccruePU=12:MaxSubmitJobsPA=14"
    ":MaxSubmitJobsPU=15:MaxTRESMinsPerJob=cpu=9:MaxTRESPerAccount=cpu=16:MaxTRESPerJob=cpu=17:MaxTRESPerNode=cpu=18"
    ":MaxTRESPerUser=cpu=19:MaxTRESRunMinsPerAccount=cpu=20:MaxTRESRunMinsPerUser=cpu=21:MaxWallDurationPerJob=63"
    ":MinPrioThresh=4:MinTRESPerJob=cpu=1:Preempt='high,normal':PreemptMode='requeue':PreemptExemptTime=300:Priority=7"
    ":UsageFactor=2.500000:UsageThreshold=0.250000",
    "Account - 'lim':Description='its':Organization='a:b':DefaultQOS='full':Fairshare=2147483647:GrpTRESMins=cpu=6"
    ":GrpTRESRunMins=cpu=7:GrpTRES=cpu=4,gres/gpu=2,mem=5000M:GrpJobs=1:GrpJobsAccrue=2:GrpSubmitJobs=3:GrpWall=8"
    ":MaxTRESMinsPerJob=cpu=9:MaxTRESPerJob=cpu=17:MaxTRESPerNode=cpu=18:MaxJobs=10:MaxJobsAccrue=12:MaxSubmitJobs=14"
    ":MaxWallDurationPerJob=1563:Priority=9:QOS='full,normal':DeservedTRES=gres/gpu=8:OverQuotaWeight=2:QueuePriority=100",
    "User - 'carol':Partition='debug':DefaultAccount='lim':AdminLevel='Operator':Coordinator='lim,physics':Comment='hey'"
    ":DefaultQOS='full':Fairshare=1:MaxJobs=2:QOS='full'",
)


@pytest.fixture
def site() -> MemorySite:
    return recorded_site()


@pytest.fixture
def full(site: MemorySite) -> MemorySite:
    for line in FULL:
        answer = run(site, "sacctmgr -i " + line)
        assert answer.rc == 0, answer
    return site


def load(site: MemorySite, text: str, words: str = "sacctmgr -i load f", **how: Any) -> Answer:
    site.files["f"] = text
    return run(site, words, **how)


def entities(accounting: Accounting) -> tuple[object, ...]:
    """All that a dump says, and which associations are defaults."""
    known = associations.index(accounting)
    return dump_file.write(accounting, "oracle"), sorted(key for key, assoc in known.assocs.items() if assoc.is_default)


def text_of(site: MemorySite, name: str) -> str:
    return "".join(f"{line}\n" for line in site.files[name].splitlines() if not line.startswith("#"))


def test_a_dump_has_slurms_lines(site: MemorySite) -> None:
    answer = run(site, "sacctmgr dump oracle file=/tmp/x")
    assert (answer.rc, answer.stdout, text_of(site, "/tmp/x")) == (0, "", RECORDED)
    head, _, rest = RECORDED.partition("Parent")
    told = f"sacctmgr: {head}" + "".join(f"sacctmgr: {line}\n" for line in ("Parent" + rest).splitlines())
    assert answer.stderr == told
    assert run(site, "sacctmgr -Q dump oracle file=/tmp/x") == (0, "", "")


def test_a_dump_has_every_limit_in_slurms_order(full: MemorySite) -> None:
    run(full, "sacctmgr -Q dump oracle file=x")
    lines = full.files["x"].splitlines()
    for line in FULL_LINES:
        assert line in lines


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("sacctmgr dump", (1, "", " We need a cluster to dump.\n")),
        ("sacctmgr dump file=x", (1, "", " We need a cluster to dump.\n")),
        ("sacctmgr dump nosuch", (1, "", " Cluster nosuch doesn't exist.\n")),
        ("sacctmgr -Q dump oracle", (0, " No filename given, using ./oracle.cfg.\n", "")),
        ("sacctmgr -Q dump clust=oracle fil=x", (0, "", "")),
        ("sacctmgr -Q dump oracle bla=x file=x", (1, "", " Unknown option: bla=x\n")),
        ("sacctmgr dump oracle file=/nowhere/x", (1, "", "Can't open file /nowhere/x, No such file or directory\n")),
        ("sacctmgr load", (1, "", " No filename given, specify one with file=''\n")),
        ("sacctmgr load clean file=no", (1, "", ' Unable to read "clean": No such file or directory\n')),
        ("sacctmgr load file=no", (1, "", ' Unable to read "file=no": No such file or directory\n')),
        (
            "sacctmgr archive",
            (1, "", 'No valid entity in archive command\nInput line must include, "Dump", or "load"\n'),
        ),
        ("sacctmgr clear", (1, "", 'No valid entity in list command\nInput line must include "Stats"\n')),
    ],
)
def test_slurms_answers(site: MemorySite, line: str, answer: tuple[int, str, str]) -> None:
    assert run(site, line) == answer


def test_only_operators_dump_and_load(site: MemorySite) -> None:
    site.files["f"] = RECORDED
    denied = " Your user does not have sufficient privileges to {}.\n"
    assert run(site, "sacctmgr dump oracle file=x", user="alice") == (1, "", denied.format("dump clusters"))
    assert run(site, "sacctmgr load f", user="alice") == (1, "", denied.format("load files"))
    assert "x" not in site.files


@pytest.mark.parametrize("how", ["onto a new controller", "over itself", "clean"])
def test_a_loaded_dump_makes_what_was_dumped(full: MemorySite, how: str) -> None:
    run(full, "sacctmgr -Q dump oracle file=x")
    target = MemorySite() if how == "onto a new controller" else full
    before = entities(full.accounting)
    answer = load(target, full.files["x"], "sacctmgr -i load " + ("clean f" if how == "clean" else "f"))
    assert (answer.rc, answer.stderr) == (0, "")
    assert entities(target.accounting) == before
    if how == "over itself":
        assert answer.stdout == "For cluster oracle\n Nothing new added.\n"


def test_a_clean_load_leaves_only_what_the_file_names(site: MemorySite) -> None:
    text = "Cluster - oracle:QOS=normal\nParent - root\nAccount - only:Fairshare=3\nParent - only\nUser - alice\n"
    assert load(site, text, "sacctmgr -i load f clean").rc == 0
    assert sorted(associations.index(site.accounting).assocs) == [
        ("only", "", ""), ("only", "alice", ""), ("root", "", ""), ("root", "root", ""),
    ]  # fmt: skip
    assert associations.default_account(site.accounting, "alice") == "only"


def test_changes_are_told_in_slurms_words(full: MemorySite) -> None:
    text = (
        "QOS - normal:Flags=NoReserve:MaxWall=10:Priority=3\n"
        "Cluster - oracle:Fairshare=2:MaxJobs=50\n"
        "Parent - root\n"
        "Account - research:Fairshare=8:MaxSubmitJobs=9:GrpWall=4:MaxWallDurationPerJob=40\n"
        "Parent - physics\n"
        "User - alice:AdminLevel=Operator:GrpTRES=cpu=4:MaxJobs=2:DefaultQOS=high\n"
        "Parent - research\n"
        "Account - admin:Description=other\n"
    )
    assert load(full, text).stdout == (
        "QOS\n"
        " Changed Flags                 for QOS     normal       (null) -> NoReserve\n"
        " Changed MaxWallDurationPerJob for QOS     normal     4294967295 -> 10\n"
        " Changed Priority              for QOS     normal            0 -> 3\n"
        "For cluster oracle\n"
        " Changed fairshare             for Cluster oracle            1 -> 2\n"
        " Changed MaxJobs               for Cluster oracle           -1 -> 50\n"
        " Changed fairshare             for Account research          1 -> 8\n"
        " Changed MaxSubmitJobs         for Account research         -1 -> 9\n"
        " Changed GrpWallDuration       for Account research         -1 -> 4\n"
        " Changed MaxWallDurationPerJob for Account research         -1 -> 40\n"
        " Changed GrpTRES               for User    alice        (null) -> 1=4\n"
        " Changed MaxJobs               for User    alice            -1 -> 2\n"
        " Set DefaultQOS                for User    alice          high\n"
        " Changed Admin Level           for User    alice          None -> Operator\n"
        " Changed description           for Account admin         admin -> other\n"
        " Changed Parent                for Account admin          root -> research\n"
    )


def test_new_entities_are_shown_in_tables(site: MemorySite) -> None:
    text = "Cluster - oracle\nParent - root\nAccount - new:Description='A b':Fairshare=5\nParent - new\nUser - carol\n"
    lines = load(site, text).stdout.splitlines()
    assert lines[:6] == [
        "For cluster oracle",
        "Accounts",
        "      Name                Descr                  Org                  QOS ",
        "---------- -------------------- -------------------- -------------------- ",
        "       new                  A b                  new                      ",
        "-" * 51,
    ]
    assert lines[6:8] == ["", "Account Associations"]
    assert "     carol        new                                   Not Set                      " in lines


def test_without_immediate_it_asks_first(site: MemorySite) -> None:
    text = "Cluster - oracle\nParent - root\nAccount - new\n"
    before = site.accounting
    answer = load(site, text, "sacctmgr load f")
    assert answer.rc == 0
    assert answer.stdout.endswith("(N/y): \nerror: Inappropriate ioctl for device\n Changes Discarded\n")
    assert site.accounting == before


@pytest.mark.parametrize(
    ("text", "err"),
    [
        ("Account - x\n", " You need to specify a cluster name first with 'Cluster - $NAME' in your file\n"),
        (
            "Cluster - oracle\nParent - nosuch\nAccount - x\n",
            " line(2) You need to add this parent (nosuch) as a child before you can add children to it.\n",
        ),
        (
            "Cluster - oracle\nBogus - 'x'\n",
            " Misformatted line(2): Bogus - 'x'\n\n Problem with requests: Unspecified error\n",
        ),
        ("hello\n", " Misformatted line(1): hello\n\n Problem with requests: Unspecified error\n"),
        (
            "Cluster - oracle\nAccount - x:Bogus=3\n",
            " Unknown option: Bogus=3\n Problem with line(2)\n Problem with requests: Unspecified error\n",
        ),
        (
            "Cluster - oracle\nAccount - x:MaxJobs=abc\n",
            "sacctmgr: error: Invalid value for MaxJobs (abc)\n Unknown option: MaxJobs=abc\n Problem with line(2)\n"
            " Problem with requests: Unspecified error\n",
        ),
        (
            "Cluster - oracle\nQOS - q\n",
            " You need to specify all QOS before the 'Cluster - $NAME' in your file\n"
            " Problem with requests: Unspecified error\n",
        ),
        (
            "Cluster - other\n",
            " Cluster 'other' is not the cluster of this controller, which is 'oracle'\n"
            " Problem with requests: Unspecified error\n",
        ),
        (
            "Cluster - oracle\nParent - ml\nUser - bob:DefaultAccount=nosuch\n",
            " line(3) User 'bob' has no association with its default account 'nosuch'\n"
            " Problem with requests: Unspecified error\n",
        ),
    ],
)
def test_a_file_with_a_mistake_changes_nothing(site: MemorySite, text: str, err: str) -> None:
    before = site.accounting
    answer = load(site, text)
    assert (answer.rc, answer.stderr) == (1, err)
    assert site.accounting == before


def test_a_load_is_made_again_when_somebody_was_faster(site: MemorySite) -> None:
    other = recorded_site()
    run(other, "sacctmgr -i add account meanwhile")
    site.disturb = other.accounting
    assert load(site, "Cluster - oracle\nParent - root\nAccount - new\n").rc == 0
    assert {"meanwhile", "new"} <= set(associations.index(site.accounting).accounts)


texts = st.text(st.characters(min_codepoint=32, max_codepoint=126, blacklist_characters="'\""), min_size=1)


@given(st.lists(st.tuples(st.sampled_from(["Comment", "Description", "QOS"]), texts), max_size=4), texts)
def test_what_is_quoted_is_read_back(options: list[tuple[str, str]], name: str) -> None:
    line = f"Account - '{name}'" + "".join(f":{word}='{value}'" for word, value in options)
    (read,) = dump_file.read(line)
    assert isinstance(read, dump_file.Line)
    assert (read.name, [(word, value) for word, value, _ in read.options]) == (name, options)
