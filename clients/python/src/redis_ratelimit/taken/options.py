"""The options of a limiter, checked when it is made."""

from __future__ import annotations

from ..call.errors import ConfigurationError
from ..call.values import Seconds, seconds
from ..decide.breaker import Breaker
from ..decide.core import Core, Fail
from ..decide.refusals import RefusalCache
from .taken import Taken


class Options:
    """What limiters for threads and for asyncio share.

    Attributes:
        core: The counters, the breaker, the cache and the log.
        taken: The leases and holds to end if the limiter closes.
        prefix: What stands before each key.
        timeout: The seconds after which a call is given up.
    """

    def __init__(
        self, prefix: str, fail: Fail, timeout: Seconds, breaker: Breaker | None, cache: RefusalCache | None
    ) -> None:
        if not isinstance(prefix, str):
            raise ConfigurationError(f"prefix must be text, not {prefix!r}")
        self.core = Core(fail, breaker, cache)
        self.taken = Taken()
        self.prefix = prefix
        self.timeout = seconds("timeout", timeout)

    @property
    def fail(self) -> Fail:
        """What a limit decides without an answer: `"open"` or `"closed"`."""
        return self.core.fail

    @property
    def counters(self) -> dict[str, int]:
        """What has happened so far.

        `asked` is the number of decisions, of which were `allowed` and `refused` by the server or by the cache
        (`cached`), and `failed_open` and `failed_closed` without an answer. `unavailable` is the number of calls without an
        answer, `wrong_calls` of those with an error reply. `breaker_opened`, `leases_lost` and `releases_retried` say what
        went on besides. `releases_retried` counts settlements too.
        """
        return self.core.counters.snapshot()
