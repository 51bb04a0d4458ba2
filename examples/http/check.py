"""Real requests to both applications, each failing open and closed, on a Redis of their own (`tools/test-http`).

    check.py module folder-of-the-node-application

Prints a row for each application and check. All processes are stopped at the end, however it comes."""

import asyncio
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import redis

HERE = Path(__file__).parent
MODULE, NODE = sys.argv[1:]
started, rows = [], []


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(command, **environment):
    process = subprocess.Popen(
        list(map(str, command)), cwd=HERE, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=LOG
    )
    started.append(process)
    return process


def stop(process):
    process.kill()
    process.wait()


def until(question, what):
    for _ in range(200):
        with contextlib.suppress(redis.RedisError, httpx.HTTPError):
            if question():
                return
        time.sleep(0.05)
    raise SystemExit(f"{what} did not happen in 10 s")


def server(port):
    command = ["redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--loadmodule", MODULE]
    process = start(command)
    until(db.ping, "a start of Redis")
    return process


def application(name, fail, redis_port):
    port = free_port()
    # Room for fifty callers at once on a slow machine; a service would wait for less.
    uri, slow = f"redis://127.0.0.1:{redis_port}", {"fastapi": "2", "express": "2000"}[name]
    environment = {"REDIS": uri, "FAIL": fail, "UTILIZATION": "0.75", "TIMEOUT": slow, "PORT": str(port)}
    uvicorn = [sys.executable, "-m", "uvicorn", "app:app", "--port", port, "--no-access-log"]
    start(uvicorn if name == "fastapi" else ["node", Path(NODE) / "app.mjs"], **environment)
    url = f"http://127.0.0.1:{port}"
    until(lambda: httpx.get(url, headers={"x-api-key": "start"}), f"a start of {name}")
    return url


def check(app, what, passed, told):
    rows.append(passed)
    print(f"{app:<8} {what:<48} {'passed' if passed else 'FAILED':<7} {told}", flush=True)


def number(pattern, text):
    found = re.fullmatch(pattern, text or "")
    return [int(group) for group in found.groups()] if found else None


async def crowd(url, path, calls, callers, key):
    """Answers to `calls` requests by `callers` at a time."""
    async with httpx.AsyncClient(timeout=30, limits=httpx.Limits(max_connections=callers)) as client:
        await asyncio.gather(*(client.get(f"{url}/warm", headers={"x-api-key": f"w{i}"}) for i in range(callers)))
        return await asyncio.gather(*(client.get(url + path, headers={"x-api-key": key}) for _ in range(calls)))


def exactly_the_limit(app, url):
    before = time.monotonic()
    answers = asyncio.run(crowd(url, "/", 300, 50, f"{app}:crowd"))
    took = time.monotonic() - before
    passed = [a for a in answers if a.status_code == 200]
    refused = [a for a in answers if a.status_code == 429]
    check(app, "50 callers, 300 requests, 100 per 10 s", len(passed) == 100 and len(refused) == 200 and took < 10,
          f"{len(passed)} × 200, {len(refused)} × 429 in {took:.1f} s")

    policy = '"default";q=100;w=10'
    right = 0
    for answer in answers:
        fields = answer.headers
        left = number(r'"default";r=(\d+);t=(\d+)', fields.get("ratelimit"))
        if not left or fields.get("ratelimit-policy") != policy:
            continue
        if answer.status_code == 200:
            right += left[0] < 100 and left[1] == 10 and "retry-after" not in fields
        else:
            retry = int(fields.get("retry-after", 0))
            body = answer.json()["violated-policies"] == ["default"]
            right += left == [0, retry] and 1 <= retry <= 10 and body
    remaining = sorted(number(r'"default";r=(\d+);.*', a.headers["ratelimit"])[0] for a in passed)
    check(app, "headers of all 300", right == 300 and remaining == list(range(100)),
          f"{right} right; the admitted ones' r is 99 … 0, each once")
    example = refused[0].headers
    print(f"{'':<8} {policy}  {example['ratelimit']}  Retry-After: {example['retry-after']}")


def honest(app, url):
    def ask():
        return httpx.get(f"{url}/short", headers={"x-api-key": f"{app}:honest"})

    first = [ask().status_code for _ in range(2)]
    refused = ask()
    wait = int(refused.headers.get("retry-after", 0))
    fields = refused.headers.get("ratelimit")
    time.sleep(max(wait - 1, 0))
    early = ask().status_code
    time.sleep(1)
    late = ask().status_code
    right = (first, refused.status_code, early, late) == ([200, 200], 429, 429, 200) and fields == f'"short";r=0;t={wait}'
    check(app, "Retry-After is honest: 2 per 1.5 s", right, f"told {wait} s: {early} a second sooner, {late} then")


def shedding(app, url):
    db.delete("fleet")
    # Each report at 1 counts for at most the 200 ms of DELAY: a tenth of the ramp of 2,000. Six lead from -0.1 to 0.5.
    db.execute_command("RL.SHED", "fleet", 1, "DELAY", 200, "RAMP", 2000)
    for _ in range(6):
        time.sleep(0.21)
        db.execute_command("RL.SHED", "fleet", 1, "DELAY", 200, "RAMP", 2000)
    told = {path: [httpx.get(url + path, headers={"x-api-key": f"{app}:{path}"}) for _ in range(20)]
            for path in ("/report", "/page", "/pay")}
    codes = {path: {answer.status_code for answer in answers} for path, answers in told.items()}
    retry = {answer.headers.get("retry-after") for answer in told["/report"]}
    right = codes == {"/report": {503}, "/page": {200}, "/pay": {200}} and retry == {"5"}
    check(app, "half of the load shed: tier 1, tier 2, not asked", right,
          ", ".join(f"20 × {min(codes[path])} {path}" for path in codes) + f", Retry-After: {min(retry, key=str)}")
    db.delete("fleet")


def leases(app, url):
    key = f"{app}:streams"
    lease = f"streams:{key}"

    def held():
        _, limit, remaining, *_ = db.execute_command("RL.PEEK", lease, "CONCURRENT", 5, 60_000, "nobody", "COST", 0)
        return limit - remaining

    def hang_up():
        """A caller that opens a stream, reads its head and goes away without a word."""
        caller = socket.create_connection(("127.0.0.1", int(url.rsplit(":", 1)[1])))
        caller.sendall(f"GET /stream HTTP/1.1\r\nHost: x\r\nx-api-key: {key}\r\n\r\n".encode())
        head = caller.recv(4096)
        return caller, head

    callers = [hang_up() for _ in range(5)]
    full = held()
    refused = httpx.get(f"{url}/stream", headers={"x-api-key": key})
    for caller, _ in callers:
        caller.close()
    gone = time.monotonic()
    until(lambda: held() == 0, "the return of the leases")
    took = time.monotonic() - gone
    # And some who do not even wait for the first byte.
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", int(url.rsplit(":", 1)[1]))) as caller:
            caller.sendall(f"GET /stream HTTP/1.1\r\nHost: x\r\nx-api-key: {key}\r\n\r\n".encode())
    time.sleep(0.5)
    until(lambda: held() == 0, "the return of the hasty ones' leases")
    fields = refused.headers
    right = (
        all(b" 200 " in head for _, head in callers)
        and (full, refused.status_code, fields.get("retry-after")) == (5, 429, "1")
        and fields.get("ratelimit") == '"streams";r=0'
        and '"streams";q=5;qu="concurrent-requests"' in fields.get("ratelimit-policy", "")
        and took < 5
    )
    check(app, "leases: 5 streams, a sixth, all hang up; 5 hasty", right,
          f"{full} held, {refused.status_code}, 0 held {took:.1f} s later")


def budget(app, url):
    key = f"{app}:budget"
    bucket, requests = f"tokens:{key}", f"default:{key}"

    def left(name, *limit):
        return db.execute_command("RL.PEEK", name, *limit, "COST", 0)[2]

    def tokens():
        return left(bucket, "TOKENBUCKET", 1000, 1000, "1d")

    def held():
        return any(b"holds" in (db.execute_command("RL.INFO", name) or []) for name in (bucket, requests))

    def ask(query):
        with contextlib.suppress(httpx.RemoteProtocolError):  # of an answer that breaks off
            return httpx.get(f"{url}/chat?{query}", headers={"x-api-key": key})

    whole = ask("tokens=100").headers.get("ratelimit", "")
    until(lambda: not held(), "a settlement")
    told = [tokens()]
    ask("tokens=100&fail=50")
    until(lambda: not held(), "a settlement of what failed")
    told.append(tokens())
    callers = [socket.create_connection(("127.0.0.1", int(url.rsplit(":", 1)[1]))) for _ in range(2)]
    for caller in callers:
        caller.sendall(f"GET /chat?tokens=400 HTTP/1.1\r\nHost: x\r\nx-api-key: {key}\r\n\r\n".encode())
        caller.recv(4096)
    during, refused = tokens(), ask("tokens=1").status_code
    for caller in callers:
        caller.close()
    until(lambda: not held(), "a settlement after a hang-up")
    after = tokens()
    admitted = 100 - left(requests, "SLIDINGLOG", 100, "10s")
    right = '"tokens";r=600;' in whole and told == [900, 850] and (during, refused, admitted) == (50, 429, 4)
    check(app, "budget of 1,000: whole, broken off, two hang up", right and 450 < after < 850,
          f"{told[0]}, {told[1]}; {during} and {refused} meanwhile, then {after}")


def hanging(app, opened, closed):
    """Redis accepts connections and answers nothing: the middleware's own limit of time."""
    key = {"x-api-key": f"{app}:hanging"}
    process.send_signal(signal.SIGSTOP)
    try:
        before = time.monotonic()
        codes = [httpx.get(url, headers=key, timeout=30).status_code for url in (opened, closed)]
        took = (time.monotonic() - before) / 2
    finally:
        process.send_signal(signal.SIGCONT)
    check(app, "Redis hangs, time-out of 2 s", codes == [200, 503] and took < 4,
          f"fail open: {codes[0]}, closed: {codes[1]}; {took:.1f} s each")


def without_redis(app, opened, closed):
    key = {"x-api-key": f"{app}:away"}
    before = time.monotonic()
    passing = [httpx.get(opened, headers=key).status_code for _ in range(10)]
    refusing = [httpx.get(closed, headers=key) for _ in range(10)]
    took = (time.monotonic() - before) / 20 * 1000
    check(app, "Redis killed, fail open", passing == [200] * 10, f"{passing.count(200)} × 200")
    codes = [(answer.status_code, answer.headers.get("retry-after")) for answer in refusing]
    check(app, "Redis killed, fail closed", codes == [(503, "1")] * 10,
          f"{codes.count((503, '1'))} × 503, Retry-After: 1; {took:.0f} ms each")


def main():
    apps = {(name, fail): application(name, fail, port) for name in ("fastapi", "express") for fail in ("open", "closed")}
    print(f"{'app':<8} {'check':<48} {'':<7} told")
    for name in ("fastapi", "express"):
        for question in (exactly_the_limit, honest, shedding, leases, budget):
            question(name, apps[name, "open"])
    for name in ("fastapi", "express"):
        hanging(name, apps[name, "open"], apps[name, "closed"])
    stop(process)
    for name in ("fastapi", "express"):
        without_redis(name, apps[name, "open"], apps[name, "closed"])
    server(port)
    for (name, fail), url in apps.items():
        def asked():
            return "ratelimit" in httpx.get(url, headers={"x-api-key": f"{name}:back"}).headers

        before = time.monotonic()
        until(asked, "a way back")
        check(name, f"Redis back, after fail {fail}", True, f"limits again {time.monotonic() - before:.1f} s later")
    print(f"{sum(rows)} passed, {len(rows) - sum(rows)} failed")
    return 0 if all(rows) else 1


if __name__ == "__main__":
    port = free_port()
    db = redis.Redis(port=port)
    # A time-out's SIGTERM ends in `finally` too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    LOG = open(os.environ.get("LOG", os.devnull), "w")
    try:
        process = server(port)
        sys.exit(main())
    finally:
        for process in started:
            if process.poll() is None:
                stop(process)
