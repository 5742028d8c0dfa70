"""Bringing an older database to the newest schema; the only module that loads alembic."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Engine

from slurmbridge.errors import StoreError
from slurmbridge.store import schema, tables


def configuration() -> Config:
    """Alembic's configuration; the scripts are data of this package."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config


def upgrade(engine: Engine, version: str) -> None:
    """Run all migrations after `version` ("" = none yet) in one transaction; StoreError when it is not known."""
    config = configuration()
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if version and version not in known:
        raise StoreError(
            f"the database has schema {version}, made by a newer slurmbridge; this one knows up to {schema.HEAD}: "
            "install that version again (nothing was changed)"
        )
    with tables.transaction(engine) as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
