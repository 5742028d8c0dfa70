"""Runs as processes on virtual nodes of this machine."""

from slurmbridge.runtime.local.runtime import LocalRuntime

__all__ = ["LocalRuntime"]
