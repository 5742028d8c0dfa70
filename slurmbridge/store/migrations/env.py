"""Alembic's entry: migrations run on the connection that `store.migrate` hands over, inside its transaction."""

from __future__ import annotations

from alembic import context

from slurmbridge.store.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
