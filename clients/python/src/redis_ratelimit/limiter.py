"""The limiter for asyncio."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .call import questions
from .call.call import Call
from .call.limit import LimiterLike, LimitLike
from .call.rate import is_policy
from .call.values import Duration, Key, Seconds, milliseconds
from .decide.breaker import Breaker
from .decide.core import Fail
from .decide.decision import AskDecision, Decision, MultiDecision
from .decide.refusals import RefusalCache
from .taken.charge import Charge
from .taken.connected import AsyncConnected
from .taken.endings import Ending
from .taken.hold import AsyncBudget
from .taken.lease import AsyncLease
from .taken.outside import AsyncOutside
from .wire.clients import AsyncClient
from .wire.verify import verifying


class AsyncRateLimiter(AsyncConnected):
    """Asks limits, and decides what happens if the server does not answer.

    It takes address and credentials of the given client, and has connections of its own: with a short time-out and without
    retries, since a lost call may have been charged. It is an asynchronous context manager.

    Args:
        redis: A client of redis.asyncio, plain or of a cluster.
        prefix: What stands before each key.
        fail: What a limit decides without an answer: `"open"` lets requests pass, `"closed"` does not.
        timeout: The seconds after which a call is given up.
        breaker: After how many calls without an answer the server is left alone for a while. None: never.
        cache: A cache of refusals in this process.
        read_from_replicas: Whether replicas of a cluster answer probes (`peek`, and the read-only commands).
        outside: Clock, timers, ids and connections, for tests.

    Raises:
        ConfigurationError: A value is wrong.
    """

    def __init__(
        self,
        redis: AsyncClient,
        *,
        prefix: str = "",
        fail: Fail = "open",
        timeout: Seconds = 0.1,
        breaker: Breaker | None = Breaker(),
        cache: RefusalCache | None = None,
        read_from_replicas: bool = False,
        outside: AsyncOutside | None = None,
    ) -> None:
        super().__init__(redis, prefix, fail, timeout, breaker, cache, read_from_replicas, outside)

    async def limit(self, key: Key, limiter: LimiterLike, cost: int = 1, wait: Duration | None = None) -> Decision:
        """Asks a limit, and charges it if it admits.

        Args:
            key: The key, named after what is limited, such as `"user:1"`.
            limiter: The limiter, or a rate such as `"10/s"`.
            cost: How much the request takes; 0 only looks.
            wait: How long to wait in the server until the request is admitted, on a connection of its own.

        Raises:
            ConfigurationError: A value is wrong.
            CallError: The server rejects the call, as for a key of another type.
        """
        return await self._decide(questions.limit(self.prefix, key, limiter, cost, wait), Decision)

    async def limits(
        self,
        keys: Sequence[Key],
        limits: Sequence[LimitLike],
        cost: int = 1,
        wait: Duration | None = None,
        *,
        hold: tuple[str, Duration] | None = None,
    ) -> MultiDecision:
        """Asks several limits at once, and charges them if all admit.

        Args:
            keys: The keys. On a cluster they share a slot.
            limits: The limits, each for all keys unless a `Limit` says otherwise.
            cost: How much the request takes of limits without a cost of their own.
            wait: How long to wait in the server until the request is admitted.
            hold: An id and a ttl, under which what is charged is held until it is settled.

        Raises:
            ConfigurationError: A value is wrong.
            CallError: The server rejects the call.
        """
        return await self._decide(questions.limits(self.prefix, keys, limits, cost, wait, hold), MultiDecision)

    async def ask(
        self,
        key: Key,
        policy: str,
        cost: int = 1,
        lease_id: str | None = None,
        keys: Sequence[Key] = (),
        full: bool = False,
        wait: Duration | None = None,
        *,
        hold: tuple[str, Duration] | None = None,
    ) -> AskDecision:
        """Asks the limits of a policy, and charges them if all admit.

        Args:
            key: The first key.
            policy: The name of the policy.
            cost: How much the request takes of limits without a cost of their own.
            lease_id: The id of a lease, for policies with leases.
            keys: The keys 2, 3 and so on, for policies with limits on them.
            full: Whether the decision has the answer of each limit.
            wait: How long to wait in the server until the request is admitted.
            hold: An id and a ttl, under which what is charged is held until it is settled.

        Raises:
            ConfigurationError: A value is wrong.
            CallError: The server rejects the call, as without such a policy.
        """
        question = questions.ask(self.prefix, key, policy, cost, lease_id, keys, full, wait, hold)
        return await self._decide(question, AskDecision)

    async def peek(self, key: Key, limiter_or_policy: LimiterLike, cost: int = 1) -> Decision:
        """Returns what `limit` or `ask` would return, and charges nothing. A name of a policy has no slash and no space."""
        if is_policy(limiter_or_policy):
            return await self._decide(questions.peek_policy(self.prefix, key, limiter_or_policy, cost), AskDecision)
        return await self._decide(questions.peek(self.prefix, key, limiter_or_policy, cost), Decision)

    async def refund(self, key: Key, limiter: LimiterLike, cost: int = 1) -> Decision:
        """Gives back what was charged and not used. Returns how the limit stands after it."""
        return await self._decide(questions.refund(self.prefix, key, limiter, cost), Decision)

    def lease(
        self, key: Key, capacity: int, ttl: Duration, *, wait: Duration | None = None, cost: int = 1, renew: bool = True
    ) -> AsyncLease:
        """Returns a context manager that takes a lease and releases it.

        Args:
            key: The key of what is limited.
            capacity: The most leases that are held at once.
            ttl: How long the lease lasts unless it is renewed.
            wait: How long to wait in the server for a lease.
            cost: How much of the capacity the lease takes.
            renew: Whether the lease is renewed in the background every third of its ttl.

        Raises:
            Refused: On entering: there is no room. `decision` says when to try again.
            Unavailable: On entering: there is no answer, and the limiter fails closed. If it fails open, the work goes on
                without a certain lease, and `held` is False.
            CallError: On entering: the call is wrong.
        """
        return AsyncLease(self, key, capacity, ttl, wait, cost, renew)

    def budget(self, key: Key, limiter_or_policy: LimiterLike, ttl: Duration = "10m") -> AsyncBudget:
        """Returns a limit on what work costs, where the cost is known only afterwards.

        Args:
            key: The key of what is limited.
            limiter_or_policy: A limiter, a rate such as `"90000/m"`, or the name of a policy.
            ttl: For how long an estimate can be settled: longer than the longest work. After it the estimate stands.
        """
        return AsyncBudget(self, Charge(self.prefix, key, limiter_or_policy, ttl))

    async def finish(self, call: Call, ended: Callable[[object], bool], ttl: Duration, *, certain: bool = True) -> None:
        """Sends a release or a settlement, and repeats it in the background if there is no answer. For middleware.

        Args:
            call: The release or the settlement.
            ended: Whether a reply says that something was ended.
            ttl: For how long the lease or the hold lasts.
            certain: Whether the lease or the hold was surely taken. Else it may still be, so that the call is repeated until
                it ended something.
        """
        ending = Ending(self.core, call, ended, milliseconds("ttl", ttl) / 1000, certain)
        if certain:
            await self.run(ending.tried(self.background))
        else:
            self.background.add(ending, 0.0)

    async def verify(self, *limits: LimitLike, policies: Sequence[str] = (), required: bool = False) -> bool:
        """Asks the server whether limits and policies are right. Nothing is charged.

        Args:
            limits: Limiters, limits or rates that will be asked.
            policies: Names of policies that will be asked.
            required: Whether a server that does not answer is an error too. Else it is only logged.

        Returns:
            Whether the server answered. On a cluster all primaries are asked.

        Raises:
            ConfigurationError: The module is not loaded, or a limit or a policy is wrong.
            Unavailable: There is no answer, and `required` is True.
        """
        return await self.run(verifying(self.core, self.nodes.slots, self.prefix, limits, policies, required))
