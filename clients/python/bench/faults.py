"""Prints what faults of servers cost the callers of a limiter, for threads and for asyncio.

    faults.py [FAULT ...]

Eight callers ask without a pause, with a time-out of 100 ms, and ten leases are held. Then the fault begins. The table has the
calls without an answer, the leases that were lost, the most connections, and how long calls went unanswered after the fault."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import redis
import redis.asyncio

sys.path[:0] = [str(Path(__file__).parents[1] / part) for part in ("src", "tests")]

from both import KINDS, OnThreads
from redis_ratelimit import AsyncRateLimiter, RateLimiter, Refused
from servers import Cluster, Proxy, Server

CALLERS, LEASES = 8, 10
BEFORE, AFTER = 0.3, 1.0
RATE = "1000000000/s"


class Row(NamedTuple):
    """What a fault did."""

    unanswered: str
    lost: int | str = "–"
    connections: int | str = "–"
    seconds: str = "–"


Hurt = Callable[[Server], Awaitable[None]]


async def measured(
    limiter: AsyncRateLimiter,
    servers: list[Server],
    hurt: Awaitable[None],
    callers: int = CALLERS,
    leases: int = LEASES,
    every: float = 0.0,
    after: float = AFTER,
) -> Row:
    """Asks while a fault comes and goes: each caller again at once, or after `every` seconds. All callers and leases have keys of
    their own, so that all nodes have some."""
    answers: list[tuple[float, bool]] = []
    most, others = 0, connected(servers)
    stops = False

    async def ask(number: int) -> None:
        while not stops:
            answered = (await limiter.limit(f"faults:{number}", RATE)).answered
            answers.append((time.monotonic(), answered))
            if every or not answered:
                await asyncio.sleep(every or 0.001)  # a failing limiter answers at once

    async with AsyncExitStack() as stack:
        for number in range(leases):
            with suppress(Refused):
                await stack.enter_async_context(limiter.lease(f"faults:lease:{number}", 1, "6s", wait="5s"))
        tasks = [asyncio.create_task(ask(number)) for number in range(callers)]
        await asyncio.sleep(BEFORE)
        most = connected(servers) - others
        await hurt
        ended = time.monotonic()
        await asyncio.sleep(after)
        with suppress(redis.RedisError):
            most = max(most, connected(servers) - others)
        stops = True
        await asyncio.gather(*tasks)
        unanswered = [at for at, answered in answers if not answered]
        lost = limiter.counters["leases_lost"]
    await limiter.close()
    late = max([at - ended for at in unanswered if at > ended], default=0.0)
    return Row(f"{len(unanswered):,} of {len(answers):,}", lost, most, f"{late:.2f}")


def connected(servers: list[Server]) -> int:
    """How many connections the servers have."""
    return sum(int(server.client.info("clients")["connected_clients"]) for server in servers)


def kill(server: Server) -> None:
    """Kills the connections of all but this one."""
    server.client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


async def killed_once(server: Server) -> None:
    kill(server)


async def killed_often(server: Server) -> None:
    for _ in range(10):
        kill(server)
        await asyncio.sleep(0.2)


async def silent(server: Server) -> None:
    with server.frozen():
        await asyncio.sleep(4)


async def full(server: Server) -> None:
    kill(server)
    server.client.config_set("maxclients", 9)
    await asyncio.sleep(2)
    server.client.config_set("maxclients", 10_000)


async def rotated(server: Server) -> None:
    server.client.config_set("requirepass", "another")
    kill(server)
    await asyncio.sleep(2)
    server.client.config_set("requirepass", "")


async def without_module(kind: str) -> Row:
    """The module is missing. Nothing opens the breaker, and each call follows `fail`."""
    with Server(module=False) as server:
        return await measured(KINDS[kind](server.port), [server], asyncio.sleep(1), leases=0)


async def cancelled(kind: str) -> Row:
    """200 tasks wait in the server for a lease, and are cancelled."""
    if kind == "threads":
        return Row("no call of a thread is cancelled")
    with Server() as server:
        limiter = KINDS[kind](server.port)

        async def wait() -> None:
            async with limiter.lease("faults:pool", 1, "1m", wait="1m"):
                pass

        async with limiter.lease("faults:pool", 1, "1m"):
            tasks = [asyncio.create_task(wait()) for _ in range(200)]
            while server.waiting() < 200:
                await asyncio.sleep(0.05)
            most = connected([server])
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.sleep(3)
            releases = server.calls("rl.release")
        await limiter.close()
        return Row(f"{releases} releases", 0, most)


async def silent_node(cluster: Cluster) -> None:
    with cluster.primaries[0].frozen():
        await asyncio.sleep(4)


async def promoted(cluster: Cluster) -> None:
    """A replica takes over, as before work on its primary."""
    await taken_over(cluster, "CLUSTER", "FAILOVER")


async def died(cluster: Cluster) -> None:
    """A primary is killed. Its replica takes over once the others have noticed."""
    cluster.primaries[0].stop()
    await taken_over(cluster)


async def taken_over(cluster: Cluster, *command: str) -> None:
    """Waits until the replica of the first primary is a primary, and the others know."""
    replica, others = cluster.replicas[0], cluster.primaries[1:]
    if command:
        replica.client.execute_command(*command)
    end = time.monotonic() + 30
    while not all(str(replica.port) in str(shards(node)[0][2]) for node in others) or replica.cluster("state") != "ok":
        if time.monotonic() > end:
            raise TimeoutError("the replica did not take over")
        await asyncio.sleep(0.02)


def shards(node: Server) -> Any:
    """CLUSTER SLOTS, by slots. Of each shard the primary is named first."""
    return sorted(node.client.execute_command("CLUSTER", "SLOTS"))


def on_cluster(hurt: Callable[[Cluster], Awaitable[None]], patience: int = 5000) -> Callable[[str], Awaitable[Row]]:
    async def run(kind: str) -> Row:
        cluster = Cluster(patience)
        try:
            clients: Any = redis.RedisCluster if kind == "threads" else redis.asyncio.RedisCluster
            client = clients(host="127.0.0.1", port=cluster.nodes[1].port)
            limiter: Any = OnThreads(RateLimiter(client)) if kind == "threads" else AsyncRateLimiter(client)
            others = [node for node in cluster.nodes if node is not cluster.primaries[0]]
            return await measured(limiter, others, hurt(cluster))
        finally:
            cluster.stop()

    return run


def asked_in_child(limiter: RateLimiter) -> None:
    """Ends with 0 if the child of a fork has an answer."""
    sys.exit(0 if limiter.limit("faults:fork", RATE).answered else 1)


async def forked(kind: str) -> Row:
    """Ten children of a process whose limiter has connections."""
    if kind == "asyncio":
        return Row("an event loop is not forked")
    with Server() as server, RateLimiter(redis.Redis(port=server.port), timeout=5.0) as limiter:
        limiter.limit("faults:fork", RATE)
        children = [get_context("fork").Process(target=asked_in_child, args=(limiter,)) for _ in range(10)]
        for child in children:
            child.start()
            child.join()
        return Row(f"{sum(child.exitcode != 0 for child in children)} of 10 children")


def on_server(hurt: Hurt, *settings: str, **options: Any) -> Callable[[str], Awaitable[Row]]:
    async def run(kind: str) -> Row:
        with Server(*settings) as server:
            return await measured(KINDS[kind](server.port), [server], hurt(server), **options)

    return run


def swapped(before: Server, after: Server, proxy: Proxy) -> None:
    """The primary becomes a replica, and new connections to its address lead to another one."""
    proxy.lead_to(after.port)
    before.client.replicaof("127.0.0.1", after.port)


def silenced(_before: Server, _after: Server, proxy: Proxy) -> None:
    """All open connections go silent. New ones work."""
    proxy.silence()


def behind_proxy(hurt: Callable[[Server, Server, Proxy], None], **options: Any) -> Callable[[str], Awaitable[Row]]:
    async def run(kind: str) -> Row:
        with Server() as server, Server() as other, Proxy(server.port) as proxy:

            async def fault() -> None:
                hurt(server, other, proxy)

            return await measured(KINDS[kind](proxy.port), [server, other], fault(), leases=0, **options)

    return run


async def queue_full(server: Server) -> None:
    """The server stops, and its backlog is full, so connections are not accepted either."""
    with server.frozen():
        filling = [socket.socket() for _ in range(64)]
        for each in filling:
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", server.port))
        await asyncio.sleep(4)
        for each in filling:
            each.close()


async def restarted(kind: str) -> Row:
    """The server is killed, and another one starts at its address a second later."""
    with Server() as server, Server() as other, Proxy(server.port) as proxy:

        async def fault() -> None:
            server.stop()
            await asyncio.sleep(1)
            proxy.lead_to(other.port)

        return await measured(KINDS[kind](proxy.port), [other], fault(), leases=0)


FAULTS: dict[str, Callable[[str], Awaitable[Row]]] = {
    "all connections killed once": on_server(killed_once),
    "all killed five times a second, 2 s": on_server(killed_often),
    "silent for 4 s": on_server(silent),
    "no more than 8 connections, 32 callers": on_server(full, callers=32, leases=0),
    "another password for 2 s": on_server(rotated),
    "no module": without_module,
    "200 cancelled waits": cancelled,
    "one silent node of three, 4 s": on_cluster(silent_node),
    "a replica of three is promoted": on_cluster(promoted),
    "a primary of three is killed": on_cluster(died, patience=1500),
    "fork": forked,
    "killed, and another one 1 s later": restarted,
    "silent for 4 s, and its backlog is full": on_server(queue_full, "--tcp-backlog", "4", leases=0),
    "address swapped, 8 callers each 10 ms": behind_proxy(swapped, every=0.01, after=5.0),
    "address swapped, one caller each 250 ms": behind_proxy(swapped, every=0.25, callers=1, after=10.0),
    "silent connections, 8 callers each 10 ms": behind_proxy(silenced, every=0.01, after=5.0),
    "silent connections, one caller each 300 ms": behind_proxy(silenced, every=0.3, callers=1, after=6.0),
    "silent connections, one caller each 2 s": behind_proxy(silenced, every=2.0, callers=1, after=14.0),
}


async def main(faults: list[str]) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(128))
    print("| fault | package | unanswered | leases lost | connections | answered again after, s |")
    print("|---|---|---|---|---|---|")
    for fault in faults or FAULTS:
        for kind in ("threads", "asyncio"):
            row = await FAULTS[fault](kind)
            print("|", " | ".join(map(str, (fault, kind, *row))), "|", flush=True)


if __name__ == "__main__":
    logging.getLogger("redis_ratelimit").setLevel(logging.ERROR)
    asyncio.run(main(sys.argv[1:]))
