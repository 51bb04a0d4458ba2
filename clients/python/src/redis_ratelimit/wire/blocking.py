"""Sends a call that waits in the server on a client of the application, for asyncio.

The `socket_timeout` of that client, which is 5 seconds in redis-py 8, would end a longer wait, and its retries would send the
call again. So the reply is read with a time-out above the wait, and the call is sent once."""

from __future__ import annotations

from typing import Any

from redis.exceptions import ResponseError, TimeoutError

from ..call.call import Call
from .source import MARGIN


async def waited(redis: Any, call: Call, seconds: float) -> object:
    """Sends it on a client of redis.asyncio."""
    await redis.initialize()
    connection = redis.connection
    if connection is not None:  # of a client with a single connection
        async with redis._single_conn_lock:
            return await _exchange(connection, call, seconds)
    connection = await redis.connection_pool.get_connection()
    try:
        return await _exchange(connection, call, seconds)
    finally:
        await redis.connection_pool.release(connection)


async def waited_at(_redis: Any, node: Any, call: Call, seconds: float) -> object:
    """Sends it on the client of a cluster, to this node."""
    connection = node.acquire_connection()
    try:
        return await _exchange(connection, call, seconds)
    finally:
        release = getattr(node, "release", node._free.append)  # redis-py 6 has no release
        release(connection)


async def forget_slots(redis: Any) -> None:
    """The client of a cluster reads anew which node has which slots, as after a failed call of its own."""
    redis._initialize = True


async def _exchange(connection: Any, call: Call, seconds: float) -> object:
    try:
        await connection.send_command(*call.words)
        reply: object = await connection.read_response(timeout=seconds + MARGIN)
        # At its time-out it returns None and stays connected, and the reply is still to come. No call that waits is replied nil.
        if reply is None:
            raise TimeoutError(f"no reply within {seconds + MARGIN:.0f} s")
        return reply
    except ResponseError:
        raise
    except BaseException:
        await connection.disconnect(nowait=True)
        raise
