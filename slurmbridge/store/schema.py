"""Which tables the store has: the SQLAlchemy metadata that the migrations must equal.

A run is one row of `runs`, keyed (job_id, restarts): columns for what is searched, a blob for the rest. The accepted
specification is a row of `specs`, named by the hash of its content, so that the tasks of an array share one.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

HEAD: Final = "0002"
"""Revision of the newest migration: a database with this one is opened without loading alembic."""

ALIVE: Final = 1e18
"""`runs.ended` of a run that has not ended: later than any time asked for."""

metadata = sa.MetaData()

marks = sa.Table(
    "marks",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

specs = sa.Table(
    "specs",
    metadata,
    sa.Column("digest", sa.LargeBinary, primary_key=True),  # first 16 bytes of SHA-256
    sa.Column("data", sa.LargeBinary, nullable=False),
)

runs = sa.Table(
    "runs",
    metadata,
    sa.Column("job_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("restarts", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("array_job_id", sa.BigInteger),  # NULL: no array
    sa.Column("het_job_id", sa.BigInteger),  # NULL: not heterogeneous
    sa.Column("uid", sa.BigInteger, nullable=False),
    sa.Column("account", sa.Text, nullable=False),
    sa.Column("qos", sa.Text, nullable=False),
    sa.Column("partition", sa.Text, nullable=False),  # allocated, else the candidates joined by commas
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("submitted", sa.Float, nullable=False),
    sa.Column("ended", sa.Float, nullable=False),  # ALIVE until the end is final
    sa.Column("nodes", sa.Text, nullable=False),  # ",n1,n2,"
    sa.Column("rolled", sa.Integer, nullable=False),  # 1: its usage is part of `usage`
    sa.Column("spec", sa.LargeBinary, nullable=False),  # specs.digest
    sa.Column("live", sa.LargeBinary, nullable=False),
)
sa.Index("runs_ended", runs.c.ended)
_IN_ARRAY, _IN_HET = runs.c.array_job_id.is_not(None), runs.c.het_job_id.is_not(None)
sa.Index("runs_array", runs.c.array_job_id, sqlite_where=_IN_ARRAY, postgresql_where=_IN_ARRAY)
sa.Index("runs_het", runs.c.het_job_id, sqlite_where=_IN_HET, postgresql_where=_IN_HET)
sa.Index("runs_user", runs.c.uid, runs.c.ended)
sa.Index("runs_spec", runs.c.spec)

submissions = sa.Table(
    "submissions",
    metadata,
    sa.Column("uid", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("nonce", sa.Text, primary_key=True),
    sa.Column("job_id", sa.BigInteger, nullable=False),
)
sa.Index("submissions_job", submissions.c.job_id)

steps = sa.Table(
    "steps",
    metadata,
    sa.Column("job_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("restarts", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("step_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("running", sa.Integer, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
)

blobs = sa.Table(
    "blobs",
    metadata,
    sa.Column("sha", sa.Text, primary_key=True),
    sa.Column("data", sa.LargeBinary, nullable=False),
)

blob_uses = sa.Table(
    "blob_uses",
    metadata,
    sa.Column("sha", sa.Text, primary_key=True),
    sa.Column("spec", sa.LargeBinary, primary_key=True),  # specs.digest
    sa.Column("kind", sa.Text, nullable=False),  # script, env
)
sa.Index("blob_uses_spec", blob_uses.c.spec)

entities = sa.Table(
    "entities",
    metadata,
    sa.Column("kind", sa.Text, primary_key=True),  # node, partition, reservation, accounting
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("place", sa.Integer, nullable=False),  # order within the kind
    sa.Column("data", sa.LargeBinary, nullable=False),
)

events = sa.Table(
    "events",
    metadata,
    sa.Column("event_id", sa.Integer, primary_key=True),
    sa.Column("node", sa.Text, nullable=False),
    sa.Column("started", sa.Float, nullable=False),
    sa.Column("ended", sa.Float, nullable=False),  # ALIVE until it is over
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("uid", sa.BigInteger),
)
sa.Index("events_node", events.c.node, events.c.ended)

usage = sa.Table(
    "usage",
    metadata,
    sa.Column("assoc_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
)

mail = sa.Table(
    "mail",
    metadata,
    sa.Column("mail_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
)

transactions = sa.Table(
    "transactions",
    metadata,
    sa.Column("txn_id", sa.Integer, primary_key=True),
    sa.Column("time", sa.Float, nullable=False),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("where_text", sa.Text, nullable=False),
    sa.Column("info", sa.Text, nullable=False),
)
sa.Index("transactions_time", transactions.c.time)
