"""sacctmgr: rules, and texts as Slurm 26.05.5 printed them for the same command lines."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from slurmbridge.errors import SlurmErrno
from slurmbridge.model.job import Job, JobSpec
from slurmbridge.model.request import JobRequest
from slurmbridge.submit import association_changes as changes
from slurmbridge.submit import associations
from tests.accounts.site import MemorySite, recorded_site, run


@pytest.fixture
def site() -> MemorySite:
    return recorded_site()


def job(user: str, account: str, qos: str = "normal") -> Job:
    spec = JobSpec(
        request=JobRequest(), uid=1001, gid=1001, user=user, group=user, account=account, qos=qos,
        partitions=("debug",), name="x", work_dir="/",
    )  # fmt: skip
    return Job(job_id=2, spec=spec, submit_time=1.0)


# Slurm 26.05.5, accounts of the recorded cluster
SHOWN = {
    "sacctmgr -nP show assoc user=alice format=account,user": "ml|alice\nphysics|alice\n",
    "sacctmgr -p show user alice": "User|Def Acct|Admin|\nalice|physics|None|\n",
    "sacctmgr show user alice,bob withassoc format=user,account,defaultaccount,admin": (
        "      User    Account   Def Acct     Admin \n"
        "---------- ---------- ---------- --------- \n"
        "     alice         ml    physics      None \n"
        "     alice    physics    physics      None \n"
        "       bob         ml         ml      None \n"
    ),
    "sacctmgr -P show qos format=name,priority,maxwall,maxtrespu,maxjobspu,preempt,flags": (
        "Name|Priority|MaxWall|MaxTRESPU|MaxJobsPU|Preempt|Flags\n"
        "normal|0|||||\nhigh|1000||cpu=16|2||\nlong|10|14-00:00:00||||\npreempt|2000||||normal|\n"
        "tiny|5|00:10:00||||DenyOnLimit\n"
    ),
    "sacctmgr show assoc tree format=account,user where account=ml": (
        "Account                    User \n"
        "-------------------- ---------- \n"
        "  ml                            \n"
        "   ml                     alice \n"
        "   ml                       bob \n"
    ),
    "sacctmgr show user root": (
        "      User   Def Acct     Admin \n---------- ---------- --------- \n      root       root Administ+ \n"
    ),
    "sacctmgr -nP show tres where type=gres": "gres|gpu|1001\ngres|gpu:a100|1002\ngres|gpumem|1003\ngres|gpuutil|1004\n",
    "sacctmgr show account ml format=Account%-20,Desc": (
        "Account                             Descr \n"
        "-------------------- -------------------- \n"
        "ml                                     ml \n"
    ),
    "sacctmgr ping": "slurmdbd(primary) at ctl is UP\n",
}


@pytest.mark.parametrize("line", list(SHOWN))
def test_shown_as_slurm_does(site: MemorySite, line: str) -> None:
    assert run(site, line, user="alice") == (0, SHOWN[line], "")


DONE = [
    ("add user carol account=ml", 0, " Adding User(s)\n  carol\n Settings\n Associations =\n"
     "  C = oracle     A = ml                   U = carol    \n", ""),
    ("add user erin", 1, "", " Need name of account or wckey to add.\n"),
    ("add user bob account=ml", 1, "Request didn't affect anything\nNothing added.\nMake sure the accounts requested "
     "here have been added to the system/cluster. (sacctmgr add account...)\n", ""),
    ("add account physics", 1, " Already existing account physics on cluster oracle\n", ""),
    ("add account c4 parent=nosuch", 1, "", " error: No parent account 'nosuch' on cluster 'oracle'\n"),
    ("add account zz fairshare=3 maxwall=3 parent=research qos=normal", 0,
     " Adding Account(s)\n  zz\n Settings\n  Description     = Account Name\n  Organization    = Parent/Account Name\n"
     " Associations =\n  C = oracle     A = zz                  \n Settings\n  Fairshare     = 3\n"
     "  MaxWall       = 00:03:00\n  Parent        = research\n  QOS           = normal\n", ""),
    ("add qos q1,q2 priority=5 flags=DenyOnLimit,NoReserve grptres=cpu=4,gres/gpu=1 maxwall=10 preempt=normal", 0,
     " Adding QOS(s)\n  q1\n  q2\n Settings\n  Description    = q2\n  Flags                    = DenyOnLimit,NoReserve\n"
     "  GrpTRES                  = cpu=4,gres/gpu=1\n  MaxWall                  = 00:10:00\n"
     "  Preempt                  = normal\n  Priority                 = 5\n", ""),
    ("add qos tiny", 1, " Nothing new added.\n", ""),
    ("add qos q6 preempt=nosuch", 1, "",
     "sacctmgr: error: You gave a bad qos 'nosuch'. Valid QOS's are normal,high,long,preempt,tiny\n"),
    ("add cluster oracle", 1, " This cluster oracle already exists.  Not adding.\n", ""),
    ("modify user bob set maxjobs=2 grptres=cpu=4", 0,
     " Modified user associations...\n  C = oracle     A = ml                   U = bob      \n", ""),
    ("modify user bob set qos=nosuch", 1, "",
     "sacctmgr: error: You gave a bad qos 'nosuch'. Valid QOS's are normal,high,long,preempt,tiny\n"
     " Unknown option: qos=nosuch\n Use keyword 'where' to modify condition\n"),
    ("modify user bob", 1, "", " You didn't give me anything to set\n"),
    ("modify user bob set foo=1", 1, "", " Unknown option: foo=1\n Use keyword 'where' to modify condition\n"),
    ("modify user nosuch set maxjobs=1", 1, " Modified user associations...\n  Nothing modified\n", ""),
    ("modify account research set parent=ml", 0, " Modified account associations...\n  Requested parent account ml is a "
     "child of research on cluster oracle. Please re-parent ml before using it as a parent.\n", ""),
    ("modify account research set maxjobs=3", 0, " Modified account associations...\n"
     "  C = oracle     A = research of root\n  C = oracle     A = ml                  \n"
     "  C = oracle     A = ml                   U = alice    \n  C = oracle     A = ml                   U = bob      \n"
     "  C = oracle     A = physics             \n  C = oracle     A = physics              U = alice    \n", ""),
    ("modify qos tiny set maxwall=1:00:00 grptres=gres/gpu=2", 0, " Modified qos...\n  tiny\n", ""),
    ("modify qos tiny set grpjobs=x", 1, "",
     "sacctmgr: error: Invalid value for GrpJobs (x)\n You didn't give me anything to set\n"),
    ("delete user nosuch", 1, " Nothing deleted\n", ""),
    ("delete user", 1, "", " No conditions given to remove, not executing.\n"),
    ("delete user alice account=physics", 1, "",
     " Error with request: You can not remove the default account of a user\n"
     "  C = oracle          A = physics    U = alice    \n You must change the default account of these users or remove "
     "the users completely from the affected clusters to allow these changes.\n Changes Discarded\n"),
    ("delete user alice account=ml", 0, " Deleting user associations...\n  C = oracle     A = ml         U = alice    \n", ""),
    ("delete qos tiny", 0, " Deleting QOS(s)...\n  tiny\n", ""),
    ("delete qos nosuch", 1, "  Nothing deleted\n", ""),
]  # fmt: skip


@pytest.mark.parametrize(("line", "rc", "stdout", "stderr"), DONE, ids=[line for line, *_ in DONE])
def test_changes_are_reported_as_slurm_does(site: MemorySite, line: str, rc: int, stdout: str, stderr: str) -> None:
    assert run(site, "sacctmgr -i " + line) == (rc, stdout, stderr)


DENIED = "sacctmgr: error: Your user doesn't have privilege to perform this action\n Error with request: Access/permission denied\n"


@pytest.mark.parametrize(
    ("line", "stderr"),
    [
        ("add account x", " error: Only admins/operators/coordinators can add accounts\n"),
        ("add user carol account=ml", " error: Problem adding user associations: Access/permission denied (Only "
         "admins/operators/coordinators can add accounts)\n"),
        ("add qos x", " Problem adding QOS: Access/permission denied\n"),
        ("add cluster x", " Problem adding clusters: Access/permission denied\n"),
        ("add coordinator account=ml names=alice", " Problem adding coordinator: Access/permission denied\n"),
        ("modify account ml set fairshare=3", DENIED),
        ("modify account ml set rawusage=0", DENIED),
        ("modify qos normal set priority=3", DENIED),
        ("modify cluster oracle set fairshare=3", DENIED),
        ("modify user bob set defaultaccount=ml", DENIED),
        ("delete user bob", DENIED),
        ("delete user bob account=ml", DENIED),
        ("delete account ml", DENIED),
        ("delete qos tiny", DENIED),
        ("show runaway", "sacctmgr: error: You must have an AdminLevel>=Operator to fix runaway jobs\n"),
        ("show problem", "sacctmgr: error: Access/permission denied\n Error with request: Access/permission denied\n"),
    ],
)  # fmt: skip
def test_plain_users_change_nothing(site: MemorySite, line: str, stderr: str) -> None:
    before = site.accounting
    answer = run(site, "sacctmgr -i " + line, user="alice")
    assert (answer.rc, answer.stderr) == (1, stderr)
    assert site.accounting is before


def test_a_user_may_choose_the_own_default_account(site: MemorySite) -> None:
    assert run(site, "sacctmgr -i modify user alice set defaultaccount=ml", user="alice").rc == 0
    assert associations.default_account(site.accounting, "alice") == "ml"


def test_coordinators_add_users_to_their_accounts_alone(site: MemorySite) -> None:
    run(site, "sacctmgr -i add coordinator account=research names=bob")
    assert run(site, "sacctmgr -i add user carol account=ml", user="bob").rc == 0
    assert run(site, "sacctmgr -i add user carol account=admin", user="bob").rc == 1
    assert run(site, "sacctmgr -i modify user carol set maxjobs=2", user="bob").rc == 0


def test_operators_do_not_make_administrators(site: MemorySite) -> None:
    assert run(site, "sacctmgr -i modify user alice set adminlevel=admin", user="dave").rc == 1
    assert run(site, "sacctmgr -i add user carol account=ml adminlevel=admin", user="dave").rc == 1
    assert run(site, "sacctmgr -i modify user alice set adminlevel=admin").rc == 0


def test_qos_lists_are_set_extended_and_inherited_again(site: MemorySite) -> None:
    def bob() -> tuple[str, ...]:
        return associations.effective_qos(
            site.accounting, associations.index(site.accounting).assocs[("ml", "bob", "")]
        )

    run(site, "sacctmgr -i modify user bob set qos+=high")
    assert bob() == ("high", "normal", "tiny")
    run(site, "sacctmgr -i modify user bob set qos-=tiny,high")
    assert bob() == ("normal",)
    run(site, ["sacctmgr", "-i", "modify", "user", "bob", "set", "qos=''"])
    assert bob() == ("high", "long", "normal", "preempt", "tiny")


def test_a_limit_is_cleared_by_minus_one_and_counted_up_and_down(site: MemorySite) -> None:
    def shown() -> str:
        return run(site, "sacctmgr -nP show assoc where account=ml user= format=grptres,maxwall,fairshare").stdout

    run(site, "sacctmgr -i modify account ml set grptres=cpu=4,mem=2g,gres/gpu=1.5 maxwall=1-0 fairshare=parent")
    assert shown() == "cpu=4,mem=2G,gres/gpu=1.5|1-00:00:00|parent\n"
    run(site, "sacctmgr -i modify account ml set grptres=cpu+=2,mem-=512m maxwall=-1 fairshare=-1")
    assert shown() == "cpu=6,mem=1.50G,gres/gpu=1.5||1\n"
    run(site, "sacctmgr -i modify account ml set grptres=cpu=-1,mem=-1,gres/gpu=-1")
    assert shown() == "||1\n"


def test_quotas_are_set_shown_and_cleared(site: MemorySite) -> None:
    run(site, "sacctmgr -i modify account ml set DeservedTRES=gres/gpu=8,cpu=64 OverQuotaWeight=2 QueuePriority=100")
    line = "sacctmgr -P show assoc where account=ml user= format=account,DeservedTRES,OverQuotaWeight,QueuePriority"
    assert run(site, line).stdout == (
        "Account|DeservedTRES|OverQuotaWeight|QueuePriority\nml|cpu=64,gres/gpu=8|2|100\n"
    )
    run(site, "sacctmgr -i modify account ml set DeservedTRES=gres/gpu=-1,cpu=-1 OverQuotaWeight=-1 QueuePriority=-1")
    assert run(site, line).stdout.splitlines()[1] == "ml|||"
    assert run(site, "sacctmgr -i add account q DeservedTRES=gres/gpu=2").rc == 0
    assert run(site, "sacctmgr -i modify account ml set DeservedTRES=cpu=1 where pool=a").rc == 1


def test_a_qos_may_be_preemptible(site: MemorySite) -> None:
    run(site, "sacctmgr -i modify qos tiny set preemptible=yes")
    assert run(site, "sacctmgr -nP show qos tiny format=name,preemptible").stdout == "tiny|yes\n"
    assert run(site, "sacctmgr -i modify qos tiny set preemptible=maybe").rc == 1


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("delete account ml", "  JobID = 2          C = oracle     A = ml         U = alice     Q = normal   \n"),
        ("delete user alice", "  JobID = 2          C = oracle     A = ml         U = alice     Q = normal   \n"),
        ("delete qos normal", " JobID = 2          C = oracle     A = ml         U = alice     Q = normal   \n"),
    ],
)
def test_what_jobs_use_is_not_removed(site: MemorySite, line: str, text: str) -> None:
    site.job_list = [job("alice", "ml")]
    answer = run(site, "sacctmgr -i " + line)
    assert answer == (1, "", " Error with request: Job(s) active, cancel job(s) before remove\n" + text)


QUESTION = "Would you like to commit changes? (You have 30 seconds to decide)\n(N/y): \n"


def test_without_i_a_no_or_the_end_of_input_discards(site: MemorySite) -> None:
    before = site.accounting
    for stdin, note in ((b"n\n", ""), (b"", "error: Inappropriate ioctl for device\n")):
        answer = run(site, "sacctmgr modify qos tiny set priority=1", stdin=stdin)
        assert answer == (0, " Modified qos...\n  tiny\n" + QUESTION + note + " Changes Discarded\n", "")
    assert site.accounting is before
    assert run(site, "sacctmgr modify qos tiny set priority=1", stdin=b"y\n").stdout.endswith(QUESTION)
    assert site.accounting is not before


def test_a_change_by_somebody_else_is_kept(site: MemorySite) -> None:
    other = changes.edit_qos(site.accounting, {"high"}, lambda qos: replace(qos, priority=7))
    site.disturb = replace(other, revision=site.accounting.revision + 1)
    assert run(site, "sacctmgr -i modify qos tiny set priority=9").rc == 0
    assert {qos.name: qos.priority for qos in site.accounting.qos if qos.name in ("high", "tiny")} == {
        "high": 7,
        "tiny": 9,
    }


def test_a_refusal_of_the_controller_is_shown(site: MemorySite) -> None:
    site.failing = SlurmErrno.IO_ERROR
    answer = run(site, "sacctmgr -i add qos x")
    assert (answer.rc, answer.stderr) == (1, f" Error with request: {SlurmErrno.IO_ERROR.text}\n")


def test_every_change_is_a_transaction_of_its_actor(site: MemorySite) -> None:
    run(site, "sacctmgr -i add user carol account=ml", user="dave")
    shown = run(site, "sacctmgr -nP show transactions actor=dave format=action,actor,where", user="alice")
    assert shown.stdout == "Add Users|dave|carol\nAdd Associations|dave|carol in ml\n"


def test_readonly_changes_nothing(site: MemorySite) -> None:
    assert run(site, "sacctmgr -r -i add qos x") == (1, "", "Can't run this command in readonly mode.\n")


def test_commands_are_read_from_standard_input(site: MemorySite) -> None:
    answer = run(site, "sacctmgr -nP", stdin=b"show user bob format=user\nfoo\nexit\n")
    typed = "sacctmgr: show user bob format=user\nbob\nsacctmgr: foo\nsacctmgr: exit\n"
    assert answer == (1, typed, "invalid keyword: foo\n")


def test_an_archive_has_nothing_to_take(site: MemorySite) -> None:
    assert run(site, "sacctmgr -i archive dump").stderr.endswith("jobacct_storage_p_archive: SUCCESS\n")
    asked = run(site, "sacctmgr archive dump directory=/tmp jobs")
    assert (asked.rc, asked.stdout.splitlines()[-1]) == (0, " Changes Discarded")
    assert run(site, "sacctmgr -i archive dump foo=1").stderr == " Unknown condition: foo=1\n"
    assert "purges nothing" in run(site, "sacctmgr -i archive dump purgejobafter=1month").stderr
    assert "No archive file given" in run(site, "sacctmgr -i archive load file=/nosuch").stderr
    denied = run(site, "sacctmgr archive load file=x", user="alice")
    assert denied.stderr.endswith(" Problem loading archive file: Access/permission denied\n")


@pytest.mark.parametrize("verb", ["reconfigure", "shutdown", "clear stats"])
def test_what_is_not_offered_says_so(site: MemorySite, verb: str) -> None:
    answer = run(site, f"sacctmgr {verb}")
    assert answer.rc == 1 and "not offered" in answer.stderr


def qos_of(site: MemorySite, user: str, *, raw: bool = False) -> str:
    word = " withrawqoslevel" if raw else ""
    return run(site, f"sacctmgr -nP show assoc user={user} account=ml{word} format=qos").stdout.strip()


def test_changes_of_a_qos_list_follow_what_is_inherited(site: MemorySite) -> None:
    for line in ("account ml set qos=normal,high", "user bob account=ml set qos=", "user bob account=ml set qos+=tiny"):
        assert run(site, f"sacctmgr -i modify {line}").rc == 0
    assert (qos_of(site, "bob"), qos_of(site, "bob", raw=True)) == ("high,normal,tiny", "+tiny,high,normal")
    run(site, "sacctmgr -i modify account ml set qos=normal")
    assert qos_of(site, "bob") == "normal,tiny"
    run(site, "sacctmgr -i modify user bob account=ml set qos-=normal")
    assert (qos_of(site, "bob"), qos_of(site, "bob", raw=True)) == ("tiny", "+tiny,-normal,normal")


def test_a_default_qos_below_must_stay_in_reach(site: MemorySite) -> None:
    run(site, "sacctmgr -i modify account ml set qos=normal,high")
    run(site, "sacctmgr -i modify user bob account=ml set qos=")
    run(site, "sacctmgr -i modify user bob account=ml set defaultqos=high")
    answer = run(site, "sacctmgr -i modify account ml set qos-=high")
    assert answer.rc == 1
    assert "These associations don't have access to their default qos." in answer.stderr


def test_a_qos_may_not_preempt_itself(site: MemorySite) -> None:
    answer = run(site, "sacctmgr -i modify qos normal set preempt=normal")
    text = "QOS Preemption loop detected"
    assert answer == (1, "", f"sacctmgr: error: {text}\n Error with request: {text}\n")
