"""The cluster for the tests of this folder."""

from .fixture import cluster

__all__ = ["cluster"]
