"""Which address a virtual node gets."""

from __future__ import annotations

from slurmbridge.runtime.local.hosts import addresses


def test_nodes_get_loopback_addresses_of_their_own() -> None:
    found = addresses(tuple(f"n{i}" for i in range(1, 4)), given={})
    assert found == {"n1": "127.64.0.1", "n2": "127.64.0.2", "n3": "127.64.0.3"}
    many = addresses(tuple(str(i) for i in range(70_000)), given={})
    assert len(set(many.values())) == 70_000


def test_a_name_that_the_machine_gives_an_address_of_its_own_keeps_it() -> None:
    given = {"n1": "10.77.0.11", "n2": "192.0.2.7", "n3": "127.0.1.1"}
    found = addresses(("n1", "n2", "n3"), given=given, is_local=lambda address: address.startswith("10."))
    assert found == {"n1": "10.77.0.11", "n2": "127.64.0.2", "n3": "127.64.0.3"}
