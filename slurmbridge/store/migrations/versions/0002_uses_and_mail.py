"""Which specifications use a script or an environment, indexes for purging, and the queue of mail."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from slurmbridge.store import records

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_AT_ONCE = 500


def upgrade() -> None:
    op.create_table(
        "blob_uses",
        sa.Column("sha", sa.Text, primary_key=True),
        sa.Column("spec", sa.LargeBinary, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
    )
    op.create_index("blob_uses_spec", "blob_uses", ["spec"])
    op.create_table(
        "mail",
        sa.Column("mail_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_index("runs_spec", "runs", ["spec"])
    op.create_index("submissions_job", "submissions", ["job_id"])
    _fill(op.get_bind())


def _fill(connection: sa.engine.Connection) -> None:
    """The uses of the specifications that are there."""
    specs = sa.table("specs", sa.column("digest", sa.LargeBinary), sa.column("data", sa.LargeBinary))
    uses = sa.table("blob_uses", sa.column("sha"), sa.column("spec"), sa.column("kind"))
    found = connection.execute(sa.select(specs.c.digest, specs.c.data))
    for part in found.partitions(_AT_ONCE):
        rows = [
            {"sha": sha, "spec": spec, "kind": kind}
            for digest, data in part
            for sha, spec, kind in records.blob_uses(digest, records.decode_spec(data))
        ]
        if rows:
            connection.execute(sa.insert(uses), rows)


def downgrade() -> None:
    raise NotImplementedError("databases are not taken back to older schemas")
