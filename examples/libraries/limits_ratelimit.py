"""`ratelimit+redis://` for the library limits (https://limits.readthedocs.io): its storage interface in the module's
commands instead of Lua. Import this module, then take the scheme: `storage_from_string("ratelimit+redis://127.0.0.1")`.

    FixedWindowRateLimiter            RL.FIXEDWINDOW     counts every hit, also those over the limit, as limits does
    MovingWindowRateLimiter           RL.SLIDINGLOG      on the server's clock, in a few bytes per hit
    SlidingWindowCounterRateLimiter   RL.SLIDINGWINDOW   windows on the clock's multiples, as with memcached
"""

import time
from itertools import islice

from limits.limits import GRANULARITIES
from limits.storage import RedisStorage
from limits.storage.base import TimestampedSlidingWindow

# `incr` and `get` are not told the limit: the strategy compares.
UNLIMITED = 10**15


def window_of(key):
    """The window in ms, which `get` is not told either: a key of `RateLimitItem.key_for` ends in it."""
    try:
        *_, _, multiples, granularity = key.rsplit("/", 3)
        return int(multiples) * GRANULARITIES[granularity].GRANULARITY.seconds * 1000
    except (KeyError, ValueError):
        raise ValueError(f"{key!r} is not a key of RateLimitItem.key_for") from None


class RateLimitStorage(RedisStorage, TimestampedSlidingWindow):
    STORAGE_SCHEME = ["ratelimit+redis", "ratelimit+rediss", "ratelimit+redis+unix"]

    def __init__(self, uri, **options):
        super().__init__(uri.removeprefix("ratelimit+"), **options)

    def initialize_storage(self, _uri):
        """No scripts to register."""

    # A key for each strategy: what one stores is WRONGTYPE for the other.
    def _keys(self, key):
        key = self.prefixed_key(key)
        return key, f"{key}/moving", f"{key}/sliding"

    def _call(self, command, *words):
        return self.get_connection().execute_command(f"RL.{command}", *words)

    def _peek_fixed(self, key):
        return self._call("PEEK", self._keys(key)[0], "FIXEDWINDOW", UNLIMITED, window_of(key), "COST", 0)

    def incr(self, key, expiry, amount=1):
        _, limit, remaining, *_ = self._call(
            "FIXEDWINDOW", self._keys(key)[0], UNLIMITED, expiry * 1000, "COST", amount
        )
        return limit - remaining

    def get(self, key):
        _, limit, remaining, *_ = self._peek_fixed(key)
        return limit - remaining

    def get_expiry(self, key):
        return time.time() + self._peek_fixed(key)[4] / 1000

    def acquire_entry(self, key, limit, expiry, amount=1):
        return self._call("SLIDINGLOG", self._keys(key)[1], limit, expiry * 1000, "COST", amount)[0] == 0

    def get_moving_window(self, key, limit, expiry):
        call = "PEEK", self._keys(key)[1], "SLIDINGLOG", limit, expiry * 1000, "COST"
        remaining, retry = self._call(*call, 0)[2], expiry * 1000
        if remaining < limit:
            # One more than there is room for has to wait for the oldest to leave.
            limited, _, _, wait, _ = self._call(*call, remaining + 1)
            retry = wait if limited else 0
        return time.time() + retry / 1000 - expiry, limit - remaining

    def acquire_sliding_window_entry(self, key, limit, expiry, amount=1):
        return self._call("SLIDINGWINDOW", self._keys(key)[2], limit, expiry * 1000, "COST", amount)[0] == 0

    def get_sliding_window(self, key, expiry):
        pipeline = self.get_connection().pipeline(transaction=False)
        pipeline.execute_command("RL.INFO", self._keys(key)[2])
        pipeline.time()
        figures, (now, micros) = pipeline.execute()
        if not figures:
            return 0, 0.0, 0, 0.0
        figures = figures if isinstance(figures, dict) else dict(zip(figures[::2], figures[1::2]))
        now += micros / 1e6
        past = int(now / expiry) - figures[b"last_charge_us"] // 1_000_000 // expiry
        counts = [figures[b"previous"], figures[b"current"], 0, 0]
        previous, current = counts[past : past + 2] if past < 3 else (0, 0)
        rest = expiry - now % expiry
        return previous, rest if previous else 0.0, current, rest + expiry if current else 0.0

    def clear(self, key):
        self.get_connection().delete(*self._keys(key))

    def clear_sliding_window(self, key, expiry):
        self.clear(key)

    def reset(self):
        """Deletes what has the prefix, without stopping the server for it."""
        connection = self.get_connection()
        keys = connection.scan_iter(self.prefixed_key("*"), count=1000)
        deleted = 0
        while some := list(islice(keys, 1000)):
            deleted += connection.unlink(*some)
        return deleted
