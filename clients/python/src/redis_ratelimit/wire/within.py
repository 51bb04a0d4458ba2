"""A time-out for asyncio that does not blame the server for a loop that is late."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from redis.exceptions import TimeoutError as NoReply

from ..decide.failure import LateLoop

LATE, GRACE, GRACES = 0.01, 0.05, 3
"""A timer that fires so many seconds late gives a call so many seconds more, so often."""


class _Timer:
    """Ends a block of code that is not done in time.

    A loop that was busy fires its timers late, and at once with the sockets that have a reply. So a timer that fires late
    leaves some time for the replies. If there is none then either, the server is not to blame.

    Attributes:
        graces: How often the loop was late.
    """

    def __init__(self, seconds: float, block: asyncio.Timeout) -> None:
        self._loop, self._block = asyncio.get_running_loop(), block
        self.graces = 0
        self._handle = self._loop.call_later(seconds, self._fire)

    def cancel(self) -> None:
        self._handle.cancel()

    def _fire(self) -> None:
        if self._loop.time() - self._handle.when() > LATE and self.graces < GRACES:
            self.graces += 1
            self._handle = self._loop.call_later(GRACE, self._fire)
        else:
            self._block.reschedule(self._loop.time())


@asynccontextmanager
async def within(seconds: float, late: str) -> AsyncGenerator[None]:
    """Raises an error if a block of code is not done in time."""
    graces = 0
    try:
        async with asyncio.timeout(None) as block:
            timer = _Timer(seconds, block)
            try:
                yield
            finally:
                timer.cancel()
                graces = timer.graces
    except TimeoutError as error:
        if graces:
            raise LateLoop(f"{late}, and the event loop was late") from error
        raise NoReply(late) from error
