"""Sends a limiter's calls to its servers, on connections of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

from redis.asyncio import Connection, Redis, RedisCluster, SSLConnection

from ..call.call import Call
from ..call.errors import ConfigurationError
from .clients import AsyncClient, wrong_client
from .link import AsyncLink, AsyncLinks
from .redirect import Hop, routed
from .slots import SlotMap
from .source import Source, server_name, source_of_cluster, source_of_server

R = TypeVar("R")
S = TypeVar("S")


async def drive(steps: Generator[S, object, R], perform: Callable[[S], Awaitable[object]]) -> R:
    """Performs each step, and returns what the generator returns. Errors are raised in the generator."""
    try:
        step = next(steps)
        while True:
            try:
                reply = await perform(step)
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(reply)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]


def async_channel_of(
    redis: AsyncClient,
    timeout: float,
    connect_timeout: float,
    replicas: bool,
    clock: Callable[[], float],
    sleep: Callable[[float], Awaitable[None]],
) -> AsyncChannel:
    """Returns connections of the limiter's own to the servers of this client."""
    if isinstance(redis, RedisCluster):
        source = source_of_cluster(redis, Connection, SSLConnection)
        return AsyncClusterChannel(source, timeout, connect_timeout, replicas, clock, sleep)
    if not isinstance(redis, Redis):
        raise wrong_client(redis)
    if replicas:
        raise ConfigurationError("read_from_replicas needs the client of a cluster")
    return AsyncServerChannel(source_of_server(redis), timeout, connect_timeout, clock)


class AsyncServerChannel:
    """A single server."""

    slots: None = None

    def __init__(
        self, source: Source, timeout: float, connect_timeout: float, clock: Callable[[], float]
    ) -> None:
        self._name = server_name(source)
        self._link = AsyncLink(source, timeout, connect_timeout, clock, self._name, {})

    async def send(self, call: Call) -> object:
        """Returns the reply, or raises the error of redis-py."""
        return await self._link.exchange(call)

    async def send_all(self, calls: Sequence[Call]) -> list[object]:
        """Sends calls in a pipeline. Returns their replies. In place of a missing reply stands its error."""
        return await self._link.exchange_all(calls)

    def where(self, call: Call) -> str:
        """Returns the name of the server."""
        return self._name

    async def end_waits(self) -> None:
        """Closes the connections of calls that wait in the server."""
        await self._link.end_waits()

    async def close(self) -> None:
        """Closes all connections."""
        await self._link.close()


class AsyncClusterChannel:
    """The nodes of a cluster."""

    slots: SlotMap

    def __init__(
        self,
        source: Source,
        timeout: float,
        connect_timeout: float,
        replicas: bool,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._links, self._sleep = AsyncLinks(source, timeout, connect_timeout, replicas, clock), sleep
        self.slots = SlotMap(source.seeds, source.remap, replicas, timeout, clock)

    async def send(self, call: Call) -> object:
        """Returns the reply, or raises the error of redis-py."""
        return await drive(routed(self.slots, call), self._perform)

    async def send_all(self, calls: Sequence[Call]) -> list[object]:
        """Sends calls for one node in a pipeline. Returns their replies. In place of a missing reply stands its error.

        A call that is redirected is sent again alone.
        """
        known: list[object] = []
        if self.slots.primaries():
            known = await self._links.to(self.slots.node(calls[0])).exchange_all(calls)
        replies: list[object] = []
        for number, call in enumerate(calls):
            known_reply = known[number : number + 1]
            try:
                replies.append(await drive(routed(self.slots, call), partial(self._perform_once, call, known_reply)))
            except Exception as error:
                replies.append(error)
        return replies

    async def _perform_once(self, call: Call, known: list[object], hop: Hop) -> object:
        """Performs a hop, of which the reply may be known already."""
        if hop.call is not call or not known:
            return await self._perform(hop)
        reply = known.pop()
        if isinstance(reply, Exception):
            raise reply
        return reply

    def where(self, call: Call) -> str:
        """Returns the name of the node that will get the call, as far as it is known."""
        return self.slots.where(call)

    async def end_waits(self) -> None:
        """Closes the connections of calls that wait in the server."""
        for link in self._links.all():
            await link.end_waits()

    async def close(self) -> None:
        """Closes all connections."""
        for link in self._links.close():
            await link.close()

    async def _perform(self, hop: Hop) -> object:
        if hop.pause:
            await self._sleep(hop.pause)
        return await self._links.to(hop.address).exchange(hop.call, hop.asking)


AsyncChannel: TypeAlias = AsyncServerChannel | AsyncClusterChannel
