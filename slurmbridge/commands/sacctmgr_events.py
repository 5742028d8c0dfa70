"""`sacctmgr show event`: when were which nodes down or drained, why, and who said so?

Follows sacctmgr(1), "Specifications for events". The cluster's own event is its registration when the daemon started.
"""

from __future__ import annotations

import datetime
from collections.abc import Generator, Iterable
from typing import Any, Final

from slurmbridge.commands.effects import Call, Effect, Reports, Site
from slurmbridge.commands.listing import time_zone
from slurmbridge.commands.sacctmgr_conditions import Words
from slurmbridge.errors import LangError
from slurmbridge.lang import durations, hostlist, times
from slurmbridge.lang.tres import render
from slurmbridge.model.cluster import Node, NodeEvent

_STATES: Final = ("DOWN", "DRAIN", "FAIL", "MAINTENANCE", "ERROR")
_SHOWN: Final = (("MAINTENANCE", "MAINT"), ("DRAIN", "DRAIN"), ("FAIL", "FAIL"), ("DOWN", "DOWN"), ("ERROR", "ERROR"))
"""The word of a state that has several, first match."""
_RAW: Final = {"DOWN": 1, "ERROR": 4, "DRAIN": 512, "FAIL": 8192, "MAINTENANCE": 1024}
Row = dict[str, str]
Answered = Generator[Effect, Any, tuple[Row, ...] | list[str]]


def only_of_the_cluster(words: Words) -> bool:
    return bool(words.where.get("events")) and all(_is(text, "cluster") for text in words.where["events"])


def _is(text: str, kind: str) -> bool:
    return bool(text) and kind.startswith(text.lower())


def show_events(call: Call, site: Site, words: Words) -> Answered:
    """Rows, or the lines of a complaint."""
    kinds = words.where.get("events", ())
    bad = [text for text in kinds if not (_is(text, "cluster") or _is(text, "node"))]
    if bad:
        return [f" Unknown event type: '{text}'  Valid events are Cluster and Node." for text in bad]
    for text in words.where.get("states", ()):
        if not any(state.startswith(text.upper()) for state in _STATES):
            valid = " ".join(_STATES)
            return [f"Invalid state: {text}", f"Valid node states are: {valid} "]
    zone = time_zone(call, site)
    all_time = "alltime" in words.switches
    try:
        start = _moment(words, "start", call, zone)
        end = _moment(words, "end", call, zone)
        nodes = [name for text in words.where.get("nodes", ()) for name in hostlist.expand(text)]
    except LangError as error:
        return [f"sacctmgr: error: {error.message}"]
    if start is None and not all_time:
        today = datetime.datetime.fromtimestamp(call.now, zone).replace(hour=0, minute=0, second=0, microsecond=0)
        start = (today - datetime.timedelta(days=1)).timestamp()
    events: tuple[NodeEvent, ...] = yield Reports(what="events", start=start, end=end)
    if all_time:
        events = tuple(sorted(events, key=lambda event: event.node))
    rows: list[Row] = []
    wants_nodes = not kinds or any(_is(text, "node") for text in kinds)
    wants_cluster = any(_is(text, "cluster") for text in kinds) or not (
        kinds or words.where.keys() & {"nodes", "states", "reasons", "users"}
    )
    if "clusters" in words.where and site.config.cluster_name not in words.where["clusters"]:
        return ()
    if wants_cluster and (end is None or end >= site.start_time):
        rows.append(_registration(site, zone, call.now))
    if wants_nodes:
        rows += [_row(event, site, zone, call.now) for event in events if _matches(event, words, nodes, site)]
    return tuple(rows)


def _moment(words: Words, key: str, call: Call, zone: datetime.tzinfo) -> float | None:
    given = words.where.get(key)
    return float(times.parse(given[-1], call.now, zone)) if given else None


def _matches(event: NodeEvent, words: Words, nodes: list[str], site: Site) -> bool:
    where = words.where
    states = event.state.split("+")
    return (
        ("nodes" not in where or event.node in nodes)
        and ("states" not in where or any(s.startswith(t.upper()) for t in where["states"] for s in states))
        and ("reasons" not in where or any(text.lower() in event.reason.lower() for text in where["reasons"]))
        and ("users" not in where or site.user_name(event.uid or 0) in where["users"])
    )


def _row(event: NodeEvent, site: Site, zone: datetime.tzinfo, now: float) -> Row:
    states = event.state.split("+")
    uid = event.uid or 0
    node = site.node(event.node)
    return {
        "Cluster": site.config.cluster_name,
        "NodeName": event.node,
        "TimeStart": times.render(event.start, zone),
        "TimeEnd": times.render(event.end, zone) if event.end is not None else "Unknown",
        "Duration": durations.render_elapsed(int((event.end or now) - event.start)),
        "State": next((shown for state, shown in _SHOWN if state in states), event.state),
        "StateRaw": str(sum(_RAW.get(state, 0) for state in states)),
        "Event": "Node",
        "EventRaw": "2",
        "TRES": _tres([node]) if node is not None else "",
        "Reason": event.reason,
        "User": f"{site.user_name(uid)}({uid})",
    }


def _registration(site: Site, zone: datetime.tzinfo, now: float) -> Row:
    nodes = list(site.nodes())
    return {
        "Cluster": site.config.cluster_name,
        "TimeStart": times.render(site.start_time, zone),
        "TimeEnd": "Unknown",
        "Duration": durations.render_elapsed(int(now - site.start_time)),
        "StateRaw": "0",
        "Event": "Cluster",
        "EventRaw": "1",
        "Cluster Nodes": hostlist.compress_sorted([node.name for node in nodes]),
        "TRES": _tres(nodes) + f",node={len(nodes)}",
        "Reason": "Cluster Registered TRES",
    }


def _tres(nodes: Iterable[Node]) -> str:
    cpus = sum(node.conf.cpus for node in nodes)
    memory = sum(node.conf.real_memory for node in nodes)
    devices = sum(1 for node in nodes for device in node.conf.devices if device.name == "gpu")
    tres = [("billing", cpus), ("cpu", cpus)] + ([("gres/gpu", devices * 1000)] if devices else []) + [("mem", memory)]
    return render(tuple(tres))
