"""How are supervisors sent away that have nothing to do, or nothing yet?"""

from __future__ import annotations

import asyncio

from slurmbridge.runtime.kube.run import Attach
from slurmbridge.wire import supervisor as wire

UNWANTED_S = 60.0


def refuse(attach: Attach, loop: asyncio.AbstractEventLoop) -> None:
    """Nobody wants what this supervisor is for: it ends."""
    link = attach(lambda kind, load: None, lambda: None)
    link.send(wire.UNWANTED)
    loop.call_later(UNWANTED_S, link.close)


def put_off(attach: Attach) -> None:
    """What it has to do is not known yet: it dials in again."""
    attach(lambda kind, load: None, lambda: None).close()
