"""`sacctmgr --json show user|account`: the document of Slurm's data_parser v0.0.45."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from slurmbridge.commands.effects import Call, Site
from slurmbridge.commands.listing import frame_of
from slurmbridge.fields.structured import to_json, to_yaml
from slurmbridge.model.accounts import Account, Assoc, User
from slurmbridge.submit import associations


def _assoc(site: Site, assoc: Assoc) -> dict[str, Any]:
    return {
        "account": assoc.account,
        "cluster": site.config.cluster_name,
        "partition": assoc.partition,
        "user": assoc.user,
        "id": assoc.assoc_id,
    }


def json_users(site: Site, users: Sequence[User], switches: Collection[str]) -> list[dict[str, Any]]:
    known = associations.index(site.accounting)
    return [
        {
            "administrator_level": [user.admin_level],
            "associations": [_assoc(site, each) for each in known.accounts_of.get(user.name, ())]
            if "withassoc" in switches
            else [],
            "coordinators": [
                {"name": name, "direct": True} for name in associations.coordinated(site.accounting, user.name)
            ]
            if "withcoord" in switches
            else [],
            "default": {"qos": 0, "account": user.default_account, "wckey": user.default_wckey},
            "flags": ["NONE"],
            "name": user.name,
            "old_name": "",
            "wckeys": [],
        }
        for user in users
    ]


def json_accounts(site: Site, accounts: Sequence[Account], switches: Collection[str]) -> list[dict[str, Any]]:
    known = associations.index(site.accounting)
    return [
        {
            "associations": [
                _assoc(site, each)
                for each in (known.assocs.get((account.name, "", "")), *known.users_of.get(account.name, ()))
                if each is not None
            ]
            if "withassoc" in switches
            else [],
            "coordinators": [{"name": name, "direct": True} for name in sorted(account.coordinators)]
            if "withcoord" in switches
            else [],
            "description": account.description,
            "name": account.name,
            "organization": account.organization,
            "flags": list(account.flags),
        }
        for account in accounts
    ]


def document(call: Call, site: Site, name: str, records: Sequence[Any], kind: str = "json") -> str:
    """The records with Slurm's frame around them."""
    content: dict[str, Any] = {name: records, **frame_of(call, site)}
    return to_yaml(content) if kind == "yaml" else to_json(content)
