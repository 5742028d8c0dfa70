"""Frozen records that cross package borders. No behaviour beyond trivial properties; imports nothing of ours but errors."""
