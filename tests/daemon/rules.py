"""Writes a rule about the controller as an asynchronous function of a fresh site."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tests.daemon.controlled import CONF, Site, check_use, site

Rule = Callable[[Site], Awaitable[None]]


def rule(test: Rule) -> Callable[[], None]:
    """On the site of `controlled.CONF`."""
    return on(CONF)(test)


def on(conf: str) -> Callable[[Rule], Callable[[], None]]:
    """On a site of this slurm.conf."""

    def decorate(test: Rule) -> Callable[[], None]:
        def run() -> None:
            async def whole() -> None:
                made = await site(conf)
                await test(made)
                check_use(made)

            asyncio.run(whole())

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return decorate
