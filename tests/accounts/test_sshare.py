"""sshare: numbers of the fair-share tree; texts as Slurm 26.05.5 printed them on the recorded cluster."""

from __future__ import annotations

import json

import pytest

from slurmbridge.commands.sshare import Column, _cell
from slurmbridge.model.accounts import UsageRow
from slurmbridge.model.plan import QueueShare
from slurmbridge.submit import associations
from tests.accounts.site import MemorySite, recorded_site, run


@pytest.fixture
def site() -> MemorySite:
    """Only alice has used anything, in physics, and less than a second of it."""
    site = recorded_site()
    alice = associations.index(site.accounting).assocs[("physics", "alice", "")]
    site.usage_rows = [UsageRow(assoc_id=alice.assoc_id, as_of=1.0, raw=(("billing", 0.4),))]
    return site


def test_a_user_sees_the_accounts_and_the_own_rows(site: MemorySite) -> None:
    assert run(site, "sshare", user="alice").stdout == (
        "Account                    User  RawShares  NormShares    RawUsage  EffectvUsage  FairShare \n"
        "-------------------- ---------- ---------- ----------- ----------- ------------- ---------- \n"
        "root                                          0.000000           0      1.000000            \n"
        " admin                                   1    0.333333           0      0.000000            \n"
        " research                                1    0.333333           0      1.000000            \n"
        "  ml                                     4    0.800000           0      0.000000            \n"
        "   ml                     alice          1    0.500000           0      0.000000   0.500000 \n"
        "  physics                                1    0.200000           0      1.000000            \n"
        "   physics                alice          1    1.000000           0      1.000000   0.166667 \n"
    )


def test_usage_is_the_sum_of_what_is_below(site: MemorySite) -> None:
    site.usage_rows = [
        UsageRow(assoc_id=assoc.assoc_id, as_of=1.0, raw=(("cpu", 1.0), ("billing", amount)))
        for key, amount in ((("ml", "bob", ""), 30.0), (("ml", "alice", ""), 10.0), (("admin", "dave", ""), 60.0))
        for assoc in (associations.index(site.accounting).assocs[key],)
    ]
    shown = run(site, "sshare -aP -n -o account,user,rawusage,normusage,effectvusage,levelfs").stdout
    assert "root||100||1.000000|\n" in shown
    assert " research||40|0.400000|0.400000|0.833333\n" in shown
    assert "   ml|bob|30|0.300000|0.750000|0.666667\n" in shown
    assert "  admin|dave|60|0.600000|1.000000|0.500000\n" in shown


def test_a_wrong_column_is_named(site: MemorySite) -> None:
    assert run(site, "sshare -o foo") == (1, "", 'sshare: error: Invalid field requested: "foo"\n')


def test_selected_accounts_are_set_in_from_the_first(site: MemorySite) -> None:
    assert run(site, "sshare -n -a -A ml -o account,user", user="alice").stdout == (
        "ml                              \n ml                       alice \n ml                         bob \n"
    )


def test_only_users_are_shown_with_U(site: MemorySite) -> None:
    assert run(site, "sshare -nP -U -o account,user", user="alice").stdout == "ml|alice\nphysics|alice\n"


def test_quotas_are_columns(site: MemorySite) -> None:
    run(site, "sacctmgr -i modify account ml set DeservedTRES=gres/gpu=8 QueuePriority=3")
    shown = run(site, "sshare -nP -A ml -u none -o account,DeservedTRES,OverQuotaWeight,QueuePriority").stdout
    assert shown == "ml|gres/gpu=8||3\n"


def test_a_number_that_is_too_wide_is_not_cut_off(site: MemorySite) -> None:
    assert _cell("1237.016075", Column("LevelFS", 10)) == "1.2370e+03 "
    assert _cell("1.000000", Column("EffectvUsage", 6)) == " 1e+00 "
    assert _cell("0.333333", Column("NormShares", 3)) == "3.333330e-01 "
    assert _cell("31148", Column("RawUsage", 4)) == "31148 "
    assert _cell("physics", Column("Account", -4)) == "phy+ "


def test_json_has_every_association_with_its_numbers(site: MemorySite) -> None:
    document = json.loads(run(site, "sshare -a --json").stdout)
    records = document["shares"]["shares"]
    assert document["shares"]["total_shares"] == 0
    assert document["meta"]["command"] == ["sshare", "-a", "--json"]
    root, own, admin, dave = records[:4]
    assert [(each["name"], each["parent"], each["type"]) for each in (root, own, admin, dave)] == [
        ("root", "", ["ASSOCIATION"]), ("root", "root", ["USER"]), ("admin", "root", ["ASSOCIATION"]),
        ("dave", "admin", ["USER"]),
    ]  # fmt: skip
    assert list(root) == [
        "id", "cluster", "name", "parent", "partition", "shares_normalized", "shares", "tres", "effective_usage",
        "usage_normalized", "usage", "fairshare", "type",
    ]  # fmt: skip
    assert root["shares_normalized"]["number"] == 2.3283064376228985e-10
    assert root["shares"] == {"set": False, "infinite": False, "number": 0}
    assert root["usage_normalized"]["set"] is root["fairshare"]["level"]["set"] is False
    assert admin["shares"] == {"set": True, "infinite": False, "number": 1}
    assert dave["fairshare"]["level"]["number"] == 1.8446744073709552e19
    infinite = [each for each in records if each["fairshare"]["level"]["number"] > 1e19]
    assert [each["description"] for each in document["warnings"]] == [
        "Dumping (0xffffffffffffffff) as place holder for Infinity"
    ] * len(infinite)
    assert root["tres"]["group_minutes"][0] == {
        "name": "cpu", "value": {"set": False, "infinite": True, "number": 0},
    }  # fmt: skip


def test_json_says_of_each_pool_what_the_planner_says(site: MemorySite) -> None:
    run(site, "sacctmgr -i modify account ml set DeservedTRES=gres/gpu=2.5 QueuePriority=3")
    number = associations.index(site.accounting).assocs[("ml", "", "")].assoc_id
    site.shares = [QueueShare(pool="default", assoc_id=number, account="ml", allocated=(("gres/gpu", 500),))]
    records = json.loads(run(site, "sshare -a --json").stdout)["shares"]["shares"]
    (ml,) = (each for each in records if "quotas" in each)
    assert ml["quotas"] == [
        {
            "pool": "default", "deserved": [{"name": "gres/gpu", "value": 2.5}], "fair_share": [],
            "allocated": [{"name": "gres/gpu", "value": 0.5}], "firm": [], "requested": [],
            "over_quota_weight": {"set": False, "infinite": False, "number": 0},
            "priority": {"set": True, "infinite": False, "number": 3},
        }
    ]  # fmt: skip


def test_yaml_and_its_versions_are_as_those_of_the_other_commands(site: MemorySite) -> None:
    assert run(site, "sshare --yaml").stdout.startswith("%YAML 1.1\n--- !!map\n!!str shares: !!map\n")
    assert run(site, "sshare --json=list").stderr == "Possible data_parser plugins:\n"
    assert "unable to find plugin: data_parser/v9" in run(site, "sshare --json=v9").stderr
