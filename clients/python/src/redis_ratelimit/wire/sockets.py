"""What a link does with connections of redis.asyncio, and how its calls wait: its twin does the same with threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from inspect import isawaitable
from typing import Any

from redis.exceptions import RedisError, ResponseError, TimeoutError as NoReply

from ..call.call import Call
from ..decide.errors import Closed
from ..decide.failure import NoFreeConnection
from .source import Settings, crowded, late
from .within import within


class AsyncPlace:
    """A place in line for a connection that is in use."""

    def __init__(self) -> None:
        self._given: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def set(self, connection: Any) -> bool:
        """Hands a connection to the call that waits, or None if there is none any more. False if it has gone."""
        if self._given.done():
            return False
        self._given.set_result(connection)
        return True

    async def wait(self, seconds: float) -> Any:
        """Returns what is handed, or raises a time-out."""
        async with within(seconds, "no free connection"):
            return await self._given

    def given(self) -> Any:
        """Returns the connection that was handed to a call that has gone."""
        return self._given.result() if self._given.done() and not self._given.cancelled() else None


class AsyncRoom:
    """Lets a bounded number of calls in at a time."""

    def __init__(self, most: int) -> None:
        self._semaphore = asyncio.Semaphore(most)

    async def enter(self, seconds: float) -> None:
        """Waits until there is room."""
        if not self._semaphore.locked():
            await self._semaphore.acquire()  # at once
            return
        try:
            async with within(seconds, crowded(seconds)):
                await self._semaphore.acquire()
        except NoReply as error:
            raise NoFreeConnection(crowded(seconds)) from error

    def leave(self) -> None:
        """Makes room for the next."""
        self._semaphore.release()


def here() -> object:
    """The running loop: connections of another one cannot be used."""
    return asyncio.get_running_loop()


def is_open(connection: Any) -> bool:
    """Whether it has connected, as far as is known here."""
    return bool(connection.is_connected)


async def is_stale(connection: Any) -> bool:
    """Whether the server has closed it, or sent what nobody asked for."""
    can_read = getattr(connection, "can_read", None) or connection.can_read_destructive  # the latter in redis-py 6
    try:
        return bool(await can_read())
    except (RedisError, OSError):
        return True


async def connect(connection: Any, seconds: float, patience: float) -> None:
    """Connects, or raises an error when the shorter of these times is over."""
    seconds = min(seconds, patience)
    async with within(seconds, f"no connection within {seconds * 1000:.0f} ms"):
        await connection.connect()


async def disconnect(connection: Any) -> None:
    """Closes it."""
    await connection.disconnect(nowait=True)


async def exchange(
    connection: Any, call: Call, asking: bool, seconds: float, is_over: Callable[[Call], bool]
) -> object:
    """Sends a call and returns its reply. After any other error than one of the server's, the reply may still come."""
    cancelled = _cancellations()
    if is_over(call):
        raise Closed
    async with within(seconds, late(seconds)):
        if asking:
            await connection.send_command("ASKING")
            await connection.read_response()
        call.sent = True
        await connection.send_command(*call.words)
        reply: object = await connection.read_response()
    if _cancellations() > cancelled:
        raise asyncio.CancelledError
    return reply


async def exchange_all(
    connection: Any,
    calls: Sequence[Call],
    replies: list[object],
    seconds: float,
    is_over: Callable[[Call], bool],
    _clock: Callable[[], float],
) -> None:
    """Sends calls in a pipeline, and adds their replies."""
    cancelled = _cancellations()
    if is_over(calls[0]):
        raise Closed
    async with within(seconds, late(seconds)):
        for call in calls:
            call.sent = True
        await connection.send_packed_command(connection.pack_commands([call.words for call in calls]))
        while len(replies) < len(calls):
            try:
                replies.append(await connection.read_response())
            except ResponseError as error:
                replies.append(error)
    if _cancellations() > cancelled:
        raise asyncio.CancelledError


def on_connect(settings: Settings, replicas: bool) -> Settings:
    """Says READONLY on each connection, so that replicas answer. The application's function connects, as in redis.asyncio."""
    also = settings.get("redis_connect_func")

    async def connected(connection: Any) -> None:
        if also is None:
            await connection.on_connect()
        else:
            done = also(connection)
            if isawaitable(done):
                await done
        await connection.send_command("READONLY")
        await connection.read_response()

    return {"redis_connect_func": connected} if replicas else {}


def _cancellations() -> int:
    """Returns how often the caller was cancelled. `wait_for` of Python 3.11, which redis-py uses, sometimes drops one."""
    task = asyncio.current_task()
    return task.cancelling() if task else 0
