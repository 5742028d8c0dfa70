"""How many files may this process have open? As many as it is ever allowed to: each caller and each run holds some.

Whoever starts processes of users notes the limit before, so that jobs begin with that one.
"""

from __future__ import annotations

import resource


def allow_many() -> None:
    """Raise the soft limit of open files to the hard one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
