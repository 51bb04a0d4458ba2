"""Sends calls through Valkey GLIDE to a cluster, one node of which listens at the port in argv[2].

argv[1] is how it sends a call: `custom_command` alone, or with a `route`. Each line of the input is a key and a call. The
call is sent argv[3] times, each time with another number for #. Then a line is printed."""

import asyncio
import sys

from glide import (
    GlideClusterClient,
    GlideClusterClientConfiguration,
    Logger,
    LogLevel,
    NodeAddress,
    SlotKeyRoute,
    SlotType,
)


async def main(way, port, calls):
    Logger.set_logger_config(LogLevel.OFF)  # else it writes to the output that is read
    node = NodeAddress("127.0.0.1", int(port))
    glide = await GlideClusterClient.create(GlideClusterClientConfiguration([node], request_timeout=5000))
    for line in sys.stdin:
        for number in range(int(calls)):
            key, *words = line.replace("#", str(number)).split()
            route = SlotKeyRoute(SlotType.PRIMARY, key) if way == "route" else None
            await glide.custom_command(words, route)
        print("sent", flush=True)
    await glide.close()


asyncio.run(main(*sys.argv[1:]))
