"""Sends a call that waits in the server on a client of the application, for threads.

The `socket_timeout` of that client, which is 5 seconds in redis-py 8, would end a longer wait, and its retries would send the
call again. So the reply is waited for above the wait, and the call is sent once."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from redis.exceptions import RedisError, ResponseError, TimeoutError

from ..call.call import Call
from .source import MARGIN


def waited(redis: Any, call: Call, seconds: float) -> object:
    """Sends it on a client of redis-py."""
    connection = redis.connection
    if connection is not None:  # of a client with a single connection
        with redis.single_connection_lock:
            return _exchange(connection, call, seconds)
    connection = redis.connection_pool.get_connection()
    try:
        return _exchange(connection, call, seconds)
    finally:
        redis.connection_pool.release(connection)


def waited_at(redis: Any, node: Any, call: Call, seconds: float) -> object:
    """Sends it on the client of a cluster, to this node."""
    return waited(redis.get_redis_connection(node), call, seconds)


def forget_slots(redis: Any) -> None:
    """The client of a cluster reads anew which node has which slots, as after a failed call of its own."""
    with suppress(RedisError):
        redis.nodes_manager.initialize()


def _exchange(connection: Any, call: Call, seconds: float) -> object:
    try:
        connection.send_command(*call.words)
        if not connection.can_read(timeout=seconds + MARGIN):
            raise TimeoutError(f"no reply within {seconds + MARGIN:.0f} s")
        return connection.read_response()
    except ResponseError:
        raise
    except BaseException:
        connection.disconnect()
        raise
