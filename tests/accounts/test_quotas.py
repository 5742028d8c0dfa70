"""Quotas: what sacctmgr sets, shows, dumps and loads by node pool, and what sshare says about them."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from slurmbridge.commands import quotas
from slurmbridge.model.accounts import Assoc, Quota
from slurmbridge.model.cluster import Device, NodeConf, Pool
from slurmbridge.model.plan import QueueShare
from slurmbridge.submit import associations
from tests.accounts.site import MemorySite, recorded_site, run

QUOTA = "format=account,user,pool,deservedtres%40,overquotaweight,queuepriority"


@pytest.fixture
def site() -> MemorySite:
    """Four nodes: two in the pool `gpu`, the others in none."""
    site = recorded_site()
    cards = (Device(index=0, type="a100"), Device(index=1, type="a100"))
    nodes = tuple(NodeConf(name=f"n{at}", cpus=8, devices=cards if at < 3 else ()) for at in (1, 2, 3, 4))
    site.config = replace(site.config, nodes=nodes, pools=(Pool(name="gpu", nodes=("n1", "n2")),))
    return site


def assoc(site: MemorySite, account: str, user: str = "") -> Assoc:
    return associations.index(site.accounting).assocs[(account, user, "")]


def test_a_quota_without_a_pool_is_for_every_pool(site: MemorySite) -> None:
    answer = run(
        site, "sacctmgr -i modify account ml set DeservedTRES=gres/gpu=8,cpu=64 OverQuotaWeight=2 QueuePriority=100"
    )
    assert (answer.rc, answer.stderr) == (0, "")
    quota = Quota(deserved=(("gres/gpu", 8000), ("cpu", 64)), over_quota_weight=2.0, priority=100)
    assert assoc(site, "ml").quotas == (quota,)
    assert assoc(site, "ml").quota_in("gpu") == quota
    assert run(site, f"sacctmgr -nP show assoc account=ml user= {QUOTA}").stdout == "ml|||cpu=64,gres/gpu=8|2|100\n"


def test_a_setting_of_a_pool_counts_there_instead(site: MemorySite) -> None:
    run(site, "sacctmgr -i modify account ml set DeservedTRES=cpu=4 QueuePriority=7 OverQuotaWeight=3")
    run(site, "sacctmgr -i modify account ml set OverQuotaWeight=0 where pool=gpu")
    run(site, "sacctmgr -i modify account ml set DeservedTRES=gres/gpu=2.5 where pool=gpu")
    here, rest = assoc(site, "ml").quota_in("gpu"), assoc(site, "ml").quota_in("default")
    assert here == Quota(pool="gpu", deserved=(("gres/gpu", 2500),), over_quota_weight=0.0, priority=7)
    assert rest == Quota(deserved=(("cpu", 4),), over_quota_weight=3.0, priority=7)
    shown = run(site, f"sacctmgr -nP show assoc account=ml user= {QUOTA}").stdout
    assert shown == "ml|||cpu=4|3|7\nml||gpu|gres/gpu=2.5|0|\n"


def test_only_the_rows_of_a_pool_are_shown_when_it_is_named(site: MemorySite) -> None:
    run(site, "sacctmgr -i modify account ml set DeservedTRES=cpu=4")
    run(site, "sacctmgr -i modify account ml set QueuePriority=3 where pool=gpu")
    assert run(site, f"sacctmgr -nP show assoc {QUOTA} where pool=gpu").stdout == "ml||gpu|||3\n"


def test_an_association_is_one_row_unless_columns_of_quotas_are_asked_for(site: MemorySite) -> None:
    run(site, "sacctmgr -i modify account ml set DeservedTRES=cpu=4")
    run(site, "sacctmgr -i modify account ml set QueuePriority=3 where pool=gpu")
    assert run(site, "sacctmgr -nP show assoc account=ml user= format=account").stdout == "ml\n"


def test_users_have_quotas_too(site: MemorySite) -> None:
    run(site, "sacctmgr -i modify user alice set DeservedTRES=gres/gpu:a100=1,mem=2G where account=ml pool=gpu")
    shown = run(site, f"sacctmgr -nP show assoc user=alice account=ml {QUOTA}").stdout
    assert shown == "ml|alice|gpu|mem=2G,gres/gpu:a100=1||\n"


def test_new_accounts_and_users_may_come_with_a_quota(site: MemorySite) -> None:
    answer = run(site, "sacctmgr -i add account vision parent=ml DeservedTRES=gres/gpu=4 fairshare=7 pool=gpu")
    assert answer.rc == 0
    assert "  DeservedTRES  = gres/gpu=4\n" in answer.stdout
    assert "  Pool          = gpu\n" in answer.stdout
    assert assoc(site, "vision").quotas == (Quota(pool="gpu", deserved=(("gres/gpu", 4000),)),)
    assert run(site, "sacctmgr -i add user carol account=vision QueuePriority=5").rc == 0
    assert assoc(site, "vision", "carol").quotas == (Quota(priority=5),)


def test_minus_one_clears_a_setting_a_name_and_at_last_the_quota(site: MemorySite) -> None:
    run(site, "sacctmgr -i modify account ml set DeservedTRES=gres/gpu=8,cpu=64 OverQuotaWeight=2 where pool=gpu")
    run(site, "sacctmgr -i modify account ml set DeservedTRES=cpu=-1 where pool=gpu")
    assert assoc(site, "ml").quotas == (Quota(pool="gpu", deserved=(("gres/gpu", 8000),), over_quota_weight=2.0),)
    run(site, "sacctmgr -i modify account ml set DeservedTRES=-1 where pool=gpu")
    assert assoc(site, "ml").quotas == (Quota(pool="gpu", over_quota_weight=2.0),)
    run(site, "sacctmgr -i modify account ml set OverQuotaWeight=-1 where pool=gpu")
    assert assoc(site, "ml").quotas == ()


def test_a_quota_of_a_pool_that_is_gone_is_kept_shown_and_can_be_cleared(site: MemorySite) -> None:
    run(site, "sacctmgr -i modify account ml set DeservedTRES=cpu=4 QueuePriority=1 where pool=gpu")
    site.config = replace(site.config, pools=())
    assert quotas.without_pool(site.accounting, site.config) == [("ml", "gpu")]
    assert run(site, f"sacctmgr -nP show assoc account=ml user= {QUOTA}").stdout == "ml||gpu|cpu=4||1\n"
    assert run(site, "sacctmgr -i modify account ml set QueuePriority=2 where pool=gpu").rc == 1
    assert run(site, "sacctmgr -i modify account ml set DeservedTRES=-1 QueuePriority=-1 where pool=gpu").rc == 0
    assert assoc(site, "ml").quotas == ()


def test_a_weight_of_nothing_is_not_the_same_as_no_weight(site: MemorySite) -> None:
    run(site, "sacctmgr -i modify account ml set OverQuotaWeight=0")
    assert assoc(site, "ml").quotas == (Quota(over_quota_weight=0.0),)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("account ml set DeservedTRES=cpu=1 where pool=tpu", "there is no node pool 'tpu'; pools are gpu,default"),
        ("account ml set Fairshare=1 where pool=gpu", "Pool chooses among quotas: set one of DeservedTRES"),
        ("account ml set QueuePriority=1 GrpJobs=1 where pool=gpu", "GrpJobs is not set by pool"),
        ("account ml set DeservedTRES=license/matlab=2", "DeservedTRES counts cpu, mem, gres/gpu, gres/gpu:a100, and"),
        ("account ml set DeservedTRES=gres/gpu:h100=2", "and not 'gres/gpu:h100'"),
        ("account ml set DeservedTRES=mem=2X", "Invalid unit type 'X'"),
        ("account ml set OverQuotaWeight=lots", "Invalid value for OverQuotaWeight (lots)"),
        ("account ml set OverQuotaWeight=-3", "Invalid value for OverQuotaWeight (-3)"),
        ("account ml set QueuePriority=high", "Invalid value for QueuePriority (high)"),
        ("account root set DeservedTRES=cpu=1", "root has the whole of every pool"),
        ("cluster oracle set QueuePriority=1", "root has the whole of every pool"),
        ("qos tiny set DeservedTRES=cpu=1", "DeservedTRES"),
    ],
)
def test_a_quota_that_would_mean_nothing_is_refused(site: MemorySite, words: str, text: str) -> None:
    before = site.accounting
    answer = run(site, f"sacctmgr -i modify {words}")
    assert answer.rc == 1
    assert text in answer.stderr + answer.stdout
    assert site.accounting == before


def test_coordinators_share_out_what_is_theirs_and_cannot_ask_for_more(site: MemorySite) -> None:
    run(site, "sacctmgr -i add coordinator account=research names=bob")
    assert run(site, "sacctmgr -i modify account ml set DeservedTRES=cpu=2", user="bob").rc == 0
    assert run(site, "sacctmgr -i modify user alice set QueuePriority=2 where account=ml", user="bob").rc == 0
    refused = run(site, "sacctmgr -i modify account research set DeservedTRES=cpu=2", user="bob")
    assert (refused.rc, assoc(site, "research").quotas) == (1, ())
    assert "a part of its parent's" in refused.stderr


def test_gpus_can_be_promised_where_no_conf_file_accounts_for_them(site: MemorySite) -> None:
    site.config = replace(site.config, accounting_tres=())
    assert run(site, "sacctmgr -i modify account ml set DeservedTRES=gres/gpu=1,gres/gpu:a100=0.5").rc == 0
    shown = run(site, f"sacctmgr -nP show assoc account=ml user= {QUOTA}").stdout
    assert shown == "ml|||gres/gpu=1,gres/gpu:a100=0.5||\n"


def test_a_change_of_a_quota_is_a_transaction(site: MemorySite) -> None:
    run(site, "sacctmgr -i modify account ml set QueuePriority=1 where pool=gpu")
    assert site.transactions[-1].action == "Modify Associations"


def test_what_is_dumped_is_loaded_again(site: MemorySite) -> None:
    run(site, "sacctmgr -i modify account ml set DeservedTRES=cpu=4,mem=1G OverQuotaWeight=0.5")
    run(site, "sacctmgr -i modify account ml set DeservedTRES=gres/gpu=2.5 QueuePriority=0 where pool=gpu")
    run(site, "sacctmgr -i modify user bob set QueuePriority=9 where account=ml pool=default")
    before = assoc(site, "ml").quotas, assoc(site, "ml", "bob").quotas
    assert run(site, "sacctmgr dump oracle file=all").rc == 0
    assert (
        ":DeservedTRES=cpu=4,mem=1G:OverQuotaWeight=0.5:Pool='gpu':DeservedTRES=gres/gpu=2.5:QueuePriority=0"
        in (site.files["all"])
    )
    run(site, "sacctmgr -i modify account ml set DeservedTRES=-1 OverQuotaWeight=-1")
    run(site, "sacctmgr -i modify account ml set DeservedTRES=-1 QueuePriority=-1 where pool=gpu")
    run(site, "sacctmgr -i modify user bob set QueuePriority=-1 where account=ml pool=default")
    assert assoc(site, "ml").quotas == assoc(site, "ml", "bob").quotas == ()
    loaded = run(site, "sacctmgr -i load file=all")
    assert loaded.rc == 0
    assert (assoc(site, "ml").quotas, assoc(site, "ml", "bob").quotas) == before
    assert " Changed DeservedTRES          for Account ml           (null) -> gres/gpu=2.5\n" in loaded.stdout


def test_a_dump_with_a_pool_that_is_not_there_is_not_loaded(site: MemorySite) -> None:
    site.files["bad"] = "Cluster - 'oracle'\nParent - 'root'\nAccount - 'ml':Pool='tpu':QueuePriority=1\n"
    answer = run(site, "sacctmgr -i load file=bad")
    assert answer.rc == 1
    assert "there is no node pool 'tpu'" in answer.stderr + answer.stdout


def test_sshare_shows_by_pool_what_is_promised_given_and_held(site: MemorySite) -> None:
    run(site, "sacctmgr -i modify account ml set DeservedTRES=gres/gpu=2 where pool=gpu")
    ml = assoc(site, "ml").assoc_id
    site.shares = [
        QueueShare(
            pool="gpu", assoc_id=ml, account="ml", fair_share=(("gres/gpu", 3000),), allocated=(("gres/gpu", 2500),),
            allocated_nonpreemptible=(("gres/gpu", 1000),), requested=(("gres/gpu", 9000),),
        ),
        QueueShare(pool="default", assoc_id=ml, account="ml", allocated=(("cpu", 3),)),
    ]  # fmt: skip
    columns = "account,pool,deservedtres,fairtres,alloctres,firmtres,requestedtres"
    shown = run(site, f"sshare -nP -A ml -u nobody -o {columns}").stdout
    assert shown == "ml|gpu|gres/gpu=2|gres/gpu=3|gres/gpu=2.5|gres/gpu=1|gres/gpu=9\nml|default|||cpu=3||\n"


def test_a_long_sshare_is_as_slurm_prints_it_until_a_quota_is_set(site: MemorySite) -> None:
    assert run(site, "sshare -lP").stdout.splitlines()[0].endswith("|GrpTRESMins|TRESRunMins")
    run(site, "sacctmgr -i modify account ml set QueuePriority=1")
    head = run(site, "sshare -lP").stdout.splitlines()[0]
    assert head.endswith("|TRESRunMins|Pool|DeservedTRES|FairTRES|AllocTRES|OverQuotaWeight|QueuePriority")
    assert "Deserved" not in run(site, "sshare").stdout


def test_json_has_a_key_more_than_slurms_where_a_quota_is_set(site: MemorySite) -> None:
    def shown() -> dict[str, object]:
        text = run(site, "sacctmgr --json show assoc account=ml user=").stdout
        (found,) = json.loads(text)["associations"]
        return dict(found)

    before = shown()
    assert before["parent_account"] == "research"
    assert before["shares_raw"] == 4
    assert before["qos"] == ["normal", "high", "long", "preempt", "tiny"]
    assert "quotas" not in before
    run(site, "sacctmgr -i modify account ml set DeservedTRES=gres/gpu=2.5,cpu=4 OverQuotaWeight=0.5 where pool=gpu")
    assert shown() == {
        **before,
        "quotas": [
            {
                "pool": "gpu",
                "deserved": [
                    {"type": "cpu", "name": "", "id": 1, "count": 4},
                    {"type": "gres", "name": "gpu", "id": 1001, "count": 2.5},
                ],
                "over_quota_weight": {"set": True, "infinite": False, "number": 0.5},
                "priority": {"set": False, "infinite": True, "number": 0},
            }
        ],
    }
