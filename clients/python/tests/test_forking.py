"""The child of a fork has none of its parent's threads. Threads of the parent hold all locks at the fork."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
import redis

from both import inside
from fakes import core, timetable
from gates import gate, passed, rule
from redis_ratelimit import Breaker, RateLimiter, RefusalCache
from redis_ratelimit.call.call import Call
from redis_ratelimit.decide.refusals import Refusals
from redis_ratelimit.taken.background import Background
from redis_ratelimit.taken.jobs import Job
from servers import Cluster, Server, eventually

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")


@contextmanager
def held_by_a_thread(*locks: Any) -> Generator[None]:
    """Another thread holds the locks, and all that semaphores give."""
    held, over = threading.Event(), threading.Event()

    def hold() -> None:
        with ExitStack() as stack:
            for lock in locks:
                taken = getattr(lock, "_value", 1)
                for _ in range(taken):
                    stack.enter_context(lock)
            held.set()
            over.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(60)
    try:
        yield
    finally:
        over.set()
        holder.join()


def in_a_child(work: Callable[[], None]) -> None:
    """Runs the work in a child, and checks that it ends without an exception."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    ended: list[tuple[int, int]] = []

    def has_ended() -> bool:
        ended.append(os.waitpid(child, os.WNOHANG))
        return ended[-1][0] == child

    try:
        eventually(has_ended, "the end of the child")
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    assert ended[-1][1] == 0, "the child failed"


def test_a_fork_has_locks_and_jobs_of_its_own() -> None:
    done: list[Job] = []

    def perform(jobs: Sequence[Job]) -> list[None]:
        done.extend(jobs)
        return [None] * len(jobs)

    background = Background(timetable(), perform)
    theirs, mine = Job(Call(["RL.RELEASE"])), Job(Call(["RL.RELEASE"]))
    background.add(theirs, 600.0)
    own = core("open", Breaker(), RefusalCache())
    theirs.call.asked = "a server"
    own.lost(theirs.call, "a server", 1, redis.TimeoutError())
    own.counters.add("asked", n=5)
    refusals = Refusals(RefusalCache())
    locks: list[Any] = [background._changed, own.counters._lock, own.log._lock, refusals._lock]  # pyright: ignore
    locks += [circuit._lock for circuit in own._circuits.values()]  # pyright: ignore

    def work() -> None:
        background.add(mine, 0.0)
        eventually(lambda: done == [mine], "the job")
        own.counters.add("asked")
        counted = own.counters.snapshot()
        assert counted["asked"] == 1 and counted["unavailable"] == 0, counted
        own.log.warn("a kind", 0.0, "a line")
        own.leave(theirs.call, "a server", 1)
        refusals.forget(b"a")

    with held_by_a_thread(*locks):
        in_a_child(work)
    background.close()
    assert done == []


def locks_of(link: Any) -> list[Any]:
    """The locks of a server's connections, and those that redis-py has in its pools."""
    opened = link._opened
    return [opened.room._lock, opened.turn._lock, opened.pool._lock, link._lock, link._pool._lock]


def test_connections_of_a_fork_are_its_own(server: Server, key: str) -> None:
    with RateLimiter(redis.Redis(port=server.port), prefix=f"{key}:", timeout=5.0) as limiter:
        assert limiter.limit("a", "9/h", wait="1s").remaining == 8
        door = gate(limiter, rule())
        locks: Any = locks_of(inside(limiter).channel._link)

        def work() -> None:
            decision = limiter.limit("a", "9/h")
            assert decision.answered and decision.remaining == 7, decision
            assert limiter.limit("a", "9/h", wait="1s").remaining == 6
            door.leave(passed(door.enter({"user": "ann"})))

        with held_by_a_thread(*locks):
            in_a_child(work)
        assert limiter.limit("a", "9/h").remaining == 5


def test_connections_of_a_fork_to_a_cluster_are_its_own(cluster: Cluster, key: str) -> None:
    client = redis.RedisCluster(host="127.0.0.1", port=cluster.port)
    with RateLimiter(client, prefix=f"{key}:", timeout=5.0) as limiter:
        assert limiter.limit("a", "9/h").remaining == 8
        channel: Any = inside(limiter).channel
        locks = [channel._links._lock, channel.slots._lock]
        for link in channel._links.all():
            locks += locks_of(link)

        def work() -> None:
            channel.slots.suspect()
            answers = [limiter.limit(f"{number}", "9/h") for number in range(9)]
            assert all(each.answered for each in answers), answers

        with held_by_a_thread(*locks):
            in_a_child(work)
    client.close()


def test_a_fork_that_closes_the_limiter_releases_no_lease_of_its_parent(server: Server, key: str) -> None:
    with RateLimiter(redis.Redis(port=server.port), timeout=5.0) as limiter, limiter.lease(key, 1, "1m") as lease:
        connected = inside(limiter)
        with held_by_a_thread(connected.taken._lock, connected._closing._lock):
            in_a_child(limiter.close)
        assert lease.held and int(server.client.execute_command("RL.RELEASE", key, lease.id)) == 1
