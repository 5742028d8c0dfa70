"""Rules of the association tree."""

from __future__ import annotations

from msgspec.structs import replace

from slurmbridge.model.accounts import Accounting, Assoc, Limits
from slurmbridge.submit import association_changes as changes
from slurmbridge.submit import associations
from tests.accounts.site import recorded_site, run


def recorded() -> Accounting:
    return recorded_site().accounting


def assoc(accounting: Accounting, account: str, user: str = "") -> Assoc:
    return associations.index(accounting).assocs[(account, user, "")]


def test_root_its_user_and_normal_exist_from_the_start() -> None:
    fresh = associations.initial_accounting("c")
    assert [(a.assoc_id, a.account, a.user) for a in fresh.assocs] == [(1, "root", ""), (2, "root", "root")]
    assert [(q.qos_id, q.name) for q in fresh.qos] == [(1, "normal")]
    assert associations.admin_level(fresh, "root") == "Administrator"


def test_without_an_account_the_default_one_is_charged() -> None:
    accounting = recorded()
    assert associations.find(accounting, "alice") == assoc(accounting, "physics", "alice")
    assert associations.find(accounting, "alice", "ML") == assoc(accounting, "ml", "alice")
    assert associations.find(accounting, "alice", "admin") is None
    assert associations.find(accounting, "carol") is None


def test_an_association_of_the_partition_goes_before_the_general_one() -> None:
    accounting = changes.add_assocs(recorded(), [Assoc(assoc_id=0, account="ml", user="bob", partition="gpu")])
    found = associations.find(accounting, "bob", "ml", "gpu")
    assert found is not None and found.partition == "gpu"
    assert associations.find(accounting, "bob", "ml", "debug") == assoc(accounting, "ml", "bob")


def test_the_qos_list_comes_from_the_nearest_that_has_one() -> None:
    accounting = recorded()
    assert associations.effective_qos(accounting, assoc(accounting, "ml", "bob")) == ("normal", "tiny")
    assert associations.effective_qos(accounting, assoc(accounting, "ml", "alice")) == (
        "high", "long", "normal", "preempt", "tiny",
    )  # fmt: skip


def test_the_default_qos_is_the_set_one_the_only_one_or_normal() -> None:
    accounting = recorded()
    alice, bob = assoc(accounting, "ml", "alice"), assoc(accounting, "ml", "bob")
    assert associations.default_qos(accounting, alice) == "normal"
    assert associations.default_qos(accounting, replace(bob, qos=("tiny",))) == "tiny"
    assert associations.default_qos(accounting, replace(bob, qos=("high", "tiny"))) == ""
    assert associations.default_qos(accounting, replace(bob, default_qos="tiny")) == "tiny"


def test_limits_per_user_and_job_are_inherited_and_group_limits_are_not() -> None:
    accounting = recorded()
    ml = assoc(accounting, "ml")
    limits = Limits(max_jobs=3, grp_jobs=9, max_tres_per_job=(("cpu", 4), ("node", 2)))
    accounting = changes.edit_assocs(accounting, {ml.assoc_id}, lambda each: replace(each, limits=limits))
    bob = replace(assoc(accounting, "ml", "bob"), limits=Limits(max_tres_per_job=(("cpu", 1),)))
    found = associations.effective_limits(accounting, bob)
    assert (found.max_jobs, found.grp_jobs) == (3, None)
    assert found.max_tres_per_job == (("cpu", 1), ("node", 2))


def test_the_tree_shows_an_account_then_its_users_then_its_children() -> None:
    shown = [(depth, each.account, each.user) for depth, each in associations.tree(recorded())]
    assert shown == [
        (0, "root", ""), (1, "root", "root"), (1, "admin", ""), (2, "admin", "dave"), (2, "admin", "root"),
        (1, "research", ""), (2, "ml", ""), (3, "ml", "alice"), (3, "ml", "bob"), (2, "physics", ""),
        (3, "physics", "alice"),
    ]  # fmt: skip


def test_lineage_is_the_path_from_the_root() -> None:
    accounting = recorded()
    assert associations.lineage(accounting, assoc(accounting, "root")) == "/"
    assert associations.lineage(accounting, assoc(accounting, "root", "root")) == "/0-root/"
    assert associations.lineage(accounting, assoc(accounting, "ml", "bob")) == "/research/ml/0-bob/"


def test_coordinators_rule_the_accounts_below_theirs() -> None:
    site = recorded_site()
    run(site, "sacctmgr -i add coordinator account=research names=alice")
    assert associations.coordinates(site.accounting, "alice", "ml")
    assert not associations.coordinates(site.accounting, "alice", "admin")
    assert not associations.coordinates(site.accounting, "bob", "ml")


def test_users_of_an_account_may_all_be_coordinators() -> None:
    site = recorded_site()
    run(site, "sacctmgr -i modify account ml set flags=UsersAreCoords")
    assert associations.coordinates(site.accounting, "bob", "ml")
    run(site, "sacctmgr -i modify account ml set flags=NoUsersAreCoords")
    assert not associations.coordinates(site.accounting, "bob", "ml")


def test_ids_are_not_given_out_again() -> None:
    accounting = recorded()
    last = max(each.assoc_id for each in accounting.assocs)
    accounting = changes.remove_assocs(accounting, {last})
    accounting = changes.add_assocs(accounting, [Assoc(assoc_id=0, account="ml", user="carol")])
    assert max(each.assoc_id for each in accounting.assocs) == last + 1


def test_removing_an_account_takes_all_below_it() -> None:
    accounting = changes.remove_accounts(recorded(), ["research"])
    assert {each.account for each in accounting.assocs} == {"root", "admin"}


def test_removing_a_qos_takes_it_out_of_every_list() -> None:
    accounting = changes.remove_qos(recorded(), ["tiny", "normal"])
    assert associations.effective_qos(accounting, assoc(accounting, "ml", "bob")) == ()
    assert all("normal" not in each.preempt for each in accounting.qos)


def test_the_index_belongs_to_its_record() -> None:
    accounting = recorded()
    first = associations.index(accounting)
    assert associations.index(accounting) is first
    changed = changes.remove_users(accounting, {"bob"})
    assert "bob" not in associations.index(changed).users
    assert "bob" in associations.index(accounting).users
