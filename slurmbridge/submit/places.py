"""Are the nodes, features and licences that a job names there at all?

Follows slurmctld's checks at submission: unknown names are refused, names that nothing can satisfy together wait.
"""

from __future__ import annotations

import msgspec

from slurmbridge.errors import LangError, SlurmErrno
from slurmbridge.lang import constraints
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.request import JobRequest, LicenseTerm
from slurmbridge.model.tres import Tres
from slurmbridge.model.verdict import Refused
from slurmbridge.submit.caller import Cluster
from slurmbridge.submit.known import known


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """Text as scontrol shows it; nodes in configuration order."""

    features: str | None = None
    prefer: str | None = None
    req_nodes: tuple[str, ...] = ()
    exc_nodes: tuple[str, ...] = ()


def find_places(request: JobRequest, cluster: Cluster, config: ClusterConfig) -> Places | Refused:
    """Features first, then nodes."""
    features, prefer = request.constraint, request.prefer
    if features or prefer or request.batch_features:
        wanted = _names(features or "", cluster, config)
        if wanted is None:
            return Refused(errno=SlurmErrno.INVALID_FEATURE)
        if prefer and _names(prefer, cluster, config) is None:
            return Refused(errno=SlurmErrno.INVALID_PREFER)
        if request.batch_features is not None:
            batch = _names(request.batch_features, cluster, config)
            if batch is None or not batch <= wanted:
                return Refused(errno=SlurmErrno.INVALID_BATCH_FEATURE)
    required = _known_nodes(request.nodelist or (), cluster)
    excluded = _known_nodes(request.exclude or (), cluster)
    if required is None or excluded is None or set(required) & set(excluded):
        return Refused(errno=SlurmErrno.INVALID_NODE_NAME)
    return Places(features=_shown(features), prefer=_shown(prefer), req_nodes=required, exc_nodes=excluded)


def _shown(text: str | None) -> str | None:
    """A comma means the same as `&` and is shown as that."""
    return text.replace(",", "&") if text else text


def _names(text: str, cluster: Cluster, config: ClusterConfig) -> set[str] | None:
    """The features named; None when the text does not parse or names an unknown one."""
    if not text:
        return set()
    try:
        names = set(constraints.names(constraints.parse(text)))
    except LangError:
        return None
    missing = names - known(config).features
    active = {name for node in cluster.nodes() for name in node.features_active} if missing else set()
    return names if missing <= active else None


def _known_nodes(names: tuple[str, ...], cluster: Cluster) -> tuple[str, ...] | None:
    found = []
    for name in dict.fromkeys(names):
        node = cluster.node(name)
        if node is None:
            return None
        found.append((node.conf.index, node.name))
    return tuple(name for _, name in sorted(found))


class Licences(msgspec.Struct, frozen=True, kw_only=True):
    text: str = ""
    terms: tuple[LicenseTerm, ...] = ()
    any_of: bool = False
    tres: Tres = ()


def find_licences(
    request: JobRequest, per_task: tuple[LicenseTerm, ...], tasks: int, config: ClusterConfig
) -> Licences | Refused:
    """--licenses and the licences of --tres-per-task together, checked against the site's totals."""
    totals = {each.name: each.total for each in config.licenses}
    of_tasks = tuple(LicenseTerm(name=term.name, count=term.count * max(tasks, 1)) for term in per_task)
    terms = request.license_terms + of_tasks
    wanted: dict[str, int] = {}
    for term in terms:
        wanted[term.name] = wanted.get(term.name, 0) + term.count
    for name, count in wanted.items():
        if name not in totals or count > totals[name]:
            return Refused(errno=SlurmErrno.INVALID_LICENSES)
    texts = [request.licenses] if request.licenses else []
    texts += [f"{term.name}={term.count}" for term in of_tasks]
    counted = dict(list(wanted.items())[:1]) if request.licenses_any_of else wanted
    tracked = set(config.accounting_tres)
    tres = tuple(
        (f"license/{name}", count) for name, count in counted.items() if count and f"license/{name}" in tracked
    )
    return Licences(text=",".join(texts), terms=terms, any_of=request.licenses_any_of, tres=tres)
