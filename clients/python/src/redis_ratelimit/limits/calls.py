"""What the storages for `limits` send to the server, and what they read in the replies. A method of a storage is a
generator here: it yields calls that belong together and is sent their replies, so that the synchronous and the
asynchronous storage share it.
"""

import re
import time
from collections.abc import Generator, Mapping, Sequence
from typing import TypeAlias, TypeVar, cast

from limits.limits import GRANULARITIES

Word: TypeAlias = str | int
Call: TypeAlias = tuple[Word, ...]
T = TypeVar("T")
Steps: TypeAlias = Generator[Sequence[Call], Sequence[object], T]

# `incr` and `get` do not get the limit: the strategy compares. So they count up to the module's largest limit.
LARGEST = 2**53 - 1
# A full counter is over every limit. This is the largest count of limits' own storage.
OVER_EVERY_LIMIT = 2**63 - 1


def incr(key: str, expiry: int, amount: int) -> Steps[int]:
    # FORCE: a hit over the limit counts, too.
    call = "RL.FIXEDWINDOW", fixed(key), LARGEST, f"{expiry}s", "COST", amount, "FORCE"
    (reply,) = yield [call]
    return _counted(reply)[0]


def fixed_window(key: str) -> Steps[tuple[int, float]]:
    """Returns the count, and the seconds until the window ends."""
    window = _window_of(key)
    if window is None:
        (info,) = yield [("RL.INFO", fixed(key))]
        window = _figures(info).get("length_ms")
    if window is None:
        return 0, 0.0
    (reply,) = yield [("RL.PEEK", fixed(key), "FIXEDWINDOW", LARGEST, f"{window}ms", "COST", 0)]
    return _counted(reply)


def acquire_entry(key: str, limit: int, expiry: int, amount: int) -> Steps[bool]:
    return _acquire("RL.SLIDINGLOG", moving(key), limit, expiry, amount)


def acquire_sliding_window_entry(key: str, limit: int, expiry: int, amount: int) -> Steps[bool]:
    return _acquire("RL.SLIDINGWINDOW", sliding(key), limit, expiry, amount)


def _acquire(command: str, key: str, limit: int, expiry: int, amount: int) -> Steps[bool]:
    # The module has no limit below 1 and no cost above LARGEST.
    if amount > limit or limit < 1:
        return amount <= limit
    (reply,) = yield [(command, key, limit, f"{expiry}s", "COST", amount)]
    return _integers(reply)[0] == 0


def moving_window(key: str, limit: int, expiry: int) -> Steps[tuple[float, int]]:
    """Returns the Unix time at which the window starts, and the number of entries in it."""
    if limit < 1:
        return time.time(), 0
    look = "RL.PEEK", moving(key), "SLIDINGLOG", limit, f"{expiry}s", "COST"
    (reply,) = yield [(*look, 0)]
    remaining, wait = _integers(reply)[2], expiry * 1000
    if remaining < limit:
        # One more than there is room for waits for the oldest entry to leave.
        (reply,) = yield [(*look, remaining + 1)]
        limited, _, _, retry, _ = _integers(reply)
        wait = retry if limited else 0
    return time.time() + wait / 1000 - expiry, limit - remaining


def sliding_window(key: str, expiry: int) -> Steps[tuple[int, float, int, float]]:
    """Returns count and seconds to live of the previous window, and of the current one. RL.INFO has the counts as the
    last charge left them. The reset of RL.PEEK shows how many windows have ended since."""
    look = "RL.PEEK", sliding(key), "SLIDINGWINDOW", LARGEST, f"{expiry}s", "COST", 0
    info, reply = yield [("RL.INFO", sliding(key)), look]
    figures, reset = _figures(info), _integers(reply)[4] / 1000
    previous, current = figures.get("previous", 0), figures.get("current", 0)
    if reset > expiry:
        return previous, reset - expiry if previous else 0.0, current, reset
    if reset > 0:
        return current or previous, reset, 0, 0.0
    return 0, 0.0, 0, 0.0


def check() -> Steps[bool]:
    # A server without the module is not healthy, so PING is not enough.
    yield [("RL.PEEK", "check", "FIXEDWINDOW", 1, "1s", "COST", 0)]
    return True


# A key for each strategy, so that RL.INFO has the figures of one. And none is a key of limits' own storage, so that
# both can be in use while a service moves over.
def fixed(key: str) -> str:
    return f"{key}/fixed"


def moving(key: str) -> str:
    return f"{key}/moving"


def sliding(key: str) -> str:
    return f"{key}/sliding"


def keys(key: str) -> tuple[str, str, str]:
    return fixed(key), moving(key), sliding(key)


def pattern(prefix: str) -> str:
    """Returns the pattern of SCAN for all keys with this prefix, taken literally."""
    return re.sub(r"([*?\[\]\\])", r"\\\1", prefix) + "*"


def only_looks(calls: Sequence[Call]) -> bool:
    return all(call[0] in ("RL.PEEK", "RL.INFO") for call in calls)


def _window_of(key: str) -> int | None:
    """Returns the window in ms: a key of `RateLimitItem.key_for` ends in it."""
    *_, multiples, granularity = f"//{key}".rsplit("/", 2)
    if granularity not in GRANULARITIES or not multiples.isdecimal():
        return None
    return int(multiples) * GRANULARITIES[granularity].GRANULARITY.seconds * 1000


def _integers(reply: object) -> list[int]:
    return cast(list[int], reply)


def _counted(reply: object) -> tuple[int, float]:
    _, limit, remaining, _, reset = _integers(reply)
    return limit - remaining if remaining else OVER_EVERY_LIMIT, reset / 1000


def _figures(reply: object) -> dict[str, int]:
    """The fields of RL.INFO: a map with RESP3 and else a list, of bytes or, with `decode_responses`, of strings."""
    if isinstance(reply, Mapping):
        fields = cast(Mapping[bytes | str, int], reply)
    else:
        words = cast(list[bytes | str], reply or [])
        fields = dict(zip(words[::2], cast(list[int], words[1::2]), strict=True))
    return {name.decode() if isinstance(name, bytes) else name: value for name, value in fields.items()}
