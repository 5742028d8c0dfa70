"""How are the words after `sacctmgr VERB ENTITY` read? Conditions (`where`), settings (`set`), bare names, switches.

Follows sacctmgr(1): a word with `=` is a condition or a setting, one without is a name; `where` and `set` switch
between the two. Lists are separated by commas; names are kept in lower case.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from slurmbridge.commands import quotas
from slurmbridge.commands.accounting_words import Edit, Mistake, Word, find_word, is_word, read_edit
from slurmbridge.model.cluster import ClusterConfig

# (name, shortest form, what it selects)
_COMMON: Final = (("Format", 1, "format"), ("Clusters", 1, "clusters"))
CONDITIONS: Final[dict[str, tuple[tuple[str, int, str], ...]]] = {
    "user": (
        *_COMMON, ("Names", 1, "users"), ("Users", 1, "users"), ("Accounts", 2, "accounts"),
        ("AdminLevel", 2, "admin"), ("DefaultAccounts", 8, "default_accounts"), ("Partitions", 4, "partitions"),
        ("DefaultQOS", 8, "default_qos"), ("QosLevel", 1, "qos"), ("Pool", 4, "pools"),
    ),
    "account": (
        *_COMMON, ("Names", 1, "accounts"), ("Accounts", 2, "accounts"), ("Acct", 4, "accounts"),
        ("Descriptions", 1, "descriptions"), ("Organizations", 1, "organizations"), ("Parents", 2, "parents"),
        ("Users", 1, "users"), ("Partitions", 4, "partitions"), ("QosLevel", 1, "qos"), ("Pool", 4, "pools"),
    ),
    "association": (
        *_COMMON, ("Accounts", 2, "accounts"), ("Acct", 4, "accounts"), ("Users", 1, "users"),
        ("Partitions", 4, "partitions"), ("Parents", 4, "parents"), ("IDs", 1, "ids"), ("DefaultQOS", 8, "default_qos"),
        ("QosLevel", 1, "qos"), ("Pool", 4, "pools"),
    ),
    "qos": (*_COMMON, ("Names", 1, "qos_names"), ("QOSLevel", 1, "qos_names"), ("IDs", 1, "ids"),
            ("Descriptions", 1, "descriptions")),
    "cluster": (*_COMMON, ("Names", 1, "clusters")),
    "coordinator": (*_COMMON, ("Names", 1, "users"), ("Users", 1, "users"), ("Accounts", 1, "accounts")),
    "transaction": (
        *_COMMON, ("Accounts", 3, "accounts"), ("Action", 4, "actions"), ("Actors", 4, "actors"), ("Users", 1, "users"),
        ("StartTime", 1, "start"), ("EndTime", 1, "end"), ("Start", 1, "start"), ("End", 1, "end"),
    ),
    "event": (
        *_COMMON, ("Nodes", 1, "nodes"), ("Events", 2, "events"), ("StartTime", 1, "start"), ("EndTime", 2, "end"),
        ("States", 4, "states"), ("Reasons", 1, "reasons"), ("Users", 1, "users"),
    ),
    "tres": (*_COMMON, ("Names", 1, "names"), ("Types", 1, "types"), ("IDs", 1, "ids")),
    "other": (*_COMMON, ("Names", 1, "names"), ("Users", 1, "users"), ("Servers", 2, "names"), ("WCKeys", 2, "names")),
}  # fmt: skip
BARE: Final = {
    "user": "users", "account": "accounts", "association": "users", "qos": "qos_names", "cluster": "clusters",
    "coordinator": "users", "transaction": "ids", "event": "events", "tres": "types", "other": "names",
}  # fmt: skip
"""What a name without `=` selects."""

SWITCHES: Final = (
    ("WithAssociations", 5, "withassoc"), ("WithCoordinators", 5, "withcoord"), ("WithDeleted", 5, "withdeleted"),
    ("WithRawQOSLevel", 5, "withrawqos"), ("WithSubAccounts", 5, "withsub"), ("WithClusters", 5, "withclusters"),
    ("WOPInfo", 4, "wopinfo"), ("WOPLimits", 4, "woplimits"), ("WOLimits", 3, "wolimits"), ("WithFed", 5, "withfed"),
    ("OnlyDefaults", 4, "onlydefaults"), ("Tree", 4, "tree"), ("AllTime", 4, "alltime"),
)  # fmt: skip
_LOWER: Final = frozenset(
    {"users", "accounts", "partitions", "qos_names", "default_accounts", "parents", "qos", "default_qos"}
)


NOTHING_TO_SET: Final = " You didn't give me anything to set"


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """What was read. A key that is missing was not given; an empty tuple: given without a value."""

    where: dict[str, tuple[str, ...]] = {}
    switches: frozenset[str] = frozenset()
    edits: tuple[Edit, ...] = ()
    other: dict[str, str] = {}  # settings of the entity itself (Description, AdminLevel ...)
    has_set: bool = False
    mistakes: tuple[str, ...] = ()  # lines for stderr
    complaints: tuple[str, ...] = ()  # lines for stdout: Slurm's choice for unknown words of a QOS


def split(text: str) -> tuple[str, str, str | None]:
    """(word, operator, value); value None when there is no `=`."""
    name, equals, value = text.partition("=")
    if not equals:
        return text, "", None
    if name[-1:] in ("+", "-"):
        return name[:-1], name[-1], _unquoted(value)
    return name, "=", _unquoted(value)


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text


def names(text: str) -> tuple[str, ...]:
    """A comma list; an empty text is a list of one empty name."""
    return tuple(_unquoted(part) for part in text.split(","))


def read(
    entity: str,
    argv: Sequence[str],
    *,
    config: ClusterConfig,
    qos: Collection[str],
    words: Sequence[Word] = (),
    own: Sequence[tuple[str, int, str]] = (),
    changing: bool = False,
    adding: bool = False,
) -> Words:
    """`own`: settings of the entity itself; `changing`: `set` counts; `adding`: everything but names is a setting."""
    where: dict[str, tuple[str, ...]] = {}
    edits: list[Edit] = []
    other: dict[str, str] = {}
    mistakes: list[str] = []
    complaints: list[str] = []
    switches: set[str] = set()
    setting, has_set = adding, False
    for text in argv:
        lowered = text.lower()
        if lowered in ("where", "set") or (len(lowered) > 4 and lowered.startswith("where") and "=" not in lowered):
            setting = lowered == "set" or adding
            has_set |= lowered == "set"
            continue
        name, operator, value = split(text)
        if value is None:
            switch = next((key for long, least, key in SWITCHES if is_word(name, long, least)), None)
            if switch is not None and not setting:
                switches.add(switch)
            else:
                key = BARE[entity]
                where[key] = (*where.get(key, ()), *_cased(key, names(name)))
            continue
        condition = next((key for long, least, key in CONDITIONS[entity] if is_word(name, long, least)), None)
        if adding and condition in _ADD_CONDITIONS.get(entity, ()):
            where[condition or ""] = (*where.get(condition or "", ()), *_cased(condition or "", names(value)))
            continue
        if not setting:
            if condition is None:
                mistakes += _unknown_condition(entity, text)
                continue
            if condition in ("format", "start", "end"):
                where[condition] = (*where.get(condition, ()), value)
            else:
                where[condition] = (*where.get(condition, ()), *_cased(condition, names(value)))
            continue
        mine = next((key for long, least, key in own if is_word(name, long, least)), None)
        if mine is not None:
            other[mine] = value
            continue
        word = find_word(words, name)
        edit = read_edit(word, operator, value, config, qos) if word is not None else None
        if isinstance(edit, Edit):
            edits.append(edit)
            continue
        if isinstance(edit, Mistake):
            lines = [line + text if line.endswith((": ", " in ")) else line for line in edit.lines]
            if edit.on_stdout:
                return Words(complaints=tuple(lines))
            mistakes += lines
            if edit.final or entity == "qos":
                if edit.value_only and not adding:
                    mistakes.append(NOTHING_TO_SET)
                return Words(mistakes=tuple(mistakes))
        unknown = [f" Unknown option: {text}"]
        if not (adding and entity == "user"):
            unknown.append(" Use keyword 'where' to modify condition")
        if entity == "qos":
            complaints += unknown
        else:
            mistakes += unknown
    if "pools" in where:
        pools = where["pools"]
        clears = bool(edits) and all(edit.value is None for edit in edits)  # also of a pool that is gone
        unknown = [] if clears else quotas.unknown_pools(pools, config)
        mistakes += unknown or _pools_in_vain(edits, other, changing, adding)
        edits = [replace(edit, pools=pools) if edit.word.name in quotas.WORDS else edit for edit in edits]
    return Words(
        where=where,
        switches=frozenset(switches),
        edits=tuple(edits),
        other=other,
        has_set=has_set,
        mistakes=tuple(mistakes),
        complaints=tuple(complaints),
    )


def _pools_in_vain(edits: Sequence[Edit], other: Mapping[str, str], changing: bool, adding: bool) -> list[str]:
    """Complaint about a pool that nothing is set in; what is new may get more besides its quota."""
    others = [*other, *(edit.word.name for edit in edits if edit.word.name not in quotas.WORDS)]
    if (changing or adding) and all(edit.word.name not in quotas.WORDS for edit in edits):
        return [f"sacctmgr: error: Pool chooses among quotas: set one of {', '.join(quotas.FIELDS.values())}"]
    if changing and others:
        return [f"sacctmgr: error: {others[0]} is not set by pool: leave Pool away, or set it by itself"]
    return []


_ADD_CONDITIONS: Final = {
    "user": ("users", "accounts", "partitions", "clusters", "pools"),
    "account": ("accounts", "clusters", "pools"),
    "qos": ("qos_names",),
    "cluster": ("clusters",),
    "coordinator": ("users", "accounts"),
}
"""Words of `add` that name what is added and where."""


def _cased(key: str, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(value.lower() for value in values) if key in _LOWER else values


def _unknown_condition(entity: str, text: str) -> list[str]:
    lines = [f" Unknown condition: {text}"]
    if entity in ("user", "account", "cluster"):
        lines.append(" Use keyword 'set' to modify value")
    elif entity == "qos":
        lines.append(" Use keyword 'set' to modify SLURM_PRINT_VALUE")
    return lines
