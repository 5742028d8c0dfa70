"""Records of earlier releases are read as what they meant."""

from __future__ import annotations

import msgspec

from slurmbridge.model.accounts import Accounting, Assoc, Quota
from slurmbridge.store import records


def test_a_quota_of_the_whole_cluster_becomes_the_one_for_every_pool() -> None:
    written = {
        "clusters": ["c"],
        "revision": 7,
        "assocs": [
            {"assoc_id": 1, "account": "root", "deserved_tres": [], "over_quota_weight": None, "queue_priority": None},
            {
                "assoc_id": 2, "account": "ml", "parent": "root", "shares": 4, "deserved_tres": [["gres/gpu", 8000]],
                "over_quota_weight": 2, "queue_priority": 5, "pool": "",
            },
        ],
    }  # fmt: skip
    quota = Quota(deserved=(("gres/gpu", 8000),), over_quota_weight=2.0, priority=5)
    read = records.decode_accounting(msgspec.msgpack.encode(written))
    assert type(read.assocs[0]) is Assoc
    assert read == Accounting(
        clusters=("c",),
        revision=7,
        assocs=(
            Assoc(assoc_id=1, account="root"),
            Assoc(assoc_id=2, account="ml", parent="root", shares=4, quotas=(quota,)),
        ),
    )


def test_what_this_release_writes_it_reads() -> None:
    now = Accounting(assocs=(Assoc(assoc_id=1, account="ml", quotas=(Quota(pool="gpu", priority=1), Quota())),))
    assert records.decode_accounting(records.encode(now)) == now
