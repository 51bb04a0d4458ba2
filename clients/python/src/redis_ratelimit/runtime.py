"""Clock, timers, ids and connections: the only place where the package makes real ones. Tests bring their own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic, time
from uuid import uuid4

from .taken.background import AsyncBackground
from .taken.jobs import Delays, Job, Timetable
from .taken.signals import AsyncSignal
from .wire.clients import AsyncClient
from .wire.channel import AsyncChannel, async_channel_of


class AsyncRuntime:
    """What a limiter needs of the world."""

    def clock(self) -> float:
        """Returns the seconds of a monotonic clock."""
        return monotonic()

    def wall(self) -> float:
        """Returns the Unix time in seconds."""
        return time()

    def new_id(self) -> str:
        """Returns an id that nobody has."""
        return uuid4().hex

    def channel(self, redis: AsyncClient, timeout: float, connect_timeout: float, replicas: bool) -> AsyncChannel:
        """Returns connections to the servers of this client."""
        return async_channel_of(redis, timeout, connect_timeout, replicas, self.clock, self.sleep)

    def background(
        self, timetable: Timetable, perform: Callable[[Sequence[Job]], Awaitable[Delays]]
    ) -> AsyncBackground:
        """Returns what runs jobs."""
        return AsyncBackground(timetable, perform)

    def signal(self) -> AsyncSignal:
        """Returns what callers wait for while another one fetches."""
        return AsyncSignal()

    async def sleep(self, seconds: float) -> None:
        """Waits."""
        await asyncio.sleep(seconds)
