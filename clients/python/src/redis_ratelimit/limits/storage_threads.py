"""Storages for the library `limits` (https://limits.readthedocs.io, under Flask-Limiter and slowapi): its strategies run
on the module's commands instead of Lua scripts. Import this module, then take the scheme:

    import redis_ratelimit.limits_storage
    storage = storage_from_string("ratelimit+redis://127.0.0.1")

The schemes are `ratelimit+redis`, `ratelimit+rediss`, `ratelimit+redis+unix`, `ratelimit+redis+cluster` and
`ratelimit+redis+sentinel`, each with `async+` in front for `limits.aio`. Addresses and options are those of limits' own
Redis storages. The asynchronous storages use redis-py, not coredis.

    FixedWindowRateLimiter            RL.FIXEDWINDOW     counts every hit, also those over the limit, as limits does
    MovingWindowRateLimiter           RL.SLIDINGLOG      on the server's clock, in a few bytes per hit
    SlidingWindowCounterRateLimiter   RL.SLIDINGWINDOW   windows on the clock's multiples, as with memcached

The server replies an error (`redis.ResponseError`, or `StorageError` with `wrap_exceptions`) to a cost below 0, to a
fixed window's cost above 2^53 − 1, and to a moving window's limit above `ratelimit.max-log-entries` (1,000,000).
"""

import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Protocol, cast

from limits.storage import RedisClusterStorage, RedisSentinelStorage, RedisStorage
from limits.storage.base import TimestampedSlidingWindow

from . import calls
from .calls import Call, Steps, T, Word
from .storage import AsyncRateLimitClusterStorage, AsyncRateLimitSentinelStorage, AsyncRateLimitStorage

__all__ = [
    "AsyncRateLimitClusterStorage",
    "AsyncRateLimitSentinelStorage",
    "AsyncRateLimitStorage",
    "RateLimitClusterStorage",
    "RateLimitSentinelStorage",
    "RateLimitStorage",
]


class _Pipeline(Protocol):
    def execute_command(self, *words: Word) -> object: ...
    def execute(self) -> list[object]: ...


class _Client(Protocol):
    def execute_command(self, *words: Word) -> object: ...
    def pipeline(self, *, transaction: bool) -> _Pipeline: ...
    def scan_iter(self, match: str, count: int) -> Iterator[bytes | str]: ...
    def unlink(self, *keys: bytes | str) -> int: ...


class RateLimitStorage(RedisStorage, TimestampedSlidingWindow):
    """`ratelimit+redis://[user:password@]host:port/db`, `ratelimit+rediss://…`, `ratelimit+redis+unix:///path`"""

    STORAGE_SCHEME = ["ratelimit+redis", "ratelimit+rediss", "ratelimit+redis+unix"]

    def __init__(self, uri: str, **options: float | str | bool) -> None:
        super().__init__(uri.removeprefix("ratelimit+"), **options)  # type: ignore[arg-type]

    def initialize_storage(self, _uri: str) -> None:
        """Does nothing: there are no scripts to register."""

    def _client(self, readonly: bool = False) -> _Client:
        return cast(_Client, self.get_connection(readonly))

    def _run(self, steps: Steps[T]) -> T:
        try:
            asked = next(steps)
            while True:
                asked = steps.send(self._send(asked))
        except StopIteration as end:
            return cast(T, end.value)

    def _send(self, asked: Sequence[Call]) -> list[object]:
        client = self._client(readonly=calls.only_looks(asked))
        if len(asked) == 1:
            return [client.execute_command(*asked[0])]
        pipeline = client.pipeline(transaction=False)
        for call in asked:
            pipeline.execute_command(*call)
        return pipeline.execute()

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Adds `amount` to the counter, whose window ends `expiry` seconds after its first hit. Returns the count."""
        return self._run(calls.incr(self.prefixed_key(key), expiry, amount))

    def get(self, key: str) -> int:
        """Returns the count of the open window."""
        return self._run(calls.fixed_window(self.prefixed_key(key)))[0]

    def get_expiry(self, key: str) -> float:
        """Returns the Unix time at which the open window ends."""
        return time.time() + self._run(calls.fixed_window(self.prefixed_key(key)))[1]

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Adds `amount` entries to the moving window of `expiry` seconds if they fit."""
        return self._run(calls.acquire_entry(self.prefixed_key(key), limit, expiry, amount))

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """Returns the Unix time at which the moving window starts, and the number of entries in it."""
        return self._run(calls.moving_window(self.prefixed_key(key), limit, expiry))

    def acquire_sliding_window_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Adds `amount` to the current window if the weighted count stays within the limit."""
        return self._run(calls.acquire_sliding_window_entry(self.prefixed_key(key), limit, expiry, amount))

    def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        """Returns count and seconds to live of the previous window, and of the current one."""
        return self._run(calls.sliding_window(self.prefixed_key(key), expiry))

    def clear(self, key: str) -> None:
        """Resets the limits of `key`."""
        self._client().unlink(*calls.keys(self.prefixed_key(key)))

    def clear_sliding_window(self, key: str, expiry: int) -> None:
        """Resets the limits of `key`."""
        self.clear(key)

    def check(self) -> bool:
        """Returns whether the server replies and has the module."""
        try:
            return self._run(calls.check())
        except Exception:  # noqa: BLE001, as limits' own storage does
            return False

    def reset(self) -> int | None:
        """Deletes all keys with the prefix, a thousand at a time. Returns their number."""
        keys, deleted = self._client().scan_iter(calls.pattern(self.prefixed_key("")), 1000), 0
        while batch := list(islice(keys, 1000)):
            deleted += self._client().unlink(*batch)
        return deleted


class RateLimitClusterStorage(RateLimitStorage, RedisClusterStorage):
    """`ratelimit+redis+cluster://[user:password@]host:port,host:port`"""

    STORAGE_SCHEME = ["ratelimit+redis+cluster"]


class RateLimitSentinelStorage(RateLimitStorage, RedisSentinelStorage):
    """`ratelimit+redis+sentinel://host:port,host:port/service_name`. Replicas are asked what does not charge, unless
    `use_replicas=False`."""

    STORAGE_SCHEME = ["ratelimit+redis+sentinel"]
