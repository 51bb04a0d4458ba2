"""Sends calls through redis-py or valkey-py to a cluster, one node of which listens at the port in argv[3].

argv[1] is the client, and argv[2] how it sends a call. Each line of the input is a key and a call. The call is sent
argv[4] times, each time with another number for #. Then a line is printed."""

import asyncio
import sys
from inspect import isawaitable

from redis.asyncio.cluster import RedisCluster as AsyncRedisCluster
from redis.cluster import RedisCluster
from valkey.asyncio.cluster import ValkeyCluster as AsyncValkeyCluster
from valkey.cluster import ValkeyCluster

CLIENTS = {
    "redis-py": RedisCluster,
    "redis.asyncio": AsyncRedisCluster,
    "valkey-py": ValkeyCluster,
    "valkey.asyncio": AsyncValkeyCluster,
}


async def main(client, way, port, calls):
    redis = await finished(CLIENTS[client](host="127.0.0.1", port=int(port)))
    for line in sys.stdin:
        for number in range(int(calls)):
            key, *words = line.replace("#", str(number)).split()
            if way == "execute_command":
                reply = redis.execute_command(*words)
            elif way == "target_nodes":
                reply = redis.execute_command(*words, target_nodes=redis.get_node_from_key(key))
            else:
                sys.exit(f"{client} has no {way}")
            await finished(reply)
        print("sent", flush=True)
    await finished(redis.close())


async def finished(reply):
    return await reply if isawaitable(reply) else reply


asyncio.run(main(*sys.argv[1:]))
