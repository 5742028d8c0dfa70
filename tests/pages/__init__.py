"""Tests of slurmbridge.commands.pages."""
