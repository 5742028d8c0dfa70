"""Replays and decides with the real scheduler core, on a virtual clock."""
