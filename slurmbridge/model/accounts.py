"""Accounting entities: accounts, users, associations, QOS (sacctmgr's tables).

Limits are None when not set. TRES limits are `model.tres.Tres` in its units. An association is a node of the tree: an
account (user empty) or a user under an account. The root account always exists.
"""

from __future__ import annotations

import msgspec

from slurmbridge.model.tres import Tres


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits that associations and QOS share. Minutes for wall times."""

    grp_jobs: int | None = None
    grp_jobs_accrue: int | None = None
    grp_submit: int | None = None
    grp_wall: int | None = None
    grp_tres: Tres = ()
    grp_tres_mins: Tres = ()
    grp_tres_run_mins: Tres = ()
    max_jobs: int | None = None  # association: per user; QOS: MaxJobsPerUser
    max_jobs_accrue: int | None = None
    max_submit: int | None = None
    max_wall: int | None = None  # per job
    max_tres_per_job: Tres = ()
    max_tres_per_node: Tres = ()
    max_tres_mins_per_job: Tres = ()


class Qos(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    qos_id: int = 0
    description: str = ""
    priority: int = 0
    grace_time: int = 0
    preempt: tuple[str, ...] = ()
    preempt_mode: str = "cluster"
    preempt_exempt_time: int | None = None
    flags: tuple[str, ...] = ()  # DenyOnLimit, NoReserve, ... canonical spelling
    usage_factor: float = 1.0
    usage_threshold: float | None = None
    limits: Limits = Limits()
    max_tres_per_user: Tres = ()
    max_tres_per_account: Tres = ()
    max_jobs_per_account: int | None = None
    max_submit_per_account: int | None = None
    max_tres_run_mins_per_user: Tres = ()
    max_tres_run_mins_per_account: Tres = ()
    min_tres_per_job: Tres = ()
    max_jobs_accrue_per_account: int | None = None
    min_prio_threshold: int | None = None
    limit_factor: float | None = None
    preemptible: bool | None = None  # ours


class Account(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    description: str = ""
    organization: str = ""
    coordinators: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


class User(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    default_account: str = ""
    default_wckey: str = ""
    admin_level: str = "None"  # None, Operator, Administrator


class Quota(msgspec.Struct, frozen=True, kw_only=True):
    """What an association deserves of one node pool. Ours: Slurm has limits and shares only."""

    pool: str = ""  # a pool's name; empty: of every pool, for what is not set for that pool itself
    deserved: Tres = ()  # none of a TRES that is not named, if siblings name it
    over_quota_weight: float | None = None  # of what others leave idle; None: as the parent's other children, 1
    priority: int | None = None  # larger ones get what is idle first; None: 0


class Assoc(msgspec.Struct, frozen=True, kw_only=True):
    assoc_id: int
    account: str
    user: str = ""  # empty: the account itself
    partition: str = ""
    parent: str = ""  # parent account; empty for root and for users
    shares: int = 1  # Fairshare
    shares_parent: bool = False  # Fairshare=parent
    priority: int | None = None
    qos: tuple[str, ...] | None = None  # None: inherited; names with + or - before: inherited and changed so
    default_qos: str = ""
    is_default: bool = False
    comment: str = ""
    limits: Limits = Limits()
    quotas: tuple[Quota, ...] = ()  # by pool, each pool once

    def quota_in(self, pool: str) -> Quota | None:
        """What counts in a pool: each setting of its own, else the one for every pool; None without either."""
        by_pool = {quota.pool: quota for quota in self.quotas}
        general, own = by_pool.get(""), by_pool.get(pool)
        if general is None or own is None:
            return own or general
        return Quota(
            pool=pool,
            deserved=own.deserved or general.deserved,
            over_quota_weight=general.over_quota_weight if own.over_quota_weight is None else own.over_quota_weight,
            priority=general.priority if own.priority is None else own.priority,
        )


class Wckey(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    user: str


class Transaction(msgspec.Struct, frozen=True, kw_only=True):
    time: float
    action: str
    actor: str
    where: str = ""
    info: str = ""


class Accounting(msgspec.Struct, frozen=True, kw_only=True):
    """All entities. Small (thousands), replaced whole by `replace`; lookups in `submit.associations`."""

    clusters: tuple[str, ...] = ()
    accounts: tuple[Account, ...] = ()
    users: tuple[User, ...] = ()
    assocs: tuple[Assoc, ...] = ()
    qos: tuple[Qos, ...] = ()
    wckeys: tuple[Wckey, ...] = ()
    revision: int = 0
    next_assoc_id: int = 1  # ids are not used again: usage is kept by them
    next_qos_id: int = 1


class UsageRow(msgspec.Struct, frozen=True, kw_only=True):
    """Decayed use of one association, or QOS: TRES-seconds by name, decayed to `as_of`."""

    assoc_id: int  # negative: the QOS of that number
    as_of: float
    raw: tuple[tuple[str, float], ...] = ()
    wall_s: float = 0.0
