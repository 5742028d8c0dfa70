"""Decisions about pods."""
