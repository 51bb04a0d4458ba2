"""Calls that are under way while a limiter closes take nothing, and keep no connection. `close` waits for them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import redis
import redis.asyncio

from both import Maker, inside
from gates import BUCKET, held, remaining
from redis_ratelimit import AsyncRateLimiter, RateLimiter, Unavailable
from redis_ratelimit.call.call import Call
from redis_ratelimit.decide.errors import Closed
from redis_ratelimit.taken.endings import Ending
from redis_ratelimit.wire import link_threads
from redis_ratelimit.wire.link_threads import Link
from servers import PATIENCE, Cluster, Proxy, Server, eventually, leases


def release_of(key: str) -> bytes:
    """How the release of a lease on this key begins."""
    return f"RL.RELEASE\r\n${len(key)}\r\n{key}\r\n".encode()


@pytest.mark.parametrize("wait", [None, "20s"])
async def test_a_call_whose_connection_opens_is_not_sent_after_close(
    make: Maker, server: Server, key: str, wait: str | None
) -> None:
    with Proxy(server.port, b"SETINFO") as proxy:  # the handshake is held up
        limiter = make(port=proxy.port, timeout=20.0)
        asking = asyncio.create_task(limiter.limit(key, "1/h", wait=wait))
        await asyncio.to_thread(eventually, lambda: proxy.connections, "the connection")
        await asyncio.sleep(0.1)
        await asyncio.wait_for(limiter.close(), PATIENCE)
        proxy.let_go()
        with pytest.raises(Closed):
            await asking
        with pytest.raises(Closed):
            await limiter.limit(key, "1/h")
        assert not server.client.exists(key)


async def test_a_call_that_gives_back_is_sent_though_the_limiter_closes(make: Maker, server: Server, key: str) -> None:
    with Proxy(server.port, b"SETINFO") as proxy:
        limiter = make(port=proxy.port, timeout=20.0)
        refunding = asyncio.create_task(limiter.refund(key, "1/h"))
        await asyncio.to_thread(eventually, lambda: proxy.connections, "the connection")
        closing = asyncio.create_task(limiter.close())
        await asyncio.to_thread(eventually, lambda: inside(limiter).taken.closed, "the beginning of close")
        proxy.let_go()
        assert (await refunding).answered
        await closing


def connections(server: Server, name: str) -> int:
    return [each["name"] for each in server.client.client_list()].count(name)


@pytest.mark.parametrize("wait", [None, "20s"])
async def test_a_connection_that_opens_while_the_limiter_closes_is_closed(
    server: Server, key: str, wait: str | None
) -> None:
    opening, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(connection: Any) -> None:
        await connection.on_connect()
        opening.set()
        await go_on.wait()

    client = redis.asyncio.Redis(port=server.port, client_name=key, redis_connect_func=slowly)
    limiter = AsyncRateLimiter(client, timeout=20.0)
    asking = asyncio.create_task(limiter.limit(key, "1/h", wait=wait))
    await opening.wait()
    await limiter.close()
    go_on.set()
    with pytest.raises(Closed):
        await asking
    await asyncio.to_thread(eventually, lambda: connections(server, key) == 0, "the end of the connection")
    assert not server.client.exists(key)


@pytest.mark.parametrize("wait", [None, "20s"])
def test_a_connection_that_opens_in_another_thread_is_closed(server: Server, key: str, wait: str | None) -> None:
    opening, go_on = threading.Event(), threading.Event()

    def slowly(connection: Any) -> None:
        opening.set()
        go_on.wait()
        connection.on_connect()  # redis-py connects anew after `disconnect`

    connect: Any = slowly
    limiter = RateLimiter(redis.Redis(port=server.port, client_name=key, redis_connect_func=connect), timeout=20.0)
    with ThreadPoolExecutor() as threads:
        asking = threads.submit(limiter.limit, key, "1/h", wait=wait)
        opening.wait()
        limiter.close()
        go_on.set()
        with pytest.raises(Closed):
            asking.result()
    eventually(lambda: connections(server, key) == 0, "the end of the connection")
    assert not server.client.exists(key)


def test_after_close_no_other_node_of_a_cluster_is_asked(cluster: Cluster, key: str) -> None:
    closing, opened = False, list[int]()
    opening, go_on = threading.Event(), threading.Event()

    def slowly(connection: Any) -> None:
        if closing:
            opened.append(connection.port)
            opening.set()
            go_on.wait()

    connect: Any = slowly
    client = redis.RedisCluster(host="127.0.0.1", port=cluster.port, redis_connect_func=connect)
    limiter = RateLimiter(client, timeout=20.0)
    closing = True
    with ThreadPoolExecutor() as threads:
        asking = threads.submit(limiter.limit, key, "1/h")
        opening.wait()
        limiter.close()
        go_on.set()
        with pytest.raises(Closed):
            asking.result()
    client.close()
    assert len(set(opened)) == 1


async def test_a_second_close_waits_for_the_first(make: Maker, server: Server, key: str) -> None:
    with Proxy(server.port, release_of(key)) as proxy:
        limiter = make(port=proxy.port, timeout=20.0)
        async with limiter.lease(key, 5, "1m"), limiter.lease(key, 5, "1m"):
            both = [asyncio.create_task(limiter.close())]
            await asyncio.to_thread(eventually, lambda: inside(limiter).taken.closed, "the beginning of close")
            both.append(asyncio.create_task(limiter.close()))
            done, _ = await asyncio.wait(both, timeout=0.2)
            assert not done
            proxy.let_go()
            await asyncio.gather(*both)
    assert leases(server, key) == 0
    await limiter.close()


async def test_a_close_whose_caller_is_cancelled_goes_on(server: Server, key: str) -> None:
    with Proxy(server.port, release_of(key)) as proxy:
        limiter = AsyncRateLimiter(redis.asyncio.Redis(port=proxy.port), timeout=20.0)
        async with limiter.lease(key, 5, "1m"), limiter.lease(key, 5, "1m"):
            closing = asyncio.create_task(limiter.close())
            await asyncio.to_thread(eventually, lambda: inside(limiter).taken.closed, "the beginning of close")
            closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
            proxy.let_go()
            await limiter.close()
    assert leases(server, key) == 0


@pytest.mark.parametrize("ending", ["cancelled", "in a loop that has ended", "in a loop that has stopped"])
def test_a_close_that_is_cut_off_leaves_the_next_one_alone(server: Server, key: str, ending: str) -> None:
    async def begin() -> None:
        await limiter.lease(key, 5, "1m").__aenter__()
        closing = asyncio.create_task(limiter.close())
        await asyncio.to_thread(eventually, lambda: inside(limiter).taken.closed, "the beginning of close")
        assert not closing.done()

    async def cancel() -> None:
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await close()

    async def close() -> None:
        await asyncio.wait_for(limiter.close(), PATIENCE)

    with Proxy(server.port, release_of(key)) as proxy, asyncio.Runner() as runner:
        limiter = AsyncRateLimiter(redis.asyncio.Redis(port=proxy.port), timeout=2 * PATIENCE)
        runner.run(begin())
        if ending == "cancelled":
            return runner.run(cancel())
        if ending == "in a loop that has ended":
            runner.close()
        asyncio.run(close())


def ends(work: Callable[[], None]) -> None:
    """Runs the work in a thread, and fails if it does not end."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_a_signal_handler_may_close_the_limiter_that_closes(server: Server, key: str) -> None:
    limiter = RateLimiter(redis.Redis(port=server.port), timeout=5.0)

    class Interrupted:
        def closing(self) -> list[Ending]:
            limiter.close()
            return []

    interrupted = Interrupted()
    inside(limiter).taken.add(interrupted)
    with limiter.lease(key, 5, "1m"):
        ends(limiter.close)
    assert leases(server, key) == 0


def test_a_signal_handler_may_close_the_limiter_in_a_thread_that_has_a_lock(cluster: Cluster) -> None:
    client = redis.RedisCluster(host="127.0.0.1", port=cluster.port)
    for number in range(2):
        limiter = RateLimiter(client, timeout=5.0)
        lock: Any = getattr((inside(limiter).taken, inside(limiter).channel._links)[number], "_lock")

        def interrupted() -> None:
            with lock:
                limiter.close()

        ends(interrupted)
    client.close()


def test_a_signal_handler_may_close_the_limiter_that_meets_a_new_node(
    cluster: Cluster, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Link] = []

    def interrupted(*values: Any) -> Link:
        limiter.close()
        made.append(Link(*values))
        return made[-1]

    monkeypatch.setattr(link_threads, "Link", interrupted)
    client = redis.RedisCluster(host="127.0.0.1", port=cluster.port)
    limiter = RateLimiter(client, timeout=5.0)
    with pytest.raises(Closed):
        limiter.limit(key, "1/h")
    client.close()
    assert made and all(each.closed for each in made)


async def test_close_waits_for_what_is_granted_late(
    make: Maker, server: Server, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    for call in ("lease", "hold"):
        with Proxy(server.port, key.encode()) as proxy:
            limiter = make(port=proxy.port, timeout=20.0)
            late: Any = limiter.lease(key, 5, "1m") if call == "lease" else limiter.budget(f"{key}:b", BUCKET).hold(80)
            entering = asyncio.create_task(late.__aenter__())
            await asyncio.to_thread(proxy.holds.wait, PATIENCE)
            closing = asyncio.create_task(limiter.close())
            await asyncio.to_thread(eventually, lambda: inside(limiter).taken.closed, "the beginning of close")
            done, _ = await asyncio.wait([entering, closing], timeout=0.2)
            assert not done
            proxy.let_go()
            with pytest.raises(Closed):
                await entering
            await closing
    assert leases(server, key) == 0 and caplog.text == ""
    with RateLimiter(redis.Redis(port=server.port), timeout=5.0) as bare:
        assert remaining(bare, f"{key}:b", BUCKET) == 1000 and not held(bare, f"{key}:b")


async def test_close_ends_calls_that_wait_in_the_server(make: Maker, server: Server, key: str) -> None:
    limiter = make(timeout=20.0)
    async with limiter.lease(key, 1, "10m"):
        waiting: Any = asyncio.create_task(limiter.lease(key, 1, "10m", wait="60s").__aenter__())
        await asyncio.to_thread(eventually, lambda: server.waiting() == 1, "the wait")
        server.client.config_resetstat()
        await asyncio.wait_for(limiter.close(), PATIENCE)
        with pytest.raises(Closed):
            await waiting
    assert leases(server, key) == 0 and server.waiting() == 0
    # What may have been granted is released too.
    assert server.calls("rl.release") >= 2


async def test_close_waits_for_a_call_that_never_ends_no_longer_than_for_an_answer(make: Maker) -> None:
    limiter = make(timeout=0.1)
    other = asyncio.create_task(asyncio.sleep(2 * PATIENCE))
    with inside(limiter).taken.run() as run:
        run.caller = run.caller[0], other
        await asyncio.wait_for(limiter.close(), PATIENCE)
    other.cancel()


def test_a_call_may_close_its_limiter(server: Server) -> None:
    limiter = RateLimiter(redis.Redis(port=server.port), timeout=2 * PATIENCE)

    def calls() -> Generator[Call, object, None]:
        limiter.close()
        yield from ()

    ends(lambda: inside(limiter).run(calls()))


async def test_a_call_may_close_its_limiter_on_asyncio(server: Server, key: str) -> None:
    async def connect(connection: Any) -> None:
        await limiter.close()

    client = redis.asyncio.Redis(port=server.port, redis_connect_func=connect)
    limiter = AsyncRateLimiter(client, timeout=2 * PATIENCE)
    with pytest.raises(Closed):
        await asyncio.wait_for(limiter.refund(key, "1/h"), PATIENCE)


async def test_a_command_that_waits_in_the_server_ends(server: Server, key: str) -> None:
    server.client.execute_command("RL.CONCURRENT", key, 1, "10m", "first")
    with RateLimiter(redis.Redis(port=server.port), timeout=20.0) as bare:
        limiter = AsyncRateLimiter(redis.asyncio.Redis(port=server.port), timeout=20.0)
        commands = [
            asyncio.create_task(asyncio.to_thread(bare.commands.concurrent, key, 1, "10m", "second", block="60s")),
            asyncio.create_task(limiter.commands.concurrent(key, 1, "10m", "third", block="60s")),
        ]
        await asyncio.to_thread(eventually, lambda: server.waiting() == 2, "the waits")
        await asyncio.to_thread(bare.close)
        await limiter.close()
        for each in commands:
            with pytest.raises(Closed):
                await each


async def test_an_estimate_without_an_answer_while_the_limiter_closes_is_settled(
    make: Maker, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limiter = make()
    added: list[str] = []
    monkeypatch.setattr(inside(limiter).background, "add", lambda job, _: added.append(job.call.command))  # pyright: ignore
    each = limiter.budget(key, BUCKET).hold(80)
    holding = each.holding()
    next(holding)
    inside(limiter).taken.close()
    with pytest.raises(Closed):
        holding.throw(Unavailable("RL.GCRA", "timeout", "no reply", maybe_sent=True))
    assert added == ["RL.SETTLE"] and each.closing() == []
