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

from typing import Any, cast

from limits import aio
from limits.aio.storage.redis.redispy import RedispyBridge
from limits.errors import ConfigurationError
from limits.storage import RedisClusterStorage, RedisSentinelStorage, RedisStorage
from limits.storage.base import TimestampedSlidingWindow

from .methods import AsyncMethods
from .methods_threads import Methods


class RateLimitStorage(Methods, RedisStorage, TimestampedSlidingWindow):
    """`ratelimit+redis://[user:password@]host:port/db`, `ratelimit+rediss://…`, `ratelimit+redis+unix:///path`"""

    STORAGE_SCHEME = ["ratelimit+redis", "ratelimit+rediss", "ratelimit+redis+unix"]

    def __init__(self, uri: str, **options: float | str | bool) -> None:
        super().__init__(uri.removeprefix("ratelimit+"), **options)  # type: ignore[arg-type]

    def initialize_storage(self, _uri: str) -> None:
        """Does nothing: there are no scripts to register."""

    def _client(self, readonly: bool = False) -> Any:
        return self.get_connection(readonly)

    def _key(self, key: str) -> str:
        return self.prefixed_key(key)


class RateLimitClusterStorage(RateLimitStorage, RedisClusterStorage):
    """`ratelimit+redis+cluster://[user:password@]host:port,host:port`"""

    STORAGE_SCHEME = ["ratelimit+redis+cluster"]


class RateLimitSentinelStorage(RateLimitStorage, RedisSentinelStorage):
    """`ratelimit+redis+sentinel://host:port,host:port/service_name`. Replicas are asked what does not charge, unless
    `use_replicas=False`."""

    STORAGE_SCHEME = ["ratelimit+redis+sentinel"]


class AsyncRateLimitStorage(AsyncMethods, aio.storage.RedisStorage, TimestampedSlidingWindow):
    """The asynchronous `RateLimitStorage`, for the strategies of `limits.aio`."""

    STORAGE_SCHEME = ["async+ratelimit+redis", "async+ratelimit+rediss", "async+ratelimit+redis+unix"]

    def __init__(self, uri: str, **options: float | str | bool) -> None:
        if options.setdefault("implementation", "redispy") != "redispy":
            raise ConfigurationError("the only implementation is redispy")
        super().__init__(uri.replace("ratelimit+", "", 1), **options)  # type: ignore[arg-type]

    def _client(self, readonly: bool = False) -> Any:
        return cast(RedispyBridge, self.bridge).get_connection(readonly)

    def _key(self, key: str) -> str:
        return self.bridge.prefixed_key(key)


class AsyncRateLimitClusterStorage(AsyncRateLimitStorage, aio.storage.RedisClusterStorage):
    """The asynchronous `RateLimitClusterStorage`."""

    STORAGE_SCHEME = ["async+ratelimit+redis+cluster"]


class AsyncRateLimitSentinelStorage(AsyncRateLimitStorage, aio.storage.RedisSentinelStorage):
    """The asynchronous `RateLimitSentinelStorage`."""

    STORAGE_SCHEME = ["async+ratelimit+redis+sentinel"]
