"""Where does the controller find what an update may change? One place for all kinds of records.

Each kind has a module of its own: a table of keys and a pure function from the record and typed values to the changed
record or a refusal.
"""

from __future__ import annotations

from slurmbridge.commands.update_job import apply_update
from slurmbridge.commands.update_node import apply_node_update
from slurmbridge.commands.update_partition import apply_partition_update
from slurmbridge.commands.update_reservation import apply_reservation

__all__ = ["apply_node_update", "apply_partition_update", "apply_reservation", "apply_update"]
