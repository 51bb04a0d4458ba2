"""Sends calls through the package redis-ratelimit to a cluster, one node of which listens at the port in argv[3].

argv[1] is the client. argv[2] is `commands`, on that client, or `limiter`, on connections of the limiter's own. Each line
of the input is a key and a call. The call is sent argv[4] times, each time with another number for #. Then a line is
printed."""

import asyncio
import sys
from inspect import isawaitable

from redis.asyncio.cluster import RedisCluster as AsyncRedisCluster
from redis.cluster import RedisCluster
from redis_ratelimit import AsyncRateLimiter, Gcra, RateLimiter
from redis_ratelimit.commands import AsyncCommands, Commands

CLIENTS = {
    "redis-py": (RedisCluster, Commands, RateLimiter),
    "redis.asyncio": (AsyncRedisCluster, AsyncCommands, AsyncRateLimiter),
}


def call(commands, key, command, *words):
    """The call of a line, by the method of its command."""
    if command == "TYPE":
        return commands.peek(key, Gcra(999, 1000, "1s"))
    if command == "RL.GCRA":
        return commands.gcra(words[0], int(words[1]), int(words[2]), words[3])
    if command == "RL.MULTI":
        return commands.multi([words[1]], [Gcra(int(words[4]), int(words[5]), words[6])])
    ask = {"RL.ASK": commands.ask, "RL.ASKPEEK": commands.ask_peek}[command]
    return ask(words[0], words[1], more_keys=words[3:])


async def main(client, way, port, calls):
    connect, on_client, limiter = CLIENTS[client]
    redis = connect(host="127.0.0.1", port=int(port))
    commands = {"commands": on_client, "limiter": lambda redis: limiter(redis, timeout=5).commands}[way](redis)
    for line in sys.stdin:
        for number in range(int(calls)):
            await finished(call(commands, *line.replace("#", str(number)).split()))
        print("sent", flush=True)
    await finished(redis.close() if client == "redis-py" else redis.aclose())


async def finished(reply):
    return await reply if isawaitable(reply) else reply


asyncio.run(main(*sys.argv[1:]))
