"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "marks",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.create_table(
        "specs",
        sa.Column("digest", sa.LargeBinary, primary_key=True),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "runs",
        sa.Column("job_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("restarts", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("array_job_id", sa.BigInteger),
        sa.Column("het_job_id", sa.BigInteger),
        sa.Column("uid", sa.BigInteger, nullable=False),
        sa.Column("account", sa.Text, nullable=False),
        sa.Column("qos", sa.Text, nullable=False),
        sa.Column("partition", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("submitted", sa.Float, nullable=False),
        sa.Column("ended", sa.Float, nullable=False),
        sa.Column("nodes", sa.Text, nullable=False),
        sa.Column("rolled", sa.Integer, nullable=False),
        sa.Column("spec", sa.LargeBinary, nullable=False),
        sa.Column("live", sa.LargeBinary, nullable=False),
    )
    op.create_index("runs_ended", "runs", ["ended"])
    op.create_index(
        "runs_array",
        "runs",
        ["array_job_id"],
        sqlite_where=sa.text("array_job_id IS NOT NULL"),
        postgresql_where=sa.text("array_job_id IS NOT NULL"),
    )
    op.create_index(
        "runs_het",
        "runs",
        ["het_job_id"],
        sqlite_where=sa.text("het_job_id IS NOT NULL"),
        postgresql_where=sa.text("het_job_id IS NOT NULL"),
    )
    op.create_index("runs_user", "runs", ["uid", "ended"])
    op.create_table(
        "submissions",
        sa.Column("uid", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("nonce", sa.Text, primary_key=True),
        sa.Column("job_id", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "steps",
        sa.Column("job_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("restarts", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("step_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("running", sa.Integer, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "blobs",
        sa.Column("sha", sa.Text, primary_key=True),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "entities",
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "events",
        sa.Column("event_id", sa.Integer, primary_key=True),
        sa.Column("node", sa.Text, nullable=False),
        sa.Column("started", sa.Float, nullable=False),
        sa.Column("ended", sa.Float, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("uid", sa.BigInteger),
    )
    op.create_index("events_node", "events", ["node", "ended"])
    op.create_table(
        "usage",
        sa.Column("assoc_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "transactions",
        sa.Column("txn_id", sa.Integer, primary_key=True),
        sa.Column("time", sa.Float, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("where_text", sa.Text, nullable=False),
        sa.Column("info", sa.Text, nullable=False),
    )
    op.create_index("transactions_time", "transactions", ["time"])


def downgrade() -> None:
    raise NotImplementedError("databases are not taken back to older schemas")
