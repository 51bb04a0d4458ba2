"""The limiter for asyncio."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from .call import calls, endings, questions
from .call.adapt import Adapt, Drops
from .call.call import Call, OpenOrClosed
from .call.limit import LimiterLike, LimitLike, is_policy
from .call.manner import Manner, bound
from .call.steady import HOLD
from .call.values import Duration, Key, Seconds, check_duration, function
from .commands import AsyncCommands
from .decide.breaker import Breaker
from .decide.core import Fail
from .decide.decision import AskDecision, Decision, MultiDecision
from .decide.hooks import OnDecision, OnError
from .decide.refusals import RefusalCache
from .decide.replies import help_
from .local.local import AsyncLocal, AsyncLocals
from .runtime import AsyncRuntime
from .taken.charge import Charge
from .taken.connected import AsyncConnected
from .taken.endings import Ending
from .taken.hold import AsyncBudget
from .taken.lease import AsyncLease
from .wire.clients import AsyncClient
from .wire.ready import checks_of, readying
from .wire.source import WAITS


class AsyncRateLimiter:
    """Asks limits, and decides what happens if the server does not answer.

    It takes address, credentials and `max_connections` of the given client, and has connections of its own: with a short
    time-out and without retries, since a lost call may have been charged. Calls that wait in the server do not count among
    `max_connections`, which is 50 by default. It is an asynchronous context manager.

    A method raises a `ConfigurationError` if a value is wrong, and a `CallError` if the server rejects the call, as for a key of
    another type or without such a policy.

    Args:
        redis: A client of redis.asyncio, plain or of a cluster.
        prefix: What stands before each key.
        fail: What a limit decides without an answer: `"open"` lets requests pass, `"closed"` does not, and a `Share` lets
            each process admit its share of the limit.
        timeout: The seconds after which a call is given up.
        connect_timeout: The seconds for which a call waits at most for a connection, and then for the connection to open. It
            is at least `timeout`.
        breaker: After how many calls without an answer the server is left alone for a while. None: never.
        cache: A cache of refusals in this process.
        read_from_replicas: Whether replicas of a cluster answer probes (`peek`, and the read-only commands).
        max_waits: How many calls wait in the servers at once, each on a connection of its own. A further one has no answer.
        on_decision: Called with each counted decision and an `Asked`: the command, the key and the seconds. It must not wait.
        on_error: Called with each `Unavailable` and `CallError`, those of calls in the background too. It must not wait.

    Attributes:
        commands: The raw commands, on the limiter's connections. Errors are those of redis-py.

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
        connect_timeout: Seconds = 1.0,
        breaker: Breaker | None = Breaker(),
        cache: RefusalCache | None = None,
        read_from_replicas: bool = False,
        max_waits: int = WAITS,
        on_decision: OnDecision | None = None,
        on_error: OnError | None = None,
    ) -> None:
        function("on_decision", on_decision)
        function("on_error", on_error)
        more = breaker, cache, read_from_replicas, max_waits, self._runtime()
        self._connected = AsyncConnected(redis, prefix, fail, timeout, connect_timeout, *more)
        self._core = self._connected.core
        self._core.hooks.on_decision += [] if on_decision is None else [on_decision]
        self._core.hooks.on_error += [] if on_error is None else [on_error]
        self._locals = AsyncLocals(self._connected)
        self.commands = AsyncCommands(self._connected, prefix)

    def _runtime(self) -> AsyncRuntime:
        """Returns clock, timers, ids and connections. Tests have their own."""
        return AsyncRuntime()

    @property
    def counters(self) -> dict[str, int]:
        """What has happened so far in this process.

        `asked` is the number of decisions, of which were `allowed` and `refused` by the server or by the cache
        (`cached`) or from memory (`answered_locally`), and `failed_open`, `failed_closed`, `insured_allowed` and
        `insured_refused` without an answer. `unavailable` is the number of calls without an
        answer, `wrong_calls` of those with an error reply. `misconfigured` counts what had no answer because
        the credentials are wrong or the module is missing. `breaker_opened`, `leases_lost` and `releases_retried` say what
        went on besides. `releases_retried` counts settlements too. Local limits have made `fetches`, which granted
        `fetched`, of which they have `forgotten` what was not spent in time.
        """
        return self._core.counters.snapshot()

    async def limit(
        self,
        key: Key,
        limiter: LimiterLike,
        cost: int = 1,
        wait: Duration | None = None,
        *,
        partial: bool = False,
        force: bool = False,
        reserve: bool | Duration = False,
        hold: tuple[str, Duration] | None = None,
        timeout: Seconds | None = None,
        fail: OpenOrClosed | None = None,
        tenant: str | None = None,
        weight: int | None = None,
        critical: bool = False,
    ) -> Decision:
        """Asks a limit, and charges it if it admits.

        Args:
            key: The key, named after what is limited, such as `"user:1"`.
            limiter: The limiter, or a rate such as `"10/s"`.
            cost: How much the request takes; 0 only looks.
            wait: How long to wait in the server until the request is admitted, on a connection of its own.
            partial: Whether as much is charged as fits. `granted` says how much that is.
            force: Whether the cost is charged in any case, so that the limit may be exceeded.
            reserve: Whether the cost is booked ahead: True, or the longest time ahead. `retry_after` says when to begin.
            hold: An id for each piece of work and a ttl, under which what is charged is held until it is settled.
            timeout: The seconds after which this call is given up, in place of the limiter's.
            fail: What is decided without an answer, in place of the limiter's.
            tenant: Who shares the limit fairly with other tenants while they wait.
            weight: The share of the tenant (1 to 1000). Without it the tenant keeps the one that it has, at first 1.
            critical: With `wait`: whether it waits in front of all calls that are not critical.
        """
        manner = Manner(partial, force, reserve)
        told = wait, hold, manner, tenant, weight, critical
        question = questions.limit(self._connected.prefix, key, limiter, cost, *told)
        return await self._connected.decide(question, Decision, timeout, fail)

    async def limits(
        self,
        keys: Sequence[Key],
        limits: Sequence[LimitLike],
        cost: int = 1,
        wait: Duration | None = None,
        *,
        force: bool = False,
        hold: tuple[str, Duration] | None = None,
        timeout: Seconds | None = None,
        fail: OpenOrClosed | None = None,
        critical: bool = False,
    ) -> MultiDecision:
        """Asks several limits at once, and charges them if all admit.

        Args:
            keys: The keys. On a cluster they share a slot.
            limits: The limits, each for all keys unless a `Limit` says otherwise.
            cost: How much the request takes of limits without a cost of their own.
            wait: How long to wait in the server until the request is admitted.
            force: Whether the cost is charged in any case, so that limits may be exceeded.
            hold: An id for each piece of work and a ttl, under which what is charged is held until it is settled.
            timeout, fail: As of `limit`.
            critical: As of `limit`. Leases among the limits may then take what is reserved.
        """
        question = questions.limits(self._connected.prefix, keys, limits, cost, wait, hold, force, critical)
        return await self._connected.decide(question, MultiDecision, timeout, fail)

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
        force: bool = False,
        hold: tuple[str, Duration] | None = None,
        timeout: Seconds | None = None,
        fail: OpenOrClosed | None = None,
        tenant: str | None = None,
        weight: int | None = None,
        critical: bool = False,
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
            force: Whether the cost is charged in any case, so that limits may be exceeded.
            hold: An id for each piece of work and a ttl, under which what is charged is held until it is settled.
            timeout, fail, tenant, weight: As of `limit`.
            critical: As of `limits`.
        """
        question = questions.ask(
            self._connected.prefix, key, policy, cost, lease_id, keys, full, wait, hold, force, tenant, weight, critical
        )
        return await self._connected.decide(question, AskDecision, timeout, fail)

    async def peek(
        self,
        key: Key,
        limiter_or_policy: LimiterLike,
        cost: int = 1,
        *,
        lease_id: str | None = None,
        keys: Sequence[Key] = (),
        timeout: Seconds | None = None,
        fail: OpenOrClosed | None = None,
    ) -> Decision:
        """Returns what `limit` or `ask` would return, and charges nothing.

        Args:
            key: The key.
            limiter_or_policy: A limiter, a rate, or the name of a policy. A name has no slash and no space.
            cost: How much the request would take.
            lease_id: The id of a lease, for policies with leases. A `Concurrent` has its own.
            keys: The keys 2, 3 and so on, for policies with limits on them.
            timeout, fail: As of `limit`.
        """
        question = questions.peek(self._connected.prefix, key, limiter_or_policy, cost, lease_id, keys)
        kind = AskDecision if is_policy(limiter_or_policy) else Decision
        return await self._connected.decide(question, kind, timeout, fail)

    async def explain(
        self,
        key: Key,
        limiter_or_policy: LimiterLike,
        cost: int = 1,
        *,
        lease_id: str | None = None,
        keys: Sequence[Key] = (),
        timeout: Seconds | None = None,
    ) -> list[str]:
        """Returns in sentences what `limit` or `ask` would return now, and why. They are for people, and may change.

        Args:
            key, limiter_or_policy, cost, lease_id, keys: As of `peek`.
            timeout: As of `limit`.

        Raises:
            Unavailable: There is no answer, whatever `fail` says.
        """
        call = questions.explain(self._connected.prefix, key, limiter_or_policy, cost, lease_id, keys)
        bound(call, timeout, None)
        return help_(await self._connected.ask(call))

    async def refund(
        self,
        key: Key,
        limiter: LimiterLike,
        cost: int = 1,
        *,
        timeout: Seconds | None = None,
        fail: OpenOrClosed | None = None,
    ) -> Decision:
        """Gives back what was charged and not used. Returns how the limit stands after it.

        Args:
            key: The key.
            limiter: The limiter or the rate that was charged. Leases and turns are not given back in this way.
            cost: How much is given back.
            timeout, fail: As of `limit`.
        """
        question = questions.refund(self._connected.prefix, key, limiter, cost)
        return await self._connected.decide(question, Decision, timeout, fail)

    async def reset(self, key: Key) -> bool:
        """Deletes a key of the module with all its limits. Returns whether there was one.

        Raises:
            CallError: The key is of another type.
            Unavailable: There is no answer, whatever `fail` says.
        """
        look = calls.info(self._connected.prefix, key)
        if await self._connected.ask(look) is None:  # an error if the key is of another type
            return False
        return await self._connected.ask(Call(["UNLINK", *look.keys], look.keys)) == 1

    def local(self, key: Key, limit: LimiterLike, hold: Duration = HOLD, *, processes: int) -> AsyncLocal:
        """Returns a limit that this process answers from memory. The same arguments return the same one.

        Args:
            key: The key of what is limited.
            limit: A rate such as `"10000/s"`, a `Gcra`, or a `TokenBucket` without `batch`.
            hold: For how long what was taken may be spent.
            processes: How many processes ask this limit. Each takes at most this part of it at once, and admits this part
                of it while the server does not answer.

        Raises:
            ConfigurationError: A value is wrong, or the limit cannot be answered locally.
        """
        return self._locals.find(key, limit, hold, processes)

    def lease(
        self,
        key: Key,
        capacity: int,
        ttl: Duration,
        *,
        wait: Duration | None = None,
        cost: int = 1,
        renew: bool = True,
        reserved: int | None = None,
        critical: bool = False,
        fence: bool = False,
        timeout: Seconds | None = None,
        fail: OpenOrClosed | None = None,
        tenant: str | None = None,
        weight: int | None = None,
        on_lost: Callable[[], object] | None = None,
        adapt: bool | Adapt = False,
        drops: Drops = (),
    ) -> AsyncLease:
        """Returns a context manager that takes a lease and releases it.

        Args:
            key: The key of what is limited.
            capacity: The most leases that are held at once.
            ttl: How long the lease lasts unless it is renewed.
            wait: How long to wait in the server for a lease.
            cost: How much of the capacity the lease takes.
            renew: Whether the lease is renewed in the background every third of its ttl.
            reserved: How much of the capacity is only for critical leases.
            critical: Whether the lease may take what is reserved, and waits in front of those that are not critical.
            fence: Whether the lease has a fencing token, its `fence`.
            timeout, fail, tenant, weight: As of `limit`.
            on_lost: Called once if the lease is lost while it is held: the `set` of an event, or the `cancel` of a task. For threads
                it is called in a thread of the limiter.
            adapt: Whether the limit adapts from how the work ends, at most `capacity`. Without `drops`, `slow` or
                `gradient` it only grows.
            drops: With `adapt`: which errors that leave the block lower the limit, such as time-outs: a class, several, or a
                function of the error. Other errors change nothing, nor does a cancellation. An error of the function itself is
                logged, and the one of the block leaves it.

        Raises:
            Refused: On entering: there is no room. `decision` says when to try again.
            Unavailable: On entering: there is no answer, and the limiter fails closed. If it fails open, the work goes on
                without a certain lease, and `held` is False.
            CallError: On entering: the call is wrong.
        """
        bounds = wait, cost, renew, reserved, critical, fence, timeout, fail, tenant, weight, on_lost, adapt, drops
        return AsyncLease(self._connected, key, capacity, ttl, *bounds)

    def budget(
        self, key: Key, limiter_or_policy: LimiterLike, ttl: Duration = "10m", *, keys: Sequence[Key] = ()
    ) -> AsyncBudget:
        """Returns a limit on what work costs, where the cost is known only afterwards.

        Args:
            key: The key of what is limited.
            limiter_or_policy: A limiter, a rate such as `"90000/m"`, or the name of a policy.
            ttl: For how long an estimate can be settled: longer than the longest work. After it the estimate stands.
            keys: The keys 2, 3 and so on, for policies with limits on them.
        """
        charge = Charge(self._core, self._connected.prefix, key, limiter_or_policy, ttl, keys)
        return AsyncBudget(self._connected, charge)

    async def release(self, keys: Sequence[Key], id: str, within: Duration, *, certain: bool = True) -> None:
        """Releases leases of one id that `limit`, `limits` or `ask` took. Without an answer it is repeated in the background.

        Args:
            keys: The keys of the leases.
            id: The id.
            within: The longest ttl of the leases, after which the server ends them by itself.
            certain: Whether they were surely taken. Else they may still be, so that it is repeated until it ended one.
        """
        await self._end(endings.release(self._connected.prefix, keys, id), within, certain)

    async def settle(
        self,
        keys: Sequence[Key],
        limits: Sequence[LimitLike],
        id: str,
        within: Duration,
        *,
        cost: int = 1,
        certain: bool = True,
    ) -> None:
        """Settles what `limit` or `limits` held. Without an answer it is repeated in the background.

        Args:
            keys: The keys.
            limits: The limits.
            id: The id of the hold.
            within: The ttl of the hold.
            cost: The actual cost of limits without a cost of their own.
            certain: Whether it was surely held. Else it may still be, so that it is repeated until it settled something.
        """
        await self._end(endings.settle(self._connected.prefix, keys, limits, id, cost), within, certain)

    async def settle_ask(
        self,
        key: Key,
        policy: str,
        id: str,
        cost: int,
        within: Duration,
        *,
        lease_id: str | None = None,
        keys: Sequence[Key] = (),
        certain: bool = True,
    ) -> None:
        """Settles what `ask` held. Without an answer it is repeated in the background.

        Args:
            key: The first key.
            policy: The name of the policy.
            id: The id of the hold.
            cost: The actual cost.
            within: The ttl of the hold.
            lease_id: The id of a lease, for policies with leases.
            keys: The keys 2, 3 and so on, for policies with limits on them.
            certain: Whether it was surely held. Else it may still be, so that it is repeated until it settled something.
        """
        await self._end(endings.settle_ask(self._connected.prefix, key, policy, id, cost, lease_id, keys), within, certain)

    async def ready(self, *limits: LimitLike, policies: Sequence[str] = (), required: bool = False) -> bool:
        """Asks the server whether limits, policies and the rules of this limiter's gates are right. Nothing is charged.

        Call it at start. Requests never wait for it.

        Args:
            limits: Limiters, limits or rates that will be asked.
            policies: Names of policies that will be asked.
            required: Whether a server that does not answer is an error too. Else it is only logged.

        Returns:
            Whether the server answered. On a cluster all primaries are asked.

        Raises:
            ConfigurationError: The module is not loaded, or a limit, a rule or a policy is wrong.
            Unavailable: There is no answer, and `required` is True.
        """
        connected = self._connected
        checks = checks_of(limits, [check for gate in connected.gates for check in gate()], policies)
        return await connected.run(readying(self._core, connected.channel.slots, connected.prefix, checks, required))

    async def close(self) -> None:
        """Releases the leases that are held, settles what is held, and closes the connections.

        Calls that wait in the server, and new ones, raise `Closed`. Other calls that are under way are waited for, at most for
        `connect_timeout` and `timeout`. Each release or settlement is tried once. Without an answer a lease ends by its ttl.
        Leaving a lease or a hold afterwards does nothing. A second call of `close` waits for the first.
        """
        await self._connected.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _end(self, call: Call, within: Duration, certain: bool) -> None:
        ttl = check_duration("within", within, 1) / 1000
        await self._connected.run(Ending(self._core, call, ttl, certain).tried(self._connected.background))
