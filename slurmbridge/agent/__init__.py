"""The agent of a login node: a socket like the daemon's own, whose callers it brings to the daemon (docs/decisions/0022)."""
