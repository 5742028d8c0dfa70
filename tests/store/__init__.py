"""Tests of slurmbridge.store."""
