"""What tasks used, added up over tasks and nodes."""

from __future__ import annotations

import os

from slurmbridge.supervisor.space import Process
from slurmbridge.supervisor.usage import NOTHING, Meter, add

PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024


def process(rss: int, vsize: int) -> Process:
    fields = [b"S", *[b"0"] * 19, str(vsize * 1024).encode(), str(rss // PAGE_KIB).encode()]
    return Process(1, fields)


def test_the_greatest_of_each_task_is_added_up() -> None:
    meter = Meter()
    meter.seen([process(100, 1000), process(48, 100)], task=0)
    meter.seen([process(40, 500)], task=1)
    meter.seen([process(12, 50)], task=1)
    value = meter.value("n1")
    assert (value["max_rss_kib"], value["sum_rss_kib"]) == (148, 188)
    assert (value["max_vsize_kib"], value["sum_vsize_kib"]) == (1100, 1600)


def test_nodes_add_their_sums_and_keep_the_greatest() -> None:
    one, other = Meter(), Meter()
    one.seen([process(100, 1000)], task=0)
    other.seen([process(300, 2000)], task=1)
    total = add(add(NOTHING, one.value("n1")), other.value("n2"))
    assert (total["max_rss_kib"], total["max_rss_node"], total["sum_rss_kib"]) == (300, "n2", 400)
    assert total["sum_vsize_kib"] == 3000
