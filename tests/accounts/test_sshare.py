"""sshare: numbers of the fair-share tree; texts as Slurm 26.05.5 printed them on the recorded cluster."""

from __future__ import annotations

import pytest

from slurmbridge.model.accounts import UsageRow
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
