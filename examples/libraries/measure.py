"""Server CPU per call of two libraries, with their own Redis storage and the module's: `tools/test-http --measure`.

    measure.py module folder-of-the-node-application

20,000 calls after 1,000 to warm up; own and ours take turns by the thousand, and each figure is the median of three
rounds. "all" is the main thread's user and system time (INFO cpu), which is mostly reading and writing sockets; "inside"
is what of it the script or the command took (INFO commandstats). limits: one caller that waits for each answer.
rate-limiter-flexible: fifty, whose calls the server may read several at once."""

import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time

import limits_ratelimit  # noqa: F401, registers ratelimit+redis
import redis
from limits import RateLimitItemPerHour
from limits.storage import storage_from_string
from limits.strategies import FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter

MODULE, NODE = sys.argv[1:]
CALLS, SLICE, KEYS, ROUNDS = 20_000, 1_000, 1_000, 3
ROW = "{:<22} {:<32} {:>9} {:>9} {:>11} {:>12} {:>6}"


def used():
    """Seconds so far: of CPU, and inside scripts and RL commands."""
    cpu, inside = db.info("cpu"), db.info("commandstats")
    micros = (stat["usec"] for name, stat in inside.items() if name.startswith(("cmdstat_eval", "cmdstat_rl.")))
    return cpu["used_cpu_user_main_thread"] + cpu["used_cpu_sys_main_thread"], sum(micros) / 1e6


def measured(calls, right):
    """Server µs per call: in all, and of these inside the command or script, of each."""
    totals = [[0, 0] for _ in calls]
    for call in calls:
        for i in range(1_000):
            call(i)
    for start in range(0, CALLS, SLICE):
        for total, call in zip(totals, calls):
            before = used()
            answers = [call(i) for i in range(start, start + SLICE)]
            for figure, (then, now) in enumerate(zip(before, used())):
                total[figure] += now - then
            assert all(answer == right for answer in answers), f"not all {right}"
    return [[seconds * 1e6 / CALLS for seconds in total] for total in totals]


def limits(strategy, load):
    db.flushall()
    item = RateLimitItemPerHour(100)

    def call(scheme):
        limiter = strategy(storage_from_string(f"{scheme}://127.0.0.1:{port}", key_prefix=scheme))
        return lambda i: limiter.hit(item, "one" if load == "refused" else str(i % KEYS))

    return measured([call("redis"), call("ratelimit+redis")], load == "admitted")


def flexible(load):
    db.flushall()
    command = ["node", f"{NODE}/measure-node.cjs", str(port), load, str(CALLS), str(CALLS // SLICE)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout)


def row(library, what, question):
    rounds = [question() for _ in range(ROUNDS)]
    own, ours = ([statistics.median(f) for f in zip(*of_each)] for of_each in zip(*rounds))
    figures = [f"{figure:.1f}" for pair in zip(own, ours) for figure in pair]
    times = f"{own[1] / ours[1]:.1f}"
    print(ROW.format(library, what, *figures, times), flush=True)


# A time-out's SIGTERM ends in `finally` too.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
with socket.socket() as listener:
    listener.bind(("127.0.0.1", 0))
    port = listener.getsockname()[1]
server = subprocess.Popen(
    ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--loadmodule", MODULE],
    stdout=subprocess.DEVNULL,
)
try:
    db = redis.Redis(port=port)
    for _ in range(100):
        try:
            db.ping()
            break
        except redis.ConnectionError:
            time.sleep(0.1)
    print(f"redis-server {db.info('server')['redis_version']}, load {os.getloadavg()[0]:.1f}, µs of server CPU per call")
    print(ROW.format("library", "call", "all, own", "all, ours", "inside, own", "inside, ours", "times"))
    ping = statistics.median(measured([lambda _: db.ping()], True)[0][0] for _ in range(ROUNDS))
    print(ROW.format("none", "PING, one caller", f"{ping:.1f}", "", "", "", ""))
    for strategy in (FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter):
        for load in ("admitted", "refused"):
            name = strategy.__name__.removesuffix("RateLimiter")
            row("limits", f"{name}, {load}", lambda: limits(strategy, load))
    for load, what in (
        ("admitted", "consume, admitted"),
        ("refused", "consume, refused"),
        ("blocked", "consume, blocked by blockDuration"),
    ):
        row("rate-limiter-flexible", what, lambda: flexible(load))
finally:
    server.kill()
    server.wait()
